//! Classic code from a graph of decisions.
//!
//! Jumps only lead forward and conditional ones reach 255 instructions, so code
//! is laid down from its end: whatever a jump needs is already there, at a known
//! distance. A target too far away gets a stepping stone (a `ja`, or a copy of
//! the return) right after the jump. Equal decisions exist once.

use std::collections::HashMap;

use isa::classic::{AluOp, Cond, Insn, Operand, Size, SockFilter};

/// A decision, by its place in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decision(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Return(u32),
    Test(Test, Decision, Decision),
    /// Loads a word of the data; tests without a load of their own follow.
    Load(u32, Decision),
}

/// A comparison of a word of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Test {
    /// Byte offset of the word; `None` when it is loaded already.
    pub(super) load: Option<u32>,
    /// Bits that count.
    pub(super) mask: u32,
    /// The comparison.
    pub(super) cond: Cond,
    /// With what.
    pub(super) k: u32,
}

/// More decisions than fit any program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Decisions that a graph may have; every one takes an instruction at least.
const MAX_DECISIONS: usize = 1 << 14;

/// A graph of decisions, built from its returns upwards.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    places: HashMap<Node, Decision>,
}

impl Graph {
    fn add(&mut self, node: Node) -> Decision {
        let next = Decision(self.nodes.len());
        let place = *self.places.entry(node).or_insert(next);
        if place == next {
            self.nodes.push(node);
        }
        place
    }

    /// Ends with a value.
    pub(super) fn end(&mut self, value: u32) -> Decision {
        self.add(Node::Return(value))
    }

    /// `if test then yes else no`.
    pub(super) fn test(&mut self, test: Test, yes: Decision, no: Decision) -> Decision {
        if yes == no {
            return yes;
        }
        self.add(Node::Test(test, yes, no))
    }

    /// Loads a word for the tests that follow.
    pub(super) fn load(&mut self, offset: u32, then: Decision) -> Decision {
        match self.nodes[then.0] {
            Node::Return(_) => then,
            _ => self.add(Node::Load(offset, then)),
        }
    }

    /// The code of a decision.
    pub(super) fn code(&self, start: Decision) -> Result<Vec<SockFilter>, TooLarge> {
        if self.nodes.len() > MAX_DECISIONS {
            return Err(TooLarge);
        }
        let mut layout = Layout {
            nodes: &self.nodes,
            backwards: Vec::new(),
            ends: HashMap::new(),
        };
        for decision in self.order(start) {
            layout.lay(decision);
        }
        let insns = layout.backwards.iter().rev();
        Ok(insns.map(|insn| insn.encode()).collect())
    }

    /// Everything that a decision leads to, what is led to first; the way taken
    /// when a test fails directly before the test.
    fn order(&self, start: Decision) -> Vec<Decision> {
        let mut done = vec![false; self.nodes.len()];
        let mut order = Vec::new();
        let mut open = vec![(start, false)];
        while let Some((decision, expanded)) = open.pop() {
            if done[decision.0] {
                continue;
            }
            if expanded {
                done[decision.0] = true;
                order.push(decision);
                continue;
            }
            open.push((decision, true));
            match self.nodes[decision.0] {
                Node::Return(_) => {}
                Node::Load(_, then) => open.push((then, false)),
                Node::Test(_, yes, no) => open.extend([(no, false), (yes, false)]),
            }
        }
        order
    }
}

struct Layout<'a> {
    nodes: &'a [Node],
    /// The program from its end.
    backwards: Vec<Insn>,
    /// For each decision laid down, the length of the code from it to the end.
    ends: HashMap<Decision, usize>,
}

impl Layout<'_> {
    fn lay(&mut self, decision: Decision) {
        match self.nodes[decision.0] {
            Node::Return(value) => self.backwards.push(Insn::RetK(value)),
            Node::Load(offset, then) => {
                self.fall_to(then);
                self.push_load(offset);
            }
            Node::Test(test, yes, no) => {
                // Stones first, so that they lie after the jump.
                let far = |layout: &Layout<'_>, to| layout.distance(to) > 254;
                let no_end = if far(self, no) {
                    self.stone(no)
                } else {
                    self.ends[&no]
                };
                let yes_end = if far(self, yes) {
                    self.stone(yes)
                } else {
                    self.ends[&yes]
                };
                let here = self.backwards.len();
                self.backwards.push(Insn::Jump {
                    cond: test.cond,
                    src: Operand::K(test.k),
                    jt: (here - yes_end) as u8,
                    jf: (here - no_end) as u8,
                });
                if test.mask != u32::MAX {
                    let src = Operand::K(test.mask);
                    self.backwards.push(Insn::Alu {
                        op: AluOp::And,
                        src,
                    });
                }
                if let Some(offset) = test.load {
                    self.push_load(offset);
                }
            }
        }
        self.ends.insert(decision, self.backwards.len());
    }

    fn push_load(&mut self, offset: u32) {
        let size = Size::W;
        self.backwards.push(Insn::LoadAbs { size, k: offset });
    }

    /// Instructions between the next one to be laid down and a decision.
    fn distance(&self, to: Decision) -> usize {
        self.backwards.len() - self.ends[&to]
    }

    /// Lays down a way to a decision that is too far to jump to; gives the
    /// length of the code from it.
    fn stone(&mut self, to: Decision) -> usize {
        let stone = match self.nodes[to.0] {
            Node::Return(value) => Insn::RetK(value),
            _ => Insn::Goto(self.distance(to) as u32),
        };
        self.backwards.push(stone);
        self.backwards.len()
    }

    /// Makes the code laid down last lead to a decision.
    fn fall_to(&mut self, to: Decision) {
        if self.distance(to) > 0 {
            self.stone(to);
        }
    }
}
