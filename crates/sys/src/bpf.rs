//! bpf(2): programs, maps and BTF given to the running kernel; programs run there on
//! given data and read back as the kernel translated and compiled them; maps operated
//! on from user space.
//!
//! | file | commands |
//! |---|---|
//! | `prog_load` | BPF_PROG_LOAD with everything that it takes |
//! | `load` | the same for programs that can be run, with the reason of a refusal |
//! | `load_btf` | BPF_BTF_LOAD |
//! | `map` | BPF_MAP_CREATE, operations on elements and batches, BPF_MAP_FREEZE |
//! | `test_run` | BPF_PROG_TEST_RUN |
//! | `info` | BPF_OBJ_GET_INFO_BY_FD |
//!
//! Nothing here attaches a program to anything, so nothing outside this process
//! sees one. A [`Program`] is a file descriptor and is gone when it is dropped.
//! All of it needs CAP_BPF (and CAP_NET_ADMIN for the networking types), or root.

mod attributes;
mod info;
mod load;
mod load_btf;
mod map;
mod prog_load;
mod test_run;

pub use info::Info;
pub use load::{Load, LogLevel, ProgramType, Refused, load};
pub use load_btf::{BtfAnswer, BtfObject, load_btf};
pub use map::{Batch, Map, MapDescription, MapRequest};
pub use prog_load::{Answer, LARGEST_LOG, ProgLoad, prog_load};
pub use test_run::{TestRun, Tested};

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A program that the kernel loaded.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

impl Program {
    /// The descriptor's number, as a map of programs holds it.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
