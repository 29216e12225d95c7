//! Reduced ordered binary decision diagrams with several leaves (MTBDDs): canonical
//! functions from the bits of a system call's data to values.
//!
//! A node tests one bit; a leaf is a value (0 and 1 are truth values, others outcomes). The
//! variable order is fixed, equal subgraphs are shared (hash-consing) and no node has equal
//! branches, so two functions are equal exactly if their references are.
//!
//! A comparison of a word with a constant has one node per bit; a conjunction has at most
//! the product of the sizes of its operands. Functions that combine words can be
//! exponential, so operations count their steps (nodes visited or created) against a budget
//! and fail with [`OverBudget`]. Memory is bounded by [`MAX_NODES`], recursion by
//! [`MAX_HEIGHT`]. An operation that fails under [`Diagram::within`] leaves no nodes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Level of a bit in the variable order; lower levels are tested first.
pub(crate) type Level = u16;

/// The budget of steps, nodes or height was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

/// Reference to a function: a node or, with the top bit set, a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ref(u32);

const LEAF: u32 = 1 << 31;

impl Ref {
    pub(crate) const FALSE: Ref = Ref::leaf(0);
    pub(crate) const TRUE: Ref = Ref::leaf(1);

    /// The constant function.
    pub(crate) const fn leaf(value: u32) -> Ref {
        assert!(value < LEAF);
        Ref(LEAF | value)
    }

    /// The value of a constant function.
    pub(crate) const fn value(self) -> Option<u32> {
        if self.0 & LEAF != 0 {
            Some(self.0 & !LEAF)
        } else {
            None
        }
    }

    /// The constant true or false.
    pub(crate) const fn of(truth: bool) -> Ref {
        if truth { Ref::TRUE } else { Ref::FALSE }
    }

    /// The truth value of a constant Boolean function.
    pub(crate) const fn as_bool(self) -> Option<bool> {
        match self.value() {
            Some(value) => Some(value != 0),
            None => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    level: Level,
    /// Nodes on the longest path to a leaf.
    height: u16,
    low: Ref,
    high: Ref,
}

/// The level of leaves: after every bit.
pub(crate) const LEAF_LEVEL: Level = Level::MAX;

/// A cached `if f then g else h`.
#[derive(Clone, Copy)]
struct Choice {
    f: Ref,
    g: Ref,
    h: Ref,
    result: Ref,
}

const NO_CHOICE: Choice = Choice {
    f: Ref::FALSE,
    g: Ref::FALSE,
    h: Ref::FALSE,
    result: Ref::FALSE,
};

/// The functions of one analysis.
pub(crate) struct Diagram {
    nodes: Vec<Node>,
    /// Hash table of node numbers plus one, with linear probing; 0 is empty.
    unique: Vec<u32>,
    /// Direct-mapped cache of [`Diagram::choose`].
    choices: Vec<Choice>,
    /// Slots of `choices` written since the outermost operation under
    /// [`Diagram::within`] began.
    journal: Vec<u32>,
    /// Number of running operations under [`Diagram::within`].
    nested: u32,
    /// Steps left.
    budget: u64,
}

/// Largest number of nodes.
pub(crate) const MAX_NODES: usize = 3 << 20;

/// Largest number of nodes on a path, so that recursion over three functions fits the stack
/// of any thread.
pub(crate) const MAX_HEIGHT: u16 = 2048;

/// Largest number of cache entries.
const MAX_CHOICES: usize = 1 << 20;

impl Diagram {
    /// A diagram with a total budget of `budget` steps.
    pub(crate) fn new(budget: u64) -> Diagram {
        Diagram {
            nodes: Vec::new(),
            unique: vec![0; 1 << 12],
            choices: vec![NO_CHOICE; 1 << 14],
            journal: Vec::new(),
            nested: 0,
            budget,
        }
    }

    /// Steps left.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Replaces the steps left.
    pub(crate) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// Runs an operation with a limit of `steps`. If it fails, the nodes that it created
    /// are removed.
    pub(crate) fn within<T>(
        &mut self,
        steps: u64,
        operation: impl FnOnce(&mut Diagram) -> Result<T, OverBudget>,
    ) -> Result<T, OverBudget> {
        let granted = steps.min(self.budget);
        let kept = self.budget - granted;
        self.budget = granted;
        let mark = self.mark();
        let result = operation(self);
        self.release(mark, result.is_err());
        self.budget += kept;
        result
    }

    /// Starts an operation whose nodes [`Diagram::release`] can remove.
    pub(crate) fn mark(&mut self) -> Mark {
        self.nested += 1;
        Mark {
            nodes: self.nodes.len(),
            journal: self.journal.len(),
        }
    }

    /// Ends an operation; with `undo`, removes the nodes created since `mark`.
    pub(crate) fn release(&mut self, mark: Mark, undo: bool) {
        self.nested -= 1;
        if undo {
            for slot in self.journal.drain(mark.journal..) {
                self.choices[slot as usize] = NO_CHOICE;
            }
            // In the reverse order of insertion, so that no later entry was
            // placed by probing past the one removed.
            while self.nodes.len() > mark.nodes {
                let number = self.nodes.len() as u32;
                let Some(node) = self.nodes.pop() else { break };
                let mask = self.unique.len() - 1;
                let mut slot = hash(u32::from(node.level), node.low.0, node.high.0) as usize & mask;
                while self.unique[slot] != number {
                    slot = (slot + 1) & mask;
                }
                self.unique[slot] = 0;
            }
        }
        if self.nested == 0 {
            self.journal.clear();
        }
    }

    /// Counts steps.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<(), OverBudget> {
        match self.budget.checked_sub(steps) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => {
                self.budget = 0;
                Err(OverBudget)
            }
        }
    }

