//! The registers, stack and services that a function uses, which decide on its frame.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg};
use spec::calls::GET_SMP_PROCESSOR_ID;

use super::transfer::{Halves, Reads, Transfer};

/// The registers, stack and services that a function uses.
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
    /// Divisions, and atomics that need a loop: code that needs further scratch registers.
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

/// The usage of a function during the scan.
#[derive(Default)]
pub(super) struct Tally {
    /// Registers that are read otherwise than by an access; and the others in use.
    values: Reads,
    others: Halves,
    ops: Ops,
    usage: Usage,
}

/// Arithmetic operations, each of which occurs or not: it takes one store to note one.
#[derive(Clone, Copy, Default)]
pub(super) struct Ops([bool; AluOp::ALL.len()]);

impl Ops {
    #[inline(always)]
    fn note(&mut self, op: AluOp) {
        self.0[op as usize] = true;
    }

    /// Adds those of others.
    pub(super) fn join(&mut self, other: Ops) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own |= other;
        }
    }

    pub(super) fn has(self, op: AluOp) -> bool {
        self.0[op as usize]
    }

    fn has_divisions(self) -> bool {
        [AluOp::Div, AluOp::SDiv, AluOp::Mod, AluOp::SMod].map(|op| self.has(op)) != [false; 4]
    }
}

impl Tally {
    #[inline(always)]
    pub(super) fn note_alu(&mut self, op: AluOp, transfer: Transfer) {
        self.ops.note(op);
        self.note_values(transfer);
    }

    #[inline(always)]
    pub(super) fn note_load(&mut self, base: Reg, off: i16, transfer: Transfer) {
        self.others = self.others.union(transfer.effects());
        self.note_access(base, off, transfer);
    }

    /// An instruction without an access.
    #[inline(always)]
    pub(super) fn note_values(&mut self, transfer: Transfer) {
        self.values = self.values.union(transfer.reads());
        self.others = self.others.union(transfer.effects());
    }

    #[inline(always)]
    pub(super) fn note_store(&mut self, base: Reg, off: i16, src: Operand, transfer: Transfer) {
        self.usage.stack_escapes |= src == Operand::Reg(Reg::R10);
        self.note_access(base, off, transfer);
    }

    pub(super) fn note(&mut self, insn: Insn, transfer: Transfer) {
        let usage = &mut self.usage;
        match insn {
            Insn::StoreRelease { base, off, src, .. } => {
                return self.note_store(base, off, Operand::Reg(src), transfer);
            }
            Insn::LoadAcquire { base, off, .. } => return self.note_load(base, off, transfer),
            Insn::Atomic {
                op, base, off, src, ..
            } => {
                usage.complex |= op.fetches_into_src();
                self.others = self.others.union(transfer.effects());
                return self.note_store(base, off, Operand::Reg(src), transfer);
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

    /// An access, which reads nothing but its base and what it stores.
    #[inline(always)]
    fn note_access(&mut self, base: Reg, off: i16, transfer: Transfer) {
        self.others = self.others.union(transfer.read());
        if base == Reg::R10 {
            self.usage.stack_accesses += 1;
            self.usage.lowest_stack = self.usage.lowest_stack.min(off);
        }
    }

    pub(super) fn ops(&self) -> Ops {
        self.ops
    }

    /// All that the function uses.
    pub(super) fn finish(self, loops: bool) -> Usage {
        let values = self.values.halves();
        Usage {
            regs: values.union(self.others).regs(),
            stack_escapes: self.usage.stack_escapes || values.has(Reg::R10),
            complex: self.usage.complex || self.ops.has_divisions(),
            loops,
            ..self.usage
        }
    }
}
