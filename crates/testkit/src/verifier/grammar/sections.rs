//! Open-coded iterators, sections in which a program may not sleep or be preempted, and
//! resilient locks.

use super::declarations::RESILIENT;
use super::target::Family;
use super::{ARGUMENT, Grammar, Holds};

/// Kernel functions that begin a section and end it.
const SECTIONS: &[[&str; 2]] = &[
    ["bpf_rcu_read_lock", "bpf_rcu_read_unlock"],
    ["bpf_rcu_read_lock", "bpf_rcu_read_unlock"],
    ["bpf_preempt_disable", "bpf_preempt_enable"],
    ["bpf_local_irq_save", "bpf_local_irq_restore"],
];

impl Grammar<'_, '_> {
    /// A loop over the numbers or the bits of an iterator.
    pub(super) fn iterator(&mut self) {
        if self.depth > 1 {
            return self.arithmetic();
        }
        let place = self.place(32);
        let kind = self.choices.pick(&["num", "num", "num", "bits"]);
        let (head, out) = (self.label(), self.label());
        let small: Vec<usize> = (6..10).filter(|&r| self.holds[r] == Holds::Small).collect();
        self.address(1, place);
        match kind {
            "num" => {
                let start = self.choices.between(-2, 3);
                self.line(&format!("r2 = {start}"));
                match small.is_empty() || self.choices.one_in(2) {
                    true => {
                        let end = self.choices.below(12);
                        self.line(&format!("r3 = {end}"));
                    }
                    false => {
                        let end = self.choices.pick(&small);
                        self.line(&format!("r3 = r{end}"));
                    }
                }
            }
            _ => {
                let bits = self.choices.below(1024);
                self.line(&format!("*(u64 *)(r10 - {ARGUMENT}) = {bits}"));
                self.address(2, ARGUMENT);
                self.line("r3 = 1");
            }
        }
        self.kfunc(&format!("bpf_iter_{kind}_new"));
        self.forget_pointers();
        self.line(&format!("l{head}:"));
        self.address(1, place);
        self.kfunc(&format!("bpf_iter_{kind}_next"));
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{out}"));
        }
        let (holds, was_in_loop) = (self.holds, self.in_loop);
        if self.choices.one_in(2) {
            let to = 7 + self.choices.below(3) as usize;
            self.line(&format!("r{to} = *(u32 *)(r0 + 0)"));
            self.holds[to] = Holds::Number;
            if self.choices.one_in(3) {
                self.line(&format!("if r{to} > 15 goto l{out}"));
                self.holds[to] = Holds::Small;
            }
        }
        self.holds[0] = Holds::Nothing;
        self.in_loop = true;
        self.depth += 2;
        let statements = self.choices.below(3);
        self.statements(statements);
        self.depth -= 2;
        self.in_loop = was_in_loop;
        self.join(holds, self.slots);
        self.line(&format!("goto l{head}"));
        self.line(&format!("l{out}:"));
        self.holds[0] = Holds::Nothing;
        if !self.choices.one_in(40) {
            self.address(1, place);
            self.kfunc(&format!("bpf_iter_{kind}_destroy"));
        }
    }

    /// Statements inside a section.
    pub(super) fn section(&mut self) {
        if self.depth > 2 {
            return self.number();
        }
        let [begin, end] = self.choices.pick(SECTIONS);
        let place = self.place(40);
        let has_flags = begin.contains("irq");
        let call = |grammar: &mut Self, name| {
            if has_flags {
                grammar.address(1, place);
            }
            grammar.kfunc(name);
        };
        call(self, begin);
        self.depth += 1;
        let statements = 1 + self.choices.below(2);
        self.statements(statements);
        self.depth -= 1;
        if !self.choices.one_in(40) {
            call(self, end);
        }
    }

    /// A value that is read or written under its resilient lock, if that is taken.
    pub(super) fn resilient(&mut self) {
        if !self.target.has(Family::Locks) {
            return self.section();
        }
        let done = self.label();
        let place = self.place(40);
        let saves = self.choices.one_in(3);
        let value = format!("r1 = map_idx_value({RESILIENT}, 0) ll");
        self.line(&value);
        if saves {
            self.address(2, place);
        }
        self.kfunc(match saves {
            true => "bpf_res_spin_lock_irqsave",
            false => "bpf_res_spin_lock",
        });
        self.clobber();
        self.line(&format!("if r0 != 0 goto l{done}"));
        self.line(&format!("r1 = map_idx_value({RESILIENT}, 8) ll"));
        match self.choices.one_in(2) {
            true => self.line("*(u64 *)(r1 + 0) = 1"),
            false => self.line("r2 = *(u64 *)(r1 + 0)"),
        }
        if !self.choices.one_in(40) {
            self.line(&value);
            if saves != self.choices.one_in(60) {
                self.address(2, place);
            }
            self.kfunc(match saves {
                true => "bpf_res_spin_unlock_irqrestore",
                false => "bpf_res_spin_unlock",
            });
        }
        self.clobber();
        self.line(&format!("l{done}:"));
        self.holds[0] = Holds::Nothing;
    }
}
