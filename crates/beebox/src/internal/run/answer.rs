//! What came of runs, as text and as JSON: verdicts, bytes, printed texts, records and maps.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use report::count;
use report::json::SCHEMA;
use report::run::{hex, hex_rows, not_native_line, one_line, verdict_style};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use spec::programs::ProgramType;

use super::{
    CaptureSummary, PrintedText, RecordList, RunError, RunOutputs, Spool, Stream, TestRunOutput,
    TextList, UnwrittenRead, VerdictCount, packet_behind, redirect_json, redirect_text,
    takes_packet,
};
use crate::Engine;
use crate::internal::maps_json::{MapsDump, RecordTypes};
use crate::internal::raw::{limit_json, trap_json};

/// Records and printed texts that are shown to people.
const SHOWN_RECORDS: u64 = 64;
const SHOWN_TEXTS: u64 = PrintedText::MOST as u64;

/// What runs came to.
pub enum RunEnd {
    /// On a packet, a context or both.
    Packet {
        /// The packet.
        packet: Vec<u8>,
        /// The context.
        context: Vec<u8>,
        /// The run.
        run: TestRunOutput,
        /// True for a single run, whose time is that of a first, cold one.
        is_cold: bool,
    },
    /// On a capture.
    Capture {
        /// Packets by verdict.
        counts: CaptureSummary,
        /// The files that packets were written to.
        written: WrittenFiles,
    },
    /// Stopped by a trap or the time limit, on the packet of that number of a capture.
    Stopped {
        /// The packet of a capture.
        packet: Option<u64>,
        /// Why.
        error: RunError,
    },
}

/// Files that packets of a capture were written to.
#[derive(Default)]
pub struct WrittenFiles {
    /// That of the packets that pass.
    pub passing: Option<String>,
    /// Verdicts and the files of their packets.
    pub by_verdict: Vec<(String, String)>,
    /// True if packets were chosen.
    pub chooses: bool,
}

/// The runs of a program. Its JSON ([`Serialize`]) is that of `beebox run --format json`.
pub struct RunAnswer<'a> {
    /// The program.
    pub prog: String,
    /// Its type.
    pub kind: ProgramType,
    /// The engine that ran it.
    pub engine: Engine,
    /// The feature that native code does not support, if the engine is another for that reason.
    pub fallback_reason: Option<String>,
    /// The types of records.
    pub types: RecordTypes<'a>,
    /// What the runs came to.
    pub end: RunEnd,
    /// Reads of stack memory that programs never wrote.
    pub unwritten: Vec<UnwrittenRead>,
    /// Printed texts and records.
    pub outputs: RunOutputs,
    /// Text of the programs' streams, standard output and error.
    pub streams: [String; 2],
    /// The maps, if they are printed.
    pub maps: Option<MapsDump<'a>>,
    /// Names the limit that ended a run.
    pub limit_text: fn(&RunError) -> String,
    /// What is said of a run that the time limit ended.
    pub timed_out: &'a str,
}

