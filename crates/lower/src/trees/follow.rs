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
    /// Whether it is a jump, and not the way to the next slot.
    jumps: bool,
    values: Ranks,
}

impl Edge {
    /// From a comparison at a slot to where it leads.
    fn of(test: Test, from: usize, to: usize, values: Ranks) -> Edge {
        Edge {
            from,
            to,
            jumps: to == test.target,
            values,
        }
    }
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
    /// Edges to follow later, the lowest values last.
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
            // What a tree can have at most: growing step by step costs more.
            let most = self.arrivals.jump_count() + 1;
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
        // The next edge is not kept with those that wait: what was just written would
        // be read in other pieces, for which processors wait.
        while let Some(edge) = next.or_else(|| self.open.pop()) {
            next = self.visit(trees, start, edge);
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

    /// What stands where an edge leads, if the tree may go on there. Most edges lead
    /// out of it, to something else than a jump, so that is asked first.
    fn node(&self, trees: &Trees, start: usize, edge: Edge) -> Option<Node> {
        let Edge { to, values, .. } = edge;
        let node = match self.insns.get(to)? {
            Insn::Jump { .. } => {
                let test = self.test(to).filter(|test| test.dst == self.dst)?;
                self.fits(to, test, values).then_some(Node::Test(test))?
            }
            Insn::Goto { .. } | Insn::GotoLong { .. } => {
                let target = jump_target(self.insns[to], to)?;
                let allowed = to != start && (target > to || self.functions.is_some());
                (allowed && target != to).then_some(Node::Goto(target))?
            }
            _ => return None,
        };
        let expected = match self.only_chain {
            true => Part::Tried,
            false => Part::None,
        };
        let is_open = trees.part(to) == expected && (to == start || !self.is_entered(to));
        is_open.then_some(node)
    }

    /// Whether a comparison goes with those of the tree that come before it, of these
    /// values.
    fn fits(&self, slot: usize, test: Test, values: Ranks) -> bool {
        let divides = Order::of(test.cond).filter(|_| test.target != slot + 1);
        match (self.order, divides) {
            (_, None) => test.equality(slot).is_some(),
            _ if self.only_chain => false,
            (None, Some(_)) => true,
            // In the same order, or with values that are in both.
            (Some(order), Some(by)) => order == by || values.low >> 31 == values.high >> 31,
        }
    }

    /// Whether a call leads to the slot, which no jump forward crosses.
    fn is_entered(&self, slot: usize) -> bool {
        self.functions.is_some_and(|functions| match functions {
            [only] => slot == only.start,
            _ => functions
                .binary_search_by_key(&slot, |function| function.start)
                .is_ok(),
        })
    }

    /// Follows an edge to what stands where it leads; the edge to follow next.
    fn visit(&mut self, trees: &mut Trees, start: usize, edge: Edge) -> Option<Edge> {
        let Edge { to, values, .. } = edge;
        let Some(node) = self.node(trees, start, edge) else {
            trees.ranges.push(Piece {
                from: values.low,
                target: to as u32,
            });
            return None;
        };
        self.claim(trees, start, edge);
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
                    Some(ways) => Some(self.compare(trees, start, edge, test, ways)),
                    None => self.divide(to, test, values),
                }
            }
        }
    }

    /// Makes what stands where an edge leads one of the tree's.
    fn claim(&mut self, trees: &mut Trees, start: usize, edge: Edge) {
        let Edge { from, to, .. } = edge;
        trees.parts[to] = if to == start {
            Part::Start
        } else if trees.parts[from] != Part::Shared && self.is_only_from(edge) {
            Part::Absorbed
        } else {
            // Its own code goes on to what follows, which is thus shared too.
            Part::Shared
        };
        self.nodes.push(to as u32);
        self.goes_back |= to < from;
    }

    /// Follows where the value goes that equals a key; where all others go.
    fn compare(
        &mut self,
        trees: &mut Trees,
        start: usize,
        Edge { to: at, values, .. }: Edge,
        test: Test,
        (equal, other): (usize, usize),
    ) -> Edge {
        let way = |to: usize| Edge::of(test, at, to, values);
        let key = test.imm as u32;
        let rank = self.order.unwrap_or(Order::Unsigned).rank(key);
        if !values.has(rank) {
            return way(other);
        }
        if values.low == values.high {
            return way(equal);
        }
        let target = self.end_of(trees, start, way(equal)) as u32;
        trees.keys.push(Piece { from: key, target });
        way(other)
    }

    /// Where an edge leads that a single value takes, through a jump that is the
    /// tree's.
    fn end_of(&mut self, trees: &mut Trees, start: usize, edge: Edge) -> usize {
        // A comparison there is not followed.
        let is_jump = matches!(
            self.insns.get(edge.to),
            Some(Insn::Goto { .. } | Insn::GotoLong { .. })
        );
        if is_jump && let Some(Node::Goto(target)) = self.node(trees, start, edge) {
            self.claim(trees, start, edge);
            return target;
        }
        edge.to
    }

    /// Divides the values; the way of the lowest, if there are any.
    fn divide(&mut self, at: usize, test: Test, values: Ranks) -> Option<Edge> {
        let by = Order::of(test.cond)?;
        let order = *self.order.get_or_insert(by);
        // The other order counts within one half as this one does.
        let turn = |rank: u32| by.rank(order.rank(rank));
        let turned = |Ranks { low, high }| Ranks {
            low: turn(low),
            high: turn(high),
        };
        let [holds, fails] = turned(values).divide(test.cond, by.rank(test.imm as u32));
        let way = |to: usize, ranks| Edge::of(test, at, to, turned(ranks));
        let (Some(held), Some(failed)) = (holds, fails) else {
            let held = holds.map(|ranks| way(test.target, ranks));
            return held.or(fails.map(|ranks| way(at + 1, ranks)));
        };
        let ways = [way(test.target, held), way(at + 1, failed)];
        let (first, later) = match held.low < failed.low {
            true => (ways[0], ways[1]),
            false => (ways[1], ways[0]),
        };
        self.open.push(later);
        Some(first)
    }

    /// Whether an edge is the only way to where it leads.
    fn is_only_from(
        &self,
        Edge {
            from, to, jumps, ..
        }: Edge,
    ) -> bool {
        let fallen_into = to - 1 != from && falls_through(self.insns[to - 1]);
        !fallen_into && self.arrivals.count(to) == u32::from(jumps)
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
