//! The registers, stack and services that a function uses, which decide on its frame.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg};
use lower::flow::{Halves, Transfer, is_bit_operation};
use spec::calls::GET_SMP_PROCESSOR_ID;

/// The registers, stack and services that a function uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Registers that are read or written: bit `n` for register `n`.
    pub(crate) regs: u16,
    pub(crate) calls_helpers: bool,
    pub(crate) calls_functions: bool,
    /// Makes tail calls, which are jumps.
    pub(crate) tail_calls: bool,
    /// Calls `bpf_get_smp_processor_id`, which is read from the native context.
    pub(crate) reads_processor_id: bool,
    /// Has packet loads.
    pub(crate) packet: bool,
    pub(crate) may_goto: bool,
    /// Has back edges.
    pub(crate) loops: bool,
    /// Has divisions or atomics that compile to a loop: code that needs further scratch
    /// registers.
    pub(crate) complex: bool,
    /// Lowest offset from `r10` that is accessed, valid unless `stack_escapes`.
    pub(crate) lowest_stack: i16,
    /// Number of accesses with base `r10`.
    pub(crate) stack_accesses: u32,
    /// `r10` is copied, so that any byte of the stack may be accessed.
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
    /// Registers that are read as values, not as the base of an access.
    values: Halves,
    others: Halves,
    ops: Ops,
    usage: Usage,
}

/// Set of arithmetic operations.
#[derive(Clone, Copy, Default)]
pub(super) struct Ops([bool; AluOp::ALL.len()]);

impl Ops {
    fn record(&mut self, op: AluOp) {
        self.0[op as usize] = true;
    }

    /// Adds the operations of another set.
    pub(super) fn merge(&mut self, other: Ops) {
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
    /// Records an arithmetic instruction.
    pub(super) fn record_alu(&mut self, op: AluOp, transfer: Transfer) {
        self.ops.record(op);
        self.record_values(transfer);
    }

    /// Records an instruction without a memory access.
    pub(super) fn record_values(&mut self, transfer: Transfer) {
        self.values = self.values.union(transfer.read());
        self.others = self.others.union(transfer.effects());
    }

    /// Records a load.
    pub(super) fn record_load(&mut self, base: Reg, off: i16, transfer: Transfer) {
        self.others = self.others.union(transfer.effects());
        self.record_access(base, off, transfer);
    }

    /// Records a store.
    pub(super) fn record_store(&mut self, base: Reg, off: i16, src: Operand, transfer: Transfer) {
        self.usage.stack_escapes |= src == Operand::Reg(Reg::R10);
        self.record_access(base, off, transfer);
    }

    /// Records an instruction.
    pub(super) fn record(&mut self, insn: Insn, transfer: Transfer) {
        let usage = &mut self.usage;
        match insn {
            Insn::Alu { op, .. } => return self.record_alu(op, transfer),
            Insn::Load { base, off, .. } => return self.record_load(base, off, transfer),
            Insn::Store { base, off, src, .. } => {
                return self.record_store(base, off, src, transfer);
            }
            Insn::StoreRelease { base, off, src, .. } => {
                return self.record_store(base, off, Operand::Reg(src), transfer);
            }
            Insn::LoadAcquire { base, off, .. } => return self.record_load(base, off, transfer),
            Insn::Atomic {
                op, base, off, src, ..
            } => {
                usage.complex |= op.fetches_into_src();
                self.others = self.others.union(transfer.effects());
                return self.record_store(base, off, Operand::Reg(src), transfer);
            }
            Insn::Call(Callee::Local(_)) => usage.calls_functions = true,
            Insn::Call(Callee::Helper(GET_SMP_PROCESSOR_ID)) => usage.reads_processor_id = true,
            Insn::Call(Callee::Helper(number)) if lower::is_tail_call(number) => {
                usage.tail_calls = true;
            }
            Insn::Call(Callee::Helper(number)) if is_bit_operation(number) => {}
            Insn::Call(_) => usage.calls_helpers = true,
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => usage.packet = true,
            Insn::MayGoto { .. } => usage.may_goto = true,
            Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => {}
        }
        self.record_values(transfer);
    }

    /// Records an access, which reads its base and the stored operand only.
    fn record_access(&mut self, base: Reg, off: i16, transfer: Transfer) {
        self.others = self.others.union(transfer.read());
        if base == Reg::R10 {
            self.usage.stack_accesses += 1;
            self.usage.lowest_stack = self.usage.lowest_stack.min(off);
        }
    }

    pub(super) fn ops(&self) -> Ops {
        self.ops
    }

    /// The usage of the function; `loops` tells that it has back edges.
    pub(super) fn finish(self, loops: bool) -> Usage {
        let values = self.values;
        Usage {
            regs: values.union(self.others).regs(),
            stack_escapes: self.usage.stack_escapes || values.has(Reg::R10),
            complex: self.usage.complex || self.ops.has_divisions(),
            loops,
            ..self.usage
        }
    }
}
