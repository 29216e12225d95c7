//! Copies at the end of a loop that would stand between one round and the next.
//!
//! A compiler for BPF carries a value into the next round by a copy: `r5 += r0` in
//! the loop, and `r0 = r5` at its end. The next round waits for the copy, where the
//! processor does not rename registers for it, and in any case it is one more
//! instruction of each round. Where nothing wants `r0` from the sum on to the copy,
//! the two registers change places in between: the sum is made in the place of
//! `r0`, and nothing is left to copy. If `r5` is wanted where the loop is left, the
//! copy is made there, the other way round.
//!
//! Places change before the instruction that makes the value, which either does not
//! look at the two registers before, or joins them in an operation that does not
//! care for their order. Straight-line code leads from there to the copy.
//!
//! The scan notes copies as it passes them shortly before a jump backward: to look at
//! what stands before each such jump took longer than all that is done for a copy.
//!
//! Cost: a look at no more than [`REACH`] instructions for each copy that was noted.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::Rewrite;
use super::fact::Fact;

/// How many instructions before the end of a loop copies are looked for.
const COPIES: usize = 6;
/// How many instructions before a copy the value is made.
const REACH: usize = 16;

/// A copy of one register to another.
struct Copy {
    width: Width,
    dst: Reg,
    src: Reg,
}

/// A copy that may be at the end of a loop: at a slot, before a jump backward.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    slot: u32,
    jump: u32,
}

impl Candidate {
    /// Of a copy, given the next jump backward, if that is near. A branch over the
    /// jump may stand between them.
    #[inline(always)]
    pub(super) fn new(slot: usize, jump: u32) -> Option<Candidate> {
        let slot = slot as u32;
        let near = slot + 1 + COPIES as u32 >= jump;
        near.then_some(Candidate { slot, jump })
    }
}

/// Two registers that change places, and where.
struct Exchange {
    regs: [Reg; 2],
    from: usize,
    to: usize,
}

struct Finder<'a> {
    insns: &'a [Insn],
    facts: &'a mut [Fact],
    rewrites: &'a mut Vec<Rewrite>,
    found: Vec<Exchange>,
}

/// Finds copies that are not needed among those that the scan noted, the last one
/// first.
#[inline(never)]
pub(super) fn find(
    insns: &[Insn],
    candidates: &[Candidate],
    facts: &mut [Fact],
    rewrites: &mut Vec<Rewrite>,
) {
    let mut finder = Finder {
        insns,
        facts,
        rewrites,
        found: Vec::new(),
    };
    for &candidate in candidates {
        if let Some(copy) = finder.carrying(candidate) {
            finder.visit(candidate, copy);
        }
    }
}

