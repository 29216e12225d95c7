//! Native code for lowered programs.
//!
//! Compilation has three steps: `analysis` computes liveness and finds rewrites, a backend
//! generates machine code with unresolved jumps, and a pool of executable memory receives
//! the result ([`memory`]). A [`Native`] can only be made of a [`lower::Lowered`], whose
//! evidence (the classic checker's, the verifier's proof, or the caller's assertion of safety)
//! is what the code rests on.

mod analysis;
mod backend;
mod draft;
// Elsewhere there are no pages, and so nothing that could follow from them.
#[cfg_attr(
    not(target_os = "linux"),
    allow(unreachable_code, unused_mut, unused_variables)
)]
pub mod memory;
mod native;
mod optimization;
pub mod perf;
mod x64;

pub use backend::RUNS_HERE;
pub use draft::Draft;
pub use native::{
    CompileError, ENTRY_SLOT, Entered, Native, NativeCode, NoSuchCpu, OnMemory, OnPackets, Options,
    VerifiedNative,
};
pub use optimization::{Applied, Optimization, Optimizations};
pub use x64::Features;
