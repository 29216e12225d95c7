//! A program and its native code, side by side.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

use beebox::SockFilter;
use beebox::internal::ebpf::{Callee, Insn, helper_name};
use beebox::internal::listing::{InsnRecord, Slot, SlotRecord, Source, insn_records};
use beebox::internal::native::{NativeDraft, helper_address};
use beebox::internal::text;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, MemorySizeOptions, Mnemonic,
    OpKind,
};
use serde::Serialize;

/// A program as it was given, as eBPF, and as native code.
pub(super) struct Sides<'a> {
    /// The classic program, where it was one.
    pub(super) classic: Option<&'a [SockFilter]>,
    /// The eBPF instructions, without second slots of 64-bit immediates.
    pub(super) slots: Vec<Slot>,
    /// The code, linked at address 0.
    pub(super) code: &'a [u8],
    /// Its pieces in order, each with the slot that it comes from.
    pub(super) pieces: Vec<(Option<usize>, Range<usize>)>,
}

/// One line of native code.
struct Line {
    offset: usize,
    len: usize,
    text: String,
    /// Target of a jump or call.
    target: Option<String>,
}

/// The eBPF instructions to the left, each beside the native code that comes from
/// it, in the order of that; and, before them, the classic ones. An instruction
/// may stand in several places, and what stands beside none begins or ends a
/// function, or stands behind it. Then those that became nothing, and the sums.
pub(super) fn listing(sides: &Sides<'_>) -> String {
    let lines = sides.lines();
    let mut lines = lines.iter().peekable();
    let mut rows = vec![sides.heading()];
    let mut beside = None;
    let mut source: Option<&Source> = None;
    for (slot, range) in &sides.pieces {
        let mut left = slot.and_then(|slot| sides.slot(slot));
        if let Some(line) = left.and_then(|slot| slot.source.as_deref())
            && !source.is_some_and(|shown| shown.is_line_of(line))
        {
            source = Some(line);
            rows.push(sides.comment(line.comment()));
        }
        while let Some(line) = lines.next_if(|line| line.offset < range.end) {
            rows.push(sides.row(left.take(), Some(line), &mut beside));
        }
    }
    let sizes = sides.sizes();
    for slot in sides.slots.iter().filter(|slot| sizes[slot.index] == 0) {
        rows.push(sides.row(Some(slot), None, &mut beside));
    }
    let mut out = columns(&rows);
    let _ = write!(out, "\n{}\n", sides.summary());
    out
}

/// Rows of cells under each other.
fn columns(rows: &[Vec<String>]) -> String {
    let cells = rows.first().map_or(0, Vec::len);
    let width = |cell: usize| rows.iter().map(|row| row[cell].chars().count()).max();
    let widths: Vec<usize> = (0..cells).map(|cell| width(cell).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        let _ = writeln!(out, "{}", line.join("   ").trim_end());
    }
    out
}

impl<'a> Sides<'a> {
    /// An eBPF program beside a draft of its native code.
    pub(super) fn of(
        classic: Option<&'a [SockFilter]>,
        slots: Vec<Slot>,
        draft: &'a NativeDraft,
    ) -> Sides<'a> {
        Sides {
            classic,
            slots,
            code: draft.bytes(),
            pieces: draft.pieces().collect(),
        }
    }
}

