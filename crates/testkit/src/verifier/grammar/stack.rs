//! The stack: spills and fills of all widths, constant and variable offsets.

use super::{Grammar, Holds, SIZES};

impl Grammar<'_, '_> {
    pub(super) fn stack_access(&mut self) {
        let (size, spelling) = self.choices.pick(SIZES);
        let slot = 1 + self.choices.below(10);
        let part = self.choices.below(8 / size);
        let offset = match self.choices.one_in(100) {
            true => self.choices.below(600),
            false => 8 * slot - size * part,
        };
        let held = self.slots[slot as usize];
        if self.choices.percent(55) || held == Holds::Nothing {
            self.store(slot, &format!("*({spelling} *)(r10 - {offset})"));
        } else {
            self.load(slot, size, &format!("({spelling} *)(r10 - {offset})"));
        }
    }

    /// Writes a slot, or the part of it that `part` names.
    fn store(&mut self, slot: u32, part: &str) {
        let any: Vec<usize> = (0..10)
            .filter(|&r| self.holds[r] != Holds::Nothing)
            .collect();
        self.slots[slot as usize] = match self.choices.below(6) {
            0 | 1 => {
                let value = self.constant();
                self.line(&format!("{part} = {value}"));
                Holds::Number
            }
            2 | 3 => {
                let from = self.register(Holds::NUMBERS);
                self.line(&format!("{part} = {from}"));
                Holds::Number
            }
            _ if any.is_empty() => return self.number(),
            _ => {
                let from = self.choices.pick(&any);
                self.line(&format!("*(u64 *)(r10 - {}) = r{from}", 8 * slot));
                self.holds[from]
            }
        };
    }

    /// Reads a slot, or the part of it that `part` names.
    fn load(&mut self, slot: u32, size: u32, part: &str) {
        let to = self.target_register();
        let held = self.slots[slot as usize];
        if self.choices.one_in(2) {
            self.line(&format!("r{to} = *(u64 *)(r10 - {})", 8 * slot));
            self.holds[to] = held;
        } else if held.is_number() {
            let is_signed = size < 8 && self.choices.one_in(4);
            let part = match is_signed {
                true => part.replace("(u", "(s"),
                false => part.to_owned(),
            };
            self.line(&format!("r{to} = *{part}"));
            self.holds[to] = Holds::Number;
        }
    }

    pub(super) fn variable_stack_access(&mut self) {
        let index = self.register(&[Holds::Small]);
        let base = 16 + 8 * self.choices.below(6);
        self.line("r5 = r10");
        self.line(&format!("r5 += -{base}"));
        self.line(&format!("r5 += {index}"));
        self.holds[5] = Holds::Stack;
        let spelling = match self.choices.one_in(60) {
            true => "u64",
            false => "u8",
        };
        if self.choices.percent(50) {
            self.line(&format!("*({spelling} *)(r5 + 0) = 7"));
            for held in &mut self.slots {
                if *held != Holds::Nothing {
                    *held = Holds::Number;
                }
            }
        } else {
            self.line(&format!("r4 = *({spelling} *)(r5 + 0)"));
            self.holds[4] = Holds::Number;
        }
    }
}
