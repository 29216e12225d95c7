//! Classic and converted code, side by side.

use std::fmt::Write;

use crate::internal::classic::{Converted, SK_BUFF};
use crate::internal::ebpf::{Callee, Insn, Reg, helper_name};
use crate::internal::text;
use crate::{Rules, SockFilter};
use serde::Serialize;

use super::slot::{Slot, SlotRecord};

/// The register of the context in converted programs.
const CONTEXT: Reg = Reg::R6;

/// Both programs in two columns: the converted instructions to the right of each classic
/// one. The prologue is beside no classic instruction. A classic instruction without
/// converted ones is dead or unreachable.
pub fn converted_text(program: &[SockFilter], converted: &Converted) -> String {
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
    let mut slots = converted_slots(converted).peekable();
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

/// The converted instructions; the second slots of 64-bit immediates belong to
/// the first ones.
pub fn converted_slots(converted: &Converted) -> impl Iterator<Item = Slot> {
    let pairs = converted.insns().iter().zip(converted.origin());
    let sees_packets = converted.rules() != Rules::Seccomp;
    pairs
        .enumerate()
        .filter(|(_, (insn, _))| !matches!(insn, Insn::Imm64High))
        .map(move |(index, (&insn, origin))| Slot {
            index,
            origin,
            insn,
            name: name(insn, sees_packets).map(str::to_owned),
            source: None,
        })
}

/// The name of what it calls, or of what it loads from its context.
fn name(insn: Insn, sees_packets: bool) -> Option<&'static str> {
    match insn {
        Insn::Call(Callee::Helper(number)) => helper_name(number),
        Insn::Load { base, off, .. } if base == CONTEXT && sees_packets => {
            let mut fields = SK_BUFF.iter();
            fields
                .find(|field| field.offset == off)
                .map(|field| field.name)
        }
        _ => None,
    }
}

/// Classic and converted code as JSON.
#[derive(Serialize)]
pub struct ConvertedRecord<'s> {
    insns: Vec<InsnRecord>,
    converted: Vec<SlotRecord<'s>>,
}

impl<'s> ConvertedRecord<'s> {
    /// A classic program and the instructions of [`converted_slots`] that it becomes.
    pub fn new(program: &[SockFilter], slots: &'s [Slot]) -> ConvertedRecord<'s> {
        ConvertedRecord {
            insns: insn_records(program),
            converted: slots.iter().map(Slot::record).collect(),
        }
    }
}

/// A classic instruction as JSON.
#[derive(Serialize)]
pub struct InsnRecord {
    index: usize,
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
    /// The line of `tcpdump -d`, without the number.
    text: String,
}

impl InsnRecord {
    fn new(index: usize, raw: SockFilter) -> InsnRecord {
        let line = text::dump_line(index, raw);
        let (_, words) = line.split_once(' ').unwrap_or_default();
        InsnRecord {
            index,
            code: raw.code,
            jt: raw.jt,
            jf: raw.jf,
            k: raw.k,
            text: words.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}

/// Every instruction of a program in JSON.
pub fn insn_records(program: &[SockFilter]) -> Vec<InsnRecord> {
    let numbered = program.iter().enumerate();
    numbered
        .map(|(index, &raw)| InsnRecord::new(index, raw))
        .collect()
}
