//! Address folding: sums that only serve as addresses.
//!
//! BPF has no addressing mode with two registers: programs add them and access memory
//! through the sum. If every use of the sum is such an access, and both summands are
//! unchanged until the last one, the accesses use base and index and the sum is not
//! computed.
//!
//! Cost: a search looks at no more than [`REACH`] instructions.

use isa::ebpf::{AluOp, Effect, Insn, Operand, Reg};

use super::generator::Generator;
use super::reg::Mem;
use crate::Optimization;

/// Number of instructions that are searched for uses of a sum.
const REACH: usize = 12;

/// A sum that is not computed: the operand that replaces its register in addresses.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    pub(super) reg: Reg,
    pub(super) mem: Mem,
    /// The last slot that uses the sum.
    pub(super) last: usize,
}

impl Generator<'_> {
    /// The address `base + off`.
    pub(super) fn address(&self, base: Reg, off: i16) -> Mem {
        match self.sum {
            Some(sum) if sum.reg == base => Mem {
                disp: sum.mem.disp + i32::from(off),
                ..sum.mem
            },
            _ => self.frame.address(base, off),
        }
    }

    /// Folds the sum of two registers, computed before `slot`, into its accesses if it has
    /// no other uses. True if it did.
    pub(super) fn fold_address(
        &mut self,
        slot: usize,
        sum: Reg,
        parts: [Reg; 2],
        mem: Mem,
    ) -> bool {
        // Offsets are added to the displacement later.
        if mem.disp.unsigned_abs() > 1 << 30 {
            return false;
        }
        if !self.uses(Optimization::AddressSum) {
            return false;
        }
        let Some(last) = self.last_access(slot, sum, parts) else {
            return false;
        };
        self.applies(Optimization::AddressSum);
        self.sum = Some(Sum {
            reg: sum,
            mem,
            last,
        });
        self.schedule(last + 1);
        true
    }

    /// The last use of the sum, if all uses are accesses before either summand changes.
    fn last_access(&self, slot: usize, sum: Reg, parts: [Reg; 2]) -> Option<usize> {
        if self.sum.is_some() {
            return None;
        }
        let mut at = slot;
        while at < self.function.end.min(slot + REACH) {
            let fact = &self.facts[at];
            if fact.is_target() || fact.is_rewritten() {
                return None;
            }
            let insn = self.insns[at];
            match insn {
                Insn::Load { dst, base, .. } if base == sum => {
                    if dst == sum {
                        return Some(at);
                    }
                    if parts.contains(&dst) && self.is_read_modify_write(at, sum) {
                        // The loaded value is never in a register.
                        at += 2;
                        if !self.live_out(at).has(sum) {
                            return Some(at);
                        }
                        at += 1;
                        continue;
                    }
                }
                Insn::Store { base, src, .. } if base == sum && src != Operand::Reg(sum) => {}
                _ => {
                    let is_passed = match Between::of(insn) {
                        Between::Arithmetic | Between::Load | Between::Store => true,
                        Between::Barrier => false,
                    };
                    let uses_sum = fact.reads(sum) || fact.writes(sum);
                    if !is_passed || needs_fixed_registers(insn) || uses_sum {
                        return None;
                    }
                }
            }
            if !fact.live_out.has(sum) {
                return Some(at);
            }
            if parts.into_iter().any(|part| fact.writes(part)) {
                return None;
            }
            at += 1;
        }
        None
    }

    /// True if the load at a slot, the next operation and a store back become one
    /// read-modify-write instruction that uses the sum as an address only.
    fn is_read_modify_write(&self, slot: usize, sum: Reg) -> bool {
        self.read_modify_write(slot)
            .is_some_and(|read_modify_write| read_modify_write.src != Operand::Reg(sum))
    }
}

/// Kind of an instruction between a value and its use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Arithmetic,
    Load,
    Store,
    /// No value is moved over it.
    Barrier,
}

impl Between {
    pub(super) const fn of(insn: Insn) -> Between {
        match insn.effect() {
            Some(Effect::Compute) if matches!(insn, Insn::Alu { .. }) => Between::Arithmetic,
            Some(Effect::Load) if matches!(insn, Insn::Load { .. }) => Between::Load,
            Some(Effect::Store) if matches!(insn, Insn::Store { .. }) => Between::Store,
            Some(
                Effect::Compute
                | Effect::Load
                | Effect::Store
                | Effect::Wide
                | Effect::Atomic
                | Effect::Packet
                | Effect::Branch
                | Effect::Goto
                | Effect::GotoLong
                | Effect::GotoReg
                | Effect::Call
                | Effect::Exit,
            )
            | None => Between::Barrier,
        }
    }
}

/// True if an operation needs fixed registers (`rax` and `rdx` for division, `rcx` for
/// shift counts). It preserves live values in them, but the summands of a folded address
/// may be dead otherwise.
///
/// Addresses are not moved over anything but arithmetic, loads and stores.
fn needs_fixed_registers(insn: Insn) -> bool {
    let Insn::Alu { op, src, .. } = insn else {
        return false;
    };
    match op {
        AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => true,
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => matches!(src, Operand::Reg(_)),
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor | AluOp::Mov => {
            false
        }
    }
}
