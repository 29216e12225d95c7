//! Definitions that verifier, loader and engines share: program types, attach types, map
//! kinds, helpers and context layouts by Linux's numbers and names; the release that
//! introduced each; kfuncs, bit operations among them, and prototypes of functions of a host;
//! the description of a kernel ([`Kernel`]); the registry of helper
//! prototypes, context accesses and kfuncs; traits for clock and random numbers.
//!
//! # Modules
//!
//! `behaviour.rs` has the changes of Linux that decide what its verifier answers, a row for each, and
//! which of them a kernel has.
//!
//! Tables of Linux's names with the release that introduced each: program types and section names,
//! map kinds, helpers, kfuncs, features of instructions. `kernel/` is the description of one
//! kernel, each fact with its source; `registry/` is what a kernel offers to programs: prototypes,
//! context and socket accesses, how many instructions Linux makes of accesses and calls
//! (`rewriting.rs`), return ranges, targets of iterators, map traits, kfuncs, lists; `signature.rs`
//! writes a prototype in one line, as implementations declare it; `registry/text/` reads and writes
//! its text form, a file for each kind of line. A `Registry` is made of its text alone.
//! `loader.rs` has the conventions of the loaders of objects, with a table of section names each
//! (`programs/sections/`). `callback.rs` has the kinds of functions of a program that helpers and kfuncs call. `bits.rs`
//! has the bit operations: kfuncs of a module that descriptions of kernels may have. `host/` has
//! the prototypes of functions of a host, their module and their helpers; `kfuncs.rs` numbers the
//! functions that programs call as kfuncs, and finds them by BTF id.
#![forbid(unsafe_code)]

pub mod behaviour;
pub mod bits;
pub mod callback;
pub mod calls;
pub mod context;
mod errno;
pub mod helpers;
pub mod host;
pub mod kernel;
pub mod kfuncs;
pub mod limits;
pub mod loader;
pub mod maps;
mod ports;
pub mod programs;
pub mod registry;
pub mod since;

pub use errno::{Errno, Result};
pub use kernel::Kernel;
pub use ports::{Clock, Printk, Random, SplitMix};
