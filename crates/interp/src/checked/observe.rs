//! Watching a run: what a trace prints, what a test compares with, where a
//! debugger stops.

use std::ops::ControlFlow;

use isa::ebpf::{Insn, Reg};

use super::Program;
use super::memory::Memory;

/// The moment before an instruction is performed.
pub struct Moment<'a, 'm> {
    /// Its index.
    pub at: usize,
    /// The program.
    pub program: &'a Program,
    /// The registers.
    pub registers: &'a [u64; Reg::COUNT],
    /// Frames below this one: 0 in the program's first function.
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

/// Sees every instruction before it is performed. The unit observer sees nothing
/// and costs nothing.
pub trait Observer {
    /// Called before each instruction; `Break` ends the run with
    /// [`Reason::Stopped`](super::Reason::Stopped).
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()>;
}

impl Observer for () {
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
