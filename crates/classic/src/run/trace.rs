//! Watching a run: what each executed instruction did.

use super::JumpLimitExceeded;

/// What one executed instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which instruction of the checked program.
    pub at: usize,
    /// The accumulator after it.
    pub a: u32,
    /// The index register after it.
    pub x: u32,
    /// Where the run went from there.
    pub next: Next,
}

/// Where a run goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To this instruction.
    Insn(usize),
    /// It ended with this value. An instruction that is not a return ends a run
    /// when a load fails or the divisor is zero (with 0), or when there is no
    /// device to ask (with the accumulator).
    End(u32),
    /// It was stopped: too many backward jumps.
    Stopped,
}

/// Watches a run.
pub(super) trait Observer {
    /// Called before each instruction with the registers as they stand.
    fn before(&mut self, at: usize, a: u32, x: u32);
}

pub(super) struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn before(&mut self, _: usize, _: u32, _: u32) {}
}

/// Holds the last instruction back until it is known what it did.
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
