//! What is behind the promised items: for the command, the gateway and the tools of this
//! repository. Nothing here is promised; a name may change or go with any version.

pub mod btf;
pub mod bytes;
pub mod captures;
pub mod classic;
pub mod ebpf;
pub mod expect;
pub mod host;
pub mod kernel;
#[cfg(feature = "kernel-data")]
mod kernel_files;
mod kernel_image;
pub mod listing;
pub mod maps;
pub mod maps_json;
pub mod native;
pub mod network;
pub mod object;
pub mod pod;
pub mod program;
pub mod raw;
pub mod run;
pub mod seccomp;
pub mod text;
mod type_file;
pub mod variables;
pub mod verify;

pub use ::classic::run::{Next, Step};
pub use ::classic::{Checked, JumpLimitExceeded, Refusal, Rule, Rules, Semantics, Stage};
pub use isa::classic::{Insn as ClassicInsn, SockFilter};
pub use jit::memory::{Image, MemoryError, Pool, PoolOptions, Writing};
pub use jit::perf;