impl RunAnswer<'_> {
    /// The verdict, or those of a capture, for people, with styles.
    pub fn head_text(&self) -> String {
        let mut text = String::new();
        if let Some(what) = &self.fallback_reason {
            text = not_native_line(what) + "\n";
        }
        let (kind, engine) = (self.kind.name(), self.engine.name());
        text += &format!("{} ({kind}, engine {engine}): ", self.prog);
        // Writing to a string cannot fail.
        let _ = match &self.end {
            RunEnd::Packet {
                packet,
                context,
                run,
                is_cold,
            } => {
                let packet = takes_packet(self.kind).then_some(packet);
                write_packet(&mut text, (self.kind, packet), context, run, *is_cold)
            }
            RunEnd::Capture { counts, written } => {
                write_summary(&mut text, counts, written.chooses)
            }
            RunEnd::Stopped { packet, error } => {
                let place = packet.map(|packet| format!(" on packet {packet}"));
                let place = place.unwrap_or_default();
                match error {
                    RunError::Deadline | RunError::TooLong(_) | RunError::Memory(_) => {
                        writeln!(text, "stopped{place}\n{}", (self.limit_text)(error))
                    }
                    error => writeln!(text, "trap{place}\n{error}"),
                }
            }
        };
        text
    }

    /// Writes printed texts, records and maps for people.
    ///
    /// # Errors
    /// Those of the writer, and of the files that keep records and texts.
    pub fn write_rest(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_texts(out)?;
        if let RunEnd::Capture { counts, written } = &self.end {
            if let Some(to) = &written.passing {
                writeln!(out, "{} written to {to}", number_of(counts.kept))?;
            }
            for (verdict, file) in &written.by_verdict {
                let packets = number_of(packets_of(counts, verdict));
                writeln!(out, "{packets} of {verdict} written to {file}")?;
            }
        }
        for (stream, written) in Stream::ALL.into_iter().zip(&self.streams) {
            for line in written.lines() {
                writeln!(out, "{}: {}", stream.name(), one_line(line))?;
            }
        }
        self.write_records(out)?;
        match &self.maps {
            Some(maps) => maps.write_text(out),
            None => Ok(()),
        }
    }

    fn write_texts(&self, out: &mut impl Write) -> io::Result<()> {
        let texts = &self.outputs.texts;
        let printed = texts.count() + texts.lost;
        if printed > SHOWN_TEXTS.min(texts.count()) {
            let shown = SHOWN_TEXTS.min(texts.count());
            write!(
                out,
                "printk: {printed} texts, of which the first {shown} follow"
            )?;
            writeln!(out, "{}", all_in_json(texts, shown))?;
        }
        for item in texts.items().take(SHOWN_TEXTS as usize) {
            let item = item?;
            let text = one_line(&String::from_utf8_lossy(&item.bytes));
            match item.packet {
                0 => writeln!(out, "printk: {text}")?,
                packet => writeln!(out, "printk, packet {packet}: {text}")?,
            }
        }
        Ok(())
    }

    fn write_records(&self, out: &mut impl Write) -> io::Result<()> {
        let records = &self.outputs.records;
        let all = records.count() + records.lost;
        let shown = SHOWN_RECORDS.min(records.count());
        if all > shown {
            write!(out, "{all} records, of which the first {shown} follow")?;
            writeln!(out, "{}", all_in_json(records, shown))?;
        }
        for item in records.items().take(shown as usize) {
            let (packet, record) = self.outputs.record_of(item?);
            let place = match packet {
                0 => String::new(),
                packet => format!(", packet {packet}"),
            };
            let map = &record.map;
            if self.types.is_typed(&record) {
                let value = serde_json::to_string(&self.types.show(&record));
                writeln!(
                    out,
                    "record of {map}{place}: {}",
                    value.expect("keys are strings")
                )?;
            } else {
                let mut rows = String::new();
                hex_rows(&mut rows, 0, &record.bytes);
                let bytes = count(record.bytes.len(), "byte");
                write!(out, "record of {map}{place}: {bytes}\n{rows}")?;
            }
        }
        Ok(())
    }
}

/// Where the items are that text leaves out.
fn all_in_json(items: &Spool, shown: u64) -> String {
    match (items.count() > shown, items.lost) {
        (true, 0) => "; --format json has all".to_owned(),
        (true, _) => format!("; --format json has {}", items.count()),
        (false, _) => String::new(),
    }
}

impl Serialize for RunAnswer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        let mut put = |name: &str, value: Value| members.serialize_entry(name, &value);
        put("schema", json!(SCHEMA))?;
        put("prog", json!(self.prog))?;
        put("engine", json!(self.engine.name()))?;
        if let Some(what) = &self.fallback_reason {
            put("fallback_reason", json!(what))?;
        }
        if !self.unwritten.is_empty() {
            put("unwritten_stack_reads", json!(self.unwritten))?;
        }
        match &self.end {
            RunEnd::Packet { run, is_cold, .. } => {
                put("retval", json!(run.retval))?;
                put("verdict", json!(run.verdict.name))?;
                if let Some(redirect) = run.redirect {
                    put("redirect", redirect_json(redirect).into())?;
                }
                put("data_out", json!(hex(&run.data_out)))?;
                put("ctx_out", json!(hex(&run.ctx_out)))?;
                put("duration_ns", json!(run.duration.as_nanos() as u64))?;
                if *is_cold {
                    put("cold", json!(true))?;
                }
            }
            RunEnd::Capture { counts, written } => {
                put("packets", json!(counts.packets))?;
                let verdicts = counts.verdicts.iter().map(|count| {
                    let VerdictCount {
                        name,
                        packets,
                        bytes,
                    } = count;
                    json!({ "verdict": name, "packets": packets, "bytes": bytes })
                });
                put("verdicts", verdicts.collect())?;
                if !counts.redirects.is_empty() {
                    let redirects = counts.redirects.iter().map(|(redirect, packets)| {
                        let mut record = redirect_json(*redirect);
                        record.insert("packets".to_owned(), json!(packets));
                        Value::Object(record)
                    });
                    put("redirects", redirects.collect())?;
                }
                if written.passing.is_some() {
                    put("written", json!(counts.kept))?;
                }
                if !written.by_verdict.is_empty() {
                    let files = written.by_verdict.iter().map(|(verdict, file)| {
                        let packets = packets_of(counts, verdict);
                        json!({ "verdict": verdict, "file": file, "packets": packets })
                    });
                    put("verdict_files", files.collect())?;
                }
                if !counts.mean_duration.is_zero() {
                    let mean = counts.mean_duration.as_nanos() as u64;
                    put("duration_ns", json!(mean))?;
                }
            }
            RunEnd::Stopped { packet, error } => {
                if let Some(packet) = packet {
                    put("packet", json!(packet))?;
                }
                if let RunError::Deadline | RunError::TooLong(_) = error {
                    put("trap", limit_json("deadline", &(self.limit_text)(error)))?;
                }
                if let RunError::Memory(_) = error {
                    put("trap", limit_json("memory", &(self.limit_text)(error)))?;
                }
                if let RunError::Trap(place) = error {
                    put("trap", trap_json(&place.trap, self.timed_out))?;
                    if let Some(program) = &place.entered {
                        put("entered", json!(program))?;
                    }
                    if let Some((file, line, text)) = &place.line {
                        let text = text.trim();
                        let source = json!({ "file": file, "line": line, "text": text });
                        put("source", source)?;
                    }
                }
            }
        }
        let outputs = &self.outputs;
        members.serialize_entry("printk", &TextList(outputs))?;
        if outputs.texts.lost > 0 {
            members.serialize_entry("printk_lost", &outputs.texts.lost)?;
        }
        for (stream, written) in Stream::ALL.into_iter().zip(&self.streams) {
            if !written.is_empty() {
                members.serialize_entry(stream.name(), written)?;
            }
        }
        if outputs.records.count() > 0 {
            let types = &self.types;
            members.serialize_entry("records", &RecordList { outputs, types })?;
        }
        if outputs.records.lost > 0 {
            members.serialize_entry("records_lost", &outputs.records.lost)?;
        }
        if let Some(maps) = &self.maps {
            members.serialize_entry("maps", maps)?;
        }
        members.end()
    }
}

