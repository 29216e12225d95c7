//! The checked interpreter: runs any sequence of instructions, unverified, on memory of the
//! caller, and checks every access.
//!
//! Jumps are checked to stay in the program, and an instruction budget limits every run. An
//! error is a [`Trap`], which names the instruction, the access and the reason. An invalid
//! instruction traps when it is executed, not before. The module has no unsafe code, so no
//! program causes undefined behaviour.
//!
//! Operations are computed by [`isa::ebpf::eval`], as in every engine. The rules of the
//! rest:
//!
//! | what | rule |
//! |---|---|
//! | addresses | virtual: they depend only on the order in which regions were added, so that runs are deterministic, and look like Linux's; what a program loads from a field of the context that stands for an address of the packet has 64 bits ([`Memory`]) |
//! | registers | `r1` to `r5` are arguments of the caller, `r10` is the end of the first frame, the others are 0 |
//! | stack | [`FRAME_BYTES`] zeroed bytes for each frame, unmapped when it returns; frames are not adjacent |
//! | calls | as many frames of one program as [`Limits`] allows (Linux: 8); `r6` to `r10` are callee-saved, `r1` to `r5` keep the callee's values |
//! | `callx`, `gotox` | to a function address, which a 64-bit immediate loads; `callx` of a small number calls the helper of that number; `gotox` only if [`Limits`] enables it |
//! | `may_goto` | falls through [`MAY_GOTO_LOOPS`] times in each activation of a function, then jumps |
//! | atomics | need natural alignment, as in Linux; the memory is not shared |
//! | packet loads | from the packet of the run, by Linux's rules; outside it the function returns 0 |
//! | address-space casts | between spaces 0 and 1: the low 32 bits, to which a cast to space 1 adds the upper half of the arena's user address, if the run has an arena |
//! | arenas | accesses by what a cast to space 0 made and pointers computed from it: by 32 bits, loads from pages that are not there give 0, stores to them are dropped |
//! | exceptions | leave all functions of the program; its exception callback runs in place of the rest |
//! | maps | those that were added to the memory, by index; each value is a region |
//! | tail calls | to the programs of [`TailTargets`], at most [`spec::limits::TAIL_CALLS`] in a run; the program that is left names its traps |
//! | other maps, BTF ids, kfuncs | a trap |
//!
//! Cost of an instruction: one match on a table of the frequent rows, and for an access
//! one comparison with the region that the same base register accessed last. A call zeroes
//! the new frame.
#![forbid(unsafe_code)]

mod calls;
mod engine;
mod frequent;
mod given;
mod maps;
mod memory;
mod model;
mod observe;
mod place;
mod tail;
#[cfg(test)]
mod tests;
mod trap;

pub use calls::{CallFault, Calls};
pub use memory::{
    Access, AccessError, BadAccess, Memory, NoRoom, Permission, RegionId, RegionInfo,
};
pub use observe::{Moment, Observer};
pub use place::MemoryPlace;
pub use tail::TailTargets;
pub use trap::{Missing, Reason, Trap, Unclosed};
pub use vm::{FRAME_BYTES, MAX_FRAMES, MAY_GOTO_LOOPS};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use isa::ebpf::{Insn, PartialSlot, Reg, decode_bytes};
use packet::Packet;

/// Number of instructions between two deadline checks.
pub const DEADLINE_INTERVAL: u64 = 8192;

/// Largest number of frames that [`Limits`] can allow.
pub const MOST_FRAMES: usize = 1024;

/// An unverified program: one instruction for each slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedProgram {
    insns: Vec<Insn>,
    steps: Vec<frequent::Step>,
    /// It has casts between address spaces: it may access an arena.
    has_casts: bool,
    /// Number that identifies functions that outlive a run.
    number: u32,
    /// First slot of the function that gets the cookie of a thrown exception.
    exception_callback: Option<usize>,
    /// Slots of loads from memory that need not be there, ascending.
    probing: Vec<usize>,
    /// Reads of stack memory that the program never wrote are noticed.
    watches_stack: bool,
}

impl CheckedProgram {
    /// A program of these slots.
    pub fn new(insns: Vec<Insn>) -> CheckedProgram {
        let has_casts = insns.iter().any(|insn| matches!(insn, Insn::Cast { .. }));
        let step = |insn: &Insn| match has_casts {
            true => frequent::Step::RARE,
            false => frequent::Step::of(*insn),
        };
        CheckedProgram {
            steps: insns.iter().map(step).collect(),
            has_casts,
            insns,
            number: 0,
            exception_callback: None,
            probing: Vec::new(),
            watches_stack: false,
        }
    }

    /// The program with a number, by which helpers know its functions after the run
    /// ([`vm::Callback`]).
    #[must_use]
    pub fn with_number(self, number: u32) -> CheckedProgram {
        CheckedProgram { number, ..self }
    }

    /// The program with the first slot of the function that ends it when an exception is thrown.
    #[must_use]
    pub fn with_exception_callback(self, slot: Option<usize>) -> CheckedProgram {
        CheckedProgram {
            exception_callback: slot,
            ..self
        }
    }

