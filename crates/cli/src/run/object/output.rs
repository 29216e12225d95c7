//! Output of `beebox run FILE.o`.

use std::fmt::Write;

use beebox::program::ProgramType;
use beebox::run::{
    CaptureSummary, PacketRun, PrintedText, RunEngine, RunError, RunRecord, Stream, TestRunOutput,
    VerdictCount, takes_packet,
};
use report::value::Ordered;
use serde_json::{Value, json};

use super::super::RunFormat;
use super::super::output::{hex, hex_rows, limit_record, trap_record};
use super::super::trusted::TIMED_OUT;
use super::records::{RecordTypes, Records};
use super::redirect;
use crate::answer::{Answer, Failure};
use crate::answer_format::count;
use crate::program_output::write_output;

/// Names the limit that ended a run, with its option.
pub(super) fn limit_text(error: &RunError) -> String {
    match error {
        RunError::Deadline => TIMED_OUT.to_owned(),
        RunError::TooLong(_) => format!("{error}; --timeout SECONDS sets one of all runs"),
        RunError::Memory(_) => format!("{error}; --memory SIZE sets another"),
        error => error.to_string(),
    }
}

/// Records that are shown to people.
const SHOWN_RECORDS: usize = 64;

/// The results of a run over a capture.
#[derive(Default)]
pub(super) struct Summary {
    counts: CaptureSummary,
    /// Texts that were printed, with the number of the packet.
    printk: Vec<(u64, String)>,
    printk_lost: u64,
    records: Records,
    pub(super) written_to: Option<String>,
}

impl Summary {
    /// Adds what a run printed, and the records that it handed over.
    pub(super) fn add(&mut self, run: PacketRun<'_>) {
        if run.printk.is_empty() && run.records.is_empty() {
            return;
        }
        self.printk_lost += run.printk.lost;
        self.records.add(run.packet, run.records);
        for text in &run.printk.texts {
            match self.printk.len() < PrintedText::MOST {
                true => self.printk.push((run.packet, text.clone())),
                false => self.printk_lost += 1,
            }
        }
    }

    /// The results with the counts of the whole capture.
    pub(super) fn with_counts(self, counts: CaptureSummary) -> Summary {
        Summary { counts, ..self }
    }

    /// Names of the verdicts, with numbers of packets.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = (&str, u64)> {
        let verdicts = self.counts.verdicts.iter();
        verdicts.map(|count| (count.name.as_str(), count.packets))
    }

    /// The records that were taken.
    pub(super) fn records(&self) -> Vec<RunRecord> {
        let kept = self.records.kept.iter();
        kept.map(|(_, record)| record.clone()).collect()
    }

    /// The texts that were printed.
    pub(super) fn texts(&self) -> Vec<String> {
        self.printk.iter().map(|(_, text)| text.clone()).collect()
    }
}

/// A run.
pub(super) enum Ran {
    /// On a packet, a context or both.
    Packet {
        packet: Vec<u8>,
        context: Vec<u8>,
        run: TestRunOutput,
    },
    /// On a capture.
    Capture(Summary),
    /// Stopped by a trap or the time limit, on the packet of that number of a capture.
    Stopped {
        packet: Option<u64>,
        error: RunError,
    },
}

/// Contents of the output.
pub(super) struct Report<'a> {
    pub(super) prog: String,
    pub(super) kind: ProgramType,
    pub(super) engine: RunEngine,
    /// The feature that native code does not support, if the engine is another for that reason.
    pub(super) not_native: Option<String>,
    /// The types of records.
    pub(super) types: RecordTypes<'a>,
    pub(super) ran: Ran,
    /// Text of the programs' streams, standard output and error.
    pub(super) streams: [String; 2],
    /// The maps, if they are printed.
    pub(super) maps: Option<Ordered>,
}

