//! One run's registers, stack and surroundings.

use isa::ebpf::Reg;
use packet::Packet;
use spec::{Clock, Random};

use crate::{Meter, SkBuff};

/// Functions of a program that can be under way at once, the entry among them
/// (`MAX_CALL_FRAMES` of Linux).
pub const MAX_FRAMES: usize = 8;

/// Bytes of stack that each of them has (`MAX_BPF_STACK`).
pub const FRAME_BYTES: usize = 512;

/// How often `may_goto` falls through in one activation of a function; the next
/// one jumps (`BPF_MAX_LOOPS`).
pub const MAY_GOTO_LOOPS: u64 = 8 * 1024 * 1024;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program returned this.
    Returned(u64),
    /// It used up its budget of backward jumps.
    BudgetExhausted,
    /// The run's [`Deadline`](crate::Deadline) passed before it returned. What it
    /// wrote until then is written.
    DeadlinePassed,
}

/// What a run may ask of the world.
pub struct Surroundings<'a> {
    /// The packet that packet loads and calls see.
    pub packet: &'a Packet<'a>,
    /// Where random numbers come from.
    pub random: &'a mut dyn Random,
    /// What time it is; a run without a clock finds it to be 0.
    pub clock: Option<&'a mut dyn Clock>,
}

/// A clock that a host gave, if it did.
pub struct HostClock(Option<Box<dyn Clock + Send>>);

impl HostClock {
    /// As [`Surroundings`] hold it.
    #[inline(always)]
    pub fn get(&mut self) -> Option<&mut dyn Clock> {
        match &mut self.0 {
            Some(clock) => Some(&mut **clock),
            None => None,
        }
    }
}

/// Registers, stack and context, reused from run to run. Nothing in it carries
/// over: a safe program reads no register and no stack word that it has not
/// written in the same run.
#[repr(C)]
pub struct Machine {
    /// The registers; engines may keep some elsewhere while they run.
    pub regs: [u64; Reg::COUNT],
    /// How long the run may go on.
    pub meter: Meter,
    /// How often `may_goto` still falls through in the function under way.
    pub may_goto: u64,
    /// The context of socket filters.
    pub skb: SkBuff,
    /// What time it is.
    pub clock: HostClock,
    /// One frame for each function under way, the entry's at the end.
    stack: [u64; MAX_FRAMES * FRAME_BYTES / 8],
}

impl Machine {
    /// A machine with everything zero, and without a clock.
    pub const fn new() -> Machine {
        Machine {
            regs: [0; Reg::COUNT],
            meter: Meter::EMPTY,
            may_goto: 0,
            skb: SkBuff::EMPTY,
            clock: HostClock(None),
            stack: [0; MAX_FRAMES * FRAME_BYTES / 8],
        }
    }

    /// With a clock for the helpers that tell the time.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + Send + 'static) -> Machine {
        let clock = HostClock(Some(Box::new(clock)));
        Machine { clock, ..self }
    }

    /// Sets the frame pointer and returns the pointer through which an engine
    /// must do everything else in this run, since the program's own pointers to
    /// the stack and the context are derived from it.
    #[inline(always)]
    pub fn enter(&mut self) -> *mut Machine {
        let this: *mut Machine = self;
        // SAFETY: `this` was made from a unique reference just above.
        unsafe {
            let stack = &raw mut (*this).stack;
            (*this).regs[Reg::R10.index()] = stack.add(1).expose_provenance() as u64;
        }
        this
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}
