//! Code generation of classic programs from a decision graph.
//!
//! Jumps only lead forward and conditional ones reach 255 instructions, so the code is
//! emitted from its return_value: the distance of every target is known. A target out of reach gets
//! a trampoline (a `ja`, or a copy of the return) after the jump. Equal decisions are
//! shared (hash-consing).

use std::collections::HashMap;

use isa::classic::{AluOp, Cond, Insn, Operand, Size, SockFilter};

/// Index of a decision in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decision(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Return(u32),
    Test(Test, Decision, Decision),
    /// Loads a word of the data for the tests that follow.
    Load(u32, Decision),
}

/// A comparison of a word of the data with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Test {
    /// Byte offset of the word; `None` if it is already loaded.
    pub(super) load: Option<u32>,
    /// Mask of the compared bits.
    pub(super) mask: u32,
    /// Comparison operator.
    pub(super) cond: Cond,
    /// Constant operand.
    pub(super) k: u32,
}

/// An error: more decisions than a program can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Largest number of decisions; each needs at least an instruction.
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

    /// A return of a value.
    pub(super) fn return_value(&mut self, value: u32) -> Decision {
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

    /// Emits the code of a decision.
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
            layout.emit(decision);
        }
        let insns = layout.backwards.iter().rev();
        Ok(insns.map(|insn| insn.encode()).collect())
    }

    /// The decisions reachable from one, in post-order; the failure branch of a test is
    /// directly before the test.
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
    /// The program in reverse.
    backwards: Vec<Insn>,
    /// For each emitted decision, the length of the code from it to the return_value.
    ends: HashMap<Decision, usize>,
}

impl Layout<'_> {
    fn emit(&mut self, decision: Decision) {
        match self.nodes[decision.0] {
            Node::Return(value) => self.backwards.push(Insn::RetK(value)),
            Node::Load(offset, then) => {
                self.continue_at(then);
                self.push_load(offset);
            }
            Node::Test(test, yes, no) => {
                // Trampolines are emitted first, so that they follow the jump.
                let far = |layout: &Layout<'_>, to| layout.distance(to) > 254;
                let no_end = if far(self, no) {
                    self.trampoline(no)
                } else {
                    self.ends[&no]
                };
                let yes_end = if far(self, yes) {
                    self.trampoline(yes)
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

    /// Distance from the next emitted instruction to a decision.
    fn distance(&self, to: Decision) -> usize {
        self.backwards.len() - self.ends[&to]
    }

    /// Emits a trampoline to a decision out of reach; returns the length of the code from
    /// it.
    fn trampoline(&mut self, to: Decision) -> usize {
        let trampoline = match self.nodes[to.0] {
            Node::Return(value) => Insn::RetK(value),
            _ => Insn::Goto(self.distance(to) as u32),
        };
        self.backwards.push(trampoline);
        self.backwards.len()
    }

    /// Emits a jump to a decision unless the last emitted code is that decision.
    fn continue_at(&mut self, to: Decision) {
        if self.distance(to) > 0 {
            self.trampoline(to);
        }
    }
}