impl Sides<'_> {
    fn slot(&self, index: usize) -> Option<&Slot> {
        let found = self.slots.binary_search_by_key(&index, |slot| slot.index);
        found.ok().map(|at| &self.slots[at])
    }

    /// The slot that the code at an offset comes from.
    fn slot_at(&self, offset: usize) -> Option<&Slot> {
        let after = self
            .pieces
            .partition_point(|(_, range)| range.end <= offset);
        self.slot(self.pieces.get(after)?.0?)
    }

    /// Bytes of native code that come from each slot.
    fn sizes(&self) -> Vec<usize> {
        let count = self.slots.last().map_or(0, |slot| slot.index + 1);
        let mut sizes = vec![0; count];
        for (slot, range) in &self.pieces {
            if let Some(size) = slot.and_then(|slot| sizes.get_mut(slot)) {
                *size += range.len();
            }
        }
        sizes
    }

    /// A row that only says something about the next ones.
    fn comment(&self, text: String) -> Vec<String> {
        let classic = self.classic.map(|_| String::new());
        classic.into_iter().chain([text, String::new()]).collect()
    }

    fn heading(&self) -> Vec<String> {
        let classic = self.classic.map(|_| "classic");
        let words = classic.into_iter().chain(["eBPF", "native"]);
        words.map(str::to_owned).collect()
    }

    /// One row; `beside` is the classic instruction that was shown last, which is
    /// not shown again.
    fn row(
        &self,
        slot: Option<&Slot>,
        line: Option<&Line>,
        beside: &mut Option<usize>,
    ) -> Vec<String> {
        let classic = self.classic.map(|program| {
            let origin = slot.and_then(|slot| slot.origin);
            let shown = origin.filter(|_| *beside != origin);
            if slot.is_some() {
                *beside = origin;
            }
            shown.map_or(String::new(), |index| classic_line(program, index))
        });
        let ebpf = slot.map_or(String::new(), Slot::line);
        let digits = format!("{:x}", self.code.len()).len();
        let native = match line {
            Some(Line {
                offset,
                text,
                target,
                ..
            }) => {
                let target = target
                    .as_ref()
                    .map_or(String::new(), |name| format!(" <{name}>"));
                format!("{offset:digits$x}: {text}{target}")
            }
            None => format!("{:>1$}", "-", digits + 3),
        };
        classic.into_iter().chain([ebpf, native]).collect()
    }

    /// The sizes, summed.
    fn summary(&self) -> String {
        let (all, insns) = (self.code.len(), self.slots.len());
        let of_slots: usize = self.sizes().iter().sum();
        format!(
            "{insns} eBPF instructions, {all} bytes of native code: {:.1} an instruction, \
             and {} where functions begin and end",
            of_slots as f64 / insns as f64,
            all - of_slots,
        )
    }

    /// The native code in lines.
    fn lines(&self) -> Vec<Line> {
        let (insns, data) = self.decoded();
        // The last of the data are the addresses of what is called.
        let table = insns.iter().filter_map(address_in_table).min();
        let table = table.unwrap_or(self.code.len());
        let called = self.called();
        let name_of = |at: usize| {
            let address = self.code.get(at..at + 8)?;
            let address = u64::from_le_bytes(address.try_into().ok()?);
            called.get(&address).copied()
        };
        let starts: HashMap<usize, usize> = self
            .pieces
            .iter()
            .filter_map(|(slot, range)| Some((range.start, (*slot)?)))
            .collect();
        let mut formatter = formatter();
        let mut lines = Vec::new();
        for insn in &insns {
            let mut text = String::new();
            formatter.format(insn, &mut text);
            let jumps = insn.op_count() == 1 && insn.op0_kind() == OpKind::NearBranch64;
            let target = match address_in_table(insn) {
                Some(at) => {
                    let caller = self.slot_at(insn.ip() as usize).and_then(Slot::callee);
                    Some(
                        caller
                            .or_else(|| name_of(at))
                            .unwrap_or("outside")
                            .to_owned(),
                    )
                }
                None if jumps => starts
                    .get(&(insn.near_branch64() as usize))
                    .map(usize::to_string),
                None => None,
            };
            lines.push(Line {
                offset: insn.ip() as usize,
                len: insn.len(),
                text,
                target,
            });
        }
        lines.extend((data..table).step_by(8).map(|offset| {
            let row = &self.code[offset..table.min(offset + 8)];
            Line {
                offset,
                len: row.len(),
                text: row
                    .iter()
                    .fold("db".to_owned(), |text, byte| format!("{text} {byte:02x}")),
                target: None,
            }
        }));
        lines.extend((table..self.code.len()).step_by(8).map(|offset| Line {
            offset,
            len: 8.min(self.code.len() - offset),
            text: "dq".to_owned(),
            target: Some(name_of(offset).unwrap_or("outside").to_owned()),
        }));
        lines
    }

    /// The instructions, and the offset of the data after them: the first address that an
    /// instruction refers to.
    fn decoded(&self) -> (Vec<Instruction>, usize) {
        let mut data = self.code.len();
        let mut insns = Vec::new();
        for insn in Decoder::with_ip(64, self.code, 0, DecoderOptions::NONE) {
            if insn.ip() as usize >= data {
                break;
            }
            if insn.is_ip_rel_memory_operand() {
                data = data.min(insn.ip_rel_memory_address() as usize);
            }
            insns.push(insn);
        }
        (insns, data)
    }

    /// Called functions by address.
    fn called(&self) -> HashMap<u64, &'static str> {
        let numbers = self.slots.iter().filter_map(|slot| match slot.insn {
            Insn::Call(Callee::Helper(number)) => Some(number),
            _ => None,
        });
        numbers
            .filter_map(|number| Some((helper_address(number)?, helper_name(number)?)))
            .collect()
    }
}

