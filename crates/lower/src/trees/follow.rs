//! Construction of a tree from its root to its leaves.

use isa::ebpf::{Cond, Insn, Reg};

use super::{Found, Order, Part, Piece, SMALLEST, Test, Tree, Trees};
use crate::Function;
use crate::flow::{Cfg, falls_through, jump_target};

/// An edge and its values.
#[derive(Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    /// True for a jump, false for fall-through.
    jumps: bool,
    values: Ranks,
}

impl Edge {
    /// The edge of a comparison to one of its targets.
    fn of(test: Test, from: usize, to: usize, values: Ranks) -> Edge {
        Edge {
            from,
            to,
            jumps: to == test.target,
            values,
        }
    }
}

/// The range of ranks on an edge, both ends included, without single values that were
/// compared before.
#[derive(Clone, Copy)]
struct Ranks {
    low: u32,
    high: u32,
}

impl Ranks {
    const ALL: Ranks = Ranks {
        low: 0,
        high: u32::MAX,
    };

    fn has(self, rank: u32) -> bool {
        (self.low..=self.high).contains(&rank)
    }

    /// Splits the range by a condition: the ranks for which it holds, and the others.
    fn divide(self, cond: Cond, rank: u32) -> [Option<Ranks>; 2] {
        let (low, high, rank) = (i64::from(self.low), i64::from(self.high), i64::from(rank));
        // The first of the upper ones.
        let first = match cond {
            Cond::Gt | Cond::SGt | Cond::Le | Cond::SLe => rank + 1,
            Cond::Ge | Cond::SGe | Cond::Lt | Cond::SLt => rank,
            // It may hold or not whatever the rank.
            Cond::Eq | Cond::Ne | Cond::Set => return [Some(self), Some(self)],
        };
        let ranks = |low: i64, high: i64| {
            (low <= high).then_some(Ranks {
                low: low as u32,
                high: high as u32,
            })
        };
        let below = ranks(low, high.min(first - 1));
        let above = ranks(low.max(first), high);
        match cond {
            Cond::Gt | Cond::Ge | Cond::SGt | Cond::SGe => [above, below],
            Cond::Lt | Cond::Le | Cond::SLt | Cond::SLe => [below, above],
            Cond::Eq | Cond::Ne | Cond::Set => [Some(self), Some(self)],
        }
    }
}

/// The node at the end of an edge.
#[derive(Clone, Copy)]
enum Node {
    Test(Test),
    Goto(usize),
}

/// Builds the trees of a program.
pub(super) struct TreeBuilder<'a> {
    insns: &'a [Insn],
    cfg: &'a Cfg,
    functions: Option<&'a [Function]>,
    /// The current tree: its register, whether it may only be a chain, and the order of its
    /// ranks once a comparison determines it.
    dst: Reg,
    only_chain: bool,
    order: Option<Order>,
    has_back_edge: bool,
    tests: u32,
    /// Work list of edges, the lowest values last.
    open: Vec<Edge>,
    /// The slots of the current tree.
    nodes: Vec<u32>,
}