impl Finder<'_> {
    /// The copy, if it carries a value into the next round that is not wanted there
    /// under its old name: otherwise it stays, if only the other way round. Few do.
    #[inline(always)]
    fn carrying(&self, candidate: Candidate) -> Option<Copy> {
        let wanted = self.facts[self.facts[candidate.jump as usize].jump()?].before();
        match self.insns[candidate.slot as usize] {
            Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src: Operand::Reg(src),
            } if wanted.has(dst) && !wanted.has(src) => Some(Copy { width, dst, src }),
            _ => None,
        }
    }

    /// Visits such a copy.
    #[inline(never)]
    fn visit(&mut self, Candidate { slot, jump }: Candidate, copy: Copy) {
        let slot = slot as usize;
        let end = self.end(jump as usize);
        let near = (end.saturating_sub(COPIES)..end).contains(&slot);
        if near && self.leads(slot, end) {
            self.exchange(end, slot, copy);
        }
    }

    /// Where a loop ends: the jump, or a branch over it, where control may leave the loop.
    fn end(&self, jump: usize) -> usize {
        let over = jump.checked_sub(1).filter(|&slot| {
            self.facts[slot].branches() && self.facts[slot].jump() == Some(jump + 1)
        });
        over.unwrap_or(jump)
    }

    /// Whether straight-line code leads from one slot to another that only computes,
    /// loads or stores.
    fn leads(&self, slot: usize, to: usize) -> bool {
        (slot..to).all(|at| !self.facts[at + 1].is_target() && self.is_simple(at))
    }

    /// Lets two registers change places for the copy at a slot, if they may.
    fn exchange(&mut self, end: usize, slot: usize, copy: Copy) {
        let Copy { width, dst, src } = copy;
        let fact = &self.facts[slot];
        let kept = fact.after.has(src);
        let fits = dst != src
            && ![dst, src].contains(&Reg::R10)
            && !fact.is_dead()
            && !fact.is_rewritten()
            && (width == Width::W64 || !kept);
        if !fits {
            return;
        }
        let Some(from) = self.origin(slot, dst, src) else {
            return;
        };
        let apart = |other: &Exchange| {
            let disjoint = other.to < from || slot < other.from;
            disjoint || !other.regs.iter().any(|reg| [dst, src].contains(reg))
        };
        if !self.found.iter().all(apart) {
            return;
        }
        self.found.push(Exchange {
            regs: [dst, src],
            from,
            to: slot,
        });
        let late = kept && self.may_be_late(end, slot, dst, src);
        self.rewrite(from, Rewrite::Exchange { dst, src });
        self.rewrite(
            slot,
            Rewrite::Exchanged {
                width,
                dst,
                src,
                late,
            },
        );
    }

    /// Where `src` is made that is copied to `dst` at a slot.
    fn origin(&self, slot: usize, dst: Reg, src: Reg) -> Option<usize> {
        for at in (slot.saturating_sub(REACH)..slot).rev() {
            let fact = &self.facts[at];
            if self.facts[at + 1].is_target() || !self.is_simple(at) || fact.writes(dst) {
                return None;
            }
            let (takes_dst, takes_src) = (fact.reads(dst), fact.reads(src));
            if !fact.writes(src) {
                if takes_dst {
                    return None;
                }
                continue;
            }
            let makes = match takes_dst {
                true => self.joins(at, dst, src),
                false if takes_src => continue,
                false => true,
            };
            let plain = !fact.is_rewritten() && !fact.is_dead();
            return (makes && plain).then_some(at);
        }
        None
    }

    /// Whether the slot is `src op= dst` with an operation that commutes.
    fn joins(&self, slot: usize, dst: Reg, src: Reg) -> bool {
        match self.insns[slot] {
            Insn::Alu {
                op: AluOp::Add | AluOp::Mul | AluOp::And | AluOp::Or | AluOp::Xor,
                dst: to,
                src: Operand::Reg(from),
                ..
            } => (to, from) == (src, dst),
            _ => false,
        }
    }

    /// Whether the copy to `src` can wait until the loop is left.
    fn may_be_late(&self, end: usize, slot: usize, dst: Reg, src: Reg) -> bool {
        self.is_branch(end)
            && (slot + 1..=end).all(|at| {
                let fact = &self.facts[at];
                !fact.reads(src) && !fact.writes(src) && !fact.writes(dst)
            })
    }

    /// Whether the slot is a branch that the code generator writes as one.
    fn is_branch(&self, slot: usize) -> bool {
        let fact = &self.facts[slot];
        matches!(self.insns[slot], Insn::Jump { .. }) && !fact.is_look_up() && !fact.is_absorbed()
    }

    /// Whether an instruction only computes, loads or stores, in any case and with no
    /// registers but those that it names.
    fn is_simple(&self, slot: usize) -> bool {
        let chosen = slot > 0 && self.facts[slot - 1].is_selection();
        if chosen || self.facts[slot].leaves() {
            return false;
        }
        if self.facts[slot].is_rewritten() {
            return self
                .found
                .iter()
                .any(|other| slot == other.from || slot == other.to);
        }
        match self.insns[slot] {
            Insn::Alu { op, src, .. } => match op {
                AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => false,
                AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => matches!(src, Operand::Imm(_)),
                _ => true,
            },
            Insn::Load { .. }
            | Insn::Store { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. } => true,
            _ => false,
        }
    }

    fn rewrite(&mut self, slot: usize, rewrite: Rewrite) {
        self.facts[slot].rewrite(rewrite, self.rewrites);
    }
}
