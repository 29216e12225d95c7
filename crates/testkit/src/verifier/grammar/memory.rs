//! Packets and values of maps.

use super::declarations::{
    ARRAY, ARRAYS, CONSTANTS, ENTRIES, HASH, HASHES, LPM, LRU_HASH, PERCPU_ARRAY, PERCPU_HASH,
    VALUE_SIZE,
};
use super::target::Family;
use super::{Grammar, Holds, SIZES};

/// Operations of atomic instructions on 64 bits at an address, with r7.
const ATOMICS: &[&str] = &[
    "lock *(u64 *)({}) += r7",
    "lock *(u64 *)({}) |= r7",
    "lock *(u64 *)({}) ^= r7",
    "r7 = atomic_fetch_add((u64 *)({}), r7)",
    "r7 = atomic_fetch_and((u64 *)({}), r7)",
    "r7 = xchg_64({}, r7)",
    "r0 = cmpxchg_64({}, r0, r7)",
    "r7 = load_acquire((u64 *)({}))",
    "store_release((u64 *)({}), r7)",
    "w7 = atomic_fetch_or((u32 *)({}), w7)",
    "w7 = xchg32_32({}, w7)",
];

impl Grammar<'_, '_> {
    /// A new pointer into the packet, compared with its end.
    pub(super) fn packet_access(&mut self) {
        let (Some((data, end, size)), Some(context)) = (self.target.packet, self.context()) else {
            return self.number();
        };
        let out = self.label();
        let length = 8 + self.choices.below(40);
        self.line(&format!("r2 = *({size} *)({context} + {data})"));
        self.line(&format!("r3 = *({size} *)({context} + {end})"));
        self.holds[2] = Holds::Nothing;
        self.holds[3] = Holds::Nothing;
        if self.choices.one_in(3) {
            let index = self.register(&[Holds::Small]);
            self.line(&format!("r2 += {index}"));
        }
        let keep = self.choices.one_in(2).then(|| 7 + self.choices.below(3));
        if let Some(keep) = keep {
            self.line(&format!("r{keep} = r2"));
            self.holds[keep as usize] = Holds::Nothing;
        }
        self.line("r4 = r2");
        self.line(&format!("r4 += {length}"));
        self.holds[4] = Holds::Nothing;
        if !self.choices.one_in(60) {
            let test = match self.choices.below(4) {
                0 => "if r4 >= r3",
                1 => "if r3 < r4",
                _ => "if r4 > r3",
            };
            self.line(&format!("{test} goto l{out}"));
        }
        self.guarded(|grammar| {
            grammar.holds[2] = Holds::Packet(length as u8);
            if let Some(keep) = keep {
                grammar.holds[keep as usize] = Holds::Packet(length as u8);
            }
            grammar.proven_access();
            if grammar.depth < 3 && grammar.choices.one_in(3) {
                grammar.depth += 1;
                grammar.statements(2);
                grammar.depth -= 1;
            }
        });
        self.line(&format!("l{out}:"));
    }

    /// An access to memory that is known to be there: a packet's or a map value's.
    pub(super) fn proven_access(&mut self) {
        let proven = (0..10).filter(|&r| matches!(self.holds[r], Holds::Packet(_) | Holds::Value));
        let proven: Vec<usize> = proven.collect();
        if proven.is_empty() {
            return self.arithmetic();
        }
        let base = self.choices.pick(&proven);
        let (length, writes) = match self.holds[base] {
            Holds::Packet(length) => (length.into(), self.target.writes_packet),
            _ => (VALUE_SIZE, true),
        };
        let (size, spelling) = self.choices.pick(SIZES);
        let last = (length + u32::from(self.choices.one_in(60))).saturating_sub(size);
        let at = match self.choices.one_in(10) {
            true => self.choices.below(last + 1),
            false => self.choices.below(last + 1) & !(size - 1),
        };
        if !writes || self.choices.percent(60) {
            let to = self.choices.pick(&[3, 4, 5]);
            let signed = size < 8 && self.choices.one_in(5);
            let spelling = match signed {
                true => spelling.replace('u', "s"),
                false => spelling.to_owned(),
            };
            self.line(&format!("r{to} = *({spelling} *)(r{base} + {at})"));
            self.holds[to] = Holds::Number;
        } else {
            self.line(&format!("*({spelling} *)(r{base} + {at}) = 1"));
        }
    }

    /// Puts a key at r10 - 4 and its address into r2; some keys are not there.
    pub(super) fn key(&mut self) {
        match self.choices.percent(50) {
            true => {
                let entry = self.choices.below(ENTRIES + 1);
                self.line(&format!("*(u32 *)(r10 - 4) = {entry}"));
            }
            false => {
                let key = self.register(Holds::NUMBERS);
                self.line(&format!("*(u32 *)(r10 - 4) = {key}"));
            }
        }
        self.slots[1] = Holds::Number;
        self.line("r2 = r10");
        self.line("r2 += -4");
    }

    /// Puts a prefix of up to 32 bits at r10 - 8 and its address into r2.
    pub(super) fn prefix_key(&mut self) {
        let length = match self.choices.one_in(20) {
            true => 33,
            false => self.choices.pick(&[0, 8, 16, 24, 32]),
        };
        self.key();
        self.line(&format!("*(u32 *)(r10 - 8) = {length}"));
        self.line("r2 += -4");
    }

    /// Looks a key up in a map; the result is in r0.
    pub(super) fn lookup(&mut self, map: u32) {
        match map {
            LPM => self.prefix_key(),
            _ => self.key(),
        }
        self.line(&format!("r1 = map_idx({map}) ll"));
        self.line("call 1");
        self.clobber();
        self.holds[0] = Holds::ValueOrNull;
    }

