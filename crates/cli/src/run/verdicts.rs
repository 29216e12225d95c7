//! `--verdicts`: a row for each packet.

use std::fmt::Write as _;
use std::io::{self, Write};

use beebox::Engine;
use beebox::internal::captures::Record;
use beebox::internal::run::{PacketRun, redirect_json, redirect_text};
use report::run::verdict_style;
use serde::Serialize;
use serde_json::{Map, Value};

use super::RunFormat;
use super::output::{Ran, limit_text};
use crate::answer::{Answer, Failure, note};
use crate::answer_format::AnswerFormat;
use crate::stdout::{SCHEMA, print_styled, streamed_output, written};

/// Bytes of rows that are written at once.
const PORTION: usize = 64 << 10;

/// Columns of a verdict's name.
const VERDICT_WIDTH: usize = 17;

/// The row of a packet as JSON.
#[derive(Serialize)]
struct Row<'r> {
    schema: u32,
    packet: u64,
    packet_time: &'r str,
    captured: usize,
    wire: u32,
    verdict: &'r str,
    retval: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<u64>,
}

/// The rows, written while packets run.
pub(super) struct Rows {
    out: Box<dyn Write>,
    /// Rows that are not written yet, and the time of the last one.
    rows: Vec<u8>,
    time: String,
    format: RunFormat,
    result: io::Result<()>,
}

/// The answer behind the rows of data, which says what stopped the run on standard error.
pub(super) fn ended(ran: &Ran) -> Answer {
    match ran {
        Ran::Stopped { packet, error } => {
            let packet = packet.map_or_else(String::new, |packet| format!("packet {packet}: "));
            note(format_args!("{packet}{}", limit_text(error)));
            Answer::No
        }
        Ran::Packet { .. } | Ran::Capture { .. } => Answer::Yes,
    }
}

impl Rows {
    /// Begins the rows with their heading.
    pub(super) fn start(format: RunFormat, engine: Engine) -> Rows {
        let answer = match format {
            RunFormat::Json => AnswerFormat::Json,
            RunFormat::Text | RunFormat::Csv | RunFormat::Html | RunFormat::Junit => {
                AnswerFormat::Text
            }
        };
        let out: Box<dyn Write> = Box::new(streamed_output(answer));
        let mut rows = Vec::with_capacity(PORTION + 1024);
        let result = match format {
            RunFormat::Text => {
                let instructions = match engine {
                    Engine::Checked => "  instructions",
                    Engine::Native | Engine::Interp => "",
                };
                let row = format!(
                    "{:>7}  {:>20}  {:>8}  {:>6}  {:VERDICT_WIDTH$}{instructions}",
                    "packet", "time", "captured", "wire", "verdict"
                );
                writeln!(rows, "{}", row.trim_end())
            }
            RunFormat::Csv => {
                writeln!(
                    rows,
                    "packet,time,captured,wire,verdict,retval,redirect,executed"
                )
            }
            RunFormat::Json | RunFormat::Html | RunFormat::Junit => Ok(()),
        };
        Rows {
            out,
            rows,
            time: String::new(),
            format,
            result,
        }
    }

    /// Writes the row of a packet.
    pub(super) fn add(&mut self, run: &PacketRun<'_>, record: &Record<'_>) {
        if self.result.is_ok() {
            self.result = self.write(run, record);
            if self.rows.len() >= PORTION {
                self.put();
            }
        }
    }

    /// Writes the rows that wait.
    fn put(&mut self) {
        if self.result.is_ok() {
            self.result = match self.format {
                RunFormat::Text => print_styled(&String::from_utf8_lossy(&self.rows)),
                _ => self.out.write_all(&self.rows),
            };
        }
        self.rows.clear();
    }

    fn write(&mut self, run: &PacketRun<'_>, record: &Record<'_>) -> io::Result<()> {
        let Rows { rows, time, .. } = self;
        time.clear();
        if let Some(at) = record.timestamp() {
            let _ = write!(time, "{}.{:09}", at.seconds, at.nanoseconds);
        }
        let (packet, captured, wire) = (run.packet, run.bytes, record.wire_len());
        let verdict = &run.verdict.name;
        match self.format {
            RunFormat::Text => {
                write!(rows, "{packet:>7}  {time:>20}  {captured:>8}  {wire:>6}  ")?;
                let style = verdict_style(verdict);
                write!(rows, "{style}{verdict}{style:#}")?;
                if let Some(executed) = run.executed {
                    let width = VERDICT_WIDTH.saturating_sub(verdict.chars().count());
                    write!(rows, "{:width$}  {executed}", "")?;
                }
                if let Some(redirect) = run.redirect {
                    write!(rows, "  to {}", redirect_text(redirect))?;
                }
                writeln!(rows)
            }
            RunFormat::Csv => {
                let redirect = run.redirect.map(redirect_text).unwrap_or_default();
                let redirect = match redirect.contains(',') {
                    true => format!("\"{redirect}\""),
                    false => redirect,
                };
                let retval = run.retval as i32;
                write!(rows, "{packet},{time},{captured},{wire},")?;
                match verdict.contains(',') {
                    true => write!(rows, "\"{verdict}\"")?,
                    false => write!(rows, "{verdict}")?,
                }
                write!(rows, ",{retval},{redirect},")?;
                if let Some(executed) = run.executed {
                    write!(rows, "{executed}")?;
                }
                writeln!(rows)
            }
            RunFormat::Json | RunFormat::Html | RunFormat::Junit => {
                let row = Row {
                    schema: SCHEMA,
                    packet,
                    packet_time: time,
                    captured,
                    wire,
                    verdict,
                    retval: run.retval,
                    redirect: run.redirect.map(redirect_json),
                    executed: run.executed,
                };
                serde_json::to_writer(&mut *rows, &row)?;
                writeln!(rows)
            }
        }
    }

    /// Ends the rows.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.put();
        let flushed = self.out.flush();
        written(std::mem::replace(&mut self.result, Ok(())).and(flushed))
    }
}

/// Rows in front of an error are written.
impl Drop for Rows {
    fn drop(&mut self) {
        self.put();
    }
}
