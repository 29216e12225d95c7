//! What is behind the promised items: for the command, the gateway and the tools of this
//! repository. Nothing here is promised; a name may change or go with any version.

pub mod btf;
#[cfg(feature = "run")]
pub mod bytes;
#[cfg(feature = "capture")]
pub mod captures;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub mod classic;
pub mod ebpf;
#[cfg(feature = "run")]
pub mod expect;
#[cfg(feature = "run")]
pub mod host;
pub mod kernel;
#[cfg(feature = "kernel-data")]
mod kernel_files;
#[cfg(feature = "decompress")]
mod kernel_image;
#[cfg(feature = "run")]
pub mod listing;
#[cfg(feature = "run")]
pub mod maps;
#[cfg(feature = "run")]
pub mod maps_json;
#[cfg(feature = "run")]
pub mod native;
#[cfg(feature = "run")]
pub mod network;
pub mod object;
#[cfg(feature = "run")]
pub mod pod;
pub mod program;
#[cfg(feature = "run")]
pub mod raw;
#[cfg(feature = "run")]
pub mod run;
#[cfg(feature = "seccomp")]
pub mod seccomp;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub mod text;
mod type_file;
pub mod variables;
pub mod verify;

#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use ::classic::run::{Next, Step};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use ::classic::{Checked, JumpLimitExceeded, Refusal, Rule, Rules, Semantics, Stage};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use isa::classic::{Insn as ClassicInsn, SockFilter};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use jit::memory::{Image, MemoryError, Pool, PoolOptions, Writing};
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use jit::perf;

#[cfg(any(feature = "run", feature = "kernel-data"))]
use std::path::Path;

/// The most bytes that are taken from a file, or that `zero:N` makes.
pub const MOST_BYTES: u64 = 1 << 30;

/// The name of a path in messages.
#[cfg(any(feature = "run", feature = "kernel-data"))]
pub(crate) fn name_of(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}
