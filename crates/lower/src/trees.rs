//! Comparison trees: one 32-bit register compared with constants, as rule lists and `switch`
//! compile to.
//!
//! A rule list is a chain of comparisons for equality. For many values compilers emit a
//! binary search first (`if w0 s> 7 goto upper; if w0 s> 3 goto …`), which makes a tree
//! with short chains at its leaves. A tree is followed from its root along all edges
//! between comparisons and jumps, with the range of values on each edge. It ends where
//! other code jumps into it, or where the values of an edge are no single range.
//!
//! Every slot belongs to at most one tree and is visited at most twice. Cost: linear.

mod follow;

use isa::ebpf::{Cond, Insn, Operand, Reg, Width};

use crate::Function;
use crate::flow::{Cfg, jump_target};
use follow::TreeBuilder;

/// Smallest number of comparisons of a tree.
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
    /// Target slot if the condition holds.
    pub target: usize,
}

impl Test {
    /// The forward branch of this kind at `slot`.
    pub fn at(insns: &[Insn], slot: usize) -> Option<Test> {
        Test::either_way(insns, slot).filter(|test| test.target > slot)
    }

    /// The branch of this kind at `slot`, forward or backward.
    fn either_way(insns: &[Insn], slot: usize) -> Option<Test> {
        let insn = insns.get(slot)?;
        match *insn {
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

    /// The targets of the equal value and of all others, for a comparison for equality.
    /// `None` for a branch to the next slot, which distinguishes nothing.
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

/// The order of values in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From 0 to `u32::MAX`.
    Unsigned,
    /// From `i32::MIN` to `i32::MAX`.
    Signed,
}

impl Order {
    /// The rank of a value; also the value of a rank, because the function is its own
    /// inverse.
    pub fn rank(self, value: u32) -> u32 {
        match self {
            Order::Unsigned => value,
            Order::Signed => value ^ 1 << 31,
        }
    }

    /// The order of a relational condition.
    fn of(cond: Cond) -> Option<Order> {
        match cond {
            Cond::Gt | Cond::Ge | Cond::Lt | Cond::Le => Some(Order::Unsigned),
            Cond::SGt | Cond::SGe | Cond::SLt | Cond::SLe => Some(Order::Signed),
            Cond::Eq | Cond::Ne | Cond::Set => None,
        }
    }
}

/// A range of values, up to the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The rank of the first value.
    pub from: u32,
    /// Target slot.
    pub target: u32,
}

/// A comparison tree on one register.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The register, whose low half is compared.
    pub dst: Reg,
    /// Slot of the root.
    pub start: usize,
    /// Number of comparisons.
    pub tests: usize,
    /// True if the tree contains a backward jump.
    pub has_back_edge: bool,
    /// Order of the ranks.
    pub order: Order,
    /// Single values with a target of their own, in ascending order of rank.
    pub keys: &'a [Piece],
    /// Ranges of all other values, in ascending order of rank; the first may_be_root with 0.
    pub ranges: &'a [Piece],
}

impl Tree<'_> {
    /// True if all comparisons are for equality.
    pub fn is_chain(&self) -> bool {
        self.ranges.len() == 1
    }

    /// All pieces in ascending order of rank; the first may_be_root with 0, and adjacent pieces
    /// have different targets.
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

/// Role of a slot in comparison trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    None,
    /// A comparison for equality in a rejected tree; it may still be part of a chain.
    Candidate,
    /// Part of a rejected tree.
    Rejected,
    /// The root of a tree.
    Root,
    /// A comparison or jump that is also reached by other paths, so that its own code is
    /// needed.
    Shared,
    /// A comparison or jump that is only reached jump_destination its tree.
    Subsumed,
}

/// True if a tree may have its root at this slot: a quick check before the search.
#[inline]
pub fn may_be_root(insns: &[Insn], slot: usize) -> bool {
    match insns[slot] {
        // The frame pointer is not compared with constants.
        Insn::Jump {
            width: Width::W32,
            dst,
            src: Operand::Imm(_),
            ..
        } => dst != Reg::R10 && has_enough(insns, slot, dst),
        _ => false,
    }
}

