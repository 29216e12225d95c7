//! Summary of a filter run, and its progress.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use beebox::internal::captures::FilterSummary;

use super::Args;
use super::inputs::NamedInput;
use crate::answer::Failure;
use crate::answer_format::AnswerFormat;
use crate::stdout::{json, write_json, write_output};

/// Prints the count on standard output, or the summary on standard error, or
/// all of it as JSON on standard output.
pub(super) fn print(
    summary: &FilterSummary,
    args: &Args,
    fault: Option<&Failure>,
) -> Result<(), Failure> {
    match (args.format, args.count) {
        (AnswerFormat::Json, _) => {
            let error = fault.map(|failure| failure.what().to_owned());
            write_json(&json(&summary.record(error)))
        }
        (AnswerFormat::Text, true) => {
            write_output(summary.count_text(args.per_file).as_bytes(), None)
        }
        (AnswerFormat::Text, false) => {
            // A closed standard error leaves no place to report it.
            let _ = io::stderr().write_all(summary.text(args.per_file).as_bytes());
            Ok(())
        }
    }
}

/// Captures with fewer bytes are done before a line could be read.
const WORTH_A_LINE: u64 = 256 << 20;

/// Time between two updates of the line.
const UPDATE: Duration = Duration::from_millis(100);

/// A line on a terminal that says how far the captures are read.
pub(super) struct Progress {
    /// Bytes of all captures; `None` where nothing is shown.
    total: Option<u64>,
    done: u64,
    start: Instant,
    shown: Option<Instant>,
}

impl Progress {
    /// For captures of known and large size, where standard error is a terminal.
    pub(super) fn new(inputs: &[NamedInput]) -> Progress {
        let total: Option<u64> = inputs.iter().map(|named| named.input.len()).sum();
        Progress {
            total: total.filter(|&total| total >= WORTH_A_LINE && io::stderr().is_terminal()),
            done: 0,
            start: Instant::now(),
            shown: None,
        }
    }

    /// Bytes that are read.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Sets how many bytes are read, and shows it if the last update is long ago.
    pub(super) fn show(&mut self, done: u64) {
        self.done = done;
        let Some(total) = self.total else { return };
        let now = Instant::now();
        if self.shown.is_some_and(|shown| now - shown < UPDATE) {
            return;
        }
        self.shown = Some(now);
        let seconds = (now - self.start).as_secs_f64();
        let rate = done as f64 / seconds.max(1e-3);
        let left = total.saturating_sub(done) as f64 / rate.max(1.0);
        eprint!(
            "\r\x1b[K{:3.0} % of {} MB, {:.0} MB/s, {left:.0} s left",
            100.0 * done as f64 / total as f64,
            total / 1_000_000,
            rate / 1e6,
        );
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
