//! An instruction in a listing: its number, what it names, where it comes from.

use std::rc::Rc;

use beebox::internal::btf::Btf;
use beebox::internal::ebpf::{Flow, Insn};
use beebox::internal::program::LineInfo;
use serde::Serialize;

/// One instruction of an eBPF program. The second slots of 64-bit immediates are no
/// instructions of their own and belong to the first ones.
pub(super) struct Slot {
    pub(super) index: usize,
    /// The classic instruction that it comes from.
    pub(super) origin: Option<usize>,
    pub(super) insn: Insn,
    /// Name of the referenced object.
    pub(super) name: Option<String>,
    /// The line that it was compiled from.
    pub(super) source: Option<Rc<Source>>,
}

/// A line of a source.
#[derive(Serialize)]
pub(super) struct Source {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) text: String,
}

impl Source {
    /// The line of a record.
    pub(super) fn of(types: &Btf<'_>, line: &LineInfo) -> Source {
        Source {
            file: types.string(line.file).to_string(),
            line: line.line,
            column: line.column,
            text: types.string(line.text).to_string(),
        }
    }

    /// Is it the same line, in whatever column?
    pub(super) fn is_line_of(&self, other: &Source) -> bool {
        (self.line, &self.file) == (other.line, &other.file)
    }

    /// The line as the verifier's log has it.
    pub(super) fn comment(&self) -> String {
        let text = self.text.trim();
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        format!("; {text} @ {file}:{}", self.line)
    }
}

impl Slot {
    /// The instruction, with its number and what it jumps to, calls or refers to.
    pub(super) fn line(&self) -> String {
        let Slot { index, insn, .. } = self;
        match (self.target(), &self.name) {
            (Some(target), _) => format!("{index:5}: {insn} <{target}>"),
            (None, Some(name)) => format!("{index:5}: {insn} <{name}>"),
            (None, None) => format!("{index:5}: {insn}"),
        }
    }

    /// The instruction as the verifier's log has it.
    pub(super) fn log_text(&self) -> String {
        self.insn.kernel_form(&|_| self.name.as_deref()).to_string()
    }

    pub(super) fn record(&self) -> SlotRecord<'_> {
        SlotRecord {
            index: self.index,
            origin: self.origin,
            text: self.insn.to_string(),
            target: self.target(),
            name: self.name.as_deref(),
            source: self.source.as_deref(),
        }
    }

    /// The name of the function that it calls.
    pub(super) fn callee(&self) -> Option<&str> {
        self.name
            .as_deref()
            .filter(|_| matches!(self.insn, Insn::Call(_)))
    }

    /// The number of the instruction that it jumps to.
    fn target(&self) -> Option<i64> {
        match self.insn.flow() {
            Flow::Branch(skip) | Flow::Goto(skip) => Some(self.index as i64 + 1 + i64::from(skip)),
            _ => None,
        }
    }
}

#[derive(Serialize)]
pub(super) struct SlotRecord<'s> {
    index: usize,
    /// The classic instruction that it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<usize>,
    text: String,
    /// The instruction that it jumps to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<i64>,
    /// Name of the referenced object.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'s str>,
    /// The line that it was compiled from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'s Source>,
}
