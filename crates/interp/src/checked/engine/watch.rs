//! Programs whose stack is watched: accesses are noted before an instruction, and reads of bytes
//! that were not written, its own and those of a helper that it calls, after it.

use isa::ebpf::{Insn, Reg, Size, eval};

use super::super::CheckedProgram;
use super::Run;

impl Run<'_, '_, '_, '_> {
    /// Notes what an instruction is about to read and write.
    #[cold]
    pub(super) fn note_access(&mut self, insn: Insn) {
        let at = |run: &Self, base: Reg, off| eval::address(run.regs[base.index()], off);
        let len = |size: Size| u64::from(size.bytes());
        match insn {
            Insn::Load {
                size, base, off, ..
            }
            | Insn::LoadAcquire {
                size, base, off, ..
            } => self.cx.memory.note_read(at(self, base, off), len(size)),
            Insn::Store {
                size, base, off, ..
            }
            | Insn::StoreRelease {
                size, base, off, ..
            } => {
                let address = at(self, base, off);
                self.cx.memory.note_write(address, len(size));
            }
            Insn::Atomic {
                size, base, off, ..
            } => {
                let address = at(self, base, off);
                self.cx.memory.note_read(address, len(size));
                self.cx.memory.note_write(address, len(size));
            }
            _ => {}
        }
    }

    /// Notes that an instruction read bytes that were not written, if it did.
    #[cold]
    pub(super) fn note_unwritten_read(&mut self, program: &CheckedProgram, at: usize) {
        if self.cx.memory.take_unwritten_read() {
            let least = self.unwritten_reads.entry(program.number).or_insert(at);
            *least = at.min(*least);
        }
    }
}
