//! Branches that join, and loops.

use super::{BOUNDS, COUNTERS, Grammar, Holds};

impl Grammar<'_, '_> {
    pub(super) fn branch(&mut self) {
        if self.depth > 3 {
            return self.number();
        }
        let (other, end) = (self.label(), self.label());
        let condition = self.condition();
        self.line(&format!("{condition} goto l{other}"));
        let (holds, slots) = (self.holds, self.slots);
        self.depth += 1;
        let statements = 1 + self.choices.below(3);
        self.statements(statements);
        let (after, slots_after) = (self.holds, self.slots);
        (self.holds, self.slots) = (holds, slots);
        if self.choices.percent(50) {
            let goto = self.choices.pick(&["goto", "goto", "goto", "gotol"]);
            self.line(&format!("{goto} l{end}"));
            self.line(&format!("l{other}:"));
            self.statements(statements);
            self.line(&format!("l{end}:"));
        } else {
            self.line(&format!("l{other}:"));
        }
        self.depth -= 1;
        if !self.choices.one_in(40) {
            self.join(after, slots_after);
        }
    }

    /// A loop that ends, mostly.
    pub(super) fn bounded_loop(&mut self) {
        if self.depth > 1 {
            return self.arithmetic();
        }
        let counter = 7 + self.choices.below(3) as usize;
        let rounds = 1 + self.choices.below(if self.in_loop { 3 } else { 8 });
        let (head, out) = (self.label(), self.label());
        let bound = BOUNDS + 8 * self.depth;
        // Statements may write the counter's register, so it is mostly kept on the stack.
        let is_kept = self.choices.percent(85);
        let shape = self.choices.below(8);
        // A counter that may_goto does not bound makes every round a new state.
        let counts = shape != 6 || self.choices.one_in(30);
        let kept = (is_kept && counts).then_some(COUNTERS + 8 * self.depth);
        if shape == 3 || shape == 4 {
            let index = self.register(&[Holds::Small]);
            self.line(&format!("*(u64 *)(r10 - {bound}) = {index}"));
        }
        let first = match shape {
            1 => rounds,
            _ => 0,
        };
        self.line(&format!("r{counter} = {first}"));
        self.holds[counter] = Holds::Number;
        self.forget_pointers();
        self.line(&format!("l{head}:"));
        match shape {
            // The condition stands before the body.
            3 => {
                self.line(&format!("r5 = *(u64 *)(r10 - {bound})"));
                self.line(&format!("if r{counter} >= r5 goto l{out}"));
            }
            5 => self.line(&format!("if w{counter} > {rounds} goto l{out}")),
            6 => self.line(&format!("may_goto l{out}")),
            _ => {}
        }
        if let Some(kept) = kept {
            self.line(&format!("*(u64 *)(r10 - {kept}) = r{counter}"));
        }
        self.holds[5] = Holds::Nothing;
        let (holds, was_in_loop) = (self.holds, self.in_loop);
        self.holds[counter] = Holds::Nothing;
        self.in_loop = true;
        self.depth += 2;
        let statements = 1 + self.choices.below(3);
        self.statements(statements);
        self.depth -= 2;
        self.in_loop = was_in_loop;
        self.holds[counter] = Holds::Nothing;
        self.join(holds, self.slots);
        if let Some(kept) = kept {
            self.line(&format!("r{counter} = *(u64 *)(r10 - {kept})"));
        }
        match shape {
            0 => {
                let step = self.choices.pick(&[1, 1, 1, 2, 3]);
                self.line(&format!("r{counter} += {step}"));
                self.line(&format!("if r{counter} < {rounds} goto l{head}"));
            }
            1 => {
                self.line(&format!("r{counter} += -1"));
                self.line(&format!("if r{counter} != 0 goto l{head}"));
            }
            2 => {
                self.line(&format!("w{counter} += 1"));
                self.line(&format!("if w{counter} s< {rounds} goto l{head}"));
            }
            4 => {
                self.line(&format!("r{counter} += 1"));
                self.line(&format!("r5 = *(u64 *)(r10 - {bound})"));
                self.line(&format!("if r{counter} < r5 goto l{head}"));
            }
            7 => {
                self.line(&format!("r{counter} += 1"));
                self.line(&format!("if r{counter} == {rounds} goto l{out}"));
                self.line(&format!("gotol l{head}"));
            }
            _ => {
                if counts {
                    self.line(&format!("r{counter} += 1"));
                }
                self.line(&format!("goto l{head}"));
            }
        }
        self.line(&format!("l{out}:"));
        self.holds[5] = Holds::Nothing;
        self.holds[counter] = Holds::Number;
    }

    /// Forgets pointers but the context in r6, which statements of a round may not count
    /// on in the next.
    pub(super) fn forget_pointers(&mut self) {
        for (register, held) in self.holds.iter_mut().enumerate() {
            if register != 6 && !held.is_number() {
                *held = Holds::Nothing;
            }
        }
        for held in &mut self.slots {
            if !held.is_number() {
                *held = Holds::Nothing;
            }
        }
    }
}