fn write_packet(
    text: &mut String,
    (kind, packet): (ProgramType, Option<&Vec<u8>>),
    context: &[u8],
    run: &TestRunOutput,
    is_cold: bool,
) -> fmt::Result {
    let (name, value) = (&*run.verdict.name, (run.retval as i32).to_string());
    let style = verdict_style(name);
    match *name == value {
        true => write!(text, "{value}")?,
        false => write!(text, "{style}{name}{style:#} ({value})")?,
    }
    // The time of one run is mostly that of filling caches.
    match is_cold {
        true => writeln!(text)?,
        false => writeln!(text, ", {} ns", run.duration.as_nanos())?,
    }
    if let Some(redirect) = run.redirect {
        writeln!(text, "redirected to {}", redirect_text(redirect))?;
    }
    match packet {
        Some(packet) if !run.data_out.is_empty() => {
            let left = packet_behind(kind, packet, &run.data_out);
            let left = left.as_deref().unwrap_or(&run.data_out);
            match kind == ProgramType::FlowDissector {
                true => write_bytes(text, "flow keys", packet, left)?,
                false => write_bytes(text, "packet", packet, left)?,
            }
        }
        _ => {}
    }
    match run.ctx_out.is_empty() || context.is_empty() {
        true => Ok(()),
        false => write_bytes(text, "context", context, &run.ctx_out),
    }
}

/// Writes the bytes after a run beside those that it got.
fn write_bytes(text: &mut String, what: &str, given: &[u8], left: &[u8]) -> fmt::Result {
    if left == given {
        return writeln!(text, "{what} ({}): unchanged", count(given.len(), "byte"));
    }
    writeln!(text, "{what} ({})", count(left.len(), "byte"))?;
    hex_rows(text, 0, left);
    Ok(())
}

fn number_of(packets: u64) -> String {
    count(packets as usize, "packet")
}

/// Number of packets of a verdict.
fn packets_of(counts: &CaptureSummary, verdict: &str) -> u64 {
    let mut counts = counts.verdicts.iter();
    let count = counts.find(|count| count.name == verdict);
    count.map_or(0, |count| count.packets)
}

fn write_summary(text: &mut String, counts: &CaptureSummary, chooses: bool) -> fmt::Result {
    if counts.packets == 0 && chooses {
        return writeln!(text, "no packet of the capture is chosen");
    }
    if counts.packets == 0 {
        return writeln!(text, "the capture has no packets");
    }
    let packets = number_of(counts.packets);
    match counts.mean_duration.is_zero() {
        true => writeln!(text, "{packets}")?,
        false => writeln!(
            text,
            "{packets}, {} ns a packet",
            counts.mean_duration.as_nanos()
        )?,
    }
    let names = counts.verdicts.iter().map(|count| count.name.len());
    let width = names.max().unwrap_or(0).max("verdict".len());
    writeln!(
        text,
        "{:width$}  {:>9}  {:>11}",
        "verdict", "packets", "bytes"
    )?;
    for count in &counts.verdicts {
        let VerdictCount {
            name,
            packets,
            bytes,
        } = count;
        let style = verdict_style(name);
        writeln!(
            text,
            "{style}{name:width$}{style:#}  {packets:>9}  {bytes:>11}"
        )?;
    }
    for (redirect, packets) in &counts.redirects {
        let target = redirect_text(*redirect);
        writeln!(text, "redirected to {target}: {packets}")?;
    }
    Ok(())
}
