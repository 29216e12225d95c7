//! The registers, stack and services that a function uses, which decide on its frame.

use isa::ebpf::{AluOp, Effect, Insn, Operand, Reg};
use lower::LoweredCall;
use lower::flow::{Halves, Transfer};
use spec::bits::BitOp;

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
        AluOp::ALL
            .iter()
            .any(|&op| op.is_division() && self.has(op))
    }
}

impl Tally {
    /// Records an instruction.
    pub(super) fn record(&mut self, insn: &Insn, transfer: Transfer) {
        self.others = self.others.union(transfer.effects());
        match insn.effect() {
            Some(Effect::Load | Effect::Store) => return self.record_access(insn, transfer),
            Some(Effect::Compute) => {
                if let Insn::Alu { op, .. } = insn {
                    self.ops.record(*op);
                }
            }
            // One that fetches into its source may compile to a loop.
            Some(Effect::Atomic) => {
                if let Insn::Atomic { op, .. } = insn {
                    self.usage.complex |= op.fetches_into_src();
                }
                return self.record_access(insn, transfer);
            }
            Some(Effect::Packet) => self.usage.packet = true,
            Some(Effect::Branch) => self.usage.may_goto |= matches!(insn, Insn::MayGoto { .. }),
            Some(Effect::Call) => self.record_call(insn),
            Some(
                Effect::Wide | Effect::Goto | Effect::GotoLong | Effect::GotoReg | Effect::Exit,
            )
            | None => {}
        }
        self.values = self.values.union(transfer.read());
    }

    fn record_call(&mut self, call: &Insn) {
        let Insn::Call(callee) = *call else {
            return;
        };
        let Some(call) = LoweredCall::of(callee) else {
            return;
        };
        let usage = &mut self.usage;
        match call {
            LoweredCall::Local(_) => usage.calls_functions = true,
            LoweredCall::ProcessorId => usage.reads_processor_id = true,
            LoweredCall::TailCall | LoweredCall::TailSlot(_) => usage.tail_calls = true,
            LoweredCall::Count(_) => {}
            LoweredCall::Bits(op) => usage.calls_helpers |= op == BitOp::Bitrev,
            LoweredCall::Helper(_)
            | LoweredCall::Kfunc(_)
            | LoweredCall::Host(_)
            | LoweredCall::MapFunction(_)
            | LoweredCall::HashLookup(_)
            | LoweredCall::BeginCallbacks
            | LoweredCall::NextCallback
            | LoweredCall::PacketLoad => usage.calls_helpers = true,
        }
    }

    /// Records an access, which reads its base and the stored operand only.
    fn record_access(&mut self, insn: &Insn, transfer: Transfer) {
        self.others = self.others.union(transfer.read());
        self.usage.stack_escapes |= insn.stored() == Some(Operand::Reg(Reg::R10));
        if let Some(access) = insn.access()
            && access.base == Reg::R10
        {
            self.usage.stack_accesses += 1;
            self.usage.lowest_stack = self.usage.lowest_stack.min(access.off);
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
