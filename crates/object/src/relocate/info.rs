//! func_info and line_info of assembled programs.
//!
//! `.BTF.ext` has both by section and byte offset. A program takes the records of its own
//! range of a section and of each appended function, with offsets in slots from its own
//! start.

use std::collections::HashMap;

use btf::ext::{self, ExtSection};
use btf::{Btf, BtfExt};
use program::{FuncInfo, LineInfo};

use crate::elf::{Elf, SectionId};
use crate::programs::ProgramDef;

/// func_info and line_info by section.
#[derive(Default)]
pub(crate) struct Info<'b> {
    functions: Parts<'b, ext::ExtFuncInfo>,
    lines: Parts<'b, ext::ExtLineInfo>,
}

/// Records by section; of several groups for a section the first.
type Parts<'b, T> = HashMap<SectionId, Part<'b, T>>;

/// Records of one section.
struct Part<'b, T> {
    records: ExtSection<'b, T>,
    /// True if they are sorted by offset.
    in_order: bool,
}

/// Record with an offset in a section.
trait Placed: Copy {
    /// Offset in bytes from the start of the section.
    fn offset(self) -> u32;
}

impl Placed for ext::ExtFuncInfo {
    fn offset(self) -> u32 {
        self.offset
    }
}

impl Placed for ext::ExtLineInfo {
    fn offset(self) -> u32 {
        self.offset
    }
}

impl<'b> Info<'b> {
    /// Resolves the section of each group of records.
    pub(crate) fn of(elf: &Elf<'_>, btf: &Btf<'_>, ext: &'b BtfExt<'_>) -> Info<'b> {
        let section = |name| {
            let name = btf.string(name);
            let section = elf
                .section_named(name.as_bytes())
                .filter(|_| !name.is_empty());
            section.map(|section| section.id)
        };
        Info {
            functions: parts(ext.functions(), |group| section(group.section)),
            lines: parts(ext.lines(), |group| section(group.section)),
        }
    }

    /// Adds the func_info of a function that now starts at slot `base`; `None` if there
    /// is none.
    pub(crate) fn add_functions(
        &self,
        code: &ProgramDef<'_>,
        base: u32,
        to: &mut Vec<FuncInfo>,
    ) -> Option<()> {
        for record in piece(&self.functions, code)? {
            to.push(FuncInfo {
                insn: moved(record.offset, code, base),
                type_id: record.func,
            });
        }
        Some(())
    }

    /// Adds the line_info of a function that now starts at slot `base`; `None` if there
    /// is none.
    pub(crate) fn add_lines(
        &self,
        code: &ProgramDef<'_>,
        base: u32,
        to: &mut Vec<LineInfo>,
    ) -> Option<()> {
        for record in piece(&self.lines, code)? {
            to.push(LineInfo {
                insn: moved(record.offset, code, base),
                file: record.file,
                text: record.text,
                line: record.line,
                column: record.column,
            });
        }
        Some(())
    }

    /// line_info record of a slot of a section.
    pub(crate) fn line(&self, section: SectionId, slot: usize) -> Option<ext::ExtLineInfo> {
        let part = self.lines.get(&section)?;
        let up_to = |line: &ext::ExtLineInfo| line.offset as usize / 8 <= slot;
        part.records
            .records()
            .filter(up_to)
            .max_by_key(|line| line.offset)
    }
}

fn moved(offset: u32, code: &ProgramDef<'_>, base: u32) -> u32 {
    (offset / 8)
        .wrapping_sub(code.start as u32)
        .wrapping_add(base)
}

fn parts<'b, T: Placed + 'b>(
    groups: impl Iterator<Item = ExtSection<'b, T>>,
    section: impl Fn(&ExtSection<'b, T>) -> Option<SectionId>,
) -> Parts<'b, T> {
    let mut parts = HashMap::new();
    for records in groups {
        if let Some(section) = section(&records) {
            parts.entry(section).or_insert_with(|| Part {
                records,
                in_order: records.records().map(Placed::offset).is_sorted(),
            });
        }
    }
    parts
}

/// Records of a function: from the first inside it to the last, up to the first after it.
fn piece<'b, T: Placed + 'b>(
    parts: &Parts<'b, T>,
    code: &ProgramDef<'_>,
) -> Option<impl Iterator<Item = T> + use<'b, T>> {
    let part = parts.get(&code.section)?;
    let records = part.records;
    let starts_at = |index| {
        records
            .get(index)
            .map_or(0, |record| record.offset() as usize / 8)
    };
    let end = code.start + code.len();
    let count = records.records().len();
    let (from, to) = match part.in_order {
        true => {
            let from = first(count, |index| starts_at(index) >= code.start);
            (from, first(count, |index| starts_at(index) >= end))
        }
        false => {
            let stop = (0..count)
                .find(|&index| starts_at(index) >= end)
                .unwrap_or(count);
            let inside = |&index: &usize| starts_at(index) >= code.start;
            let from = (0..stop).find(inside).unwrap_or(stop);
            (
                from,
                (from..stop)
                    .rev()
                    .find(inside)
                    .map_or(from, |last| last + 1),
            )
        }
    };
    (from < to).then(|| (from..to).filter_map(move |index| records.get(index)))
}

/// First of `count` indices from which `has` holds for all (partition point).
fn first(count: usize, has: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        match has(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}
