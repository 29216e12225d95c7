//! The walk from a tree's first comparison to its leaves.

use isa::ebpf::{Cond, Insn, Reg};

use super::{Found, Order, Part, Piece, SMALLEST, Test, Tree, Trees};
use crate::Function;
use crate::jumps::{Arrivals, falls_through, jump_target};

/// An edge that values take.
#[derive(Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    values: Ranks,
}

/// The ranks of the values on an edge, both included. Of those some single ones may
/// have gone elsewhere before.
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

    /// Those of which the condition holds for the constant's rank, and the others.
    fn divide(self, cond: Cond, rank: u32) -> [Option<Ranks>; 2] {
        let (low, high, rank) = (i64::from(self.low), i64::from(self.high), i64::from(rank));
        // The first of the upper ones.
        let first = match cond {
            Cond::Gt | Cond::SGt | Cond::Le | Cond::SLe => rank + 1,
            _ => rank,
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
            _ => [below, above],
        }
    }
}

/// What stands where an edge leads.
#[derive(Clone, Copy)]
enum Node {
    Test(Test),
    Goto(usize),
}

/// See the module's text.
pub(super) struct Follower<'a> {
    insns: &'a [Insn],
    arrivals: &'a Arrivals,
    functions: Option<&'a [Function]>,
    /// Of the tree at hand: its register, whether it may only be a chain, and by what
    /// ranks are counted once some comparison needs them.
    dst: Reg,
    only_chain: bool,
    order: Option<Order>,
    goes_back: bool,
    tests: u32,
    /// Edges to follow, the lowest values last.
    open: Vec<Edge>,
    /// The slots that belong to it.
    nodes: Vec<u32>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        insns: &'a [Insn],
        arrivals: &'a Arrivals,
        functions: Option<&'a [Function]>,
    ) -> Follower<'a> {
        Follower {
            insns,
            arrivals,
            functions,
            dst: Reg::R0,
            only_chain: false,
            order: None,
            goes_back: false,
            tests: 0,
            open: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Adds the tree that begins at a slot, if it is wanted.
    pub(super) fn follow(
        &mut self,
        trees: &mut Trees,
        start: usize,
        is_wanted: impl Fn(&Tree<'_>) -> bool,
    ) {
        self.only_chain = match trees.part(start) {
            Part::None => false,
            Part::Tried => true,
            _ => return,
        };
        let Some(test) = self.test(start) else {
            return;
        };
        self.dst = test.dst;
        self.order = None;
        self.goes_back = false;
        self.tests = 0;
        self.nodes.clear();
        if trees.parts.is_empty() {
            trees.parts = vec![Part::None; self.insns.len()];
        }
        let (keys, ranges) = (trees.keys.len(), trees.ranges.len());
        self.open.push(Edge {
            from: start,
            to: start,
            values: Ranks::ALL,
        });
        while let Some(edge) = self.open.pop() {
            self.visit(trees, start, edge);
        }
        let order = self.order.unwrap_or(Order::Unsigned);
        sort_keys(&mut trees.keys, keys, order);
        let found = Found {
            dst: self.dst,
            start: start as u32,
            tests: self.tests,
            goes_back: self.goes_back,
            order,
            keys: (keys as u32, trees.keys.len() as u32),
            ranges: (ranges as u32, trees.ranges.len() as u32),
        };
        if self.tests as usize >= SMALLEST && is_wanted(&trees.tree(found)) {
            trees.trees.push(found);
            return;
        }
        trees.keys.truncate(keys);
        trees.ranges.truncate(ranges);
        for &slot in &self.nodes {
            let slot = slot as usize;
            let equality = self.test(slot).and_then(|test| test.equality(slot));
            trees.parts[slot] = match equality {
                Some(_) if !self.only_chain => Part::Tried,
                _ => Part::Left,
            };
        }
    }

    /// Whether what stands at the slot may go on with a tree, for all that can be
    /// seen from there: only one jump or only a comparison leads to it.
    pub(super) fn may_go_on(&self, slot: usize) -> bool {
        let Some(before) = slot.checked_sub(1) else {
            return false;
        };
        match self.arrivals.count(slot) {
            0 => self.test(before).is_some(),
            1 => !falls_through(self.insns[before]),
            _ => false,
        }
    }

    fn test(&self, slot: usize) -> Option<Test> {
        match self.functions {
            Some(_) => Test::either_way(self.insns, slot),
            None => Test::at(self.insns, slot),
        }
    }

    /// What stands where an edge leads, if the tree may go on there.
    fn node(&self, trees: &Trees, start: usize, edge: Edge) -> Option<Node> {
        let Edge { to, values, .. } = edge;
        let expected = match self.only_chain {
            true => Part::Tried,
            false => Part::None,
        };
        if trees.part(to) != expected || to != start && self.is_entered(to) {
            return None;
        }
        if let Insn::Goto { .. } | Insn::GotoLong { .. } = *self.insns.get(to)? {
            let target = jump_target(self.insns[to], to)?;
            let allowed = to != start && (target > to || self.functions.is_some());
            return (allowed && target != to).then_some(Node::Goto(target));
        }
        let test = self.test(to).filter(|test| test.dst == self.dst)?;
        let divides = Order::of(test.cond).filter(|_| test.target != to + 1);
        let fits = match (self.order, divides) {
            (_, None) => test.equality(to).is_some(),
            _ if self.only_chain => false,
            (None, Some(_)) => true,
            // In the same order, or with values that are in both.
            (Some(order), Some(by)) => order == by || values.low >> 31 == values.high >> 31,
        };
        fits.then_some(Node::Test(test))
    }

    /// Whether a call leads to the slot, which no jump forward crosses.
    fn is_entered(&self, slot: usize) -> bool {
        self.functions.is_some_and(|functions| {
            functions
                .binary_search_by_key(&slot, |function| function.start)
                .is_ok()
        })
    }

    fn visit(&mut self, trees: &mut Trees, start: usize, edge: Edge) {
        let Edge { to, values, .. } = edge;
        let Some(node) = self.node(trees, start, edge) else {
            trees.ranges.push(Piece {
                from: values.low,
                target: to as u32,
            });
            return;
        };
        self.claim(trees, start, edge);
        match node {
            Node::Goto(target) => self.go(to, target, values),
            Node::Test(test) => {
                self.tests += 1;
                match test.equality(to) {
                    Some(ways) => self.compare(trees, start, edge, test.imm as u32, ways),
                    None => self.divide(to, test, values),
                }
            }
        }
    }

    /// Makes what stands where an edge leads one of the tree's.
    fn claim(&mut self, trees: &mut Trees, start: usize, Edge { from, to, .. }: Edge) {
        trees.parts[to] = if to == start {
            Part::Start
        } else if trees.parts[from] != Part::Shared && self.is_only_from(to, from) {
            Part::Absorbed
        } else {
            // Its own code goes on to what follows, which is thus shared too.
            Part::Shared
        };
        self.nodes.push(to as u32);
        self.goes_back |= to < from;
    }

    fn go(&mut self, from: usize, to: usize, values: Ranks) {
        self.open.push(Edge { from, to, values });
    }

    /// Follows where the value goes that equals a key, and all others.
    fn compare(
        &mut self,
        trees: &mut Trees,
        start: usize,
        Edge { to: at, values, .. }: Edge,
        key: u32,
        (equal, other): (usize, usize),
    ) {
        let rank = self.order.unwrap_or(Order::Unsigned).rank(key);
        if !values.has(rank) {
            return self.go(at, other, values);
        }
        if values.low == values.high {
            return self.go(at, equal, values);
        }
        let edge = Edge {
            from: at,
            to: equal,
            values,
        };
        let target = self.end_of(trees, start, edge) as u32;
        trees.keys.push(Piece { from: key, target });
        self.go(at, other, values);
    }

    /// Where an edge leads that a single value takes, through a jump that is the
    /// tree's.
    fn end_of(&mut self, trees: &mut Trees, start: usize, edge: Edge) -> usize {
        match self.node(trees, start, edge) {
            Some(Node::Goto(target)) => {
                self.claim(trees, start, edge);
                target
            }
            _ => edge.to,
        }
    }

    fn divide(&mut self, at: usize, test: Test, values: Ranks) {
        let Some(by) = Order::of(test.cond) else {
            return;
        };
        let order = *self.order.get_or_insert(by);
        // The other order counts within one half as this one does.
        let turn = |rank: u32| by.rank(order.rank(rank));
        let turned = Ranks {
            low: turn(values.low),
            high: turn(values.high),
        };
        let [holds, fails] = turned.divide(test.cond, by.rank(test.imm as u32));
        let mut ways = [(test.target, holds), (at + 1, fails)];
        // The lowest values are followed first, so pushed last.
        ways.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.map_or(0, |ranks| ranks.low)));
        for (to, ranks) in ways {
            if let Some(Ranks { low, high }) = ranks {
                let values = Ranks {
                    low: turn(low),
                    high: turn(high),
                };
                self.go(at, to, values);
            }
        }
    }

    /// Whether the slot is reached from another one of the tree alone.
    fn is_only_from(&self, slot: usize, previous: usize) -> bool {
        let fallen_into = slot - 1 != previous && falls_through(self.insns[slot - 1]);
        let by_tree = u32::from(jump_target(self.insns[previous], previous) == Some(slot));
        !fallen_into && self.arrivals.count(slot) == by_tree
    }
}

/// Makes ranks of the values from a position on and sorts them; of equal ones the
/// first stays.
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
