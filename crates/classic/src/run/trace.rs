//! Traces of a run.

use super::JumpLimitExceeded;

/// An executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the instruction.
    pub at: usize,
    /// The accumulator after it.
    pub a: u32,
    /// The index register after it.
    pub x: u32,
    /// Continuation.
    pub next: Next,
}

/// Continuation after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continues at this instruction.
    Insn(usize),
    /// Ended with this value. An instruction other than a return ends a run when a load
    /// fails or the divisor is zero (with 0), or when the packet has no device (with the
    /// accumulator).
    End(u32),
    /// Stopped by the limit of backward jumps.
    Stopped,
}

/// Observer of a run.
pub(super) trait Observer {
    /// Called before each instruction with the registers.
    fn before(&mut self, at: usize, a: u32, x: u32);
}

pub(super) struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn before(&mut self, _: usize, _: u32, _: u32) {}
}

/// Delays each instruction until its effect is known.
pub(super) struct Tracer<'a> {
    report: &'a mut dyn FnMut(Step),
    current: Option<usize>,
    registers: (u32, u32),
}

impl<'a> Tracer<'a> {
    pub(super) fn new(report: &'a mut dyn FnMut(Step)) -> Tracer<'a> {
        Tracer {
            report,
            current: None,
            registers: (0, 0),
        }
    }

    pub(super) fn finish(
        self,
        outcome: Result<u32, JumpLimitExceeded>,
    ) -> Result<u32, JumpLimitExceeded> {
        if let Some(at) = self.current {
            let (a, x) = self.registers;
            let next = match outcome {
                Ok(value) => Next::End(value),
                Err(JumpLimitExceeded) => Next::Stopped,
            };
            (self.report)(Step { at, a, x, next });
        }
        outcome
    }
}

impl Observer for Tracer<'_> {
    fn before(&mut self, next: usize, a: u32, x: u32) {
        if let Some(at) = self.current {
            let next = Next::Insn(next);
            (self.report)(Step { at, a, x, next });
        }
        self.current = Some(next);
        self.registers = (a, x);
    }
}
