//! Observers of a run, for traces, tests and debuggers.

use std::ops::ControlFlow;

use isa::ebpf::{Insn, Reg};

use super::CheckedProgram;
use super::memory::Memory;

/// The state before an instruction.
pub struct Moment<'a, 'm> {
    /// Index of the instruction.
    pub at: usize,
    /// The program.
    pub program: &'a CheckedProgram,
    /// The registers.
    pub registers: &'a [u64; Reg::COUNT],
    /// Call depth: 0 in the entry function.
    pub depth: usize,
    /// The memory.
    pub memory: &'a Memory<'m>,
}

impl Moment<'_, '_> {
    /// The instruction.
    pub fn insn(&self) -> Insn {
        self.program.insns[self.at]
    }
}

/// An observer, called before every instruction, or where control is transferred. `()` is the observer that
/// does nothing, at no cost.
#[expect(unused_variables, reason = "defaults do not read them")]
pub trait Observer {
    /// Its methods `before` and `adjust` are called.
    const SEES_EACH: bool = true;

    /// Its methods `enter`, `leap` and `leave` are called.
    const SEES_LEAPS: bool = false;

    /// Called before the first instruction, and that of a program that a tail call goes on with: the number
    /// of the program and the index of the instruction.
    #[inline(always)]
    fn enter(&mut self, program: u32, at: usize) {}

    /// Called where an instruction is not followed by that of the next index: both indexes.
    #[inline(always)]
    fn leap(&mut self, from: usize, to: usize) {}

    /// Called behind the last instruction, and in front of a tail call.
    #[inline(always)]
    fn leave(&mut self, at: usize) {}

    /// Called before each instruction; `Break` ends the run with
    /// [`Reason::Stopped`](super::Reason::Stopped).
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()>;

    /// Called ahead of [`Observer::before`] with the index of the instruction, to change
    /// registers.
    #[inline(always)]
    fn adjust(&mut self, at: usize, registers: &mut [u64; Reg::COUNT]) {}
}

impl Observer for () {
    const SEES_EACH: bool = false;

    #[inline(always)]
    fn before(&mut self, _: &Moment<'_, '_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Moment<'_, '_>) -> ControlFlow<()>> Observer for F {
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        self(moment)
    }
}
