//! Beebox, the Linux BPF machine in user space: the library to embed.
//!
//! ```
//! use beebox::{Engine, Filter, Metadata, Packet, Rules, Semantics, SockFilter};
//!
//! // "Is it IPv4?": ldh [12]; jeq #0x800; ret #-1; ret #0
//! let program = [
//!     SockFilter::new(0x28, 0, 0, 12),
//!     SockFilter::new(0x15, 0, 1, 0x800),
//!     SockFilter::new(0x06, 0, 0, u32::MAX),
//!     SockFilter::new(0x06, 0, 0, 0),
//! ];
//! let filter = Filter::new(&program, Rules::Capture, Semantics::Capture, Engine::Interp)?;
//! let mut runner = filter.runner(1);
//!
//! let frame = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00, 0x45];
//! let packet = Packet::captured(&frame, 60, &Metadata::UNKNOWN);
//! assert_eq!(runner.run(&packet), Ok(u32::MAX));
//! # Ok::<(), beebox::Refusal>(())
//! ```
#![forbid(unsafe_code)]

pub mod captures;
mod engine;
mod filter;
mod kernel;
pub mod raw;
mod seccomp;

pub use ::object;
pub use ::program;
pub use classic::{Endless, Refusal, Rules, SeccompData, Semantics};
pub use engine::Engine;
pub use filter::{Filter, Runner};
pub use isa::classic::SockFilter;
pub use jit::memory::Pool;
pub use jit::perf;
pub use kernel::RunningKernel;
pub use packet::{Device, Metadata, Packet, VlanTag};
pub use seccomp::SeccompFilter;
