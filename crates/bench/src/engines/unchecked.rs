//! Unsafe code of the engines that run a workload without checks: native code of clang,
//! rbpf, solana-sbpf and Beebox.
//!
//! Safety argument: the source of each workload compares every access with the end of the
//! data, and the kernel's verifier accepts every workload (a test checks that).
#![allow(unsafe_code)]

use std::path::Path;

use isa::ebpf::{self, RawInsn};
use lower::{Lowered, Malformed, MemoryProgram};
use rbpf::EbpfVmMbuff;
use solana_sbpf::memory_region::MemoryMapping;
use solana_sbpf::program::SBPFVersion;
use solana_sbpf::vm::Config;
use sys::library::{Entry, LibraryError};
use vm::Unchecked;

use super::object::ENTRY;
use crate::race::NO_ANSWER;

/// Lowers a program of a workload (widened).
pub(super) fn lowered(program: &[RawInsn]) -> Result<Lowered<MemoryProgram>, Malformed> {
    // SAFETY: the programs of the workloads are safe (see above) on the memory
    // of a region, which is what they are run on.
    let trusted = unsafe { Unchecked::assume_safe(ebpf::decode(program)) };
    Lowered::from_unchecked(trusted)
}

/// Loads the native code of a workload, which clang just made.
pub(super) fn load(file: &Path) -> Result<Entry, LibraryError> {
    // SAFETY: the file does nothing when it is loaded, and the entry of every
    // workload takes a pointer and returns a `u32`.
    unsafe { Entry::load(file, ENTRY) }
}

/// Runs the native code of a workload on the memory of a region.
#[inline(always)]
pub(super) fn native(entry: &Entry, memory: &mut [u8]) -> u32 {
    // SAFETY: the code does what its source says (see above), and all of the
    // region is behind the pointer.
    unsafe { entry.call(memory.as_mut_ptr().cast()) }
}

/// Runs what rbpf has compiled of a workload on the parts of a region.
#[inline(always)]
pub(super) fn rbpf_jit(machine: &EbpfVmMbuff<'_>, context: &mut [u8], data: &mut [u8]) -> u32 {
    // rbpf requires a context that lives as long as the program, and uses it during the
    // call only.
    // SAFETY: the slice is the one just borrowed, used only during the call.
    let context = unsafe { std::slice::from_raw_parts_mut(context.as_mut_ptr(), context.len()) };
    // SAFETY: the program is safe (see above) and rbpf compiled it.
    unsafe { machine.execute_program_jit(data, context) }.map_or(NO_ANSWER, |value| value as u32)
}

/// solana-sbpf's memory mapping, with address translation disabled: programs access host
/// memory directly, which is safe as above.
pub(super) fn no_mapping(config: &Config, dialect: SBPFVersion) -> MemoryMapping {
    assert!(!config.enable_address_translation);
    // SAFETY: there is no region whose memory would have to be there.
    let mapping = unsafe { MemoryMapping::new(Vec::new(), config, dialect) };
    mapping.expect("no regions overlap")
}
