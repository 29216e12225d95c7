//! Native code for lowered programs.
//!
//! Compilation has three steps: `analysis` computes liveness and finds rewrites, `codegen` decides
//! on the code and writes it by the assembler and the selection of a processor, with unresolved
//! jumps, and a pool of executable memory receives the result ([`memory`]). A [`Native`] can only be
//! made of a [`lower::Lowered`], whose evidence (the classic checker's, the verifier's proof, or the
//! caller's assertion of safety) is what the code rests on.
//!
//! # Modules
//!
//! `analysis/` and `codegen/` are independent of the processor. In `analysis/`, `scan.rs` is the
//! pass over all slots that records what functions use, `slot_info.rs` what is known of a slot beside its
//! node in the graph of `lower`, `idiom.rs` the rewrites of several instructions, `window.rs` the
//! cost model of comparison trees. `optimization.rs` lists the optimizations, each of which can be
//! disabled. In `codegen/`, `target.rs` is the interface of a processor, `generator.rs` the pass over
//! the program, `frame.rs` assigns registers and lays out the stack (every function but the entry
//! takes the native context in a register and may be called from any other), `branch.rs` fuses
//! comparisons, jumps and conditional moves, `comparison_tree.rs` emits tables and binary searches,
//! `packet.rs` checks the bounds of packet loads, `hash_lookup.rs` looks up keys of hash maps,
//! `deadline.rs` adds deadline checks, `tail_call.rs` tail calls and the entries of a program.
//!
//! `x64/` is x86-64: one file for each kind of instruction selects machine instructions, `asm.rs` is
//! the assembler and `encode.rs` the encoder, `buffer.rs` relaxes branches, `divide/` divides by
//! constants, `retpoline.rs` has the indirect branches. `backend.rs` names the processor that code
//! is generated for. `memory.rs` is the pool of executable memory, over `memory/regions.rs`,
//! `memory/holes.rs` (free space) and `memory/pages.rs` (system calls); `native.rs` is a program of a
//! kind in it (`Native<K>`), `native/entry.rs` its entry by what the code takes,
//! `native/classic.rs`, `native/memory.rs` and `native/verified.rs` the runs of each kind, and
//! `native/context.rs` the native context, `draft.rs` code for inspection, `perf.rs` the interface
//! to the profiler.

mod analysis;
mod backend;
mod codegen;
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
    CompileError, ENTRY_SLOT, EntryAbi, Native, NativeCode, NoSuchCpu, OnMemory, Options, PacketFn,
    VerifiedNative,
};
pub use optimization::{Applied, Optimization, Optimizations};
pub use x64::Features;
