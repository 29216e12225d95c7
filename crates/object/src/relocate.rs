//! Relocation, in libbpf's order.
//!
//! When an object is opened, [`patches`] reads the ELF relocations once: the reference of
//! each slot, by program. When it is linked,
//!
//! 1. [`core`] applies CO-RE relocations in one copy of all instructions;
//! 2. [`assemble`] builds each program: its own instructions, then those of called
//!    functions, in libbpf's order, with their func_info and line_info;
//! 3. [`data`] patches references of maps, variables and externs.
//!
//! Linear in instructions and relocations, with a binary search for each call. Each
//! program has its own copy of shared functions, as the kernel requires; [`LARGEST`]
//! bounds the total.

pub(crate) mod assemble;
pub(crate) mod callback;
pub(crate) mod core;
pub(crate) mod data;
mod fault;
pub(crate) mod info;
pub(crate) mod patches;

pub use fault::RelocationFault;

/// Maximum number of slots, records and references of all programs of an object together:
/// sixteen programs of the kernel's maximum size.
pub(crate) const LARGEST: usize = 1 << 24;
