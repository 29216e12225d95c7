//! The checked interpreter: runs any sequence of instructions as it was given,
//! against memory that the caller hands it, and believes nothing about it.
//!
//! Every access is checked, every jump lands where the program is or ends the
//! run, every loop draws on a budget. What goes wrong is a [`Trap`]: data that
//! says which instruction did what to which address, and why that may not be.
//! An invalid instruction is a trap when it is reached and not before. There is
//! no unsafe code here, so nothing a program does can be undefined.
//!
//! What each operation computes comes from [`isa::ebpf::eval`], as in every
//! engine; what is here is memory, control and the rules around them:
//!
//! | what | rule |
//! |---|---|
//! | addresses | a model: regions stand at addresses that depend on nothing but the order in which they were added, below 2^32, so runs repeat and contexts with 32-bit address fields work ([`Memory`]) |
//! | registers | `r1` to `r5` as the caller says, `r10` the end of the first frame, the others 0 |
//! | stack | [`FRAME_BYTES`] zeroed bytes for each frame, which end with the frame; a frame's end is no other frame's start |
//! | calls | as many frames as [`Limits`] allows (Linux: 8); `r6` to `r9` and `r10` are the caller's again after a call, `r1` to `r5` are what the callee left |
//! | `callx`, `gotox` | to the address of a function, as a 64-bit immediate gives it; `callx` of a small number calls the helper of that number; `gotox` only if [`Limits`] switch it on |
//! | `may_goto` | falls through [`MAY_GOTO_LOOPS`] times in each activation of a function, then jumps |
//! | atomics | need natural alignment, as Linux demands; nobody else holds the memory, so one step is as good as another |
//! | packet loads | from the packet that was given, by Linux's rules; beyond it the function returns 0 |
//! | address-space casts | between spaces 0 and 1 the low 32 bits, as Linux does it without the user's base address |
//! | maps, BTF ids, kernel functions | a trap that says what is missing |
//!
//! Cost of an instruction: one match on a table of the frequent rows, and for an access
//! one comparison with the region that the same base register accessed last. A call zeroes
//! the new frame.
#![forbid(unsafe_code)]

mod calls;
mod engine;
mod frequent;
mod memory;
mod observe;
#[cfg(test)]
mod tests;
mod trap;

pub use calls::{CallFault, Calls};
pub use memory::{Access, BadAccess, Flaw, Memory, NoRoom, Permission, RegionId, RegionPlace};
pub use observe::{Moment, Observer};
pub use trap::{Missing, Reason, Trap};
pub use vm::{FRAME_BYTES, MAX_FRAMES, MAY_GOTO_LOOPS};

use std::time::Instant;

use isa::ebpf::{Insn, PartialSlot, Reg, decode_bytes};
use packet::Packet;

/// How many instructions run between two looks at the clock, if there is a
/// deadline.
pub const DEADLINE_INTERVAL: u64 = 8192;

/// The most frames that [`Limits`] can allow.
pub const MOST_FRAMES: usize = 1024;

/// A program as it was given: one instruction for each slot, none of them
/// judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    insns: Vec<Insn>,
    steps: Vec<frequent::Step>,
}

impl Program {
    /// A program of these slots.
    pub fn new(insns: Vec<Insn>) -> Program {
        Program {
            steps: insns.iter().map(|insn| frequent::Step::of(*insn)).collect(),
            insns,
        }
    }

    /// The program in these bytes, eight for each slot. Only a partial slot is
    /// an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program, PartialSlot> {
        Ok(Program::new(decode_bytes(bytes)?))
    }

    /// Its instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Runs it from its first instruction.
    pub fn run(&self, cx: RunContext<'_, '_, '_>, entry: Entry, limits: &Limits) -> Finish {
        engine::execute(self, cx, entry, limits, &mut ())
    }

    /// As [`run`](Program::run); the observer sees every instruction before it
    /// is performed and may end the run.
    pub fn run_observed(
        &self,
        cx: RunContext<'_, '_, '_>,
        entry: Entry,
        limits: &Limits,
        observer: &mut impl Observer,
    ) -> Finish {
        engine::execute(self, cx, entry, limits, observer)
    }
}

/// What a program can reach.
pub struct RunContext<'w, 'm, 'c> {
    /// The memory that loads and stores see.
    pub memory: &'w mut Memory<'m>,
    /// The helpers that it can call.
    pub calls: &'w mut Calls<'c>,
    /// What legacy packet loads read; without one they are traps.
    pub packet: Option<&'w Packet<'w>>,
}

/// How a run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// `r1` to `r5`.
    pub arguments: [u64; 5],
}

/// What a run may use up, and what it may do at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions that may be performed.
    pub instructions: u64,
    /// Frames that may exist at once, 1 to [`MOST_FRAMES`].
    pub frames: usize,
    /// When to give up; looked at every [`DEADLINE_INTERVAL`] instructions.
    pub deadline: Option<Instant>,
    /// Whether `gotox` is an instruction. Linux 6.18 does not know it.
    pub indirect_jumps: bool,
}

impl Default for Limits {
    /// A hundred million instructions (under a second), 8 frames, no deadline,
    /// no indirect jumps.
    fn default() -> Limits {
        Limits {
            instructions: 100_000_000,
            frames: MAX_FRAMES,
            deadline: None,
            indirect_jumps: false,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `r0` on exit, or what went wrong.
    pub outcome: Result<u64, Trap>,
    /// Instructions performed, the one that trapped not among them.
    pub executed: u64,
    /// The registers at the end.
    pub registers: [u64; Reg::COUNT],
}
