//! Address folding: sums that only serve as addresses, and loads that only serve as operands.
//!
//! BPF has no addressing mode with two registers: programs add them and access memory
//! through the sum. If every use of the sum is such an access, and both summands keep their
//! values until the last one, the sum is not computed and the accesses use base and index. A
//! load whose value is the operand of one operation shortly after it becomes the memory
//! operand of that operation.
//!
//! Cost: each search looks at no more than [`REACH`] instructions.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size};

use super::generator::Generator;
use super::memory::{Load, takes_memory};
use super::reg::{Gpr, Mem};
use crate::Optimization;

/// How many instructions ahead uses are looked for.
const REACH: usize = 12;
/// How far a load may be moved.
const FARTHEST: usize = 3;

/// A register that is not made: what stands for it in addresses.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    pub(super) reg: Reg,
    pub(super) mem: Mem,
    /// The last slot that uses it.
    pub(super) last: usize,
    /// A load before that would change a part of it, but is done in memory.
    modifies: bool,
}

/// A load that is left to a later slot.
#[derive(Clone, Copy)]
pub(super) struct Deferred {
    pub(super) slot: usize,
    pub(super) mem: Mem,
}

impl Deferred {
    /// No load is.
    pub(super) const NONE: Deferred = Deferred {
        slot: usize::MAX,
        mem: Mem::at(Gpr::RAX, 0),
    };
}

impl Generator<'_> {
    /// The address `base + off`.
    #[inline(always)]
    pub(super) fn address(&self, base: Reg, off: i16) -> Mem {
        match self.sum {
            Some(sum) if sum.reg == base => Mem {
                disp: sum.mem.disp + i32::from(off),
                ..sum.mem
            },
            _ => self.frame.address(base, off),
        }
    }

    /// Takes the sum of two registers of the program, made before `slot`, for an
    /// address only, if it is; then it need not be made.
    pub(super) fn is_only_address(
        &mut self,
        slot: usize,
        sum: Reg,
        parts: [Reg; 2],
        mem: Mem,
    ) -> bool {
        // Offsets are added to it later.
        if mem.disp.unsigned_abs() > 1 << 30 {
            return false;
        }
        if !self.uses(Optimization::AddressSum) {
            return false;
        }
        let Some((last, modifies)) = self.last_access(slot, sum, parts) else {
            return false;
        };
        self.applies(Optimization::AddressSum);
        self.sum = Some(Sum {
            reg: sum,
            mem,
            last,
            modifies,
        });
        self.note_due(last + 1);
        true
    }

    /// The last use of the sum, if all are accesses through it before either part
    /// changes; and whether a load into a part must be done in memory for that.
    fn last_access(&self, slot: usize, sum: Reg, parts: [Reg; 2]) -> Option<(usize, bool)> {
        if self.sum.is_some() {
            return None;
        }
        let mut modifies = false;
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
                        return Some((at, modifies));
                    }
                    if parts.contains(&dst) && self.is_modification(at, sum) {
                        // The value never is in a register.
                        modifies = true;
                        at += 2;
                        if !self.after(at).has(sum) {
                            return Some((at, modifies));
                        }
                        at += 1;
                        continue;
                    }
                }
                Insn::Store { base, src, .. } if base == sum && src != Operand::Reg(sum) => {}
                Insn::Alu { .. } | Insn::Load { .. } | Insn::Store { .. } => {
                    if takes_registers(insn) || fact.reads(sum) || fact.writes(sum) {
                        return None;
                    }
                }
                _ => return None,
            }
            if !fact.after.has(sum) {
                return Some((at, modifies));
            }
            if parts.into_iter().any(|part| fact.writes(part)) {
                return None;
            }
            at += 1;
        }
        None
    }

    /// Whether a load through a sum, what follows and a store back are one
    /// instruction that takes the sum as an address only.
    fn is_modification(&self, slot: usize, sum: Reg) -> bool {
        self.modification(slot)
            .is_some_and(|modification| modification.src != Operand::Reg(sum))
    }

    /// Whether a value loaded at a slot may go into an operation a little later: most
    /// have no reader so near.
    #[inline(always)]
    pub(super) fn is_read_soon(&self, slot: usize, size: Size, dst: Reg) -> bool {
        matches!(size, Size::W | Size::DW)
            && self.deferred.slot == usize::MAX
            && self
                .facts
                .get(slot + 2..=slot + FARTHEST)
                .is_some_and(|near| near.iter().any(|fact| fact.reads(dst)))
    }

    /// Leaves a load that is read soon to the operation that takes its value, if only
    /// that does.
    pub(super) fn defer_load(&mut self, slot: usize, load: Load, mem: Mem) -> bool {
        let Some(user) = self.user(slot, load.dst, mem) else {
            return false;
        };
        // What is done in memory takes no operand from there.
        let in_memory = self.sum.is_some_and(|sum| sum.modifies && user <= sum.last);
        let takes = |this| takes_memory(this, load);
        if !self.uses(Optimization::DeferredLoad) {
            return false;
        }
        if in_memory || !self.arithmetic_at(user).is_some_and(takes) {
            return false;
        }
        self.applies(Optimization::DeferredLoad);
        self.deferred = Deferred { slot: user, mem };
        self.note_due(user);
        true
    }

    /// Whether an operation or a load changes what an address is made of.
    fn moves(&self, insn: Insn, mem: Mem) -> bool {
        match insn {
            _ if takes_registers(insn) => true,
            Insn::Alu { dst, .. } | Insn::Load { dst, .. } => mem.uses(self.gpr(dst)),
            _ => true,
        }
    }

    /// The operation some slots ahead that is the only one to read `dst`, where
    /// nothing before it writes memory or what the address is made of.
    fn user(&self, slot: usize, dst: Reg, mem: Mem) -> Option<usize> {
        for at in slot + 1..=slot + FARTHEST {
            let insn = self.peek(at)?;
            match insn {
                Insn::Alu {
                    src: Operand::Reg(src),
                    dst: to,
                    ..
                } if src == dst && to != dst => {
                    return (at > slot + 1 && !self.after(at).has(dst)).then_some(at);
                }
                Insn::Alu { .. } | Insn::Load { .. } => {}
                _ => return None,
            }
            let fact = &self.facts[at];
            if fact.reads(dst) || fact.writes(dst) || self.moves(insn, mem) {
                return None;
            }
        }
        None
    }
}

/// Whether an operation needs registers of its own (`rax` and `rdx` to divide, `rcx`
/// to count a shift). It keeps what lives in them, but parts of an address that is
/// not made yet may live on in the address alone.
fn takes_registers(insn: Insn) -> bool {
    match insn {
        Insn::Alu { op, src, .. } => match op {
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => true,
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => matches!(src, Operand::Reg(_)),
            AluOp::Add
            | AluOp::Sub
            | AluOp::Mul
            | AluOp::Or
            | AluOp::And
            | AluOp::Xor
            | AluOp::Mov => false,
        },
        // Not among what an address or a load is moved over.
        _ => false,
    }
}
