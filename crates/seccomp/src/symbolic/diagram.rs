//! Decision diagrams: functions from the bits of a system call's data to a
//! value, in one canonical form.
//!
//! A node tests one bit and leads on; a leaf is a value (0 and 1 for truth,
//! others for outcomes). Bits are tested in a fixed order, equal subgraphs exist
//! once and no node has equal branches, so two functions are equal exactly when
//! their references are. Every question (is it empty, does it hold always, are
//! these two the same) is then a comparison of two numbers.
//!
//! Comparing a word with a constant costs one node a bit, and conjunctions cost
//! at most the product of their sizes. Functions that mix words can be large, so
//! every operation counts its steps against a budget and gives up with
//! [`TooComplex`] rather than run away.

use std::collections::HashMap;

/// The bit that a node tests; a lower one is tested first.
pub(crate) type Level = u16;

/// A function that was too large to build within the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex;

/// A function: a node, or (with the top bit set) a leaf.
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

    /// Its value, if it is constant.
    pub(crate) const fn value(self) -> Option<u32> {
        if self.0 & LEAF != 0 {
            Some(self.0 & !LEAF)
        } else {
            None
        }
    }

    /// The constant truth or falsehood.
    pub(crate) const fn of(truth: bool) -> Ref {
        if truth { Ref::TRUE } else { Ref::FALSE }
    }

    /// Whether a truth is sure.
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

/// All functions of one investigation.
pub(crate) struct Diagram {
    nodes: Vec<Node>,
    /// Open addressing over node numbers plus one; 0 is empty.
    unique: Vec<u32>,
    choices: Vec<Choice>,
    /// Steps left before an operation gives up.
    budget: u64,
}

/// Steps that one investigation may take: seconds, and a few hundred megabytes.
const STEPS: u64 = 40_000_000;
const MAX_NODES: usize = 1 << 24;

impl Diagram {
    pub(crate) fn new() -> Diagram {
        Diagram {
            nodes: Vec::new(),
            unique: vec![0; 1 << 12],
            choices: vec![NO_CHOICE; 1 << 14],
            budget: STEPS,
        }
    }

    /// Runs an operation that may take `steps` and no more; what it built stays
    /// when it gives up.
    pub(crate) fn within<T>(
        &mut self,
        steps: u64,
        operation: impl FnOnce(&mut Diagram) -> Result<T, TooComplex>,
    ) -> Result<T, TooComplex> {
        let granted = steps.min(self.budget);
        let kept = self.budget - granted;
        self.budget = granted;
        let result = operation(self);
        self.budget += kept;
        result
    }

    fn step(&mut self) -> Result<(), TooComplex> {
        self.budget = self.budget.checked_sub(1).ok_or(TooComplex)?;
        Ok(())
    }

    /// The bit that a function tests first.
    pub(crate) fn level(&self, f: Ref) -> Level {
        match f.value() {
            Some(_) => LEAF_LEVEL,
            None => self.nodes[f.0 as usize].level,
        }
    }

    /// A function's halves, if it tests the bit first; else itself twice.
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

    /// `if bit then high else low`; both must test later bits only.
    pub(crate) fn node(&mut self, level: Level, low: Ref, high: Ref) -> Result<Ref, TooComplex> {
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
        if self.nodes.len() >= MAX_NODES {
            return Err(TooComplex);
        }
        self.step()?;
        self.nodes.push(Node { level, low, high });
        self.unique[slot] = self.nodes.len() as u32;
        if self.nodes.len() * 2 > self.unique.len() {
            self.grow();
        }
        Ok(Ref(self.nodes.len() as u32 - 1))
    }

