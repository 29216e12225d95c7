//! A smaller grammar, of programs that the soundness oracle can run: tc, XDP and socket
//! filter programs with one array map.
//!
//! Programs are text that the assembler reads. Statements know loosely what each
//! register holds, and use it well most of the time: bounds checks, null checks and
//! initialisation are left out now and then, and any register is used for anything
//! rarely. Programs have branches that join, bounded loops, spills, variable stack
//! offsets, packet and map accesses, helper calls and subprograms.

use std::fmt::Write as _;

use isa::ebpf::{RawInsn, assemble, encode};
use program::{MapDef, MapParams, Program};
use spec::maps::MapKind;
use spec::programs::ProgramType;

use crate::ebpf::Choices;

/// Bytes of a value of the array map, which is map 0 of every program.
const VALUE_SIZE: u32 = 48;
/// Entries of the array map.
const ENTRIES: u32 = 4;

/// A program type that the grammar writes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `struct __sk_buff` with direct packet access.
    SchedCls,
    /// `struct xdp_md`.
    Xdp,
    /// `struct __sk_buff`, packets by legacy loads only.
    SocketFilter,
}

impl Target {
    /// Offsets of `data` and `data_end` in the context.
    fn packet_fields(self) -> (u32, u32) {
        match self {
            Target::Xdp => (0, 4),
            Target::SchedCls | Target::SocketFilter => (76, 80),
        }
    }

    /// Scalar fields of the context that can be read, mostly.
    fn fields(self) -> &'static [u32] {
        match self {
            Target::Xdp => &[12, 16],
            Target::SchedCls | Target::SocketFilter => &[0, 4, 8, 16, 24, 32, 40, 48, 56, 68],
        }
    }
}

/// The program of a seed, with its type.
pub fn generated(seed: u64) -> (Target, String) {
    let mut choices = Choices::from_seed(seed);
    let target = match choices.below(5) {
        0 => Target::Xdp,
        1 => Target::SocketFilter,
        _ => Target::SchedCls,
    };
    let text = program(&mut choices, target);
    (target, text)
}

/// Slots of a program's text.
pub fn assembled(text: &str) -> Result<Vec<RawInsn>, String> {
    let insns = assemble(text).map_err(|error| error.to_string())?;
    encode(&insns).map_err(|error| format!("{error:?}"))
}

/// A generated program with its map.
pub fn generated_program(target: Target, insns: &[RawInsn]) -> Result<Program, String> {
    let map = MapDef::new(
        "",
        MapParams {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: VALUE_SIZE,
            max_entries: ENTRIES,
            ..MapParams::default()
        },
    );
    let kind = match target {
        Target::SchedCls => ProgramType::SchedCls,
        Target::Xdp => ProgramType::Xdp,
        Target::SocketFilter => ProgramType::SocketFilter,
    };
    Program::builder(kind, insns.to_vec())
        .maps(vec![std::sync::Arc::new(map)])
        .license("Dual MIT/GPL")
        .build()
        .map_err(|error| error.to_string())
}

/// Contents of a register, as tracked by the grammar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Number,
    /// A number within 0..=15.
    Small,
    Context,
    Packet,
    ValueOrNull,
    Stack,
}

/// Generates the text of a program.
struct Grammar<'c, 'b> {
    choices: &'c mut Choices<'b>,
    target: Target,
    text: String,
    holds: [Holds; 10],
    /// Contents of 8-byte stack slots, slot n at r10 - 8n.
    slots: [Holds; 12],
    labels: u32,
    subprograms: u32,
    depth: u32,
    in_loop: bool,
}

