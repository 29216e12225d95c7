//! Branches and loops around statements.

use std::fmt::Write as _;

use super::Writer;

/// Most branches and loops in each other.
const DEPTH: u32 = 2;

impl Writer<'_, '_> {
    /// Statements on one of two ways, which a number of the packet chooses.
    pub(super) fn branch(&mut self) {
        if self.depth == DEPTH {
            return self.lookup();
        }
        let label = self.label();
        let value = self.choices.below(8);
        let condition = self.choices.pick(&["==", ">", "s<=", "&"]);
        let width = self.choices.pick(&["r1", "w1"]);
        self.number();
        let _ = writeln!(self.text, "if {width} {condition} {value} goto way{label}");
        self.statements();
        if self.choices.one_in(2) {
            let _ = write!(self.text, "goto meet{label}\nway{label}:\n");
            self.statements();
            let _ = writeln!(self.text, "meet{label}:");
        } else {
            let _ = writeln!(self.text, "way{label}:");
        }
    }

    /// A loop around statements, with its counter on the stack.
    pub(super) fn again(&mut self) {
        if self.depth == DEPTH {
            return self.update();
        }
        let (label, rounds) = (self.label(), 2 + self.choices.below(3));
        let slot = 88 + 8 * self.depth;
        let _ = write!(self.text, "*(u64 *)(r10 - {slot}) = 0\nagain{label}:\n");
        self.statements();
        let _ = write!(
            self.text,
            "r1 = *(u64 *)(r10 - {slot})\nr1 += 1\n*(u64 *)(r10 - {slot}) = r1\nr9 += r1\n\
             if r1 < {rounds} goto again{label}\n"
        );
    }

    fn statements(&mut self) {
        self.depth += 1;
        for _ in 0..1 + self.choices.below(3) {
            self.statement();
        }
        self.depth -= 1;
    }
}
