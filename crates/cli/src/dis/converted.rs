//! Classic and converted code, side by side.

use std::fmt::Write;

use beebox::internal::classic::{Converted, SK_BUFF};
use beebox::internal::ebpf::{Callee, Insn, Reg, helper_name};
use beebox::internal::text;
use beebox::{Rules, SockFilter};
use serde::Serialize;

use super::slot::{Slot, SlotRecord};
use crate::program_output::{self, InsnRecord};

/// The register of the context in converted programs.
const CONTEXT: Reg = Reg::R6;

/// Both programs in two columns: the converted instructions to the right of each classic
/// one. The prologue is beside no classic instruction. A classic instruction without
/// converted ones is dead or unreachable.
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

#[derive(Serialize)]
struct Record<'s> {
    insns: Vec<InsnRecord>,
    converted: Vec<SlotRecord<'s>>,
}

pub(super) fn json(program: &[SockFilter], converted: &Converted) -> Vec<u8> {
    let slots: Vec<Slot> = slots(converted).collect();
    crate::stdout::json(&Record {
        insns: program_output::records(program),
        converted: slots.iter().map(Slot::record).collect(),
    })
}
