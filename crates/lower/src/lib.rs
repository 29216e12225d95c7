//! Lowering: from evidence that a program is safe to code that engines run unchecked.
//!
//! A [`Lowered`] can only be made of the evidence itself: the classic checker, which proves
//! that every jump stays inside and every scratch word is in range (the conversion adds only
//! accesses to its own context and stack); or the caller's assertion of safety, after a check
//! of the program's structure ([`Malformed`]).
//!
//! Analyses that several engines need are here too: jump targets ([`jumps`]), comparison
//! trees ([`trees`]), and what a run must set up ([`Requirements`]).
#![forbid(unsafe_code)]

pub mod jumps;
mod requirements;
mod scratch;
mod structure;
pub mod trees;

pub use requirements::{Requirements, may_lie_elsewhere};
pub use structure::{Function, MAX_SLOTS, Malformed, Problem};
pub use vm::PacketRules;

use classic::{Converted, Rules, Semantics};
use isa::ebpf::Insn;
use vm::Unchecked;

/// Why a program may run unchecked.
///
/// It cannot be compared, so that every place that depends on it matches it
/// exhaustively: a new kind of evidence does not compile until each has decided.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// The classic checker passed it by these rules, and our conversion made
    /// the code.
    Classic(Rules),
    /// The caller asserts that it is safe ([`Unchecked`]).
    CallerAsserted,
}

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet.
    Packet,
    /// The description of a system call.
    SystemCall,
    /// Memory whose address is in `r1` and whose length is in `r2`.
    Memory,
}

impl Evidence {
    /// What programs with this evidence run on.
    pub const fn input(self) -> Input {
        match self {
            Evidence::Classic(Rules::Socket | Rules::Capture) => Input::Packet,
            Evidence::Classic(Rules::Seccomp) => Input::SystemCall,
            Evidence::CallerAsserted => Input::Memory,
        }
    }

    /// True if it is evidence that the program terminates. Of others, engines limit the
    /// backward jumps.
    pub const fn proves_termination(self) -> bool {
        match self {
            // Capture filters may loop.
            Evidence::Classic(_) => false,
            Evidence::CallerAsserted => true,
        }
    }
}

/// A program that an engine can run.
///
/// What every engine makes of one, beside what each instruction computes
/// (`isa::ebpf::eval`):
/// - a local call gives the callee a frame of its own, 512 bytes below its `r10`,
///   and the caller finds its `r6` to `r9` again;
/// - a packet load beyond the packet returns 0 from the function it stands in, as
///   Linux's conversion of it does;
/// - `may_goto` falls through [`vm::MAY_GOTO_LOOPS`] times in each activation of
///   a function, then jumps;
/// - a cast between address spaces keeps the low half, as Linux's does where no
///   arena has a base;
/// - atomics that fetch are sequentially consistent, the others relaxed.
#[derive(Clone, Debug)]
pub struct Lowered {
    insns: Vec<Insn>,
    functions: Vec<Function>,
    evidence: Evidence,
    packet_rules: PacketRules,
}

impl Lowered {
    /// Lowers a converted classic program. Its scratch words move to registers that
    /// it does not use.
    pub fn from_classic(program: Converted) -> Lowered {
        let evidence = Evidence::Classic(program.rules());
        let packet_rules = match program.semantics() {
            Semantics::Capture => PacketRules::Capture,
            Semantics::Kernel => PacketRules::Kernel,
        };
        let mut insns = program.into_insns();
        scratch::keep_in_registers(&mut insns);
        Lowered {
            evidence,
            packet_rules,
            functions: vec![Function {
                start: 0,
                end: insns.len(),
            }],
            insns,
        }
    }

    /// Lowers a program that a host vouches for, if its form is in order. Its
    /// packet loads are Linux's.
    pub fn from_unchecked(program: Unchecked) -> Result<Lowered, Malformed> {
        let functions = structure::check_structure(program.insns())?;
        Ok(Lowered {
            insns: program.into_insns(),
            functions,
            evidence: Evidence::CallerAsserted,
            packet_rules: PacketRules::Kernel,
        })
    }

    /// The code, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Its functions in the order of their slots; the first is the entry.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Why it may run.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// What its packet loads mean beyond the packet.
    pub fn packet_rules(&self) -> PacketRules {
        self.packet_rules
    }
}