impl<'a> TreeBuilder<'a> {
    pub(super) fn new(
        insns: &'a [Insn],
        cfg: &'a Cfg,
        functions: Option<&'a [Function]>,
    ) -> TreeBuilder<'a> {
        TreeBuilder {
            insns,
            cfg,
            functions,
            dst: Reg::R0,
            only_chain: false,
            order: None,
            has_back_edge: false,
            tests: 0,
            open: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Builds the tree with its root at a slot and adds it if it is accepted.
    pub(super) fn build(
        &mut self,
        trees: &mut Trees,
        start: usize,
        is_profitable: impl Fn(&Tree<'_>) -> bool,
    ) {
        self.only_chain = match trees.part(start) {
            Part::None => false,
            Part::Candidate => true,
            _ => return,
        };
        let Some(test) = self.test(start) else {
            return;
        };
        self.dst = test.dst;
        self.order = None;
        self.has_back_edge = false;
        self.tests = 0;
        self.nodes.clear();
        if trees.parts.is_empty() {
            trees.parts = vec![Part::None; self.insns.len()];
            // Upper bounds of a tree.
            let most = self.cfg.jump_count() + 1;
            trees.keys.reserve(most);
            trees.ranges.reserve(most);
            self.nodes.reserve(most);
            self.open.reserve(most);
        }
        let (keys, ranges) = (trees.keys.len(), trees.ranges.len());
        let mut next = Some(Edge {
            from: start,
            to: start,
            jumps: false,
            values: Ranks::ALL,
        });
        while let Some(edge) = next.or_else(|| self.open.pop()) {
            next = self.visit(trees, start, edge);
        }
        let order = self.order.unwrap_or(Order::Unsigned);
        sort_keys(&mut trees.keys, keys, order);
        let found = Found {
            dst: self.dst,
            start: start as u32,
            tests: self.tests,
            has_back_edge: self.has_back_edge,
            order,
            keys: (keys as u32, trees.keys.len() as u32),
            ranges: (ranges as u32, trees.ranges.len() as u32),
        };
        if self.tests as usize >= SMALLEST && is_profitable(&trees.tree(found)) {
            trees.trees.push(found);
            return;
        }
        trees.keys.truncate(keys);
        trees.ranges.truncate(ranges);
        for &slot in &self.nodes {
            let slot = slot as usize;
            let equality = self.test(slot).and_then(|test| test.equality(slot));
            trees.parts[slot] = match equality {
                Some(_) if !self.only_chain => Part::Candidate,
                _ => Part::Rejected,
            };
        }
    }

    /// True if the slot may continue a tree: its only predecessor is one jump or a
    /// comparison.
    pub(super) fn may_continue(&self, slot: usize) -> bool {
        let Some(before) = slot.checked_sub(1) else {
            return false;
        };
        match self.cfg.count(slot) {
            0 => self.test(before).is_some(),
            1 => !falls_through(&self.insns[before]),
            _ => false,
        }
    }

    fn test(&self, slot: usize) -> Option<Test> {
        match self.functions {
            Some(_) => Test::either_way(self.insns, slot),
            None => Test::at(self.insns, slot),
        }
    }

    /// The node at the end of an edge, if it can be part of the tree.
    fn node(&self, trees: &Trees, start: usize, edge: Edge) -> Option<Node> {
        let Edge { to, values, .. } = edge;
        let node = match self.insns.get(to)? {
            Insn::Jump { .. } => {
                let test = self.test(to).filter(|test| test.dst == self.dst)?;
                self.fits(to, test, values).then_some(Node::Test(test))?
            }
            Insn::Goto { .. } | Insn::GotoLong { .. } => {
                let target = jump_target(&self.insns[to], to)?;
                let allowed = to != start && (target > to || self.functions.is_some());
                (allowed && target != to).then_some(Node::Goto(target))?
            }
            _ => return None,
        };
        let expected = match self.only_chain {
            true => Part::Candidate,
            false => Part::None,
        };
        let is_open = trees.part(to) == expected && (to == start || !self.is_entered(to));
        is_open.then_some(node)
    }

    /// True if a comparison is compatible with the order of the tree for these values.
    fn fits(&self, slot: usize, test: Test, values: Ranks) -> bool {
        let divides = Order::of(test.cond).filter(|_| test.target != slot + 1);
        match (self.order, divides) {
            (_, None) => test.equality(slot).is_some(),
            _ if self.only_chain => false,
            (None, Some(_)) => true,
            // In the same order, or with values on which both orders agree.
            (Some(order), Some(by)) => order == by || values.low >> 31 == values.high >> 31,
        }
    }

    /// True if the slot is the start of a function.
    fn is_entered(&self, slot: usize) -> bool {
        self.functions.is_some_and(|functions| match functions {
            [only] => slot == only.start,
            _ => functions
                .binary_search_by_key(&slot, |function| function.start)
                .is_ok(),
        })
    }

    /// Visits the node at the end of an edge; returns the next edge.
    fn visit(&mut self, trees: &mut Trees, start: usize, edge: Edge) -> Option<Edge> {
        let Edge { to, values, .. } = edge;
        let Some(node) = self.node(trees, start, edge) else {
            trees.ranges.push(Piece {
                from: values.low,
                target: to as u32,
            });
            return None;
        };
        self.add_node(trees, start, edge);
        match node {
            Node::Goto(target) => Some(Edge {
                from: to,
                to: target,
                jumps: true,
                values,
            }),
            Node::Test(test) => {
                self.tests += 1;
                match test.equality(to) {
                    Some(targets) => Some(self.compare(trees, start, edge, test, targets)),
                    None => self.divide(to, test, values),
                }
            }
        }
    }

    /// Adds the node at the end of an edge to the tree.
    fn add_node(&mut self, trees: &mut Trees, start: usize, edge: Edge) {
        let Edge { from, to, .. } = edge;
        trees.parts[to] = if to == start {
            Part::Root
        } else if trees.parts[from] != Part::Shared && self.is_only_from(edge) {
            Part::Subsumed
        } else {
            // Its own code continues to its successors, which are shared too.
            Part::Shared
        };
        self.nodes.push(to as u32);
        self.has_back_edge |= to < from;
    }

    /// Records the target of the value that equals a key; returns the edge of the others.
    fn compare(
        &mut self,
        trees: &mut Trees,
        start: usize,
        Edge { to: at, values, .. }: Edge,
        test: Test,
        (equal, other): (usize, usize),
    ) -> Edge {
        let edge_to = |to: usize| Edge::of(test, at, to, values);
        let key = test.imm as u32;
        let rank = self.order.unwrap_or(Order::Unsigned).rank(key);
        if !values.has(rank) {
            return edge_to(other);
        }
        if values.low == values.high {
            return edge_to(equal);
        }
        let target = self.end_of(trees, start, edge_to(equal)) as u32;
        trees.keys.push(Piece { from: key, target });
        edge_to(other)
    }

    /// The target of an edge with a single value, followed through one unconditional jump.
    fn end_of(&mut self, trees: &mut Trees, start: usize, edge: Edge) -> usize {
        // Comparisons are not followed.
        let is_jump = matches!(
            self.insns.get(edge.to),
            Some(Insn::Goto { .. } | Insn::GotoLong { .. })
        );
        if is_jump && let Some(Node::Goto(target)) = self.node(trees, start, edge) {
            self.add_node(trees, start, edge);
            return target;
        }
        edge.to
    }

    /// Splits the values at a relational comparison; returns the edge of the lowest ones.
    fn divide(&mut self, at: usize, test: Test, values: Ranks) -> Option<Edge> {
        let by = Order::of(test.cond)?;
        let order = *self.order.get_or_insert(by);
        // Within one half, both orders agree.
        let convert = |rank: u32| by.rank(order.rank(rank));
        let converted = |Ranks { low, high }| Ranks {
            low: convert(low),
            high: convert(high),
        };
        let [holds, fails] = converted(values).divide(test.cond, by.rank(test.imm as u32));
        let edge_to = |to: usize, ranks| Edge::of(test, at, to, converted(ranks));
        let (Some(held), Some(failed)) = (holds, fails) else {
            let held = holds.map(|ranks| edge_to(test.target, ranks));
            return held.or(fails.map(|ranks| edge_to(at + 1, ranks)));
        };
        let targets = [edge_to(test.target, held), edge_to(at + 1, failed)];
        let (first, later) = match held.low < failed.low {
            true => (targets[0], targets[1]),
            false => (targets[1], targets[0]),
        };
        self.open.push(later);
        Some(first)
    }

    /// True if the edge is the only one to its target.
    fn is_only_from(
        &self,
        Edge {
            from, to, jumps, ..
        }: Edge,
    ) -> bool {
        let fallen_into = to - 1 != from && falls_through(&self.insns[to - 1]);
        !fallen_into && self.cfg.count(to) == u32::from(jumps)
    }
}

/// Converts keys from a position on to ranks and sorts them; of equal keys the first one is
/// kept.
fn sort_keys(keys: &mut Vec<Piece>, from: usize, order: Order) {
    let new = &mut keys[from..];
    for key in new.iter_mut() {
        key.from = order.rank(key.from);
    }
    new.sort_by_key(|key| key.from);
    let mut end = from;
    for index in from..keys.len() {
        if end == from || keys[end - 1].from != keys[index].from {
            keys[end] = keys[index];
            end += 1;
        }
    }
    keys.truncate(end);
}
