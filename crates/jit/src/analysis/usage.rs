//! What a function uses, which decides about its frame.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg};

use super::transfer::Transfer;

/// What a function uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bit `n`: register `n` is read or written.
    pub(crate) regs: u16,
    pub(crate) calls_helpers: bool,
    pub(crate) calls_functions: bool,
    /// Packet loads.
    pub(crate) packet: bool,
    pub(crate) may_goto: bool,
    /// Jumps backward.
    pub(crate) loops: bool,
    /// Divisions by a register, and atomics that need a loop of their own: code
    /// that wants more scratch registers than the others.
    pub(crate) complex: bool,
    /// The lowest offset from `r10` that is accessed, where it stays there.
    pub(crate) lowest_stack: i16,
    /// How often `r10` is the base of an access.
    pub(crate) stack_accesses: u32,
    /// `r10` is copied, so that any of its frame may be accessed.
    pub(crate) stack_escapes: bool,
}

impl Usage {
    pub(crate) fn has(&self, reg: Reg) -> bool {
        self.regs & 1 << reg.number() != 0
    }

    #[inline(always)]
    pub(super) fn note(&mut self, insn: Insn, transfer: Transfer) {
        self.regs |= transfer.regs();
        match insn {
            Insn::Load { base, off, .. } => self.note_access(base, off),
            Insn::Alu { op, .. } => {
                self.complex |= matches!(op, AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod);
                self.note_escape(transfer);
            }
            Insn::Store { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Operand::Reg(Reg::R10);
            }
            _ => self.note_rare(insn, transfer),
        }
    }

    fn note_rare(&mut self, insn: Insn, transfer: Transfer) {
        match insn {
            Insn::Call(Callee::Local(_)) => self.calls_functions = true,
            Insn::Call(_) => self.calls_helpers = true,
            Insn::PacketAbs { .. } => self.packet = true,
            Insn::MayGoto { .. } => self.may_goto = true,
            Insn::LoadAcquire { base, off, .. } => self.note_access(base, off),
            Insn::StoreRelease { base, off, src, .. } => {
                self.note_access(base, off);
                self.stack_escapes |= src == Reg::R10;
            }
            Insn::Atomic {
                op, base, off, src, ..
            } => {
                self.note_access(base, off);
                self.complex |= op.fetches_into_src();
                self.stack_escapes |= src == Reg::R10;
            }
            Insn::PacketInd { .. } => {
                self.packet = true;
                self.note_escape(transfer);
            }
            _ => self.note_escape(transfer),
        }
    }

    /// `r10` is read otherwise than as the base of an access.
    fn note_escape(&mut self, transfer: Transfer) {
        self.stack_escapes |= transfer.uses(Reg::R10);
    }

    fn note_access(&mut self, base: Reg, off: i16) {
        if base == Reg::R10 {
            self.stack_accesses += 1;
            self.lowest_stack = self.lowest_stack.min(off);
        }
    }
}
