//! Address folding: sums that only serve as addresses.
//!
//! BPF has no addressing mode with two registers: programs add them and access memory
//! through the sum. If every use of the sum is such an access, and both summands are
//! unchanged until the last one, the accesses use base and index and the sum is not
//! computed.
//!
//! Cost: a search looks at no more than [`REACH`] instructions.

use isa::ebpf::{Effect, Insn, Operand, Reg};

use super::generator::Generator;
use super::target::{Mem, Target};
use crate::Optimization;

/// Number of instructions that are searched for uses of a sum.
const REACH: usize = 12;

/// A sum that is not computed: the operand that replaces its register in addresses.
#[derive(Clone, Copy)]
pub(crate) struct Sum<R> {
    pub(crate) reg: Reg,
    pub(crate) mem: Mem<R>,
    /// The last slot that uses the sum.
    pub(crate) last: usize,
}

impl<T: Target> Generator<'_, T> {
    /// The address `base + off`.
    pub(crate) fn address(&self, base: Reg, off: i16) -> Mem<T::Reg> {
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
    pub(crate) fn fold_address(
        &mut self,
        slot: usize,
        sum: Reg,
        parts: [Reg; 2],
        mem: Mem<T::Reg>,
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
            let info = &self.infos[at];
            if info.is_target() || info.is_rewritten() {
                return None;
            }
            let insn = self.insns[at];
            match insn {
                Insn::Load { dst, base, .. } if base == sum => {
                    if dst == sum {
                        return Some(at);
                    }
                    if parts.contains(&dst) && T::updates_memory(self, at, sum) {
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
                    let uses_sum = info.reads(sum) || info.writes(sum);
                    if !is_passed || T::needs_fixed_registers(insn) || uses_sum {
                        return None;
                    }
                }
            }
            if !info.live_out.has(sum) {
                return Some(at);
            }
            if parts.into_iter().any(|part| info.writes(part)) {
                return None;
            }
            at += 1;
        }
        None
    }
}

/// Kind of an instruction between a value and its use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    Arithmetic,
    Load,
    Store,
    /// No value is moved over it.
    Barrier,
}

impl Between {
    pub(crate) const fn of(insn: Insn) -> Between {
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
