//! Comparison trees: one 32-bit register compared with constants, as rule lists and `switch`
//! compile to.
//!
//! A rule list is a chain of comparisons for equality. With many values compilers divide
//! them first (`if w0 s> 7 goto upper; if w0 s> 3 goto …`), which makes a tree with short
//! chains at its leaves. A tree is followed from its first comparison along every edge on
//! which control only jumps, with the range of values that takes it. It ends where other
//! code leads into it, or where an edge has values that are no single range.
//!
//! Every slot belongs to at most one tree and is visited at most twice: linear.

mod follow;

use isa::ebpf::{Cond, Insn, Operand, Reg, Width};

use crate::Function;
use crate::jumps::{Arrivals, jump_target};
use follow::Follower;

/// Trees from this many comparisons on are worth a look-up.
pub const SMALLEST: usize = 4;

/// A branch of a 32-bit register on a constant.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The condition.
    pub cond: Cond,
    /// The register.
    pub dst: Reg,
    /// The constant.
    pub imm: i32,
    /// The slot where it leads when the condition holds.
    pub target: usize,
}

impl Test {
    /// The branch at `slot`, if it is such and leads forward.
    pub fn at(insns: &[Insn], slot: usize) -> Option<Test> {
        Test::either_way(insns, slot).filter(|test| test.target > slot)
    }

    /// The same, wherever it leads.
    fn either_way(insns: &[Insn], slot: usize) -> Option<Test> {
        let insn = *insns.get(slot)?;
        match insn {
            Insn::Jump {
                cond,
                width: Width::W32,
                dst,
                src: Operand::Imm(imm),
                ..
            } => Some(Test {
                cond,
                dst,
                imm,
                target: jump_target(insn, slot)?,
            }),
            _ => None,
        }
    }

    /// Where values go that equal the constant, and all others, if that is what it
    /// asks. A branch to the next slot decides nothing.
    fn equality(self, slot: usize) -> Option<(usize, usize)> {
        let next = slot + 1;
        match self.cond {
            _ if self.target == next => None,
            Cond::Eq => Some((self.target, next)),
            Cond::Ne => Some((next, self.target)),
            _ => None,
        }
    }
}

/// The order in which a tree divides values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From 0 to `u32::MAX`.
    Unsigned,
    /// From `i32::MIN` to `i32::MAX`.
    Signed,
}

impl Order {
    /// How many values come before this one; and the value before which there are so
    /// many.
    pub fn rank(self, value: u32) -> u32 {
        match self {
            Order::Unsigned => value,
            Order::Signed => value ^ 1 << 31,
        }
    }

    /// The order that a condition goes by, if it divides values.
    fn of(cond: Cond) -> Option<Order> {
        match cond {
            Cond::Gt | Cond::Ge | Cond::Lt | Cond::Le => Some(Order::Unsigned),
            Cond::SGt | Cond::SGe | Cond::SLt | Cond::SLe => Some(Order::Signed),
            Cond::Eq | Cond::Ne | Cond::Set => None,
        }
    }
}

/// Values from one rank to the next one that is mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The rank of the first value.
    pub from: u32,
    /// The slot where they lead.
    pub target: u32,
}

/// A tree of comparisons of one register.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The register, of which the low half is compared.
    pub dst: Reg,
    /// Where its first comparison stands.
    pub start: usize,
    /// How many comparisons it has.
    pub tests: usize,
    /// Whether it goes on somewhere where a jump leads backward.
    pub goes_back: bool,
    /// By what ranks are counted.
    pub order: Order,
    /// Single values that lead elsewhere than others of their range, in ascending
    /// order of rank.
    pub keys: &'a [Piece],
    /// Where all others lead, in ascending order of rank; the first begins with 0.
    pub ranges: &'a [Piece],
}

impl Tree<'_> {
    /// Whether it compares for equality only.
    pub fn is_chain(&self) -> bool {
        self.ranges.len() == 1
    }

    /// Where values lead, in ascending order of rank; the first begins with 0, and
    /// no two neighbours lead to the same slot.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(2 * self.keys.len() + self.ranges.len());
        let mut put = |from, target| {
            pieces.pop_if(|last| last.from == from);
            if pieces.last().is_none_or(|last| last.target != target) {
                pieces.push(Piece { from, target });
            }
        };
        let mut keys = self.keys.iter().peekable();
        for (index, range) in self.ranges.iter().enumerate() {
            let last = match self.ranges.get(index + 1) {
                Some(next) => next.from - 1,
                None => u32::MAX,
            };
            put(range.from, range.target);
            while let Some(key) = keys.next_if(|key| key.from <= last) {
                put(key.from, key.target);
                if key.from < last {
                    put(key.from + 1, range.target);
                }
            }
        }
        pieces
    }
}

/// What a slot has to do with trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    None,
    /// A comparison for equality of a tree that was not wanted: it may still be one
    /// of a chain.
    Tried,
    /// Of a tree that was not wanted.
    Left,
    /// A tree begins here.
    Start,
    /// A comparison or jump that is also reached by other ways than its tree, and so
    /// needs code of its own.
    Shared,
    /// A comparison or jump that is only reached through its tree, from the start.
    Absorbed,
}

