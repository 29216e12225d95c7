//! From programs as compiled to programs as loaded, in libbpf's order.
//!
//! When an object is opened, [`patches`] reads the relocations of its instructions
//! once: what each slot refers to, by program. When it is linked,
//!
//! 1. [`core`] brings the numbers that depend on the kernel's types up to date, in
//!    one copy of all instructions;
//! 2. [`assemble`] makes each program: its own instructions, then those of every
//!    function that is called, in the order in which the calls are met, with the
//!    types and source lines of each piece moved along;
//! 3. [`data`] lets loads and calls refer to maps, variables and the kernel.
//!
//! Cost: linear in instructions and relocations; a look-up by halving for each
//! call. Programs that share a function get a copy each, as kernels want it; a
//! [`LARGEST`] object ends what a few bytes of a file could ask for.

pub(crate) mod assemble;
pub(crate) mod callback;
pub(crate) mod core;
pub(crate) mod data;
mod fault;
pub(crate) mod info;
pub(crate) mod patches;

pub use fault::RelocationFault;

/// The most slots, and records of types, lines and references, that the programs of
/// an object may have together: sixteen programs of the largest size that kernels
/// take.
pub(crate) const LARGEST: usize = 1 << 24;