impl Report<'_> {
    /// Prints it; a trap and the time limit are a no.
    pub(super) fn print(&self, format: RunFormat) -> Result<Answer, Failure> {
        let text = match format {
            RunFormat::Text => self.text(),
            RunFormat::Json => pretty(&self.record()),
            RunFormat::Junit => return Err(Failure::new("--format junit needs --expect FILE")),
        };
        write_output(text.as_bytes(), None)?;
        Ok(match self.ran {
            Ran::Stopped { .. } => Answer::No,
            Ran::Packet { .. } | Ran::Capture(_) => Answer::Yes,
        })
    }

    fn text(&self) -> String {
        let (kind, engine) = (self.kind.name(), self.engine.name());
        let mut text = format!("{} ({kind}, engine {engine}): ", self.prog);
        let _ = match &self.ran {
            Ran::Packet {
                packet,
                context,
                run,
            } => {
                let packet = takes_packet(self.kind).then_some(packet);
                let data = match self.kind {
                    ProgramType::FlowDissector => "flow keys",
                    _ => "packet",
                };
                write_packet(&mut text, packet, data, context, run)
            }
            Ran::Capture(summary) => write_summary(&mut text, summary),
            Ran::Stopped { packet, error } => {
                let place = packet.map(|packet| format!(" on packet {packet}"));
                let place = place.unwrap_or_default();
                match error {
                    limit @ (RunError::Deadline | RunError::TooLong(_) | RunError::Memory(_)) => {
                        writeln!(text, "stopped{place}\n{}", limit_text(limit))
                    }
                    error => writeln!(text, "trap{place}\n{error}"),
                }
            }
        };
        for (stream, written) in Stream::ALL.into_iter().zip(&self.streams) {
            for line in written.lines() {
                let _ = writeln!(text, "{}: {}", stream.name(), one_line(line));
            }
        }
        self.write_records(&mut text);
        if let Some(what) = &self.not_native {
            let _ = writeln!(text, "not native code, which does not support yet: {what}");
        }
        if let Some(Ordered::Object(maps)) = &self.maps {
            for (name, entries) in maps {
                let _ = write!(text, "map {name}: {}", pretty(entries));
            }
        }
        text
    }

    /// The records, with the packets of a capture.
    fn records(&self) -> (Vec<(Option<u64>, &RunRecord)>, u64) {
        match &self.ran {
            Ran::Packet { run, .. } => {
                (run.records.iter().map(|record| (None, record)).collect(), 0)
            }
            Ran::Capture(summary) => {
                let kept = summary.records.kept.iter();
                let kept = kept.map(|(packet, record)| (Some(*packet), record));
                (kept.collect(), summary.records.lost)
            }
            Ran::Stopped { .. } => (Vec::new(), 0),
        }
    }

    fn write_records(&self, text: &mut String) {
        let (records, lost) = self.records();
        for (packet, record) in records.iter().take(SHOWN_RECORDS) {
            let place = packet.map(|packet| format!(", packet {packet}"));
            let value = serde_json::to_string(&self.types.show(record)).expect("keys are strings");
            let place = place.unwrap_or_default();
            let _ = writeln!(text, "record of {}{place}: {value}", record.map);
        }
        let rest = records.len().saturating_sub(SHOWN_RECORDS) as u64 + lost;
        if rest > 0 {
            let _ = writeln!(text, "{rest} more records; --format json has them");
        }
    }

    fn record(&self) -> Ordered {
        let mut members: Vec<(String, Ordered)> = Vec::new();
        let mut put = |name: &str, value: Value| {
            members.push((name.to_owned(), Ordered::Scalar(value)));
        };
        put("prog", json!(self.prog));
        put("engine", json!(self.engine.name()));
        if let Some(what) = &self.not_native {
            put("not_native", json!(what));
        }
        match &self.ran {
            Ran::Packet { run, .. } => {
                put("retval", json!(run.retval));
                put("verdict", json!(run.verdict.name));
                if let Some(redirect) = run.redirect {
                    put("redirect", redirect::record(redirect).into());
                }
                put("data_out", json!(hex(&run.data_out)));
                put("ctx_out", json!(hex(&run.ctx_out)));
                put("duration_ns", json!(run.duration.as_nanos() as u64));
                put("printk", json!(run.printk.texts));
                if run.printk.lost > 0 {
                    put("printk_lost", json!(run.printk.lost));
                }
            }
            Ran::Capture(summary) => {
                put("packets", json!(summary.counts.packets));
                let verdicts = summary.counts.verdicts.iter().map(|count| {
                    let VerdictCount {
                        name,
                        packets,
                        bytes,
                    } = count;
                    json!({ "verdict": name, "packets": packets, "bytes": bytes })
                });
                put("verdicts", verdicts.collect());
                if !summary.counts.redirects.is_empty() {
                    let redirects = summary.counts.redirects.iter();
                    let redirects = redirects.map(|(redirect, packets)| {
                        let mut record = redirect::record(*redirect);
                        record.insert("packets".to_owned(), json!(packets));
                        Value::Object(record)
                    });
                    put("redirects", redirects.collect());
                }
                if summary.written_to.is_some() {
                    put("written", json!(summary.counts.kept));
                }
                put(
                    "duration_ns",
                    json!(summary.counts.mean_duration.as_nanos() as u64),
                );
                let texts = summary.printk.iter();
                let texts = texts.map(|(packet, text)| json!({ "packet": packet, "text": text }));
                put("printk", texts.collect());
                if summary.printk_lost > 0 {
                    put("printk_lost", json!(summary.printk_lost));
                }
            }
            Ran::Stopped { packet, error } => {
                if let Some(packet) = packet {
                    put("packet", json!(packet));
                }
                if let RunError::Deadline | RunError::TooLong(_) = error {
                    put("trap", limit_record("deadline", &limit_text(error)));
                }
                if let RunError::Memory(_) = error {
                    put("trap", limit_record("memory", &limit_text(error)));
                }
                if let RunError::Trap(place) = error {
                    put("trap", trap_record(&place.trap));
                    if let Some(program) = &place.entered {
                        put("entered", json!(program));
                    }
                    if let Some((file, line, text)) = &place.line {
                        let text = text.trim();
                        put(
                            "source",
                            json!({ "file": file, "line": line, "text": text }),
                        );
                    }
                }
            }
        }
        for (stream, written) in Stream::ALL.into_iter().zip(&self.streams) {
            if !written.is_empty() {
                let written = Ordered::Scalar(json!(written));
                members.push((stream.name().to_owned(), written));
            }
        }
        let (records, lost) = self.records();
        if !records.is_empty() {
            let records = records.iter().map(|(packet, record)| {
                let mut members = Vec::new();
                if let Some(packet) = packet {
                    members.push(("packet".to_owned(), Ordered::Scalar(json!(packet))));
                }
                let map = Ordered::Scalar(json!(record.map));
                members.push(("map".to_owned(), map));
                members.push(("value".to_owned(), self.types.show(record)));
                Ordered::Object(members)
            });
            members.push(("records".to_owned(), Ordered::List(records.collect())));
        }
        if lost > 0 {
            let lost = Ordered::Scalar(json!(lost));
            members.push(("records_lost".to_owned(), lost));
        }
        if let Some(maps) = &self.maps {
            members.push(("maps".to_owned(), maps.clone()));
        }
        Ordered::Object(members)
    }
}