    pub(super) fn map_access(&mut self) {
        let maps = [ARRAY, ARRAY, HASH, PERCPU_ARRAY, LRU_HASH, PERCPU_HASH, LPM];
        let map = self.map_of(&maps);
        self.lookup(map);
        let out = self.label();
        let keep = self.choices.one_in(2);
        let keep = keep.then(|| 7 + self.choices.below(3) as usize);
        if let Some(keep) = keep {
            self.line(&format!("r{keep} = r0"));
            self.holds[keep] = Holds::ValueOrNull;
        }
        if !self.choices.one_in(60) {
            self.line(&format!("if r0 == 0 goto l{out}"));
        }
        self.guarded(|grammar| {
            grammar.holds[0] = Holds::Value;
            if let Some(keep) = keep {
                grammar.holds[keep] = Holds::Value;
            }
            grammar.value_access();
            if grammar.depth < 3 && grammar.choices.one_in(3) {
                grammar.depth += 1;
                grammar.statements(2);
                grammar.depth -= 1;
            }
        });
        self.line(&format!("l{out}:"));
        self.holds[0] = Holds::Nothing;
    }

    /// An access to the value in r0, perhaps at a variable offset.
    fn value_access(&mut self) {
        let is_variable = self.choices.one_in(2);
        if is_variable {
            let index = self.register(&[Holds::Small]);
            if index != "r0" {
                self.line(&format!("r0 += {index}"));
            }
            self.holds[0] = Holds::Pointer;
        }
        let (size, spelling) = match is_variable && !self.choices.one_in(60) {
            true => SIZES[0],
            false => self.choices.pick(SIZES),
        };
        let at = self.choices.below(VALUE_SIZE - size - 14) & !(size - 1);
        match self.choices.below(5) {
            0 => self.line(&format!("*({spelling} *)(r0 + {at}) = 3")),
            1 if !is_variable && self.holds[7].is_number() => {
                let operation = self.choices.pick(ATOMICS);
                let is_exchange = operation.starts_with("r0");
                let place = match is_exchange {
                    true => {
                        self.line("r3 = r0");
                        self.line("r0 = 1");
                        format!("r3 + {}", at & !7)
                    }
                    false => format!("r0 + {}", at & !7),
                };
                self.line(&operation.replace("{}", &place));
                self.holds[7] = Holds::Number;
                if is_exchange {
                    self.holds[0] = Holds::Number;
                    self.holds[3] = Holds::Value;
                }
            }
            _ => {
                self.line(&format!("r8 = *({spelling} *)(r0 + {at})"));
                self.holds[8] = Holds::Number;
            }
        }
    }

    /// A read of a map whose contents are known.
    pub(super) fn constant_access(&mut self) {
        let to = self.target_register();
        let (size, spelling) = self.choices.pick(SIZES);
        let at = self.choices.below(16 / size) * size;
        self.line(&format!("r1 = map_idx_value({CONSTANTS}, {at}) ll"));
        self.line(&format!("r{to} = *({spelling} *)(r1 + 0)"));
        self.holds[1] = Holds::Nothing;
        self.holds[to] = Holds::Number;
    }

    /// A value of a map that a map holds.
    pub(super) fn nested_map(&mut self) {
        let outer = self.choices.pick(&[ARRAYS, HASHES]);
        self.lookup(outer);
        let out = self.label();
        self.line(&format!("if r0 == 0 goto l{out}"));
        self.guarded(|grammar| {
            grammar.line("r1 = r0");
            grammar.line("r2 = r10");
            grammar.line("r2 += -4");
            grammar.line("call 1");
            grammar.clobber();
            if !grammar.choices.one_in(30) {
                grammar.line(&format!("if r0 == 0 goto l{out}"));
            }
            grammar.line("r4 = *(u64 *)(r0 + 8)");
        });
        self.line(&format!("l{out}:"));
        self.holds[..6].fill(Holds::Nothing);
    }

    pub(super) fn move_pointer(&mut self) {
        let pointers = [
            Holds::ValueOrNull,
            Holds::Value,
            Holds::Stack,
            Holds::Pointer,
        ];
        let from = self.register(&pointers);
        let to = self.target_register();
        self.line(&format!("r{to} = {from}"));
        if self.choices.one_in(3) {
            let value = self.choices.between(-8, 8);
            self.line(&format!("r{to} += {value}"));
        }
        self.holds[to] = Holds::Nothing;
    }

    /// An instruction on any registers.
    pub(super) fn anything(&mut self) {
        let (to, from) = (self.any_register(), self.any_register());
        let (_, spelling) = self.choices.pick(SIZES);
        let offset = self.choices.between(-40, 40);
        let text = match self.choices.below(6) {
            0 => format!("{to} = *({spelling} *)({from} {offset:+})"),
            1 => format!("*({spelling} *)({to} {offset:+}) = {from}"),
            2 => format!("{to} += {from}"),
            3 => format!("{to} = {from}"),
            4 => format!("{to} -= {from}"),
            _ => format!("lock *(u64 *)({to} {offset:+}) += {from}"),
        };
        self.line(&text);
    }

    /// A load by the instructions of classic BPF.
    pub(super) fn legacy_load(&mut self) {
        let is_allowed = self.target.has(Family::Legacy) && (self.is_typed || self.is_main);
        if !is_allowed || self.holds[6] != Holds::Context {
            return self.number();
        }
        let size = self.choices.pick(&["u8", "u16", "u32"]);
        let at = self.choices.below(40);
        match self.choices.one_in(2) {
            true => self.line(&format!("r0 = *({size} *)skb[{at}]")),
            false => {
                let index = self.register(Holds::NUMBERS);
                self.line(&format!("r0 = *({size} *)skb[{index} + {at}]"));
            }
        }
        self.clobber();
    }
}
