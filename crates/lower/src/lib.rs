//! Lowering: from evidence that a program is safe to code that engines run unchecked.
//!
//! A [`LoweredCode`] is constructed from evidence only:
//!
//! * the classic checker, which proves that jumps and scratch words are in range (the
//!   conversion adds only accesses to its own context and stack),
//! * the caller's assertion of safety, after a check of the program's structure
//!   ([`Malformed`]), or
//! * the verifier's proof ([`Proof`](verifier::Proof)), by which references to maps and
//!   accesses to the context are rewritten.
//!
//! A [`Lowered`] has its kind as a type ([`kind`]), from which engines derive its entry
//! points; it dereferences to its [`LoweredCode`], which is not run by itself.
//!
//! Analyses that several engines need are here too: the control-flow graph with definitions
//! and uses ([`flow`]), and comparison trees ([`trees`]).
//!
//! # Modules
//!
//! `structure.rs` checks the structure of programs whose safety the caller asserts, in one pass;
//! `scratch.rs` moves scratch words of classic programs to free registers; `verified.rs` rewrites
//! programs that the verifier accepted (`verifier::Proof`): map references become addresses,
//! accesses to the context those of `vm::DirectContext`; `premises.rs` compares what a proof takes
//! from the registry with the code that runs; `passes/` has the passes over them, each of which can
//! be left out (constants and decided branches in `constants.rs`, operations on maps in `accesses.rs`,
//! with how keys were stored in `key_stores.rs`; loops in place of helpers in `loops.rs`, zero
//! extensions and masks in `masks.rs`; `bits.rs` writes out the reversal of bits), `construct.rs`
//! makes instructions, `callbacks.rs` writes the loops of helpers that call functions of the
//! program, `packet_loads.rs` the calls for packet loads of classic BPF, and `patch.rs` replaces
//! instructions by sequences. `flow/` is the control-flow graph with definitions and uses that
//! passes and engines share: `graph.rs` the edges, `transfer.rs` what an instruction reads and
//! writes of both halves of every register, `node.rs` what is known of a slot, `liveness.rs` the
//! fixpoint over loops, `definitions.rs` the definitions that reach a slot. It is computed once,
//! when `code.rs` has applied the passes that rest on it (`passes/unused.rs`). `trees.rs` finds
//! comparison trees for all engines. `kind.rs` has the kinds of programs, which are types
//! (`Lowered<K>`), `lowered_code.rs` what they share, `lowered_call.rs` what a call calls, with the
//! only table of its numbers, `proved.rs` the lowering of verified programs, `counts.rs` the places
//! where they count what they execute.
#![forbid(unsafe_code)]

mod callbacks;
mod code;
mod construct;
mod counts;
pub mod flow;
pub mod kind;
mod lowered_call;
mod lowered_code;
mod packet_loads;
mod passes;
mod patch;
mod premises;
mod proved;
mod scratch;
mod structure;
pub mod trees;
mod verified;

pub use callbacks::{EntrySizes, timer_callbacks};
pub use code::FunctionStack;
pub use counts::{BranchCount, CountPlan, Counting, reached};
pub use kind::{
    ClassicFilter, ContextProgram, EntryFunction, FilterContext, Kind, Lowered, MemoryProgram,
    PacketFilter, PacketProgram, SyscallFilter, Verified, VerifiedProgram,
};
pub use lowered_call::LoweredCall;
pub use lowered_code::LoweredCode;
pub use passes::{Pass, Passes};
pub use structure::{FindCall, Function, MAX_SLOTS, Malformed, Problem};
pub use verified::UnsupportedConstruct;
pub use vm::{ContextKind, PacketRules};

use classic::{Converted, Rules, Semantics};
use code::Code;
use vm::Unchecked;

/// Evidence that a program is safe to run unchecked.
///
/// It does not implement `PartialEq`, so that every use is an exhaustive match that a new
/// kind of evidence must extend.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// Classic: accepted by the checker under these rules, and converted by
    /// `classic::convert`.
    Classic(Rules),
    /// eBPF: the caller asserts safety ([`Unchecked`]).
    CallerAsserted,
    /// eBPF: accepted by the verifier, for programs with this context.
    Verified(ContextKind),
}

impl Evidence {
    /// True if the evidence proves termination; otherwise engines limit the backward jumps.
    pub const fn proves_termination(self) -> bool {
        match self {
            // Capture filters may loop.
            Evidence::Classic(_) => false,
            Evidence::CallerAsserted | Evidence::Verified(_) => true,
        }
    }
}

impl ClassicFilter {
    /// Lowers a converted classic program. Scratch words are promoted to unused registers.
    pub fn from_converted(program: Converted) -> ClassicFilter {
        let rules = program.rules();
        let evidence = Evidence::Classic(rules);
        let packet_rules = match program.semantics() {
            Semantics::Capture => PacketRules::Capture,
            Semantics::Kernel => PacketRules::Kernel,
        };
        let mut insns = program.into_insns();
        scratch::promote(&mut insns);
        let (start, end) = (0, insns.len());
        let code = Code::new(insns, vec![Function { start, end }], evidence);
        let code = code.optimized(Passes::OF_ALL, evidence);
        let code = LoweredCode::without_maps(code, evidence, packet_rules);
        match rules {
            Rules::Socket | Rules::Capture => ClassicFilter::of_packets(code),
            Rules::Seccomp => ClassicFilter::Syscall(Lowered::new(code, ())),
        }
    }
}

impl Lowered<MemoryProgram> {
    /// Lowers an eBPF program whose safety the caller asserts, if its structure is valid.
    /// Packet loads follow Linux's rules.
    ///
    /// # Errors
    /// The structural error.
    pub fn from_unchecked(program: Unchecked) -> Result<Lowered<MemoryProgram>, Malformed> {
        Lowered::from_unchecked_with(program, Passes::OF_ALL)
    }

    /// As [`Lowered::from_unchecked`], with only these passes, of [`Passes::OF_ALL`].
    ///
    /// # Errors
    /// As [`Lowered::from_unchecked`].
    pub fn from_unchecked_with(
        program: Unchecked,
        passes: Passes,
    ) -> Result<Lowered<MemoryProgram>, Malformed> {
        let functions =
            structure::check_structure(program.insns(), |number| vm::find_call(number).is_some())?;
        let evidence = Evidence::CallerAsserted;
        let code = Code::new(program.into_insns(), functions, evidence);
        let code = code.optimized(passes, evidence);
        let code = LoweredCode::without_maps(code, evidence, PacketRules::Kernel);
        Ok(Lowered::new(code, ()))
    }
}
