//! What a function uses, which decides about its frame.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg};
use spec::calls::GET_SMP_PROCESSOR_ID;

use super::transfer::{Halves, Transfer};

/// What a function uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Bit `n`: register `n` is read or written.
    pub(crate) regs: u16,
    pub(crate) calls_helpers: bool,
    pub(crate) calls_functions: bool,
    /// Asks which processor it runs on, which the environment knows.
    pub(crate) asks_processor: bool,
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
}

/// What a function uses, as far as it was looked at.
#[derive(Default)]
pub(super) struct Tally {
    /// Registers that are read otherwise than as the base of an access; and the
    /// others in use.
    values: Halves,
    others: Halves,
    /// Arithmetic operations, as a set.
    ops: u16,
    usage: Usage,
}

/// Those of which a register is the divisor, or a constant.
const DIVISIONS: u16 = 1 << AluOp::Div as u16
    | 1 << AluOp::SDiv as u16
    | 1 << AluOp::Mod as u16
    | 1 << AluOp::SMod as u16;

impl Tally {
    #[inline(always)]
    pub(super) fn note_alu(&mut self, op: AluOp, transfer: Transfer) {
        self.ops |= 1 << op as u16;
        self.note_values(transfer);
    }

    #[inline(always)]
    pub(super) fn note_load(&mut self, dst: Reg, base: Reg, off: i16) {
        self.others = self.others.and(Halves::low(dst));
        self.note_access(base, off);
    }

    /// An instruction without an access.
    #[inline(always)]
    pub(super) fn note_values(&mut self, transfer: Transfer) {
        self.values = self.values.and(transfer.read());
        self.others = self.others.and(transfer.written());
    }

    pub(super) fn note(&mut self, insn: Insn, transfer: Transfer) {
        let usage = &mut self.usage;
        match insn {
            Insn::Store { base, off, src, .. } => return self.note_store(base, off, src),
            Insn::StoreRelease { base, off, src, .. } => {
                return self.note_store(base, off, Operand::Reg(src));
            }
            Insn::LoadAcquire { dst, base, off, .. } => return self.note_load(dst, base, off),
            Insn::Atomic {
                op, base, off, src, ..
            } => {
                usage.complex |= op.fetches_into_src();
                self.others = self.others.and(transfer.read()).and(transfer.written());
                return self.note_store(base, off, Operand::Reg(src));
            }
            Insn::Call(Callee::Local(_)) => usage.calls_functions = true,
            Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)) => usage.asks_processor = true,
            Insn::Call(_) => usage.calls_helpers = true,
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => usage.packet = true,
            Insn::MayGoto { .. } => usage.may_goto = true,
            _ => {}
        }
        self.note_values(transfer);
    }

    fn note_store(&mut self, base: Reg, off: i16, src: Operand) {
        if let Operand::Reg(src) = src {
            self.values = self.values.and(Halves::low(src));
        }
        self.note_access(base, off);
    }

    #[inline(always)]
    fn note_access(&mut self, base: Reg, off: i16) {
        self.others = self.others.and(Halves::low(base));
        if base == Reg::R10 {
            self.usage.stack_accesses += 1;
            self.usage.lowest_stack = self.usage.lowest_stack.min(off);
        }
    }

    /// All that the function uses.
    pub(super) fn finish(self, loops: bool) -> Usage {
        Usage {
            regs: self.values.and(self.others).regs(),
            stack_escapes: self.values.has(Reg::R10),
            complex: self.usage.complex || self.ops & DIVISIONS != 0,
            loops,
            ..self.usage
        }
    }
}
