//! The range of values that the table of a comparison tree covers, and the cost model of
//! tables.
//!
//! A table takes one or two bytes for each value, a comparison about six. A lookup waits
//! for a load, and its indirect jump is as hard to predict as all branches of the tree
//! together. So a tree becomes a table if its values are dense and it has many leaves, or
//! few leaves for many values.

use std::iter;

use lower::trees::{Order, Piece, Tree};

/// Values of a chain's table for each constant, at most, with a constant added.
const SPREAD: usize = 8;
/// Values of a jump table for each comparison, at most.
const TREE_SPREAD: usize = 4;
/// Leaves from which on a jump table is profitable.
const MANY_LEAVES: usize = 12;
/// Comparisons from which on a table of leaf numbers is profitable.
const MANY_TESTS: usize = 16;
/// Values of the longest table of a tree.
const LONGEST: usize = 1024;
/// Targets that are distinguished by comparing a leaf number, the default target aside.
const MOST_COMPARED: usize = 6;
/// Values by which a window may grow if that saves an instruction.
const SAVES_ONE: u64 = 16;
/// Constants of a chain that are compared without a table.
const FEW: usize = 3;

/// The values between the outermost constants of a tree, in the tree's order, with their
/// targets.
pub(crate) struct Window {
    order: Order,
    /// Ranges of values with their targets, including those outside the window.
    pub(crate) pieces: Vec<Piece>,
    /// The smallest and the largest possible value, by rank.
    first: u64,
    last: u64,
    /// The window, `from..end`, by rank.
    from: u64,
    end: u64,
}

impl Window {
    /// The window of a tree on a register with `bits` significant bits.
    pub(crate) fn of(tree: &Tree<'_>, bits: u8) -> Window {
        let order = tree.order;
        let mut pieces = tree.pieces();
        let rank = |value: u32| u64::from(order.rank(value));
        let (mut first, mut last) = (0, u64::from(u32::MAX));
        if bits < 32 {
            (first, last) = (rank(0), rank((1 << bits) - 1));
            pieces.truncate(pieces.partition_point(|piece| u64::from(piece.from) <= last));
            let before = pieces.partition_point(|piece| u64::from(piece.from) <= first);
            pieces.drain(..before - 1);
            pieces[0].from = first as u32;
        }
        let mut from = pieces.get(1).map_or(first, |piece| u64::from(piece.from));
        let mut end = from.max(u64::from(pieces[pieces.len() - 1].from));
        if from - first <= SAVES_ONE {
            from = first;
        } else if from > rank(0) && from - rank(0) <= SAVES_ONE {
            from = rank(0);
        }
        if last + 1 - end <= SAVES_ONE {
            end = last + 1;
        }
        Window {
            order,
            pieces,
            first,
            last,
            from,
            end,
        }
    }

    /// True if a lookup is cheaper than the tree.
    pub(crate) fn is_profitable(tree: &Tree<'_>) -> bool {
        if tree.is_chain() {
            return true;
        }
        let window = Window::of(tree, 32);
        let len = window.len();
        if len > LONGEST || len > SPREAD * tree.tests + 64 {
            return false;
        }
        let leaves = window.leaves();
        let jumps = leaves == MANY_LEAVES && len <= TREE_SPREAD * tree.tests;
        let compares = leaves <= MOST_COMPARED + 1 && tree.tests >= MANY_TESTS;
        jumps || compares
    }

    /// True if the window is dense enough for a table; otherwise it is searched.
    pub(crate) fn is_dense(&self, tree: &Tree<'_>) -> bool {
        let few = tree.is_chain() && tree.keys.len() <= FEW;
        !few && (1..=SPREAD * tree.tests + 64).contains(&self.len())
    }

    /// Number of values; 0 if there are only two ranges.
    pub(crate) fn len(&self) -> usize {
        (self.end - self.from) as usize
    }

    /// The first value of the window.
    pub(crate) fn first(&self) -> u32 {
        self.order.rank(self.from as u32)
    }

    /// The targets of values below and above the window, if there are such values.
    pub(crate) fn outside(&self) -> [Option<u32>; 2] {
        let below = (self.first < self.from).then(|| self.pieces[0].target);
        let above = (self.end <= self.last).then(|| self.pieces[self.pieces.len() - 1].target);
        [below, above]
    }

    /// The first value of a piece; true if it is the only one.
    pub(crate) fn head(&self, piece: usize) -> (u32, bool) {
        let from = self.pieces[piece].from;
        let next = self.pieces.get(piece + 1);
        let end = next.map_or(self.last + 1, |next| u64::from(next.from));
        (self.order.rank(from), end - u64::from(from) == 1)
    }

    /// True if the values are ordered as signed numbers.
    pub(crate) fn is_signed(&self) -> bool {
        self.order == Order::Signed
    }

    /// The table: for each value, the entry of its target.
    pub(crate) fn entries<T: Clone>(&self, entry_of: impl Fn(u32) -> T) -> Vec<T> {
        let mut entries = Vec::with_capacity(self.len());
        let ends = self.pieces[1..].iter().map(|piece| u64::from(piece.from));
        for (piece, end) in self.pieces.iter().zip(ends.chain([self.last + 1])) {
            let from = u64::from(piece.from).max(self.from);
            let count = end.min(self.end).saturating_sub(from);
            entries.extend(iter::repeat_n(entry_of(piece.target), count as usize));
        }
        entries
    }

    /// Number of targets, up to [`MANY_LEAVES`].
    fn leaves(&self) -> usize {
        let mut targets = [0; MANY_LEAVES];
        let mut count = 0;
        for piece in &self.pieces {
            if !targets[..count].contains(&piece.target) {
                targets[count] = piece.target;
                count += 1;
                if count == MANY_LEAVES {
                    break;
                }
            }
        }
        count
    }

    /// The default target (of values outside, or of the first value) and the other targets,
    /// if they are at most [`MOST_COMPARED`].
    pub(crate) fn compared(&self) -> Option<(u32, Vec<u32>)> {
        let [below, above] = self.outside();
        let usual = above.or(below).unwrap_or(self.pieces[0].target);
        let mut others = Vec::new();
        for piece in &self.pieces {
            if piece.target != usual && !others.contains(&piece.target) {
                if others.len() == MOST_COMPARED {
                    return None;
                }
                others.push(piece.target);
            }
        }
        Some((usual, others))
    }
}
