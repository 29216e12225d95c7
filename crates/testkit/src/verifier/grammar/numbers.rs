//! Numbers: where they come from, arithmetic, conditions, linked scalars.

use super::{Grammar, Holds, SIZES};

const COMPARISONS: &[&str] = &[
    "==", "!=", "<", "<=", ">", ">=", "s<", "s<=", "s>", "s>=", "&",
];
const ARITHMETIC: &[&str] = &[
    "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "s>>=", "/=", "%=", "s/=", "s%=",
];

/// The name of a register, as its low half if `narrow`.
fn named(register: &str, narrow: bool) -> String {
    match narrow {
        true => register.replace('r', "w"),
        false => register.to_owned(),
    }
}

impl Grammar<'_, '_> {
    pub(super) fn constant(&mut self) -> i32 {
        match self.choices.below(6) {
            0 => self.choices.between(-2, 2),
            1 => self.choices.between(0, 16),
            2 => 1i32.wrapping_shl(self.choices.below(32)).wrapping_sub(1),
            3 => self.choices.between(-64, 64),
            4 => self.choices.bits() as i32,
            _ => self.choices.between(0, 255),
        }
    }

    /// A new number in some register.
    pub(super) fn number(&mut self) {
        let to = self.target_register();
        match self.choices.below(5) {
            0 => {
                let value = self.constant();
                let wide = self.choices.percent(80);
                self.line(&format!("{} = {value}", named(&format!("r{to}"), !wide)));
            }
            1 => {
                let value = self.choices.bits();
                let value = value >> self.choices.below(60);
                self.line(&format!("r{to} = {value:#x} ll"));
            }
            2 => self.random_number(to),
            _ => match (self.context(), self.target.fields) {
                (Some(context), (size, fields)) if !fields.is_empty() => {
                    let field = match self.choices.one_in(100) {
                        true => self.choices.below(200),
                        false => self.choices.pick(fields),
                    };
                    let size = match self.choices.one_in(60) {
                        true => self.choices.pick(SIZES).1,
                        false => size,
                    };
                    self.line(&format!("r{to} = *({size} *)({context} + {field})"));
                }
                _ => self.random_number(to),
            },
        }
        self.holds[to] = Holds::Number;
        if self.choices.one_in(3) {
            self.line(&format!("r{to} &= 15"));
            self.holds[to] = Holds::Small;
        }
    }

    fn random_number(&mut self, to: usize) {
        // get_prandom_u32, ktime_get_ns
        let helper = self.choices.pick(&[7, 7, 5]);
        self.line(&format!("call {helper}"));
        self.clobber();
        self.line(&format!("r{to} = r0"));
    }

    pub(super) fn arithmetic(&mut self) {
        let to = self.register(Holds::NUMBERS);
        let narrow = self.choices.one_in(3);
        let to_name = named(&to, narrow);
        match self.choices.below(8) {
            0..4 => {
                let op = self.choices.pick(ARITHMETIC);
                let is_shift = op.contains("<<") || op.contains(">>");
                let is_division = op.contains('/') || op.contains('%');
                let value = match self.constant() {
                    value if is_shift => value.rem_euclid(if narrow { 32 } else { 64 }),
                    0 if is_division && !self.choices.one_in(20) => 3,
                    value => value,
                };
                self.line(&format!("{to_name} {op} {value}"));
            }
            4..7 => {
                let op = self.choices.pick(ARITHMETIC);
                let from = self.register(Holds::NUMBERS);
                self.line(&format!("{to_name} {op} {}", named(&from, narrow)));
            }
            _ => {
                let from = self.register(Holds::NUMBERS);
                let bits = self.choices.pick(&[16, 32, 64]);
                let text = match self.choices.below(6) {
                    0 => format!("{to_name} = -{to_name}"),
                    1 => {
                        let bits = self.choices.pick(&[8, 16, 32]);
                        format!("{to} = (s{bits}){from}")
                    }
                    2 => {
                        let bits = self.choices.pick(&[8, 16]);
                        format!("{} = (s{bits}){}", named(&to, true), named(&from, true))
                    }
                    3 => format!("{} = {}", named(&to, true), named(&from, true)),
                    4 => format!("{to} = be{bits} {to}"),
                    _ => format!("{to} = bswap{bits} {to}"),
                };
                self.line(&text);
            }
        }
        if let Some(number) = to[1..].parse::<usize>().ok().filter(|&r| r < 10)
            && self.holds[number] == Holds::Small
        {
            self.holds[number] = Holds::Number;
        }
    }

    /// `if a cond b`, of numbers.
    pub(super) fn condition(&mut self) -> String {
        let left = self.register(Holds::NUMBERS);
        self.condition_on(&left)
    }

    /// The same, with the left operand given.
    pub(super) fn condition_on(&mut self, left: &str) -> String {
        let op = self.choices.pick(COMPARISONS);
        let narrow = self.choices.one_in(3);
        let right = match self.choices.percent(60) {
            true => self.constant().to_string(),
            false => named(&self.register(Holds::NUMBERS), narrow),
        };
        format!("if {} {op} {right}", named(left, narrow))
    }

    /// A copy of a number, perhaps with a difference, whose range is then known by a
    /// condition on the other one.
    pub(super) fn link(&mut self) {
        let from = self.register(&[Holds::Number]);
        let to = 7 + self.choices.below(3) as usize;
        if from == format!("r{to}") {
            return self.number();
        }
        let narrow = self.choices.one_in(5);
        let to_name = format!("r{to}");
        self.line(&format!(
            "{} = {}",
            named(&to_name, narrow),
            named(&from, narrow)
        ));
        let difference = self.choices.between(-8, 8);
        if self.choices.percent(60) {
            let narrow = self.choices.one_in(5);
            self.line(&format!("{} += {difference}", named(&to_name, narrow)));
        }
        self.holds[to] = Holds::Number;
        let out = self.label();
        let (tested, used) = match self.choices.percent(50) {
            true => (from.clone(), to_name),
            false => (to_name, from),
        };
        if self.choices.percent(60) {
            // The other one is an offset then.
            let limit = self.choices.below(16);
            self.line(&format!("if {tested} > {limit} goto l{out}"));
            if self.choices.one_in(3) {
                self.line(&format!("if {tested} s< {} goto l{out}", difference.abs()));
            }
            self.line("r5 = r10");
            self.line("r5 += -56");
            self.line(&format!("r5 += {used}"));
            self.line("*(u8 *)(r5 + 0) = 1");
            self.holds[5] = Holds::Nothing;
            for slot in &mut self.slots {
                if *slot != Holds::Nothing {
                    *slot = Holds::Number;
                }
            }
        } else {
            let condition = self.condition_on(&tested);
            self.line(&format!("{condition} goto l{out}"));
            self.guarded(|grammar| grammar.statements(1));
        }
        self.line(&format!("l{out}:"));
    }
}