/// Whether a tree could begin at this slot: most programs have none, and whoever
/// asks this of their jumps need not look for them in earnest.
#[inline]
pub fn begins(insns: &[Insn], slot: usize) -> bool {
    match insns[slot] {
        // The frame pointer is no number that code compares with constants.
        Insn::Jump {
            width: Width::W32,
            dst,
            src: Operand::Imm(_),
            ..
        } => dst != Reg::R10 && has_enough(insns, slot, dst),
        _ => false,
    }
}

/// Whether the low half of the register is compared with a constant at a slot.
fn compares(insns: &[Insn], slot: usize, dst: Reg) -> bool {
    match insns.get(slot) {
        Some(Insn::Jump {
            width: Width::W32,
            dst: other,
            src: Operand::Imm(_),
            ..
        }) => *other == dst,
        _ => false,
    }
}

/// Where control goes from a slot by a jump that is always taken, if it holds one.
fn through(insns: &[Insn], slot: usize) -> usize {
    match insns.get(slot) {
        Some(&jump @ (Insn::Goto { .. } | Insn::GotoLong { .. })) => {
            jump_target(jump, slot).unwrap_or(slot)
        }
        _ => slot,
    }
}

/// Whether there are comparisons enough for a tree from a slot on. Behind most there is
/// something else.
fn has_enough(insns: &[Insn], slot: usize, dst: Reg) -> bool {
    let (mut at, mut count) = (slot, 0);
    while let Some(&Insn::Jump {
        cond,
        width: Width::W32,
        dst: other,
        src: Operand::Imm(_),
        off,
    }) = insns.get(at)
    {
        let next = at + 1;
        let target = next.wrapping_add_signed(off.into());
        at = match cond {
            _ if other != dst => return false,
            Cond::Eq if off != 0 => next,
            Cond::Ne if off != 0 => target,
            _ if Order::of(cond).is_some() && compares(insns, target, dst) => {
                count += 1;
                next
            }
            _ => return false,
        };
        count += 1;
        if count >= SMALLEST {
            return true;
        }
        at = through(insns, at);
    }
    false
}

/// All trees of a program that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    /// In ascending order of the first slot.
    trees: Vec<Found>,
    keys: Vec<Piece>,
    ranges: Vec<Piece>,
    /// What each slot is; empty when there is no tree.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    dst: Reg,
    start: u32,
    tests: u32,
    goes_back: bool,
    order: Order,
    keys: (u32, u32),
    ranges: (u32, u32),
}

impl Trees {
    /// Finds the trees of a program: linear in its length. Where its functions are
    /// given, also those that jump backward. Of a tree that is not wanted, chains
    /// may be.
    pub fn find(
        insns: &[Insn],
        arrivals: &Arrivals,
        functions: Option<&[Function]>,
        is_wanted: impl Fn(&Tree<'_>) -> bool,
    ) -> Trees {
        let mut trees = Trees::default();
        let mut follower = Follower::new(insns, arrivals, functions);
        // Perhaps a tree goes on there that begins further down.
        let mut later: Vec<usize> = Vec::new();
        for slot in arrivals.jumps() {
            if !trees.is_free(slot) || !begins(insns, slot) {
                continue;
            }
            match functions {
                Some(_) if follower.may_go_on(slot) => later.push(slot),
                _ => follower.follow(&mut trees, slot, &is_wanted),
            }
        }
        for slot in later {
            follower.follow(&mut trees, slot, &is_wanted);
        }
        trees.trees.sort_unstable_by_key(|tree| tree.start);
        trees
    }

    /// All of them, in ascending order of the first slot.
    pub fn iter(&self) -> impl Iterator<Item = Tree<'_>> {
        self.trees.iter().map(|found| self.tree(*found))
    }

    /// The tree that begins at this slot.
    pub fn starting_at(&self, slot: usize) -> Option<Tree<'_>> {
        if !self.starts(slot) {
            return None;
        }
        let index = self
            .trees
            .partition_point(|found| (found.start as usize) < slot);
        Some(self.tree(self.trees[index]))
    }

    /// The slots that belong to one, in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        let belongs = |part: &Part| matches!(part, Part::Start | Part::Shared | Part::Absorbed);
        let parts = self.parts.iter().enumerate();
        parts.filter_map(move |(slot, part)| belongs(part).then_some(slot))
    }

    fn tree(&self, found: Found) -> Tree<'_> {
        Tree {
            dst: found.dst,
            start: found.start as usize,
            tests: found.tests as usize,
            goes_back: found.goes_back,
            order: found.order,
            keys: &self.keys[found.keys.0 as usize..found.keys.1 as usize],
            ranges: &self.ranges[found.ranges.0 as usize..found.ranges.1 as usize],
        }
    }

    /// Whether a tree begins at this slot.
    pub fn starts(&self, slot: usize) -> bool {
        self.part(slot) == Part::Start
    }

    /// Whether what stands at the slot is done by its tree whenever control gets
    /// there, so that it needs no code of its own.
    pub fn absorb(&self, slot: usize) -> bool {
        self.part(slot) == Part::Absorbed
    }

    /// Whether the slot belongs to a tree and has code of its own too. A look-up
    /// goes straight to what follows it, so that code must not be made one with the
    /// next slot's.
    pub fn shares(&self, slot: usize) -> bool {
        self.part(slot) == Part::Shared
    }

    /// Whether a tree may begin at the slot.
    fn is_free(&self, slot: usize) -> bool {
        matches!(self.part(slot), Part::None | Part::Tried)
    }

    fn part(&self, slot: usize) -> Part {
        self.parts.get(slot).copied().unwrap_or(Part::None)
    }
}
