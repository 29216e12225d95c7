//! Reads of stack memory that a program never wrote, on standard error and in JSON.

use beebox::run::UnwrittenRead;
use serde_json::{Value, json};

/// Says of each program that it makes such a read.
pub(super) fn note(reads: &[UnwrittenRead]) {
    for read in reads {
        diagnostic!("beebox: {read}");
    }
    if reads.iter().any(|read| !read.is_certain) {
        diagnostic!("  try: --engine checked, which notices whether a run makes the read");
    }
}

/// The reads in JSON.
pub(super) fn record(reads: &[UnwrittenRead]) -> Value {
    let reads = reads.iter().map(|read| {
        let line = read.line.as_ref();
        let source = line
            .map(|(file, line, text)| json!({ "file": file, "line": line, "text": text.trim() }));
        json!({
            "prog": read.program,
            "insn": read.insn,
            "source": source,
            "certain": read.is_certain,
        })
    });
    reads.collect()
}
