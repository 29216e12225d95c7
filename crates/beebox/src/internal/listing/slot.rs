//! An instruction in a listing: its number, what it names, where it comes from.

use std::rc::Rc;

use crate::internal::btf::Btf;
use crate::internal::ebpf::{Flow, Insn};
use crate::internal::program::LineInfo;
use serde::Serialize;

/// One instruction of an eBPF program. The second slots of 64-bit immediates are no
/// instructions of their own and belong to the first ones.
pub struct Slot {
    /// Its number.
    pub index: usize,
    /// The classic instruction that it comes from.
    pub origin: Option<usize>,
    /// The instruction.
    pub insn: Insn,
    /// Name of the referenced object.
    pub name: Option<String>,
    /// The line that it was compiled from.
    pub source: Option<Rc<Source>>,
}

/// A line of a source.
#[derive(Serialize)]
pub struct Source {
    /// Path of the file.
    pub file: String,
    /// Number of the line, from 1 on.
    pub line: u32,
    /// Number of the column, from 1 on.
    pub column: u32,
    /// The line.
    pub text: String,
}

impl Source {
    /// The line of a record.
    pub fn of(types: &Btf<'_>, line: &LineInfo) -> Source {
        Source {
            file: types.string(line.file).to_string(),
            line: line.line,
            column: line.column,
            text: types.string(line.text).to_string(),
        }
    }

    /// True for the same line, in whatever column.
    pub fn is_line_of(&self, other: &Source) -> bool {
        (self.line, &self.file) == (other.line, &other.file)
    }

    /// The line as the verifier's log has it.
    pub fn comment(&self) -> String {
        let text = self.text.trim();
        let file = self.file.rsplit('/').next().unwrap_or(&self.file);
        format!("; {text} @ {file}:{}", self.line)
    }
}

impl Slot {
    /// The instruction, with its number and what it jumps to, calls or refers to.
    pub fn line(&self) -> String {
        let Slot { index, insn, .. } = self;
        match (self.target(), &self.name) {
            (Some(target), _) => format!("{index:5}: {insn} <{target}>"),
            (None, Some(name)) => format!("{index:5}: {insn} <{name}>"),
            (None, None) => format!("{index:5}: {insn}"),
        }
    }

    /// The instruction as the verifier's log has it.
    pub fn log_text(&self) -> String {
        self.insn.kernel_form(&|_| self.name.as_deref()).to_string()
    }

    /// The instruction as JSON.
    pub fn record(&self) -> SlotRecord<'_> {
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
    pub fn callee(&self) -> Option<&str> {
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

/// An instruction as JSON.
#[derive(Serialize)]
pub struct SlotRecord<'s> {
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
