//! What is said when a capture was filtered, and meanwhile.

use std::io::{self, Write};
use std::time::Duration;

use beebox::Engine;
use beebox::captures::Tally;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::Format;
use super::inputs::NamedInput;
use crate::answer::Failure;
use crate::program_output::{json, write_output};

/// What was seen, kept and spent.
pub(super) struct Summary {
    pub(super) tally: Tally,
    pub(super) elapsed: Duration,
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
    ns_per_packet: f64,
    engine: &'a str,
    jobs: usize,
    /// Why it ended before the end of the captures.
    error: Option<String>,
}

impl Summary {
    /// Prints the count on standard output, or the summary on standard error, or
    /// all of it as JSON on standard output.
    pub(super) fn print(
        &self,
        count: bool,
        format: Format,
        fault: Option<&Failure>,
    ) -> Result<(), Failure> {
        let tally = &self.tally;
        match (format, count) {
            (Format::Json, _) => write_output(&json(&self.record(fault)), None),
            (Format::Text, true) => write_output(format!("{}\n", tally.matched).as_bytes(), None),
            (Format::Text, false) => {
                let summary = format!(
                    "{} of {} packets matched ({} of {} bytes), {:.0} ns per packet, engine {}, {}\n",
                    tally.matched,
                    tally.packets,
                    tally.matched_bytes,
                    tally.bytes,
                    self.ns_per_packet(),
                    self.engine.name(),
                    match self.jobs {
                        1 => "1 thread".to_owned(),
                        jobs => format!("{jobs} threads"),
                    },
                );
                // Nobody is left to tell when that fails.
                let _ = io::stderr().write_all(summary.as_bytes());
                Ok(())
            }
        }
    }

    fn record(&self, fault: Option<&Failure>) -> Record<'_> {
        Record {
            packets: self.tally.packets,
            bytes: self.tally.bytes,
            matched: self.tally.matched,
            matched_bytes: self.tally.matched_bytes,
            seconds: self.elapsed.as_secs_f64(),
            ns_per_packet: self.ns_per_packet(),
            engine: self.engine.name(),
            jobs: self.jobs,
            error: fault.map(|failure| failure.what().to_owned()),
        }
    }

    fn ns_per_packet(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.tally.packets.max(1) as f64
    }
}

/// Captures shorter than this are done before anybody has seen a bar.
const WORTH_A_BAR: u64 = 256 << 20;

/// A bar on a terminal, for captures of known and large size.
pub(super) fn progress(inputs: &[NamedInput]) -> ProgressBar {
    let len: Option<u64> = inputs.iter().map(|named| named.input.len()).sum();
    match len {
        Some(len) if len >= WORTH_A_BAR => {
            let style = ProgressStyle::with_template(
                "{wide_bar} {bytes} of {total_bytes} ({binary_bytes_per_sec}, {eta} left)",
            )
            .expect("the template is right");
            // Draws nothing where standard error is no terminal.
            ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr_with_hz(10))
                .with_style(style)
        }
        _ => ProgressBar::hidden(),
    }
}
