//! Reads of stack memory that a program never wrote: their results are not those of Linux.

use std::fmt;

use serde::ser::{Serialize, Serializer};
use serde_json::json;

/// A read of stack memory that a program never wrote, which Linux allows callers with CAP_PERFMON.
/// Such memory is 0 here and holds what was there before in Linux, so results that depend on it
/// cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenRead {
    /// Name of the program.
    pub program: String,
    /// The instruction: of several the first in the program.
    pub insn: usize,
    /// File, line number and text, if the object has source lines.
    pub line: Option<(String, u32, String)>,
    /// True if runs in the checked engine made the read. Of native code it is known only that it
    /// may make it.
    pub is_certain: bool,
}

impl fmt::Display for UnwrittenRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is, reads) = match self.is_certain {
            true => ("not", "reads"),
            false => ("may not be", "may read"),
        };
        write!(
            f,
            "{}: {is} comparable with Linux: instruction {}",
            self.program, self.insn
        )?;
        if let Some((file, line, _)) = &self.line {
            write!(f, " ({file}:{line})")?;
        }
        write!(f, " {reads} stack memory that the program never wrote")
    }
}

impl Serialize for UnwrittenRead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = self.line.as_ref();
        let source = line
            .map(|(file, line, text)| json!({ "file": file, "line": line, "text": text.trim() }));
        let record = json!({
            "prog": self.program,
            "insn": self.insn,
            "source": source,
            "certain": self.is_certain,
        });
        record.serialize(serializer)
    }
}