fn write_packet(
    text: &mut String,
    packet: Option<&Vec<u8>>,
    data: &str,
    context: &[u8],
    run: &TestRunOutput,
) -> std::fmt::Result {
    let ns = run.duration.as_nanos();
    let (name, value) = (&*run.verdict.name, (run.retval as i32).to_string());
    match *name == value {
        true => writeln!(text, "{value}, {ns} ns")?,
        false => writeln!(text, "{name} ({value}), {ns} ns")?,
    }
    if let Some(redirect) = run.redirect {
        writeln!(text, "redirected to {}", redirect::describe(redirect))?;
    }
    match packet {
        Some(packet) if !run.data_out.is_empty() => write_bytes(text, data, packet, &run.data_out)?,
        _ => {}
    }
    if !run.ctx_out.is_empty() && !context.is_empty() {
        write_bytes(text, "context", context, &run.ctx_out)?;
    }
    for printed in &run.printk.texts {
        writeln!(text, "printk: {}", one_line(printed))?;
    }
    write_lost(text, run.printk.lost)
}

/// Writes the bytes after a run beside those that it got.
fn write_bytes(text: &mut String, what: &str, given: &[u8], left: &[u8]) -> std::fmt::Result {
    if left == given {
        return writeln!(text, "{what} ({} bytes): unchanged", given.len());
    }
    writeln!(text, "{what} ({} bytes)", left.len())?;
    hex_rows(text, 0, left);
    Ok(())
}

fn write_lost(text: &mut String, lost: u64) -> std::fmt::Result {
    match lost {
        0 => Ok(()),
        lost => writeln!(text, "printk: {lost} more texts are not shown"),
    }
}

/// A text without the line end that many programs print, other control characters escaped.
pub(super) fn one_line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = text.chars().map(|character| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    });
    shown.collect()
}

fn number_of(packets: u64) -> String {
    count(packets as usize, "packet")
}

fn write_summary(text: &mut String, summary: &Summary) -> std::fmt::Result {
    let counts = &summary.counts;
    let ns = counts.mean_duration.as_nanos();
    if counts.packets == 0 {
        writeln!(text, "the capture has no packets")?;
        return match &summary.written_to {
            Some(out) => writeln!(text, "0 packets written to {out}"),
            None => Ok(()),
        };
    }
    let packets = number_of(counts.packets);
    writeln!(text, "{packets}, {ns} ns a packet")?;
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
        writeln!(text, "{name:width$}  {packets:>9}  {bytes:>11}")?;
    }
    for (redirect, packets) in &counts.redirects {
        let target = redirect::describe(*redirect);
        writeln!(text, "redirected to {target}: {packets}")?;
    }
    for (packet, printed) in &summary.printk {
        writeln!(text, "printk, packet {packet}: {}", one_line(printed))?;
    }
    write_lost(text, summary.printk_lost)?;
    match &summary.written_to {
        Some(out) => writeln!(text, "{} written to {out}", number_of(counts.kept)),
        None => Ok(()),
    }
}

pub(super) fn pretty(value: &Ordered) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("keys are strings");
    text.push('\n');
    text
}
