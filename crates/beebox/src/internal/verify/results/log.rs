//! Logs of programs: printed while they are written, or kept in part.
//!
//! A log is printed in front of the results under a heading with the verdict. One that
//! outgrows what is kept is printed as it is written, under a heading without.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use verifier::{LogOutput, LogTail};

use super::row::Row;
use super::top_lines::{self, TopLines};

/// Bytes of a log that are kept until the verdict is known.
const KEPT: usize = 16 << 20;
/// Bytes of all logs that are kept for results which cannot be printed one by one.
const KEPT_OF_ALL: usize = 256 << 20;
/// Bytes that are kept of each log beyond that.
const KEPT_OF_REST: usize = 1 << 12;

/// What becomes of the logs of a run.
pub struct Logs<'p> {
    /// The level that was asked for.
    level: u32,
    /// Number of source lines to list that logs name most often.
    top_lines: Option<usize>,
    /// Prints logs when they are there; without it rows have them.
    print: Option<&'p (dyn Fn(&str) + Sync)>,
    /// Bytes that rows may still have.
    room: AtomicUsize,
}

impl<'p> Logs<'p> {
    /// Logs of a level, from which `top_lines` source lines are counted. With `print` they are
    /// printed in pieces, else rows have them.
    pub fn new(
        level: u32,
        top_lines: Option<usize>,
        print: Option<&'p (dyn Fn(&str) + Sync)>,
    ) -> Logs<'p> {
        Logs {
            level,
            top_lines,
            print,
            room: AtomicUsize::new(KEPT_OF_ALL),
        }
    }

    /// The level that programs are verified with: frequent lines are counted in the log of
    /// every instruction, unless another level is asked for.
    pub fn level(&self) -> u32 {
        match self.top_lines {
            Some(_) if self.level == 0 => 2,
            _ => self.level,
        }
    }

    /// The log of the program of a row.
    pub(super) fn of<'l>(&'l self, row: &Row) -> ProgramLog<'l, 'p> {
        let is_kept = self.level != 0 || self.level() & 2 == 0;
        let limit = match self.print.is_some() {
            true => KEPT,
            false => KEPT.min(self.room.load(Ordering::Relaxed).max(KEPT_OF_REST)),
        };
        ProgramLog {
            logs: self,
            name: format!("{}/{}", row.file_name, row.prog_name),
            tail: is_kept.then(|| LogTail::new(limit)),
            // Lines of paths that end well are dropped at level 1.
            top_lines: (self.level() & 2 != 0 && self.top_lines.is_some()).then(TopLines::default),
            is_begun: false,
        }
    }

    fn print(&self, text: &str) {
        if let Some(print) = self.print {
            print(text);
        }
    }
}

/// The log of one program.
pub(super) struct ProgramLog<'l, 'p> {
    logs: &'l Logs<'p>,
    name: String,
    /// The end of the log, until it is printed.
    tail: Option<LogTail>,
    top_lines: Option<TopLines>,
    /// True if the log is printed as it is written.
    is_begun: bool,
}

impl ProgramLog<'_, '_> {
    /// Prints what is left of the log, or gives it to the row.
    pub(super) fn finish(self, row: &mut Row) {
        let logs = self.logs;
        let (text, left_out) = self.tail.map(LogTail::finish).unwrap_or_default();
        if let Some(most) = logs.top_lines {
            row.top_lines = match self.top_lines {
                Some(lines) => lines.finish(most),
                None => top_lines::of_log(&text, most),
            };
        }
        if self.is_begun {
            return logs.print("\n");
        }
        if logs.level == 0 {
            return;
        }
        if logs.print.is_none() {
            let left = |room: usize| Some(room.saturating_sub(text.len()));
            let _ = logs
                .room
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
            (row.log, row.log_left_out) = (text, left_out);
        } else if !text.is_empty() {
            logs.print(&with_heading(
                &self.name,
                row.verdict.name(),
                &text,
                left_out,
            ));
        }
    }
}

/// A log under its heading, with a mark where its start is left out.
pub fn with_heading(name: &str, verdict: &str, log: &str, left_out: u64) -> String {
    let mark = match left_out {
        0 => String::new(),
        bytes => format!("[{bytes} bytes of the log are left out]\n"),
    };
    format!("{name}: {verdict}\n{mark}{log}\n")
}

impl LogOutput for ProgramLog<'_, '_> {
    fn write(&mut self, text: &str) {
        if let Some(lines) = &mut self.top_lines {
            lines.write(text);
        }
        if self.is_begun {
            return self.logs.print(text);
        }
        let Some(tail) = &mut self.tail else {
            return;
        };
        tail.write(text);
        if self.logs.print.is_some() && self.logs.level & 2 != 0 && tail.as_str().len() > KEPT {
            let tail = mem::replace(tail, LogTail::new(KEPT));
            self.logs
                .print(&format!("{}\n{}", self.name, tail.as_str()));
            self.is_begun = true;
        }
    }

    fn truncate(&mut self, len: u64) {
        if let Some(tail) = &mut self.tail {
            tail.truncate(len);
        }
    }
}

/// Lines that are searched in a log.
pub(super) struct LineSearch<'w> {
    /// Those that were not found yet.
    missing: Vec<&'w str>,
    /// A line whose end is not known.
    begun: String,
}

impl<'w> LineSearch<'w> {
    pub(super) fn new(lines: impl Iterator<Item = &'w str>) -> LineSearch<'w> {
        LineSearch {
            missing: lines.collect(),
            begun: String::new(),
        }
    }

    /// True if the log has all lines.
    pub(super) fn finish(mut self) -> bool {
        self.write("\n");
        self.missing.is_empty()
    }
}

impl LogOutput for LineSearch<'_> {
    fn write(&mut self, text: &str) {
        self.begun.push_str(text);
        let Some(end) = self.begun.rfind('\n') else {
            return;
        };
        for line in self.begun[..end].lines() {
            self.missing.retain(|missing| *missing != line);
        }
        self.begun.drain(..=end);
    }

    fn truncate(&mut self, _len: u64) {}
}
