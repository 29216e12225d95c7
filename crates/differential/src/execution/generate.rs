//! Generated programs that the verifier accepts: operations on maps, packet, context and
//! stack, changes of the packet, arithmetic, loops, local calls and callbacks, whose results
//! do not depend on addresses or on stack that was not written.
//!
//! `r6` is the context, `r7` the packet, `r8` counts loops, `r9` is the sum of all results;
//! 40 bytes of the packet are proven and 32 bytes of stack written. Below are the ends of a
//! packet (36 bytes at `r10 - 80`) and the counters of loops around statements.

use std::fmt::Write as _;
use std::sync::Arc;

use btf::Btf;
use isa::classic::{LL_OFFSET, NET_OFFSET};
use isa::ebpf::{Callee, Imm64, Insn, decode};
use program::{FuncInfo, MapDef, Program};
use spec::programs::ProgramType;

mod atomics;
mod branches;
mod callbacks;
mod calls;
mod containers;
mod headers;
mod numbers;
mod packets;
mod sockets;
mod tails;
mod timers;

use super::maps::{self, ALL, ARRAY, CONSTANTS, DATA, LPM, VARIABLES};
use crate::registry::fields::with_callback_and_lock;
use testkit::ebpf::Choices;
use testkit::verifier::assembled;

/// Features of generated programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    kinds: &'static [ProgramType],
    /// Clock and randomness.
    has_machine: bool,
}

impl Features {
    /// Everything.
    pub const ALL: Features = Features {
        kinds: &[
            ProgramType::Xdp,
            ProgramType::SchedCls,
            ProgramType::LwtXmit,
        ],
        has_machine: true,
    };
    /// What gives the same in every test run of the kernel: packets that begin with the
    /// link-layer header.
    pub const WITNESSED: Features = Features {
        kinds: &[ProgramType::Xdp, ProgramType::SchedCls],
        has_machine: false,
    };
}

/// Generated programs.
#[derive(Debug)]
pub struct Generated {
    /// Their text.
    pub text: String,
    /// The program, and those that it calls through the program array; or why there are none.
    pub programs: Result<Vec<Program>, String>,
}

/// Generates a program, and those that it calls.
pub fn generate(choices: &mut Choices<'_>, features: Features) -> Generated {
    let kind = choices.pick(features.kinds);
    let mut texts = Vec::new();
    // Those of `maps::TARGETS`.
    for number in 0..3 {
        let mut writer = Writer {
            choices,
            features,
            kind,
            text: String::new(),
            callbacks: String::new(),
            labels: 0,
            is_target: number > 0,
            has_tail_calls: false,
            depth: 0,
        };
        writer.program();
        let (text, is_alone) = (writer.text, !writer.has_tail_calls);
        texts.push(text);
        if number == 0 && is_alone {
            break;
        }
    }
    let maps = maps::definitions();
    let programs = texts.iter().map(|text| build(kind, text, maps.clone()));
    let programs = programs.collect();
    let text = texts.join("\n; what it calls:\n");
    Generated { text, programs }
}

/// A program of this text, in which every function but the first may be a callback.
pub fn build(kind: ProgramType, text: &str, maps: Vec<Arc<MapDef>>) -> Result<Program, String> {
    let insns = assembled(text)?;
    let functions = functions(&decode(&insns));
    let types = with_callback_and_lock();
    let [main, callback] = types.functions;
    let types = Btf::parse(types.blob).map_err(|error| error.to_string())?;
    let function = |&insn: &u32| FuncInfo {
        insn,
        type_id: if insn == 0 { main } else { callback },
    };
    Program::builder(kind, insns)
        .maps(maps)
        .btf(Some(Arc::new(types.into_owned())))
        .func_info(functions.iter().map(function).collect())
        .license("GPL")
        .build()
        .map_err(|invalid| invalid.to_string())
}