/// A line of `tcpdump -d`.
fn classic_line(program: &[SockFilter], index: usize) -> String {
    let line = text::dump_line(index, program[index]).replace('\t', " ");
    line.trim_end().to_owned()
}

/// Location of the address that an instruction calls.
fn address_in_table(insn: &Instruction) -> Option<usize> {
    let calls = insn.mnemonic() == Mnemonic::Call;
    let is_relative = insn.is_ip_rel_memory_operand();
    (calls && is_relative).then(|| insn.ip_rel_memory_address() as usize)
}

/// Intel's syntax, in lower case, with numbers as eBPF's text has them.
fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_show_branch_size(false);
    options.set_branch_leading_zeros(false);
    options.set_memory_size_options(MemorySizeOptions::Minimal);
    formatter
}

#[derive(Serialize)]
struct Record<'s> {
    /// The classic program.
    #[serde(skip_serializing_if = "Option::is_none")]
    insns: Option<Vec<InsnRecord>>,
    ebpf: Vec<SizedRecord<'s>>,
    native: Vec<LineRecord>,
    /// Bytes of native code.
    bytes: usize,
    /// Native instructions that belong to no eBPF instruction.
    bytes_between: usize,
    bytes_per_insn: f64,
}

#[derive(Serialize)]
struct SizedRecord<'s> {
    #[serde(flatten)]
    slot: SlotRecord<'s>,
    /// Bytes of native code that come from it.
    bytes: usize,
}

#[derive(Serialize)]
struct LineRecord {
    /// Bytes from the start of the code.
    offset: usize,
    /// The eBPF instruction that it comes from.
    slot: Option<usize>,
    /// The bytes in hexadecimal digits.
    bytes: String,
    text: String,
    /// The eBPF instruction that it jumps to, or the name of what it calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// A program and its native code as one line of JSON.
pub(super) fn json(sides: &Sides<'_>) -> Vec<u8> {
    crate::stdout::json(&record(sides))
}

/// A program and its native code, for programs.
pub(super) fn record<'s>(sides: &'s Sides<'_>) -> impl Serialize + 's {
    let sizes = sides.sizes();
    let ebpf: Vec<SizedRecord<'_>> = sides
        .slots
        .iter()
        .map(|slot| SizedRecord {
            slot: slot.record(),
            bytes: sizes[slot.index],
        })
        .collect();
    let slot_of = |offset: usize| {
        let after = sides
            .pieces
            .partition_point(|(_, range)| range.end <= offset);
        sides.pieces.get(after)?.0
    };
    let native = sides.lines().into_iter().map(|line| {
        let bytes = &sides.code[line.offset..line.offset + line.len];
        LineRecord {
            offset: line.offset,
            slot: slot_of(line.offset),
            bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: line.text,
            target: line.target,
        }
    });
    let of_slots: usize = sizes.iter().sum();
    Record {
        insns: sides.classic.map(insn_records),
        native: native.collect(),
        bytes: sides.code.len(),
        bytes_between: sides.code.len() - of_slots,
        bytes_per_insn: of_slots as f64 / ebpf.len() as f64,
        ebpf,
    }
}
