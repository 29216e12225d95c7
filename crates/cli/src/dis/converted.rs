//! Classic and converted code, side by side.

use std::fmt::Write;

use classic::{Converted, text};
use isa::classic::SockFilter;
use isa::ebpf::{Flow, Insn};
use serde::Serialize;

use crate::program_output::{self, InsnRecord};

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

/// One instruction of the converted program.
struct Slot {
    index: usize,
    origin: Option<usize>,
    insn: Insn,
}

/// The converted instructions; the second slots of 64-bit immediates belong to
/// the first ones.
fn slots(converted: &Converted) -> impl Iterator<Item = Slot> {
    let pairs = converted.insns().iter().zip(converted.origin());
    pairs
        .enumerate()
        .filter(|(_, (insn, _))| !matches!(insn, Insn::Imm64High))
        .map(|(index, (&insn, origin))| Slot {
            index,
            origin,
            insn,
        })
}

impl Slot {
    fn line(&self) -> String {
        format!("{:5}: {}", self.index, self.text())
    }

    /// The instruction and, for a jump, the number of its target.
    fn text(&self) -> String {
        match self.insn.flow() {
            Flow::Branch(skip) | Flow::Goto(skip) => {
                let target = self.index as i64 + 1 + i64::from(skip);
                format!("{} <{target}>", self.insn)
            }
            _ => self.insn.to_string(),
        }
    }
}

#[derive(Serialize)]
struct Record {
    insns: Vec<InsnRecord>,
    converted: Vec<SlotRecord>,
}

#[derive(Serialize)]
struct SlotRecord {
    index: usize,
    /// The classic instruction that it comes from; null in the prologue.
    origin: Option<usize>,
    text: String,
}

pub(super) fn json(program: &[SockFilter], converted: &Converted) -> Vec<u8> {
    let converted = slots(converted)
        .map(|slot| SlotRecord {
            index: slot.index,
            origin: slot.origin,
            text: slot.text(),
        })
        .collect();
    program_output::json(&Record {
        insns: program_output::records(program),
        converted,
    })
}
