//! bpf(2): programs loaded into the running kernel, run there on given data, and
//! read back as the kernel translated and compiled them.
//!
//! Nothing here attaches a program to anything, so nothing outside this process
//! sees one. A [`Program`] is a file descriptor and is gone when it is dropped.
//! All of it needs CAP_BPF (and CAP_NET_ADMIN for the networking types), or root.

mod attributes;
mod info;
mod load;
mod load_btf;
mod map;
mod question;
mod test_run;

pub use info::Info;
pub use load::{Load, LogLevel, ProgramType, Refused, load};
pub use load_btf::{BtfAnswer, load_btf};
pub use map::{Map, MapRequest};
pub use question::{Question, question};
pub use test_run::{TestRun, Tested};

use std::os::fd::OwnedFd;

/// A program that the kernel loaded.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}
