//! A program and its native code, side by side.
//!
//! The caller brings a disassembler of x86-64, which the library does not have: a function from
//! machine code at address 0 to its instructions.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::ops::Range;

use isa::classic::SockFilter;
use isa::ebpf::{Callee, Insn};
use serde::Serialize;

use super::{InsnRecord, Slot, SlotRecord, Source, insn_records};
use crate::internal::ebpf::helper_name;
use crate::internal::native::{NativeDraft, helper_address};
use crate::internal::text;

/// An instruction of native code, as a disassembler gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeInsn {
    /// Offset in bytes from the start of the code.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
    /// Text.
    pub text: String,
    /// True for a call.
    pub is_call: bool,
    /// Offset of the memory that it refers to, relative to the instruction pointer.
    pub refers_to: Option<usize>,
    /// Offset that it jumps to or calls.
    pub branches_to: Option<usize>,
}

/// A program as it was given, as eBPF, and as native code.
pub struct NativeListing<'a> {
    /// The classic program, where it was one.
    pub classic: Option<&'a [SockFilter]>,
    /// The eBPF instructions, without second slots of 64-bit immediates.
    pub slots: Vec<Slot>,
    /// The code, linked at address 0.
    pub code: &'a [u8],
    /// Its pieces in order, each with the slot that it comes from.
    pub pieces: Vec<(Option<usize>, Range<usize>)>,
    /// Disassembles machine code that is at address 0.
    pub disassemble: fn(&[u8]) -> Vec<NativeInsn>,
}

/// One line of native code.
struct Line {
    offset: usize,
    len: usize,
    text: String,
    target: Option<Target>,
}

/// Target of a jump or call.
enum Target {
    /// The number of an eBPF instruction.
    Insn(usize),
    /// The name of a function.
    Callee(String),
}

impl Target {
    fn callee(name: Option<&str>) -> Target {
        Target::Callee(name.unwrap_or("outside").to_owned())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Insn(index) => write!(f, "{index}"),
            Target::Callee(name) => f.write_str(name),
        }
    }
}

/// The eBPF instructions to the left, each beside the native code that comes from
/// it, in the order of that; and, before them, the classic ones. An instruction
/// may stand in several places, and what stands beside none begins or ends a
/// function, or stands behind it. Then those that became nothing, and the sums.
pub fn native_text(listing: &NativeListing<'_>) -> String {
    let lines = listing.lines();
    let mut lines = lines.iter().peekable();
    let mut rows = vec![listing.heading()];
    let mut beside = None;
    let mut source: Option<&Source> = None;
    for (slot, range) in &listing.pieces {
        let mut left = slot.and_then(|slot| listing.slot(slot));
        if let Some(line) = left.and_then(|slot| slot.source.as_deref())
            && !source.is_some_and(|shown| shown.is_line_of(line))
        {
            source = Some(line);
            rows.push(listing.comment(line.comment()));
        }
        while let Some(line) = lines.next_if(|line| line.offset < range.end) {
            rows.push(listing.row(left.take(), Some(line), &mut beside));
        }
    }
    let sizes = listing.sizes();
    for slot in listing.slots.iter().filter(|slot| sizes[slot.index] == 0) {
        rows.push(listing.row(Some(slot), None, &mut beside));
    }
    let mut out = columns(&rows);
    let _ = write!(out, "\n{}\n", listing.summary());
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

impl<'a> NativeListing<'a> {
    /// An eBPF program beside a draft of its native code.
    pub fn new(
        classic: Option<&'a [SockFilter]>,
        slots: Vec<Slot>,
        draft: &'a NativeDraft,
        disassemble: fn(&[u8]) -> Vec<NativeInsn>,
    ) -> NativeListing<'a> {
        NativeListing {
            classic,
            slots,
            code: draft.bytes(),
            pieces: draft.pieces().collect(),
            disassemble,
        }
    }
}

impl NativeListing<'_> {
    fn slot(&self, index: usize) -> Option<&Slot> {
        let found = self.slots.binary_search_by_key(&index, |slot| slot.index);
        found.ok().map(|at| &self.slots[at])
    }

    /// The number of the slot that the code at an offset comes from.
    fn slot_at(&self, offset: usize) -> Option<usize> {
        let after = self
            .pieces
            .partition_point(|(_, range)| range.end <= offset);
        self.pieces.get(after)?.0
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
        let mut lines = Vec::new();
        for insn in &insns {
            let target = match (address_in_table(insn), insn.branches_to) {
                (Some(at), _) => {
                    let caller = self.slot_at(insn.offset);
                    let caller = caller.and_then(|slot| self.slot(slot)?.callee());
                    Some(Target::callee(caller.or_else(|| name_of(at))))
                }
                (None, Some(to)) => starts.get(&to).map(|slot| Target::Insn(*slot)),
                (None, None) => None,
            };
            lines.push(Line {
                offset: insn.offset,
                len: insn.len,
                text: insn.text.clone(),
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
            target: Some(Target::callee(name_of(offset))),
        }));
        lines
    }

    /// The instructions, and the offset of the data after them: the first address that an
    /// instruction refers to.
    fn decoded(&self) -> (Vec<NativeInsn>, usize) {
        let mut data = self.code.len();
        let mut insns = (self.disassemble)(self.code);
        let mut count = 0;
        for insn in &insns {
            if insn.offset >= data {
                break;
            }
            data = data.min(insn.refers_to.unwrap_or(data));
            count += 1;
        }
        insns.truncate(count);
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
fn address_in_table(insn: &NativeInsn) -> Option<usize> {
    insn.refers_to.filter(|_| insn.is_call)
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
    hex: String,
    text: String,
    /// The eBPF instruction that it jumps to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<usize>,
    /// The name of what it calls, or whose address it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    callee: Option<String>,
}

/// A program and its native code, for programs.
pub fn native_record<'s>(listing: &'s NativeListing<'_>) -> impl Serialize + 's {
    let sizes = listing.sizes();
    let ebpf: Vec<SizedRecord<'_>> = listing
        .slots
        .iter()
        .map(|slot| SizedRecord {
            slot: slot.record(),
            bytes: sizes[slot.index],
        })
        .collect();
    let native = listing.lines().into_iter().map(|line| {
        let bytes = &listing.code[line.offset..line.offset + line.len];
        let (target, callee) = match line.target {
            Some(Target::Insn(index)) => (Some(index), None),
            Some(Target::Callee(name)) => (None, Some(name)),
            None => (None, None),
        };
        LineRecord {
            offset: line.offset,
            slot: listing.slot_at(line.offset),
            hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: line.text,
            target,
            callee,
        }
    });
    let of_slots: usize = sizes.iter().sum();
    Record {
        insns: listing.classic.map(insn_records),
        native: native.collect(),
        bytes: listing.code.len(),
        bytes_between: listing.code.len() - of_slots,
        bytes_per_insn: of_slots as f64 / ebpf.len() as f64,
        ebpf,
    }
}