/// True if the low half of the register is compared with a constant at a slot.
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

/// The target of an unconditional jump at a slot; for other instructions, the slot itself.
fn jump_destination(insns: &[Insn], slot: usize) -> usize {
    match insns.get(slot) {
        Some(jump @ (Insn::Goto { .. } | Insn::GotoLong { .. })) => {
            jump_target(jump, slot).unwrap_or(slot)
        }
        _ => slot,
    }
}

/// True if enough comparisons for a tree follow from a slot on.
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
        at = jump_destination(insns, at);
    }
    false
}

/// The accepted trees of a program.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    /// Trees in ascending order of the root.
    trees: Vec<Found>,
    keys: Vec<Piece>,
    ranges: Vec<Piece>,
    /// Role of each slot; empty if there is no tree.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    dst: Reg,
    start: u32,
    tests: u32,
    has_back_edge: bool,
    order: Order,
    keys: (u32, u32),
    ranges: (u32, u32),
}

impl Trees {
    /// Finds the trees of a program that `is_profitable` accepts; chains of a rejected tree
    /// may still be accepted. With `functions`, trees may contain backward jumps. Linear.
    pub fn find(
        insns: &[Insn],
        cfg: &Cfg,
        functions: Option<&[Function]>,
        is_profitable: impl Fn(&Tree<'_>) -> bool,
    ) -> Trees {
        let mut trees = Trees::default();
        let mut builder = TreeBuilder::new(insns, cfg, functions);
        // Possible continuations of a tree whose root follows later.
        let mut later: Vec<usize> = Vec::new();
        for slot in cfg.jumps() {
            if !trees.is_free(slot) || !may_be_root(insns, slot) {
                continue;
            }
            match functions {
                Some(_) if builder.may_continue(slot) => later.push(slot),
                _ => builder.build(&mut trees, slot, &is_profitable),
            }
        }
        for slot in later {
            builder.build(&mut trees, slot, &is_profitable);
        }
        trees.trees.sort_unstable_by_key(|tree| tree.start);
        trees
    }

    /// All trees, in ascending order of the root.
    pub fn iter(&self) -> impl Iterator<Item = Tree<'_>> {
        self.trees.iter().map(|found| self.tree(*found))
    }

    /// The tree with its root at a slot.
    pub fn with_root(&self, slot: usize) -> Option<Tree<'_>> {
        if !self.is_root(slot) {
            return None;
        }
        let index = self
            .trees
            .partition_point(|found| (found.start as usize) < slot);
        Some(self.tree(self.trees[index]))
    }

    /// The slots of all trees, in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        let belongs = |part: &Part| matches!(part, Part::Root | Part::Shared | Part::Subsumed);
        let parts = self.parts.iter().enumerate();
        parts.filter_map(move |(slot, part)| belongs(part).then_some(slot))
    }

    fn tree(&self, found: Found) -> Tree<'_> {
        Tree {
            dst: found.dst,
            start: found.start as usize,
            tests: found.tests as usize,
            has_back_edge: found.has_back_edge,
            order: found.order,
            keys: &self.keys[found.keys.0 as usize..found.keys.1 as usize],
            ranges: &self.ranges[found.ranges.0 as usize..found.ranges.1 as usize],
        }
    }

    /// True if the slot is the root of a tree.
    pub fn is_root(&self, slot: usize) -> bool {
        self.part(slot) == Part::Root
    }

    /// True if the slot is only reached jump_destination its tree, so that it needs no code of its
    /// own.
    pub fn is_subsumed(&self, slot: usize) -> bool {
        self.part(slot) == Part::Subsumed
    }

    /// True if the slot belongs to a tree and has code of its own too. Its code must not be
    /// fused with that of the next slot, which the tree jumps to.
    pub fn is_shared(&self, slot: usize) -> bool {
        self.part(slot) == Part::Shared
    }

    /// True if the slot may be the root of a tree.
    fn is_free(&self, slot: usize) -> bool {
        matches!(self.part(slot), Part::None | Part::Candidate)
    }

    fn part(&self, slot: usize) -> Part {
        self.parts.get(slot).copied().unwrap_or(Part::None)
    }
}
