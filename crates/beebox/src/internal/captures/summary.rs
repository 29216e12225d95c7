//! Counts of a filter's run over captures, as text and as data.

use std::time::Duration;

use report::count;
use serde::Serialize;

use super::PacketCounts;
use crate::Engine;

/// The counts of one capture.
pub struct FileCounts {
    /// Its name.
    pub name: String,
    /// Its counts.
    pub counts: PacketCounts,
}

/// Counts of packets, and time.
pub struct FilterSummary {
    /// The captures.
    pub files: Vec<FileCounts>,
    /// The time in all.
    pub elapsed: Duration,
    /// The part of it that was spent waiting for input and writing.
    pub outside: Duration,
    /// The engine.
    pub engine: Engine,
    /// Number of threads.
    pub jobs: usize,
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

impl FilterSummary {
    /// The counts of all captures together.
    pub fn total(&self) -> PacketCounts {
        let mut total = PacketCounts::default();
        for FileCounts { counts, .. } in &self.files {
            total += *counts;
        }
        total
    }

    /// The number of packets that matched, or of each capture if `per_file`.
    pub fn count_text(&self, per_file: bool) -> String {
        if !per_file {
            return format!("{}\n", self.total().matched);
        }
        let files = self.files.iter();
        let line = |file: &FileCounts| format!("{}: {}\n", file.name, file.counts.matched);
        files.map(line).collect()
    }

    /// For people, with a line for each capture if `per_file`.
    pub fn text(&self, per_file: bool) -> String {
        let files = self.files.iter().filter(|_| per_file);
        let mut summary: String = files
            .map(|file| format!("{}: {}\n", file.name, counts(&file.counts)))
            .collect();
        summary += &format!(
            "{}{}, engine {}, {}\n",
            counts(&self.total()),
            self.ns_per_packet()
                .map_or(String::new(), |time| format!(", {time:.0} ns per packet")),
            self.engine.name(),
            count(self.jobs, "thread"),
        );
        summary
    }

    /// As data, with the error that ended it before the end of the captures.
    pub fn record(&self, error: Option<String>) -> impl Serialize + '_ {
        let total = self.total();
        let files = self
            .files
            .iter()
            .map(|FileCounts { name, counts }| FileRecord {
                file: name,
                packets: counts.packets,
                bytes: counts.bytes,
                matched: counts.matched,
                matched_bytes: counts.matched_bytes,
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
            error,
        }
    }

    /// Time for each packet without waiting for input and writing.
    fn ns_per_packet(&self) -> Option<f64> {
        let work = self.elapsed.saturating_sub(self.outside);
        let packets = self.total().packets;
        (packets >= ENOUGH_PACKETS).then(|| work.as_nanos() as f64 / packets as f64)
    }
}

fn counts(counts: &PacketCounts) -> String {
    format!(
        "{} of {} packets matched ({} of {} bytes)",
        counts.matched, counts.packets, counts.matched_bytes, counts.bytes
    )
}

/// With fewer packets, starting takes longer than filtering.
const ENOUGH_PACKETS: u64 = 1000;
