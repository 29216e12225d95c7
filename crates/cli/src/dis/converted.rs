//! Classic and converted code, side by side.

use std::fmt::Write;

use classic::{Converted, Rules, text};
use isa::classic::SockFilter;
use isa::ebpf::{Callee, Flow, Insn, Reg};
use serde::Serialize;
use spec::{calls, context};

use crate::program_output::{self, InsnRecord};

/// Where converted programs keep their context.
const CONTEXT: Reg = Reg::R6;

/// Both programs in two columns: to the right of each classic instruction what
/// became of it. What stands beside none is the prologue; an instruction beside
/// nothing has no effect that anything reads, or is never reached.
pub(super) fn listing(program: &[SockFilter], converted: &Converted) -> String {
    let classic: Vec<String> = (0..program.len())
        .map(|index| text::dump_line(index, program[index]).replace('\t', " "))
        .collect();
    let width = classic.iter().map(|line| line.trim_end().len()).max();
    let width = width.unwrap_or(0);
    let mut out = String::new();
    let mut row = |left: &str, right: &str| {
        let left = left.trim_end();
        let _ = writeln!(out, "{}", format!("{left:<width$}   {right}").trim_end());
    };
    row("classic", "converted");
    let mut slots = slots(converted).peekable();
    while let Some(slot) = slots.next_if(|slot| slot.origin.is_none()) {
        row("", &slot.line());
    }
    for (index, line) in classic.iter().enumerate() {
        let is_mine = |slot: &Slot| slot.origin == Some(index);
        match slots.next_if(is_mine) {
            Some(first) => row(line, &first.line()),
            None => row(line, "      -"),
        }
        while let Some(slot) = slots.next_if(is_mine) {
            row("", &slot.line());
        }
    }
    out
}

/// One instruction of an eBPF program.
pub(super) struct Slot {
    pub(super) index: usize,
    /// The classic instruction that it comes from.
    pub(super) origin: Option<usize>,
    pub(super) insn: Insn,
    /// Whether its context is `struct __sk_buff`.
    pub(super) sees_packets: bool,
}

/// The converted instructions; the second slots of 64-bit immediates belong to
/// the first ones.
pub(super) fn slots(converted: &Converted) -> impl Iterator<Item = Slot> {
    let pairs = converted.insns().iter().zip(converted.origin());
    let sees_packets = converted.rules() != Rules::Seccomp;
    pairs
        .enumerate()
        .filter(|(_, (insn, _))| !matches!(insn, Insn::Imm64High))
        .map(move |(index, (&insn, origin))| Slot {
            index,
            origin,
            insn,
            sees_packets,
        })
}

impl Slot {
    /// The instruction, with its number and what it jumps to, calls or loads.
    pub(super) fn line(&self) -> String {
        let Slot { index, insn, .. } = self;
        match (self.target(), self.name()) {
            (Some(target), _) => format!("{index:5}: {insn} <{target}>"),
            (None, Some(name)) => format!("{index:5}: {insn} <{name}>"),
            (None, None) => format!("{index:5}: {insn}"),
        }
    }

    pub(super) fn record(&self) -> SlotRecord {
        SlotRecord {
            index: self.index,
            origin: self.origin,
            text: self.insn.to_string(),
            target: self.target(),
            name: self.name(),
        }
    }

    /// The number of the instruction that it jumps to.
    fn target(&self) -> Option<i64> {
        match self.insn.flow() {
            Flow::Branch(skip) | Flow::Goto(skip) => Some(self.index as i64 + 1 + i64::from(skip)),
            _ => None,
        }
    }

    /// The name of what it calls, or of what it loads from its context.
    fn name(&self) -> Option<&'static str> {
        match self.insn {
            Insn::Call(Callee::Helper(number)) => calls::name(number),
            Insn::Load { base, off, .. } if base == CONTEXT && self.sees_packets => {
                let mut fields = context::SK_BUFF.iter();
                fields
                    .find(|field| field.offset == off)
                    .map(|field| field.name)
            }
            _ => None,
        }
    }
}

#[derive(Serialize)]
struct Record {
    insns: Vec<InsnRecord>,
    converted: Vec<SlotRecord>,
}

#[derive(Serialize)]
pub(super) struct SlotRecord {
    index: usize,
    /// The classic instruction that it comes from; null in the prologue.
    origin: Option<usize>,
    text: String,
    /// The instruction that it jumps to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<i64>,
    /// What it calls, or loads from its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
}

pub(super) fn json(program: &[SockFilter], converted: &Converted) -> Vec<u8> {
    let converted = slots(converted).map(|slot| slot.record()).collect();
    program_output::json(&Record {
        insns: program_output::records(program),
        converted,
    })
}
