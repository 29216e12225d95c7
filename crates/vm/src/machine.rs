//! One run's registers, stack and surroundings.

use isa::ebpf::Reg;
use packet::Packet;
use spec::Random;

use crate::SkBuff;

/// Bytes of stack that a program has.
pub const STACK_BYTES: usize = 512;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program returned this.
    Returned(u64),
    /// It used up its budget of backward jumps.
    BudgetExhausted,
}

/// What a run may ask of the world.
pub struct Surroundings<'a> {
    /// The packet that packet loads and calls see.
    pub packet: &'a Packet<'a>,
    /// Where random numbers come from.
    pub random: &'a mut dyn Random,
}

/// Registers, stack and context, reused from run to run. Nothing in it carries
/// over: a safe program reads no register and no stack word that it has not
/// written in the same run.
#[repr(C)]
pub struct Machine {
    /// The registers; engines may keep some elsewhere while they run.
    pub regs: [u64; Reg::COUNT],
    /// Backward jumps that are left; below zero when they are used up.
    pub budget: i64,
    /// The context of socket filters.
    pub skb: SkBuff,
    stack: [u64; STACK_BYTES / 8],
}

impl Machine {
    /// A machine with everything zero.
    pub const fn new() -> Machine {
        Machine {
            regs: [0; Reg::COUNT],
            budget: 0,
            skb: SkBuff::EMPTY,
            stack: [0; STACK_BYTES / 8],
        }
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
