//! `--verdicts`: a row for each packet.

use std::io::{self, Write};

use beebox::Engine;
use beebox::internal::captures::Record;
use beebox::internal::run::{PacketRun, redirect_json, redirect_text};
use serde::Serialize;
use serde_json::{Map, Value};

use super::RunFormat;
use super::output::{Ran, limit_text};
use crate::answer::{Answer, Failure, note};
use crate::answer_format::AnswerFormat;
use crate::stdout::{SCHEMA, streamed_output, written};

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
            RunFormat::Text | RunFormat::Csv | RunFormat::Junit => AnswerFormat::Text,
        };
        let mut out: Box<dyn Write> = Box::new(streamed_output(answer));
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
                writeln!(out, "{}", row.trim_end())
            }
            RunFormat::Csv => {
                writeln!(
                    out,
                    "packet,time,captured,wire,verdict,retval,redirect,executed"
                )
            }
            RunFormat::Json | RunFormat::Junit => Ok(()),
        };
        Rows {
            out,
            format,
            result,
        }
    }

    /// Writes the row of a packet.
    pub(super) fn add(&mut self, run: &PacketRun<'_>, record: &Record<'_>) {
        if self.result.is_ok() {
            self.result = self.write(run, record);
        }
    }

    fn write(&mut self, run: &PacketRun<'_>, record: &Record<'_>) -> io::Result<()> {
        let time = record
            .timestamp()
            .map(|time| format!("{}.{:09}", time.seconds, time.nanoseconds));
        let time = time.unwrap_or_default();
        let (packet, captured, wire) = (run.packet, run.bytes, record.wire_len());
        let verdict = &run.verdict.name;
        let executed = run
            .executed
            .map(|executed| executed.to_string())
            .unwrap_or_default();
        match self.format {
            RunFormat::Text => {
                let row = format!(
                    "{packet:>7}  {time:>20}  {captured:>8}  {wire:>6}  {verdict:VERDICT_WIDTH$}  {executed}"
                );
                match run.redirect {
                    Some(redirect) => {
                        writeln!(
                            self.out,
                            "{}  to {}",
                            row.trim_end(),
                            redirect_text(redirect)
                        )
                    }
                    None => writeln!(self.out, "{}", row.trim_end()),
                }
            }
            RunFormat::Csv => {
                let redirect = run.redirect.map(redirect_text).unwrap_or_default();
                let redirect = match redirect.contains(',') {
                    true => format!("\"{redirect}\""),
                    false => redirect,
                };
                let retval = run.retval as i32;
                writeln!(
                    self.out,
                    "{packet},{time},{captured},{wire},{verdict},{retval},{redirect},{executed}"
                )
            }
            RunFormat::Json | RunFormat::Junit => {
                let row = Row {
                    schema: SCHEMA,
                    packet,
                    packet_time: &time,
                    captured,
                    wire,
                    verdict,
                    retval: run.retval,
                    redirect: run.redirect.map(redirect_json),
                    executed: run.executed,
                };
                serde_json::to_writer(&mut self.out, &row)?;
                self.out.write_all(b"\n")
            }
        }
    }

    /// Ends the rows.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        written(self.result.and(flushed))
    }
}