    fn step(&mut self) -> Result<(), OverBudget> {
        self.charge(1)
    }

    fn height(&self, f: Ref) -> u16 {
        match f.value() {
            Some(_) => 0,
            None => self.nodes[f.0 as usize].height,
        }
    }

    /// The level of a function's root.
    pub(crate) fn level(&self, f: Ref) -> Level {
        match f.value() {
            Some(_) => LEAF_LEVEL,
            None => self.nodes[f.0 as usize].level,
        }
    }

    /// The cofactors of a function at a level.
    pub(crate) fn halves(&self, f: Ref, level: Level) -> (Ref, Ref) {
        if self.level(f) == level {
            let node = self.nodes[f.0 as usize];
            (node.low, node.high)
        } else {
            (f, f)
        }
    }

    /// The branches of a function that is not constant.
    pub(crate) fn branches(&self, f: Ref) -> (Ref, Ref) {
        self.halves(f, self.level(f))
    }

    /// `if bit then high else low`; both must have higher levels only.
    pub(crate) fn node(&mut self, level: Level, low: Ref, high: Ref) -> Result<Ref, OverBudget> {
        if low == high {
            return Ok(low);
        }
        debug_assert!(level < self.level(low) && level < self.level(high));
        let mask = self.unique.len() - 1;
        let mut slot = hash(u32::from(level), low.0, high.0) as usize & mask;
        loop {
            match self.unique[slot] {
                0 => break,
                entry => {
                    let node = self.nodes[entry as usize - 1];
                    if node.level == level && node.low == low && node.high == high {
                        return Ok(Ref(entry - 1));
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
        let height = 1 + self.height(low).max(self.height(high));
        if self.nodes.len() >= MAX_NODES || height > MAX_HEIGHT {
            return Err(OverBudget);
        }
        self.step()?;
        self.nodes.push(Node {
            level,
            height,
            low,
            high,
        });
        self.unique[slot] = self.nodes.len() as u32;
        if self.nodes.len() * 2 > self.unique.len() {
            self.grow();
        }
        Ok(Ref(self.nodes.len() as u32 - 1))
    }

    fn grow(&mut self) {
        let size = self.unique.len() * 2;
        self.unique = vec![0; size];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut slot = hash(u32::from(node.level), node.low.0, node.high.0) as usize;
            while self.unique[slot & (size - 1)] != 0 {
                slot += 1;
            }
            self.unique[slot & (size - 1)] = at as u32 + 1;
        }
        let choices = (size / 2).clamp(1 << 14, MAX_CHOICES);
        if choices > self.choices.len() {
            self.choices = vec![NO_CHOICE; choices];
        }
    }

    /// The function of one bit.
    pub(crate) fn bit(&mut self, level: Level) -> Result<Ref, OverBudget> {
        self.node(level, Ref::FALSE, Ref::TRUE)
    }

    /// `if f then g else h`, where `g` and `h` may have any leaves.
    pub(crate) fn choose(&mut self, f: Ref, g: Ref, h: Ref) -> Result<Ref, OverBudget> {
        if let Some(truth) = f.as_bool() {
            return Ok(if truth { g } else { h });
        }
        if g == h || (g, h) == (Ref::TRUE, Ref::FALSE) {
            return Ok(if g == h { g } else { f });
        }
        let slot = hash(f.0, g.0, h.0) as usize & (self.choices.len() - 1);
        let cached = self.choices[slot];
        if (cached.f, cached.g, cached.h) == (f, g, h) {
            return Ok(cached.result);
        }
        self.step()?;
        let level = self.level(f).min(self.level(g)).min(self.level(h));
        let (f0, f1) = self.halves(f, level);
        let (g0, g1) = self.halves(g, level);
        let (h0, h1) = self.halves(h, level);
        let low = self.choose(f0, g0, h0)?;
        let high = self.choose(f1, g1, h1)?;
        let result = self.node(level, low, high)?;
        let slot = hash(f.0, g.0, h.0) as usize & (self.choices.len() - 1);
        self.choices[slot] = Choice { f, g, h, result };
        if self.nested > 0 {
            self.journal.push(slot as u32);
        }
        Ok(result)
    }

    pub(crate) fn not(&mut self, f: Ref) -> Result<Ref, OverBudget> {
        self.choose(f, Ref::FALSE, Ref::TRUE)
    }

    pub(crate) fn and(&mut self, f: Ref, g: Ref) -> Result<Ref, OverBudget> {
        self.choose(f, g, Ref::FALSE)
    }

    pub(crate) fn or(&mut self, f: Ref, g: Ref) -> Result<Ref, OverBudget> {
        self.choose(f, Ref::TRUE, g)
    }

    /// `f` and not `g`.
    pub(crate) fn minus(&mut self, f: Ref, g: Ref) -> Result<Ref, OverBudget> {
        self.choose(g, Ref::FALSE, f)
    }

    /// True if `f` implies `g`.
    pub(crate) fn implies(&mut self, f: Ref, g: Ref) -> Result<bool, OverBudget> {
        Ok(self.minus(f, g)? == Ref::FALSE)
    }

    /// Combines the leaves of two functions by `op`, where both are defined.
    pub(crate) fn pair(
        &mut self,
        f: Ref,
        g: Ref,
        op: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Result<Ref, OverBudget> {
        self.pair_cached(f, g, op, &mut HashMap::default())
    }

    fn pair_cached(
        &mut self,
        f: Ref,
        g: Ref,
        op: &mut dyn FnMut(u32, u32) -> u32,
        done: &mut HashMap<(Ref, Ref), Ref, Hashing>,
    ) -> Result<Ref, OverBudget> {
        if let (Some(f), Some(g)) = (f.value(), g.value()) {
            return Ok(Ref::leaf(op(f, g)));
        }
        if let Some(&result) = done.get(&(f, g)) {
            return Ok(result);
        }
        self.step()?;
        let level = self.level(f).min(self.level(g));
        let (f0, f1) = self.halves(f, level);
        let (g0, g1) = self.halves(g, level);
        let low = self.pair_cached(f0, g0, op, done)?;
        let high = self.pair_cached(f1, g1, op, done)?;
        let result = self.node(level, low, high)?;
        done.insert((f, g), result);
        Ok(result)
    }

    /// Maps the leaves of a function; from level `from` on a whole subfunction counts as a
    /// leaf.
    pub(crate) fn map(
        &mut self,
        f: Ref,
        from: Level,
        leaf: &mut dyn FnMut(Ref) -> Ref,
    ) -> Result<Ref, OverBudget> {
        self.map_cached(f, from, leaf, &mut HashMap::default())
    }

    fn map_cached(
        &mut self,
        f: Ref,
        from: Level,
        leaf: &mut dyn FnMut(Ref) -> Ref,
        done: &mut RefMap<Ref>,
    ) -> Result<Ref, OverBudget> {
        if self.level(f) >= from {
            return Ok(leaf(f));
        }
        if let Some(&result) = done.get(&f) {
            return Ok(result);
        }
        self.step()?;
        let (low, high) = self.branches(f);
        let low = self.map_cached(low, from, leaf, done)?;
        let high = self.map_cached(high, from, leaf, done)?;
        let result = self.node(self.level(f), low, high)?;
        done.insert(f, result);
        Ok(result)
    }

    /// The subfunctions from a level on, in the order of first occurrence (low
    /// branches first); with [`LEAF_LEVEL`] these are the leaves.
    pub(crate) fn exits(&mut self, f: Ref, from: Level) -> Result<Vec<Ref>, OverBudget> {
        let mut seen = HashSet::<Ref, Hashing>::default();
        let mut found = Vec::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            if !seen.insert(f) {
                continue;
            }
            self.step()?;
            if self.level(f) >= from {
                found.push(f);
            } else {
                let (low, high) = self.branches(f);
                open.extend([high, low]);
            }
        }
        Ok(found)
    }

    /// The cofactor with the bits `levels` (most significant first) set to the bits of a
    /// constant.
    pub(crate) fn restrict(
        &mut self,
        f: Ref,
        levels: std::ops::Range<Level>,
        value: u64,
    ) -> Result<Ref, OverBudget> {
        let width = levels.len();
        self.restrict_cached(f, &levels, width, value, &mut HashMap::default())
    }

    fn restrict_cached(
        &mut self,
        f: Ref,
        levels: &std::ops::Range<Level>,
        width: usize,
        value: u64,
        done: &mut RefMap<Ref>,
    ) -> Result<Ref, OverBudget> {
        let level = self.level(f);
        if level >= levels.end {
            return Ok(f);
        }
        if let Some(&result) = done.get(&f) {
            return Ok(result);
        }
        self.step()?;
        let (low, high) = self.branches(f);
        let result = if level >= levels.start {
            let place = width - 1 - usize::from(level - levels.start);
            let taken = if value >> place & 1 != 0 { high } else { low };
            self.restrict_cached(taken, levels, width, value, done)?
        } else {
            let low = self.restrict_cached(low, levels, width, value, done)?;
            let high = self.restrict_cached(high, levels, width, value, done)?;
            self.node(level, low, high)?
        };
        done.insert(f, result);
        Ok(result)
    }

    /// True if a function has more than `limit` nodes, leaves included.
    pub(crate) fn has_more_nodes(&self, f: Ref, limit: usize) -> bool {
        let mut seen = HashSet::<Ref, Hashing>::default();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            if seen.insert(f) && f.value().is_none() {
                let (low, high) = self.branches(f);
                open.extend([low, high]);
            }
            if seen.len() > limit {
                return true;
            }
        }
        false
    }

    /// The bits that a function depends on, in order.
    pub(crate) fn support(&mut self, f: Ref) -> Result<Vec<Level>, OverBudget> {
        let mut seen = HashSet::<Ref, Hashing>::default();
        let mut levels = std::collections::BTreeSet::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            if f.value().is_none() && seen.insert(f) {
                self.step()?;
                levels.insert(self.level(f));
                let (low, high) = self.branches(f);
                open.extend([low, high]);
            }
        }
        Ok(levels.into_iter().collect())
    }

    /// A satisfying assignment with zeros preferred; other bits are free. `None` if the
    /// function is unsatisfiable.
    pub(crate) fn example(&self, mut f: Ref) -> Option<Vec<(Level, bool)>> {
        let mut path = Vec::new();
        while f.value().is_none() {
            let (low, high) = self.branches(f);
            let taken = low == Ref::FALSE;
            path.push((self.level(f), taken));
            f = if taken { high } else { low };
        }
        (f != Ref::FALSE).then_some(path)
    }
}

/// A map from functions.
pub(crate) type RefMap<T> = HashMap<Ref, T, Hashing>;

pub(crate) type Hashing = BuildHasherDefault<RefHasher>;

/// A multiplicative hash of node numbers, which attackers do not control.
#[derive(Default)]
pub(crate) struct RefHasher(u64);

impl Hasher for RefHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A state of a diagram that can be restored.
pub(crate) struct Mark {
    nodes: usize,
    journal: usize,
}

fn hash(a: u32, b: u32, c: u32) -> u64 {
    let mixed = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ u64::from(c).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_functions_are_equal_references() -> Result<(), OverBudget> {
        let mut diagram = Diagram::new(100_000);
        let (a, b, c) = (diagram.bit(0)?, diagram.bit(1)?, diagram.bit(2)?);
        // a & (b | c) == !(!(a & b) & !(a & c))
        let either = diagram.or(b, c)?;
        let left = diagram.and(a, either)?;
        let (ab, ac) = (diagram.and(a, b)?, diagram.and(a, c)?);
        let (nab, nac) = (diagram.not(ab)?, diagram.not(ac)?);
        let neither = diagram.and(nab, nac)?;
        let right = diagram.not(neither)?;
        assert_eq!(left, right);
        assert_eq!(diagram.restrict(left, 1..3, 0b00)?, Ref::FALSE);
        assert_eq!(diagram.restrict(left, 1..3, 0b01)?, a);
        assert_eq!(
            diagram.example(left),
            Some(vec![(0, true), (1, false), (2, true)])
        );
        assert_eq!(diagram.support(left)?, [0, 1, 2]);
        Ok(())
    }

    /// The conjunction of the bits from 0 on.
    fn conjunction(diagram: &mut Diagram, bits: Level) -> Result<Ref, OverBudget> {
        let mut all = Ref::TRUE;
        for level in (0..bits).rev() {
            let bit = diagram.bit(level)?;
            all = diagram.and(bit, all)?;
        }
        Ok(all)
    }

    #[test]
    fn a_failed_operation_leaves_no_nodes() -> Result<(), OverBudget> {
        let mut diagram = Diagram::new(1_000_000);
        let kept = conjunction(&mut diagram, 20)?;
        let nodes = diagram.nodes.len();
        let entries = |diagram: &Diagram| diagram.unique.iter().filter(|&&slot| slot != 0).count();
        for steps in [10, 1000, 20_000] {
            let result = diagram.within(steps, |diagram| {
                let _ = conjunction(diagram, 5000);
                Err::<(), _>(OverBudget)
            });
            assert_eq!(result, Err(OverBudget));
            assert_eq!((diagram.nodes.len(), entries(&diagram)), (nodes, nodes));
        }
        // Functions made afterwards are canonical again.
        assert_eq!(conjunction(&mut diagram, 20)?, kept);
        assert_ne!(conjunction(&mut diagram, 21)?, kept);
        let mark = diagram.mark();
        conjunction(&mut diagram, 40)?;
        let nodes = diagram.nodes.len();
        diagram.release(mark, true);
        assert!(diagram.nodes.len() < nodes);
        assert_eq!(conjunction(&mut diagram, 20)?, kept);
        Ok(())
    }

    #[test]
    fn paths_longer_than_the_limit_are_refused() {
        let mut diagram = Diagram::new(10_000_000);
        assert!(conjunction(&mut diagram, MAX_HEIGHT).is_ok());
        assert_eq!(conjunction(&mut diagram, MAX_HEIGHT + 1), Err(OverBudget));
    }
}