/// Sizes of accesses, with the type's spelling.
const SIZES: &[(u32, &str)] = &[(1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")];
const COMPARISONS: &[&str] = &[
    "==", "!=", "<", "<=", ">", ">=", "s<", "s<=", "s>", "s>=", "&",
];
const ARITHMETIC: &[&str] = &[
    "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "s>>=", "/=", "%=",
];

/// The text of a program.
fn program(choices: &mut Choices<'_>, target: Target) -> String {
    let mut grammar = Grammar {
        choices,
        target,
        text: String::new(),
        holds: [Holds::Nothing; 10],
        slots: [Holds::Nothing; 12],
        labels: 0,
        subprograms: 0,
        depth: 0,
        in_loop: false,
    };
    grammar.main();
    grammar.text
}

impl Grammar<'_, '_> {
    fn main(&mut self) {
        self.line("r6 = r1");
        self.holds[1] = Holds::Context;
        self.holds[6] = Holds::Context;
        self.line("r7 = 5");
        self.holds[7] = Holds::Small;
        let statements = 3 + self.choices.below(22);
        self.statements(statements);
        self.finish();
        for number in 0..self.subprograms {
            let _ = writeln!(self.text, "sub{number}:");
            self.line("r6 = r1");
            self.holds = [Holds::Nothing; 10];
            self.holds[1] = Holds::Context;
            self.holds[6] = Holds::Context;
            self.holds[2] = Holds::Number;
            self.slots = [Holds::Nothing; 12];
            self.depth = 2;
            let statements = 1 + self.choices.below(6);
            self.statements(statements);
            self.finish();
        }
    }

    fn finish(&mut self) {
        match self.choices.below(12) {
            0 => {
                let from = self.register(&[Holds::Number, Holds::Small]);
                self.line(&format!("r0 = {from}"));
            }
            1 if self.holds[0] == Holds::Number => {}
            _ => {
                let value = self.choices.below(3);
                self.line(&format!("r0 = {value}"));
            }
        }
        self.line("exit");
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn statements(&mut self, count: u32) {
        for _ in 0..count {
            self.statement();
        }
    }

    fn statement(&mut self) {
        // In loops what registers hold has to be the same in every round.
        let limit = if self.in_loop { 50 } else { 100 };
        match self.choices.below(limit) {
            0..14 => self.number(),
            14..32 => self.arithmetic(),
            32..44 => self.stack_access(),
            44..50 => self.variable_stack_access(),
            50..64 => self.branch(),
            64..69 => self.bounded_loop(),
            69..77 => self.packet_access(),
            77..86 => self.map_access(),
            86..92 => self.helper(),
            92..96 => self.subprogram_call(),
            96..99 => self.move_pointer(),
            _ if self.choices.one_in(2) => self.anything(),
            _ => self.number(),
        }
    }

    /// A register that holds this; rarely any one. Where there is none, a number is
    /// made, or the register that mostly holds the context is taken.
    fn register(&mut self, wanted: &[Holds]) -> String {
        if self.choices.one_in(250) {
            return self.any_register();
        }
        let fitting: Vec<usize> = (0..10)
            .filter(|&r| wanted.contains(&self.holds[r]))
            .collect();
        if !fitting.is_empty() {
            return format!("r{}", self.choices.pick(&fitting));
        }
        if wanted.contains(&Holds::Small) || wanted.contains(&Holds::Number) {
            let to = 7 + self.choices.below(3) as usize;
            let value = self.choices.below(16);
            self.line(&format!("r{to} = {value}"));
            self.holds[to] = Holds::Small;
            return format!("r{to}");
        }
        "r6".to_owned()
    }

    fn any_register(&mut self) -> String {
        format!("r{}", self.choices.below(11))
    }

    /// A register to write; the context in r6 is mostly kept.
    fn target_register(&mut self) -> usize {
        match self.choices.one_in(60) {
            true => 6,
            false => self.choices.pick(&[0, 1, 2, 3, 4, 5, 7, 8, 9]),
        }
    }

    fn constant(&mut self) -> i32 {
        match self.choices.below(6) {
            0 => self.choices.between(-2, 2),
            1 => self.choices.between(0, 16),
            2 => 1i32.wrapping_shl(self.choices.below(32)).wrapping_sub(1),
            3 => self.choices.between(-64, 64),
            4 => self.choices.bits() as i32,
            _ => self.choices.between(0, 255),
        }
    }

    fn number(&mut self) {
        let to = self.target_register();
        match self.choices.below(5) {
            0 => {
                let value = self.constant();
                self.line(&format!("r{to} = {value}"));
            }
            1 => {
                let value = self.choices.bits();
                let value = value >> self.choices.below(60);
                self.line(&format!("r{to} = {value:#x} ll"));
            }
            2 => {
                self.line("call 7");
                self.clobber();
                self.line(&format!("r{to} = r0"));
            }
            _ => {
                let context = self.register(&[Holds::Context]);
                let field = match self.choices.one_in(100) {
                    true => self.choices.below(200),
                    false => self.choices.pick(self.target.fields()),
                };
                let size = match self.choices.one_in(60) {
                    true => self.choices.pick(SIZES).1,
                    false => "u32",
                };
                self.line(&format!("r{to} = *({size} *)({context} + {field})"));
            }
        }
        self.holds[to] = Holds::Number;
        if self.choices.one_in(3) {
            self.line(&format!("r{to} &= 15"));
            self.holds[to] = Holds::Small;
        }
    }

    fn arithmetic(&mut self) {
        let to = self.register(&[Holds::Number, Holds::Small]);
        let op = self.choices.pick(ARITHMETIC);
        let narrow = self.choices.one_in(3);
        let to_name = match narrow {
            true => to.replace('r', "w"),
            false => to.clone(),
        };
        let shift = op.contains("<<") || op.contains(">>");
        match self.choices.below(8) {
            0..4 => {
                let value = match (shift, self.constant()) {
                    (true, value) => value.rem_euclid(if narrow { 32 } else { 64 }),
                    (false, 0) if op == "/=" || op == "%=" => 3,
                    (false, value) => value,
                };
                self.line(&format!("{to_name} {op} {value}"));
            }
            4..7 => {
                let from = self.register(&[Holds::Number, Holds::Small]);
                let from = if narrow { from.replace('r', "w") } else { from };
                self.line(&format!("{to_name} {op} {from}"));
            }
            _ => {
                let from = self.register(&[Holds::Number, Holds::Small]);
                let text = match self.choices.below(4) {
                    0 => format!("{to_name} = -{to_name}"),
                    1 => format!(
                        "{to} = (s{}){from}",
                        [8, 16, 32][self.choices.below(3) as usize]
                    ),
                    2 => format!("{} = {}", to.replace('r', "w"), from.replace('r', "w")),
                    _ => format!(
                        "{to} = be{} {to}",
                        [16, 32, 64][self.choices.below(3) as usize]
                    ),
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

    fn stack_access(&mut self) {
        let (size, spelling) = self.choices.pick(SIZES);
        let slot = 1 + self.choices.below(10);
        let part = self.choices.below(8 / size);
        let offset = match self.choices.one_in(60) {
            true => self.choices.below(600),
            false => 8 * slot - size * part,
        };
        let held = self.slots[slot as usize];
        if self.choices.percent(55) || held == Holds::Nothing {
            if self.choices.one_in(3) {
                let value = self.constant();
                self.line(&format!("*({spelling} *)(r10 - {offset}) = {value}"));
                self.slots[slot as usize] = Holds::Number;
            } else if self.choices.one_in(2) {
                let from = self.register(&[Holds::Number, Holds::Small]);
                self.line(&format!("*({spelling} *)(r10 - {offset}) = {from}"));
                self.slots[slot as usize] = Holds::Number;
            } else {
                let any: Vec<usize> = (0..10)
                    .filter(|&r| self.holds[r] != Holds::Nothing)
                    .collect();
                if any.is_empty() {
                    return self.number();
                }
                let from = self.choices.pick(&any);
                self.line(&format!("*(u64 *)(r10 - {}) = r{from}", 8 * slot));
                self.slots[slot as usize] = self.holds[from];
            }
            return;
        }
        let to = self.target_register();
        if self.choices.one_in(2) {
            self.line(&format!("r{to} = *(u64 *)(r10 - {})", 8 * slot));
            self.holds[to] = held;
        } else if matches!(held, Holds::Number | Holds::Small) {
            let signed = size < 8 && self.choices.one_in(6);
            let spelling = match signed {
                true => spelling.replace('u', "s"),
                false => spelling.to_owned(),
            };
            self.line(&format!("r{to} = *({spelling} *)(r10 - {offset})"));
            self.holds[to] = Holds::Number;
        }
    }

    fn variable_stack_access(&mut self) {
        let index = self.register(&[Holds::Small]);
        let base = 16 + 8 * self.choices.below(6);
        self.line("r5 = r10");
        self.line(&format!("r5 += -{base}"));
        self.line(&format!("r5 += {index}"));
        self.holds[5] = Holds::Stack;
        let spelling = match self.choices.one_in(40) {
            true => "u64",
            false => "u8",
        };
        self.slots = self.slots.map(|held| match held {
            Holds::Nothing => held,
            _ => Holds::Number,
        });
        if self.choices.percent(50) {
            self.line(&format!("*({spelling} *)(r5 + 0) = 7"));
        } else {
            self.line(&format!("r4 = *({spelling} *)(r5 + 0)"));
            self.holds[4] = Holds::Number;
        }
    }

    fn condition(&mut self) -> String {
        let left = self.register(&[Holds::Number, Holds::Small]);
        let op = self.choices.pick(COMPARISONS);
        let narrow = self.choices.one_in(4);
        let width = |name: String| match narrow {
            true => name.replace('r', "w"),
            false => name,
        };
        let right = match self.choices.percent(60) {
            true => self.constant().to_string(),
            false => {
                let register = self.register(&[Holds::Number, Holds::Small]);
                width(register)
            }
        };
        format!("if {} {op} {right}", width(left))
    }

    fn branch(&mut self) {
        if self.depth > 3 {
            return self.number();
        }
        let (other, end) = (self.label(), self.label());
        let condition = self.condition();
        self.line(&format!("{condition} goto l{other}"));
        let (before, slots_before) = (self.holds, self.slots);
        self.depth += 1;
        let statements = 1 + self.choices.below(3);
        self.statements(statements);
        let (after, slots_after) = (self.holds, self.slots);
        (self.holds, self.slots) = (before, slots_before);
        if self.choices.percent(50) {
            self.line(&format!("goto l{end}"));
            self.line(&format!("l{other}:"));
            self.statements(statements);
            self.line(&format!("l{end}:"));
        } else {
            self.line(&format!("l{other}:"));
        }
        self.depth -= 1;
        if !self.choices.one_in(30) {
            for (holds, other) in self.holds.iter_mut().zip(after) {
                if *holds != other {
                    *holds = Holds::Nothing;
                }
            }
            for (held, other) in self.slots.iter_mut().zip(slots_after) {
                if *held != other {
                    *held = Holds::Nothing;
                }
            }
        }
    }

    fn bounded_loop(&mut self) {
        if self.depth > 1 {
            return self.arithmetic();
        }
        let head = self.label();
        let rounds = 1 + self.choices.below(12);
        let counter = 7 + self.choices.below(3) as usize;
        self.line(&format!("r{counter} = 0"));
        self.line(&format!("l{head}:"));
        self.depth += 2;
        self.holds[counter] = Holds::Nothing;
        let is_pointer = |holds: Holds| !matches!(holds, Holds::Number | Holds::Small);
        for (register, holds) in self.holds.iter_mut().enumerate() {
            if register != 6 && is_pointer(*holds) {
                *holds = Holds::Nothing;
            }
        }
        self.slots = self.slots.map(|held| match is_pointer(held) {
            true => Holds::Nothing,
            false => held,
        });
        let before = self.holds;
        self.in_loop = true;
        let statements = 1 + self.choices.below(3);
        self.statements(statements);
        self.in_loop = false;
        self.depth -= 2;
        for (holds, other) in self.holds.iter_mut().zip(before) {
            if *holds != other {
                *holds = Holds::Nothing;
            }
        }
        self.line(&format!("r{counter} += 1"));
        let limit = match self.choices.one_in(6) {
            true if self.holds[7] == Holds::Small && counter != 7 => "r7".to_owned(),
            _ => rounds.to_string(),
        };
        self.line(&format!("if r{counter} < {limit} goto l{head}"));
        self.holds[counter] = Holds::Number;
    }

    fn packet_access(&mut self) {
        if self.target == Target::SocketFilter {
            return self.number();
        }
        let (data, end) = self.target.packet_fields();
        let out = self.label();
        let length = 8 + self.choices.below(40);
        let context = self.register(&[Holds::Context]);
        self.line(&format!("r2 = *(u32 *)({context} + {data})"));
        self.line(&format!("r3 = *(u32 *)({context} + {end})"));
        let variable = self.choices.one_in(3);
        if variable {
            let index = self.register(&[Holds::Small]);
            self.line(&format!("r2 += {index}"));
        }
        self.line("r4 = r2");
        self.line(&format!("r4 += {length}"));
        if !self.choices.one_in(50) {
            let condition = self.choices.pick(&[">", ">=", ">"]);
            self.line(&format!("if r4 {condition} r3 goto l{out}"));
        }
        let (size, spelling) = self.choices.pick(SIZES);
        let last = (length + u32::from(self.choices.one_in(60))).saturating_sub(size);
        let at = self.choices.below(last + 1);
        if self.choices.percent(75) {
            self.line(&format!("r5 = *({spelling} *)(r2 + {at})"));
        } else {
            self.line(&format!("*({spelling} *)(r2 + {at}) = 1"));
        }
        self.line(&format!("l{out}:"));
        for register in 2..6 {
            self.holds[register] = Holds::Nothing;
        }
        self.holds[2] = Holds::Packet;
    }

    fn map_access(&mut self) {
        let key = self.register(&[Holds::Number, Holds::Small]);
        match self.choices.percent(50) {
            true => {
                let entry = self.choices.below(ENTRIES + 1);
                self.line(&format!("*(u32 *)(r10 - 4) = {entry}"));
            }
            false => self.line(&format!("*(u32 *)(r10 - 4) = {}", key.replace('w', "r"))),
        }
        self.line("r2 = r10");
        self.line("r2 += -4");
        self.line(MAP_LOAD);
        self.line("call 1");
        self.clobber();
        self.holds[0] = Holds::ValueOrNull;
        let out = self.label();
        let keep = self
            .choices
            .one_in(3)
            .then(|| 7 + self.choices.below(3) as usize);
        if let Some(keep) = keep {
            self.line(&format!("r{keep} = r0"));
            self.holds[keep] = Holds::ValueOrNull;
        }
        if !self.choices.one_in(50) {
            self.line(&format!("if r0 == 0 goto l{out}"));
        }
        let is_variable = self.choices.one_in(2);
        if is_variable {
            let index = self.register(&[Holds::Small]);
            if index != "r0" {
                self.line(&format!("r0 += {index}"));
            }
        }
        let (size, spelling) = match is_variable && !self.choices.one_in(40) {
            true => SIZES[0],
            false => self.choices.pick(SIZES),
        };
        let at = self.choices.below(VALUE_SIZE - size - 14) & !(size - 1);
        match self.choices.below(4) {
            0 => self.line(&format!("*({spelling} *)(r0 + {at}) = 3")),
            1 if !is_variable => self.line(&format!("lock *(u64 *)(r0 + {}) += r7", at & !7)),
            _ => {
                self.line(&format!("r8 = *({spelling} *)(r0 + {at})"));
                self.line("r0 = r8");
            }
        }
        self.line(&format!("l{out}:"));
        self.holds[0] = Holds::Nothing;
        self.holds[8] = Holds::Nothing;
    }

    fn clobber(&mut self) {
        self.holds[..6].fill(Holds::Nothing);
        self.holds[0] = Holds::Number;
    }

    fn helper(&mut self) {
        match (self.choices.below(4), self.target) {
            (0, Target::SchedCls | Target::SocketFilter) => {
                // skb_load_bytes(context, offset, to, length)
                let length = 4 + 4 * self.choices.below(8);
                let context = self.register(&[Holds::Context]);
                self.line(&format!("r1 = {context}"));
                let offset = self.register(&[Holds::Number, Holds::Small]);
                self.line(&format!("r2 = {offset}"));
                self.line("r3 = r10");
                self.line(&format!("r3 += -{length}"));
                match self.choices.one_in(3) {
                    true => {
                        let length = self.register(&[Holds::Small]);
                        self.line(&format!("r4 = {length}"));
                    }
                    false => self.line(&format!("r4 = {length}")),
                }
                self.line("call 26");
            }
            (1, Target::SchedCls) => {
                // csum_diff(from, from_size, to, to_size, seed)
                self.line("r1 = r10");
                self.line("r1 += -16");
                let size = 4 * self.choices.below(6);
                self.line(&format!("r2 = {size}"));
                self.line("r3 = 0");
                self.line("r4 = 0");
                self.line("r5 = 0");
                self.line("call 28");
            }
            (2, _) => self.line("call 5"),
            _ => self.line("call 8"),
        }
        self.clobber();
    }

    fn subprogram_call(&mut self) {
        if self.depth > 1 {
            return self.helper();
        }
        let number = match self.subprograms {
            0 => 0,
            count => self.choices.below(count + 1),
        };
        self.subprograms = self.subprograms.max(number + 1);
        let context = self.register(&[Holds::Context]);
        let number_to_pass = self.register(&[Holds::Number, Holds::Small]);
        self.line(&format!("r2 = {number_to_pass}"));
        if context != "r2" {
            self.line(&format!("r1 = {context}"));
        }
        self.line(&format!("call sub{number}"));
        self.clobber();
    }

    fn move_pointer(&mut self) {
        let from = self.register(&[Holds::ValueOrNull, Holds::Packet, Holds::Stack]);
        let to = self.target_register();
        self.line(&format!("r{to} = {from}"));
        if self.choices.one_in(3) {
            let value = self.choices.between(-8, 8);
            self.line(&format!("r{to} += {value}"));
        }
        self.holds[to] = Holds::Nothing;
    }

    fn anything(&mut self) {
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
}

/// Load of the array map's address into r1; the assembler has no name for maps, so the
/// slots stand as bits: `BPF_PSEUDO_MAP_IDX`, map 0.
const MAP_LOAD: &str = ".8byte 0x0000000000005118\n.8byte 0";
