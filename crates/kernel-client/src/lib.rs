//! The running Linux as oracle of tests: loads programs with their types, maps and initial
//! contents, returns the verifier's answer and runs what it accepts. Nothing is attached.
//!
//! - [`load`] gives one program to the kernel, [`object`] the programs of an object with maps
//!   that they share;
//! - [`verdict`] is the verifier's answer;
//! - [`unprivileged`] asks as a caller without some capabilities;
//! - [`arena`] reads and writes arenas as user space does;
//! - [`kernel_release`] says whether the kernel is the one that Beebox answers for.
#![forbid(unsafe_code)]

pub mod arena;
mod availability;
pub mod load;
pub mod object;
pub mod unprivileged;
pub mod verdict;

use std::io;

use spec::Kernel;
use spec::kernel::{Features, Source};

pub use availability::{KERNEL, Unavailable, in_own_namespace, kernel_release, unavailable};

/// Description of the running kernel as libbpf of the selftests sees it: without a wrapper of
/// system calls, because this libbpf looks for one with a kprobe.
///
/// # Errors
/// If the kernel has no description here.
pub fn running_kernel() -> io::Result<Kernel> {
    let kernel = sys::kernel::running()?;
    let features = Features {
        syscall_wrapper: false,
        ..kernel.features()
    };
    Ok(kernel.with_features(features, Source::Given))
}