    /// The program in which loads at these slots, which ascend, get 0 where there is no memory
    /// (`BPF_PROBE_MEM`): the verifier lets programs follow pointers of kernel objects without a
    /// check, and numbers that `bpf_rdonly_cast` makes pointers of.
    #[must_use]
    pub fn with_probing_loads(self, probing: Vec<usize>) -> CheckedProgram {
        CheckedProgram { probing, ..self }
    }

    /// The program, of which reads of stack memory that it never wrote are noticed
    /// ([`Finish::unwritten_reads`]). It runs slower.
    #[must_use]
    pub fn with_watched_stack(self) -> CheckedProgram {
        let accesses = |insn: &Insn| {
            matches!(
                insn,
                Insn::Load { .. }
                    | Insn::LoadAcquire { .. }
                    | Insn::Store { .. }
                    | Insn::StoreRelease { .. }
                    | Insn::Atomic { .. }
                    | Insn::Call(_)
                    | Insn::CallReg { .. }
            )
        };
        let steps = self.steps.iter().zip(&self.insns);
        let steps = steps.map(|(step, insn)| match accesses(insn) {
            true => frequent::Step::RARE,
            false => *step,
        });
        CheckedProgram {
            steps: steps.collect(),
            watches_stack: true,
            ..self
        }
    }

    /// Decodes a program, eight bytes for each slot. Only a partial slot is an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<CheckedProgram, PartialSlot> {
        Ok(CheckedProgram::new(decode_bytes(bytes)?))
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Runs the program from its first instruction.
    pub fn run(&self, cx: CheckedContext<'_, '_, '_>, entry: Entry, limits: &Limits) -> Finish {
        self.run_function(0, cx, entry, limits)
    }

    /// Runs a function of the program, which begins at a slot.
    pub fn run_function(
        &self,
        slot: usize,
        cx: CheckedContext<'_, '_, '_>,
        entry: Entry,
        limits: &Limits,
    ) -> Finish {
        engine::execute_from(self, slot, cx, entry, limits, &mut ())
    }

    /// As [`run`](CheckedProgram::run); the observer is called before every instruction and
    /// may end the run.
    pub fn run_observed(
        &self,
        cx: CheckedContext<'_, '_, '_>,
        entry: Entry,
        limits: &Limits,
        observer: &mut impl Observer,
    ) -> Finish {
        self.run_function_observed(0, cx, entry, limits, observer)
    }

    /// As [`run_function`](CheckedProgram::run_function), with an observer.
    pub fn run_function_observed(
        &self,
        slot: usize,
        cx: CheckedContext<'_, '_, '_>,
        entry: Entry,
        limits: &Limits,
        observer: &mut impl Observer,
    ) -> Finish {
        engine::execute_from(self, slot, cx, entry, limits, observer)
    }

    /// The number of [`CheckedProgram::with_number`].
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// Memory, helpers and packet of a checked run.
pub struct CheckedContext<'w, 'm, 'c> {
    /// Memory of loads and stores.
    pub memory: &'w mut Memory<'m>,
    /// Helpers.
    pub calls: &'w mut Calls<'c>,
    /// Packet of legacy packet loads; without one they read the packet of the memory, and
    /// trap if it has none.
    pub packet: Option<&'w Packet<'w>>,
}

/// Initial state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// `r1` to `r5`.
    pub arguments: [u64; 5],
}

/// Limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of frames of one program, 1 to [`MOST_FRAMES`]; tail calls from functions add
    /// those of the programs that they enter.
    pub frames: usize,
    /// Deadline, checked every [`DEADLINE_INTERVAL`] instructions.
    pub deadline: Option<Instant>,
    /// Enables `gotox`, which Linux 6.18 does not have.
    pub indirect_jumps: bool,
    /// Initial bytes of a frame: programs of privileged callers may
    /// read those that they have not written.
    pub stack_fill: u8,
}

impl Default for Limits {
    /// A hundred million instructions, 8 frames of zeros, no deadline, no indirect jumps.
    fn default() -> Limits {
        Limits {
            instructions: 100_000_000,
            frames: MAX_FRAMES,
            deadline: None,
            indirect_jumps: false,
            stack_fill: 0,
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `r0` on exit, or the trap.
    pub outcome: Result<u64, Trap>,
    /// Number of executed instructions, without one that trapped.
    pub executed: u64,
    /// The registers at the end.
    pub registers: [u64; Reg::COUNT],
    /// The program that the last instruction belongs to, if a tail call entered it; `None`
    /// for the program that the run began with.
    pub entered: Option<Arc<CheckedProgram>>,
    /// By the number of a program whose stack is watched
    /// ([`CheckedProgram::with_watched_stack`]), the least slot of an instruction that read bytes
    /// of the stack which the run had not written. They hold the fill of
    /// [`Limits::stack_fill`], in Linux what was there before.
    pub unwritten_reads: BTreeMap<u32, usize>,
}
