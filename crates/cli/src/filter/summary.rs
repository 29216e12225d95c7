//! Summary of a filter run, and its progress.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use beebox::Engine;
use beebox::captures::PacketCounts;
use serde::Serialize;

use super::inputs::NamedInput;
use crate::answer::Failure;
use crate::answer_format::AnswerFormat;
use crate::stdout::{json, write_json, write_output};

/// The counts of one capture.
pub(super) struct FileTally {
    pub(super) name: String,
    pub(super) tally: PacketCounts,
}

/// Counts of packets, and time.
pub(super) struct Summary {
    pub(super) files: Vec<FileTally>,
    pub(super) elapsed: Duration,
    /// The part of it that was spent waiting for input and writing.
    pub(super) outside: Duration,
    pub(super) engine: Engine,
    pub(super) jobs: usize,
}

#[derive(Serialize)]
struct Record<'a> {
    packets: u64,
    bytes: u64,
    matched: u64,
    matched_bytes: u64,
    seconds: f64,
    /// `None` for fewer packets than [`ENOUGH_PACKETS`].
    ns_per_packet: Option<f64>,
    engine: &'a str,
    jobs: usize,
    files: Vec<FileRecord<'a>>,
    /// Error that ended it before the end of the captures.
    error: Option<String>,
}

#[derive(Serialize)]
struct FileRecord<'a> {
    file: &'a str,
    packets: u64,
    bytes: u64,
    matched: u64,
    matched_bytes: u64,
}

impl Summary {
    /// The counts of all captures together.
    pub(super) fn total(&self) -> PacketCounts {
        let mut total = PacketCounts::default();
        for FileTally { tally, .. } in &self.files {
            total += *tally;
        }
        total
    }

    /// Prints the count on standard output, or the summary on standard error, or
    /// all of it as JSON on standard output.
    pub(super) fn print(
        &self,
        count: bool,
        per_file: bool,
        format: AnswerFormat,
        fault: Option<&Failure>,
    ) -> Result<(), Failure> {
        match (format, count) {
            (AnswerFormat::Json, _) => write_json(&json(&self.record(fault))),
            (AnswerFormat::Text, true) if per_file => {
                let line = |file: &FileTally| format!("{}: {}\n", file.name, file.tally.matched);
                let lines: String = self.files.iter().map(line).collect();
                write_output(lines.as_bytes(), None)
            }
            (AnswerFormat::Text, true) => {
                write_output(format!("{}\n", self.total().matched).as_bytes(), None)
            }
            (AnswerFormat::Text, false) => {
                let mut summary = String::new();
                for FileTally { name, tally } in self.files.iter().filter(|_| per_file) {
                    summary += &format!("{name}: {}\n", counts(tally));
                }
                summary += &format!(
                    "{}{}, engine {}, {}\n",
                    counts(&self.total()),
                    self.ns_per_packet()
                        .map_or(String::new(), |time| format!(", {time:.0} ns per packet")),
                    self.engine.name(),
                    match self.jobs {
                        1 => "1 thread".to_owned(),
                        jobs => format!("{jobs} threads"),
                    },
                );
                // A closed standard error leaves no place to report it.
                let _ = io::stderr().write_all(summary.as_bytes());
                Ok(())
            }
        }
    }

    fn record(&self, fault: Option<&Failure>) -> Record<'_> {
        let total = self.total();
        let files = self
            .files
            .iter()
            .map(|FileTally { name, tally }| FileRecord {
                file: name,
                packets: tally.packets,
                bytes: tally.bytes,
                matched: tally.matched,
                matched_bytes: tally.matched_bytes,
            });
        Record {
            packets: total.packets,
            bytes: total.bytes,
            matched: total.matched,
            matched_bytes: total.matched_bytes,
            seconds: self.elapsed.as_secs_f64(),
            ns_per_packet: self.ns_per_packet(),
            engine: self.engine.name(),
            jobs: self.jobs,
            files: files.collect(),
            error: fault.map(|failure| failure.what().to_owned()),
        }
    }

    /// Time for each packet without waiting for input and writing.
    fn ns_per_packet(&self) -> Option<f64> {
        let work = self.elapsed.saturating_sub(self.outside);
        let packets = self.total().packets;
        (packets >= ENOUGH_PACKETS).then(|| work.as_nanos() as f64 / packets as f64)
    }
}

fn counts(tally: &PacketCounts) -> String {
    format!(
        "{} of {} packets matched ({} of {} bytes)",
        tally.matched, tally.packets, tally.matched_bytes, tally.bytes
    )
}

/// With fewer packets, starting takes longer than filtering.
const ENOUGH_PACKETS: u64 = 1000;

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
