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
//! Cost: a look at no more than [`COPIES`] × [`REACH`] instructions for each jump
//! backward.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::Rewrite;
use super::fact::Fact;

/// How many instructions before the end of a loop copies are looked for.
const COPIES: usize = 6;
/// How many instructions before a copy the value is made.
const REACH: usize = 16;

/// Two registers that change places, and where.
struct Exchange {
    regs: [Reg; 2],
    from: usize,
    to: usize,
}

/// A copy of one register to another.
struct Copy {
    width: Width,
    dst: Reg,
    src: Reg,
}

/// The end of a loop.
struct End {
    /// The jump, or a branch over it, where control may leave the loop.
    slot: usize,
    head: usize,
    /// It is a branch that the code generator writes as one.
    branches: bool,
}

struct Finder<'a> {
    insns: &'a [Insn],
    facts: &'a mut [Fact],
    rewrites: &'a mut Vec<Rewrite>,
    found: Vec<Exchange>,
}

/// Finds copies before the jumps at these slots, which lead backward, in their order.
#[inline(never)]
pub(super) fn find(
    insns: &[Insn],
    jumps: impl Iterator<Item = usize>,
    facts: &mut [Fact],
    rewrites: &mut Vec<Rewrite>,
) {
    let mut finder = Finder {
        insns,
        facts,
        rewrites,
        found: Vec::new(),
    };
    for jump in jumps {
        finder.visit(jump);
    }
}

impl Finder<'_> {
    fn visit(&mut self, jump: usize) {
        let Some(end) = self.end(jump) else { return };
        // Slots from here on only compute, load or store.
        let mut simple = end.slot;
        while let Some((slot, copy)) = self.copy_before(&end, simple) {
            if !(slot..simple).all(|at| self.is_simple(at)) {
                return;
            }
            simple = slot;
            self.exchange(&end, slot, copy);
        }
    }

    /// The last copy before a slot that carries a value into the next round that is not
    /// wanted there under its old name: otherwise it stays, if only the other way round.
    fn copy_before(&self, end: &End, slot: usize) -> Option<(usize, Copy)> {
        let first = end.slot.saturating_sub(COPIES);
        let insns = &self.insns[first..slot];
        let next = &self.facts[first + 1..=slot];
        for at in (0..insns.len()).rev() {
            if next[at].is_target() {
                break;
            }
            if let Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src: Operand::Reg(src),
            } = insns[at]
            {
                let wanted = self.facts[end.head].before();
                if wanted.has(dst) && !wanted.has(src) {
                    return Some((first + at, Copy { width, dst, src }));
                }
            }
        }
        None
    }

    fn end(&self, jump: usize) -> Option<End> {
        let head = self.facts[jump].jump()?;
        let over = jump.checked_sub(1).filter(|&slot| {
            self.facts[slot].branches() && self.facts[slot].jump() == Some(jump + 1)
        });
        let slot = over.unwrap_or(jump);
        let fact = &self.facts[slot];
        Some(End {
            slot,
            head,
            branches: matches!(self.insns[slot], Insn::Jump { .. })
                && !fact.is_look_up()
                && !fact.is_absorbed(),
        })
    }

    /// Lets two registers change places for the copy at a slot, if they may.
    fn exchange(&mut self, end: &End, slot: usize, copy: Copy) {
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
    fn may_be_late(&self, end: &End, slot: usize, dst: Reg, src: Reg) -> bool {
        end.branches
            && (slot + 1..=end.slot).all(|at| {
                let fact = &self.facts[at];
                !fact.reads(src) && !fact.writes(src) && !fact.writes(dst)
            })
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