    fn grow(&mut self) {
        let size = self.unique.len() * 4;
        self.unique = vec![0; size];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut slot = hash(u32::from(node.level), node.low.0, node.high.0) as usize;
            while self.unique[slot & (size - 1)] != 0 {
                slot += 1;
            }
            self.unique[slot & (size - 1)] = at as u32 + 1;
        }
        self.choices = vec![NO_CHOICE; (size / 2).min(1 << 20)];
    }

    /// The function that is one bit.
    pub(crate) fn bit(&mut self, level: Level) -> Result<Ref, TooComplex> {
        self.node(level, Ref::FALSE, Ref::TRUE)
    }

    /// `if f then g else h`, where `g` and `h` may have any leaves.
    pub(crate) fn choose(&mut self, f: Ref, g: Ref, h: Ref) -> Result<Ref, TooComplex> {
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
        Ok(result)
    }

    pub(crate) fn not(&mut self, f: Ref) -> Result<Ref, TooComplex> {
        self.choose(f, Ref::FALSE, Ref::TRUE)
    }

    pub(crate) fn and(&mut self, f: Ref, g: Ref) -> Result<Ref, TooComplex> {
        self.choose(f, g, Ref::FALSE)
    }

    pub(crate) fn or(&mut self, f: Ref, g: Ref) -> Result<Ref, TooComplex> {
        self.choose(f, Ref::TRUE, g)
    }

    /// `f` and not `g`.
    pub(crate) fn minus(&mut self, f: Ref, g: Ref) -> Result<Ref, TooComplex> {
        self.choose(g, Ref::FALSE, f)
    }

    /// Whether `f` holds only where `g` does.
    pub(crate) fn implies(&mut self, f: Ref, g: Ref) -> Result<bool, TooComplex> {
        Ok(self.minus(f, g)? == Ref::FALSE)
    }

    /// Leaves of two functions paired by `op`, wherever both are defined.
    pub(crate) fn pair(
        &mut self,
        f: Ref,
        g: Ref,
        op: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Result<Ref, TooComplex> {
        self.pair_cached(f, g, op, &mut HashMap::new())
    }

    fn pair_cached(
        &mut self,
        f: Ref,
        g: Ref,
        op: &mut dyn FnMut(u32, u32) -> u32,
        done: &mut HashMap<(Ref, Ref), Ref>,
    ) -> Result<Ref, TooComplex> {
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

    /// The function with other leaves; from `from` on (in the order of tests) a
    /// whole subfunction counts as a leaf.
    pub(crate) fn map(
        &mut self,
        f: Ref,
        from: Level,
        leaf: &mut dyn FnMut(Ref) -> Ref,
    ) -> Result<Ref, TooComplex> {
        self.map_cached(f, from, leaf, &mut HashMap::new())
    }

    fn map_cached(
        &mut self,
        f: Ref,
        from: Level,
        leaf: &mut dyn FnMut(Ref) -> Ref,
        done: &mut HashMap<Ref, Ref>,
    ) -> Result<Ref, TooComplex> {
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
    pub(crate) fn exits(&self, f: Ref, from: Level) -> Vec<Ref> {
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            if !seen.insert(f) {
                continue;
            }
            if self.level(f) >= from {
                found.push(f);
            } else {
                let (low, high) = self.branches(f);
                open.extend([high, low]);
            }
        }
        found
    }

    /// The function with the bits `levels` (most significant first) set to the
    /// bits of a constant.
    pub(crate) fn restrict(
        &mut self,
        f: Ref,
        levels: std::ops::Range<Level>,
        value: u64,
    ) -> Result<Ref, TooComplex> {
        let width = levels.len();
        self.restrict_cached(f, &levels, width, value, &mut HashMap::new())
    }

    fn restrict_cached(
        &mut self,
        f: Ref,
        levels: &std::ops::Range<Level>,
        width: usize,
        value: u64,
        done: &mut HashMap<Ref, Ref>,
    ) -> Result<Ref, TooComplex> {
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

    /// The bits that a function depends on, in order.
    pub(crate) fn support(&self, f: Ref) -> Vec<Level> {
        let mut seen = std::collections::HashSet::new();
        let mut levels = std::collections::BTreeSet::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            if f.value().is_none() && seen.insert(f) {
                levels.insert(self.level(f));
                let (low, high) = self.branches(f);
                open.extend([low, high]);
            }
        }
        levels.into_iter().collect()
    }

    /// Bits that make a function true, with zeros preferred; bits not named are
    /// free. `None` when nothing does.
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

fn hash(a: u32, b: u32, c: u32) -> u64 {
    let mixed = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ u64::from(c).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_functions_are_equal_references() -> Result<(), TooComplex> {
        let mut diagram = Diagram::new();
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
        assert_eq!(diagram.support(left), [0, 1, 2]);
        Ok(())
    }

    #[test]
    fn an_operation_beyond_its_budget_gives_up() {
        let mut diagram = Diagram::new();
        let result = diagram.within(10, |diagram| {
            let mut all = Ref::TRUE;
            for level in (0..64).rev() {
                let bit = diagram.bit(level)?;
                all = diagram.and(bit, all)?;
            }
            Ok(all)
        });
        assert_eq!(result, Err(TooComplex));
        assert!(diagram.bit(3).is_ok());
    }
}
