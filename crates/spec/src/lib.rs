//! Definitions that verifier, loader and engines share: program types, attach types, map
//! kinds, helpers and context layouts by Linux's numbers and names; the release that
//! introduced each; kfuncs, bit operations among them, and prototypes of functions of a host;
//! the description of a kernel ([`Kernel`]); the registry of helper
//! prototypes, context accesses and kfuncs; traits for clock and random numbers.
#![forbid(unsafe_code)]

pub mod bits;
pub mod calls;
pub mod context;
mod errno;
pub mod helpers;
pub mod host;
pub mod kernel;
pub mod kfuncs;
pub mod maps;
mod ports;
pub mod programs;
pub mod registry;
pub mod since;

pub use errno::Errno;
pub use kernel::Kernel;
pub use ports::{Clock, Printk, Random, SplitMix};
