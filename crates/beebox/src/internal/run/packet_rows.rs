//! A row for each packet of a capture, as text, CSV and JSON Lines.

use std::fmt::Write as _;
use std::io::{self, Write};

use report::json::SCHEMA;
use report::run::verdict_style;
use report::veristat::quoted;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{PacketRun, redirect_json, redirect_text};
use crate::Engine;
use crate::internal::captures::Record;

/// The form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Columns for people, with styles.
    Text,
    /// Comma-separated values, with a heading.
    Csv,
    /// A JSON object in each line.
    Json,
}

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
pub struct PacketRows {
    out: Box<dyn Write>,
    /// Rows that are not written yet, and the time of the last one.
    rows: Vec<u8>,
    time: String,
    form: RowForm,
    result: io::Result<()>,
}

impl PacketRows {
    /// Begins the rows with their heading.
    pub fn start(out: Box<dyn Write>, form: RowForm, engine: Engine) -> PacketRows {
        let mut rows = Vec::with_capacity(PORTION + 1024);
        let result = match form {
            RowForm::Text => {
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
            RowForm::Csv => {
                writeln!(
                    rows,
                    "packet,time,captured,wire,verdict,retval,redirect,executed"
                )
            }
            RowForm::Json => Ok(()),
        };
        PacketRows {
            out,
            rows,
            time: String::new(),
            form,
            result,
        }
    }

    /// Writes the row of a packet.
    pub fn add(&mut self, run: &PacketRun<'_>, record: &Record<'_>) {
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
            self.result = self.out.write_all(&self.rows);
        }
        self.rows.clear();
    }

    fn write(&mut self, run: &PacketRun<'_>, record: &Record<'_>) -> io::Result<()> {
        let PacketRows { rows, time, .. } = self;
        time.clear();
        if let Some(at) = record.timestamp() {
            let _ = write!(time, "{}.{:09}", at.seconds, at.nanoseconds);
        }
        let (packet, captured, wire) = (run.packet, run.bytes, record.wire_len());
        let verdict = &run.verdict.name;
        match self.form {
            RowForm::Text => {
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
            RowForm::Csv => {
                let redirect = run.redirect.map(redirect_text).unwrap_or_default();
                let (verdict, redirect) = (quoted(verdict.to_string()), quoted(redirect));
                let retval = run.retval as i32;
                write!(
                    rows,
                    "{packet},{time},{captured},{wire},{verdict},{retval},{redirect},"
                )?;
                if let Some(executed) = run.executed {
                    write!(rows, "{executed}")?;
                }
                writeln!(rows)
            }
            RowForm::Json => {
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
    ///
    /// # Errors
    /// The first one of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.put();
        let flushed = self.out.flush();
        std::mem::replace(&mut self.result, Ok(())).and(flushed)
    }
}

/// Rows in front of an error are written.
impl Drop for PacketRows {
    fn drop(&mut self) {
        self.put();
    }
}