/// First slots of the functions, ascending.
fn functions(insns: &[Insn]) -> Vec<u32> {
    let called = (1i64..).zip(insns).filter_map(|(next, insn)| match insn {
        Insn::Call(Callee::Local(off)) => Some(next + i64::from(*off)),
        Insn::LoadImm64 {
            imm: Imm64::Func { off, .. },
            ..
        } => Some(next + i64::from(*off)),
        _ => None,
    });
    let mut starts: Vec<u32> = called.map(|start| start as u32).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Adds the result in `r0` to the sum.
const MIX: &str = "r9 *= 31\nr9 += r0\n";

struct Writer<'c, 'b> {
    choices: &'c mut Choices<'b>,
    features: Features,
    kind: ProgramType,
    text: String,
    /// The functions that helpers call.
    callbacks: String,
    labels: u32,
    /// It is called by a program, and starts no timers.
    is_target: bool,
    /// It calls programs.
    has_tail_calls: bool,
    /// Branches and loops around a statement.
    depth: u32,
}

impl Writer<'_, '_> {
    /// Offsets of the packet's bounds in the context.
    fn bounds(&self) -> (u32, u32) {
        match self.kind {
            ProgramType::Xdp => (0, 4),
            _ => (76, 80),
        }
    }

    fn program(&mut self) {
        let (data, end) = self.bounds();
        self.text += "r6 = r1\nr9 = 0\n";
        self.packet();
        for slot in 1..=4 {
            let value = self.choices.below(1000);
            let _ = writeln!(self.text, "*(u64 *)(r10 - {}) = {value}", 8 * slot);
        }
        // All functions are called, so that the verifier reaches them.
        self.text += "r1 = r6\nr2 = 3\ncall length\nr9 = r0\n";
        self.call_mix();
        let most = match self.choices.one_in(10) {
            _ if self.is_target => 4,
            true => 50,
            false => 12,
        };
        for _ in 0..3 + self.choices.below(most) {
            self.statement();
        }
        let _ = write!(
            self.text,
            "*(u64 *)(r7 + 14) = r9\nr0 = r9\nr0 &= 0x7fff\nexit\nshort:\nr0 = 2\nexit\n\
             length:\nr3 = *(u32 *)(r1 + {data})\nr0 = *(u32 *)(r1 + {end})\nr0 -= r3\n\
             *(u64 *)(r10 - 8) = r2\nr1 = *(u32 *)(r10 - 8)\nr0 *= r1\nexit\n\
             mix:\nr0 = r1\nr0 *= 7\nr0 += r2\nr0 ^= r3\nw0 -= w4\nr5 >>= 3\nr0 += r5\n\
             *(u64 *)(r10 - 40) = r0\nr0 = *(u16 *)(r10 - 38)\nr1 = *(u32 *)(r10 - 40)\n\
             r0 <<= 32\nr0 |= r1\nexit\n"
        );
        self.text += &self.callbacks;
    }

    /// The packet in `r7`, with 40 bytes proven.
    fn packet(&mut self) {
        let (data, end) = self.bounds();
        let _ = write!(
            self.text,
            "r7 = *(u32 *)(r6 + {data})\nr1 = *(u32 *)(r6 + {end})\nr2 = r7\nr2 += 40\n\
             if r2 > r1 goto short\n"
        );
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn statement(&mut self) {
        match self.choices.below(56) {
            0..=2 => self.lookup(),
            3 | 4 => self.update(),
            5 => self.delete(),
            6 => self.checksum(),
            7 => self.context(),
            8 | 9 => self.arithmetic(),
            10 => self.constants(),
            11 => self.variables(),
            12 => self.stack(),
            13 => self.repetition(),
            14 | 15 => self.rounds(),
            16 => self.visits(),
            17 => self.packet_load(),
            18..=20 => self.packet_change(),
            21 | 22 => self.queue(),
            23 => self.record(),
            24 | 25 => self.inner_lookup(),
            26 | 27 => self.call(),
            28..=30 => self.locked(),
            31 => self.filter(),
            32 | 33 => self.tail(),
            34 => self.event(),
            35 => self.other_cpu(),
            36..=38 => self.atomics(),
            39 | 40 => self.headers(),
            41 => self.options(),
            42..=44 => self.timer(),
            45 | 46 => self.socket(),
            47 => self.tail_call(),
            48 => self.circles(),
            49 | 50 => self.branch(),
            51 => self.again(),
            _ => self.call_mix(),
        }
    }

    /// A small number from the packet in `r1`.
    fn number(&mut self) {
        let byte = 22 + self.choices.below(18);
        let _ = writeln!(self.text, "r1 = *(u8 *)(r7 + {byte})\nr1 &= 7");
    }

    /// A key at `r10 - 8`, a map in `r1`, the key's address in `r2`; the map.
    fn map_and_key(&mut self) -> u32 {
        let map = self.choices.pick(ALL);
        match self.choices.one_in(4) {
            true => {
                let number = self.choices.below(8);
                let _ = writeln!(self.text, "r1 = {number}");
            }
            false => self.number(),
        }
        let prefix = self.choices.pick(&[0, 8, 32]);
        let _ = match map {
            LPM => writeln!(
                self.text,
                "*(u32 *)(r10 - 8) = {prefix}\n*(u32 *)(r10 - 4) = r1"
            ),
            _ => writeln!(self.text, "*(u32 *)(r10 - 8) = r1"),
        };
        let pointer = 0x5118u64 | u64::from(map) << 32;
        let _ = write!(
            self.text,
            ".8byte {pointer:#x}\n.8byte 0\nr2 = r10\nr2 += -8\n"
        );
        map
    }

    fn lookup(&mut self) {
        self.map_and_key();
        let (label, number) = (self.label(), self.choices.below(1000));
        let _ = write!(
            self.text,
            "call 1\nif r0 == 0 goto null{label}\nr1 = *(u64 *)(r0 + 8)\nr9 *= 31\nr9 += r1\n\
             r9 += 1\nlock *(u64 *)(r0 + 8) += r9\n*(u32 *)(r0 + 4) = {number}\nnull{label}:\n"
        );
    }

    fn update(&mut self) {
        self.text += "*(u64 *)(r10 - 24) = r9\n";
        self.map_and_key();
        let flags = self.choices.pick(&[0, 0, 1, 2, 9]);
        let _ = write!(
            self.text,
            "r3 = r10\nr3 += -24\nr4 = {flags}\ncall 2\n{MIX}"
        );
    }

    fn delete(&mut self) {
        self.map_and_key();
        let _ = write!(self.text, "call 3\n{MIX}");
    }

    fn checksum(&mut self) {
        let _ = write!(
            self.text,
            "r1 = r10\nr1 += -24\nr2 = 16\nr3 = r10\nr3 += -8\nr4 = 4\nr5 = r9\ncall 28\n{MIX}"
        );
    }

    fn context(&mut self) {
        if self.kind == ProgramType::SchedCls {
            self.text += "r1 = *(u8 *)(r6 + 9)\nr9 += r1\n*(u32 *)(r6 + 8) = r9\n\
                          r1 = *(u32 *)(r6 + 8)\n*(u32 *)(r6 + 52) = r1\n";
        }
        let _ = write!(self.text, "r1 = r6\nr2 = r9\ncall length\n{MIX}");
    }

    /// The value of a map in `r2`, at an offset.
    fn value(&mut self, map: u32, offset: u32) {
        let first = 0x6218u64 | u64::from(map) << 32;
        let second = u64::from(offset) << 32;
        let _ = write!(self.text, ".8byte {first:#x}\n.8byte {second:#x}\n");
    }

    /// A packet load of classic BPF, mostly inside the packet; a call of a function in
    /// programs that have none.
    fn packet_load(&mut self) {
        if self.kind != ProgramType::SchedCls {
            return self.call_mix();
        }
        let size = self.choices.pick(&["u8", "u16", "u32"]);
        let from = self
            .choices
            .pick(&[0, 0, NET_OFFSET as i32, LL_OFFSET as i32]);
        let offset = match self.choices.one_in(6) {
            true => self.choices.pick(&[59, 100, 1 << 20, -1, -4096]),
            false => from + self.choices.between(0, 30),
        };
        let load = match self.choices.one_in(2) {
            true => format!("r0 = *({size} *)skb[{offset}]\n"),
            false => {
                self.number();
                let index = self.choices.pick(&["r1", "r2", "r3", "r5"]);
                let offset = match offset {
                    0 => String::new(),
                    1.. => format!(" + {offset}"),
                    _ => format!(" - {}", offset.unsigned_abs()),
                };
                format!("{index} = r1\nr0 = *({size} *)skb[{index}{offset}]\n")
            }
        };
        self.text += &load;
        self.text += MIX;
    }

    /// A frozen number, whose comparison has one outcome.
    fn constants(&mut self) {
        let offset = 4 * self.choices.below(DATA / 4 - 1);
        let label = self.label();
        self.value(CONSTANTS, offset);
        let (size, bound) =
            self.choices
                .pick(&[("u8", 128), ("u16", 0x8000), ("u32", 0x7000_0000)]);
        let _ = write!(
            self.text,
            "r1 = *({size} *)(r2 + 0)\nr9 += r1\nif r1 > {bound} goto high{label}\nr9 += 5\n"
        );
        self.number();
        let _ = write!(self.text, "r9 *= r1\nhigh{label}:\n");
    }

    /// A variable, at a constant or a variable offset.
    fn variables(&mut self) {
        let offset = 8 * self.choices.below(DATA / 8 - 1);
        match self.choices.one_in(2) {
            true => {
                self.value(VARIABLES, offset);
                self.text += "r1 = *(u64 *)(r2 + 0)\nr9 += r1\nr9 += 3\n*(u32 *)(r2 + 4) = r9\n\
                              lock *(u64 *)(r2 + 0) ^= r9\n";
            }
            false => {
                self.number();
                self.value(VARIABLES, 0);
                self.text += "r2 += r1\nr1 = *(u8 *)(r2 + 1)\nr9 += r1\n*(u8 *)(r2 + 3) = r9\n";
            }
        }
    }

    /// Stack at a variable offset.
    fn stack(&mut self) {
        self.number();
        self.text += "r1 &= 3\nr1 <<= 3\nr2 = r10\nr2 += -32\nr2 += r1\nr3 = *(u64 *)(r2 + 0)\n\
                      r9 += r3\n*(u64 *)(r2 + 0) = r9\n";
    }

    /// A loop around a lookup in the array, by its counter.
    fn repetition(&mut self) {
        let (label, rounds) = (self.label(), 1 + self.choices.below(6));
        let pointer = 0x5118u64 | u64::from(ARRAY) << 32;
        let _ = write!(
            self.text,
            "r8 = 0\nloop{label}:\n*(u32 *)(r10 - 8) = r8\n.8byte {pointer:#x}\n.8byte 0\n\
             r2 = r10\nr2 += -8\ncall 1\nif r0 == 0 goto none{label}\nr1 = *(u32 *)(r0 + 0)\n\
             r9 ^= r1\nr9 += r8\n*(u16 *)(r0 + 2) = r9\nnone{label}:\nr8 += 1\n\
             if r8 < {rounds} goto loop{label}\n"
        );
    }

    /// A local call with five arguments.
    fn call_mix(&mut self) {
        let byte = 22 + self.choices.below(10);
        let imm = self.choices.between(-100_000, 100_000);
        let _ = write!(
            self.text,
            "r1 = r9\nr2 = *(u64 *)(r7 + {byte})\nr3 = {imm}\nr4 = *(u32 *)(r10 - 20)\n\
             r5 = *(u64 *)(r10 - 32)\ncall mix\n{MIX}"
        );
    }
}
