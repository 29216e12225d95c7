//! Native code for lowered programs.
//!
//! A program goes through three steps: [`analysis`](self) says what is wanted and
//! finds idioms, a backend writes machine code with open jumps, and a pool of
//! executable memory takes the result ([`memory`]). Only a [`lower::Lowered`] can
//! become a [`Native`], so only what is proved safe, or what a host vouches for
//! with an `unsafe` word, runs.

mod analysis;
mod backend;
mod draft;
pub mod memory;
mod native;
mod optimization;
pub mod perf;
#[cfg(target_arch = "x86_64")]
mod spare;
mod x64;

pub use draft::Draft;
pub use native::{CompileError, Native, OnMemory, OnPackets, Options};
pub use optimization::{Applied, Optimization, Optimizations};
#[cfg(target_arch = "x86_64")]
pub use x64::Features;
