//! Runs the statements of an expectation file, and what differs.

use std::fmt::Write;

use beebox::object::Object;
use beebox::program::MapKind;
use beebox::run::{
    CaptureStop, CaptureSummary, LoadedObject, ObjectMap, PacketRun, PrintedText, RunError,
    RunRecord, RunnableProgram, TestRunOutput, verdict_names,
};
use serde_json::Value;

use super::super::memory::Source;
use super::super::output::hex_rows;
use super::check_report::{Checked, Difference, Report};
use super::expect::{ExpectFile, Expected, Output, Statement};
use super::maps::{self, Element};
use super::output::limit_text;
use super::records::RecordTypes;
use crate::answer::Failure;
use crate::capture_file;

/// Result of the last run.
enum Ran {
    Packet {
        packet: Vec<u8>,
        context: Vec<u8>,
        run: Box<TestRunOutput>,
    },
    Capture(Summary),
    /// It did not end with a value.
    Stopped,
}

/// Most printed texts of a capture that are held to expectations, and most bytes of records.
const MOST_TEXTS: usize = PrintedText::MOST;
const MOST_RECORD_BYTES: usize = 64 << 20;

/// The results of a run over a capture.
#[derive(Default)]
struct Summary {
    counts: CaptureSummary,
    texts: Vec<String>,
    records: Vec<RunRecord>,
    record_bytes: usize,
    /// Texts and records beyond the limits.
    lost: u64,
}

impl Summary {
    fn add(&mut self, run: PacketRun<'_>) {
        self.lost += run.printk.lost;
        for text in &run.printk.texts {
            match self.texts.len() < MOST_TEXTS {
                true => self.texts.push(text.clone()),
                false => self.lost += 1,
            }
        }
        for record in run.records {
            self.record_bytes += record.bytes.len() + record.map.len();
            match self.record_bytes <= MOST_RECORD_BYTES {
                true => self.records.push(record.clone()),
                false => self.lost += 1,
            }
        }
    }

    /// Names of the verdicts, with numbers of packets.
    fn verdicts(&self) -> impl Iterator<Item = (&str, u64)> {
        let verdicts = self.counts.verdicts.iter();
        verdicts.map(|count| (count.name.as_str(), count.packets))
    }
}

/// A file, and the object whose programs it runs.
pub(super) struct Check<'c, 'a> {
    pub(super) file: &'c ExpectFile,
    pub(super) object: &'c Object<'a>,
    /// The types of records.
    pub(super) types: &'c RecordTypes<'c>,
    /// The CPU of the runs.
    pub(super) cpu: u32,
}

impl Check<'_, '_> {
    /// Runs the file over the maps of the object.
    pub(super) fn run(
        &self,
        loaded: &mut LoadedObject,
        set_up: &dyn Fn(&mut RunnableProgram<'_>),
    ) -> Result<Report, Failure> {
        let &Check {
            file,
            object,
            types,
            cpu,
        } = self;
        let mut report = Report {
            file: file.name.clone(),
            not_native: None,
            unwritten: Vec::new(),
            runs: 0,
            checked: Vec::new(),
        };
        // Everything is read before anything runs.
        let mut before = None;
        for line in &file.lines {
            if matches!(
                line.statement,
                Statement::Run { .. } | Statement::Capture { .. }
            ) {
                before = Some(&line.statement);
            }
            let found = resolve(&line.statement, object, loaded, cpu);
            let found = found.and_then(|()| match (&line.statement, before) {
                (Statement::Expect(expected), Some(run)) => suits(expected, run, loaded),
                _ => Ok(()),
            });
            found.map_err(|what| {
                Failure::new(format_args!("{}:{}: {what}", file.name, line.number))
            })?;
        }
        let mut last: Option<(usize, String)> = None;
        let mut ran = Ran::Stopped;
        let mut texts = Vec::new();
        let mut records = Vec::new();
        for line in &file.lines {
            let at =
                |failure: Failure| failure.within(format_args!("{}:{}", file.name, line.number));
            let put = |difference: Option<Difference>, last: &Option<(usize, String)>| Checked {
                line: line.number,
                text: line.text.clone(),
                run: last.clone(),
                difference,
                left_out: Vec::new(),
            };
            let note_left_out = |map: &str, members: Vec<String>| {
                let place = format!("{}:{}: map {map}", file.name, line.number);
                maps::note_left_out(&place, members);
            };
            match &line.statement {
                Statement::Set { map, key, value } => {
                    let element = Element::find(loaded, object.btf(), map, key, cpu);
                    let element = element.map_err(|what| at(Failure::new(what)))?;
                    let stored = element.store(value);
                    let left_out = stored
                        .map_err(|what| at(Failure::new(format_args!("map {map}: {what}"))))?;
                    note_left_out(map, [element.key_left_out(), &left_out].concat());
                }
                Statement::Run { program, .. } | Statement::Capture { program, .. } => {
                    report.runs += 1;
                    last = Some((report.runs, program.clone()));
                    let mut runnable = loaded.program(program).ok_or_else(|| {
                        at(Failure::new(format_args!(
                            "program {program} is not loaded"
                        )))
                    })?;
                    set_up(&mut runnable);
                    runnable.take_records();
                    let result = run(&line.statement, &mut runnable).map_err(at)?;
                    texts.clear();
                    ran = match result {
                        Ok(ran) => ran,
                        Err(
                            limit @ (RunError::Deadline
                            | RunError::TooLong(_)
                            | RunError::Memory(_)),
                        ) => {
                            let difference = Difference::from(limit_text(&limit));
                            report.checked.push(put(Some(difference), &last));
                            Ran::Stopped
                        }
                        Err(trap) => {
                            let difference = Difference {
                                what: "it ends with a trap".to_owned(),
                                excerpt: format!("  {}\n", trap.to_string().replace('\n', "\n  ")),
                            };
                            report.checked.push(put(Some(difference), &last));
                            Ran::Stopped
                        }
                    };
                    texts.extend(ran.printed());
                    texts.reverse();
                    records = ran.records();
                    records.reverse();
                }
                Statement::Expect(expected) => {
                    let is_output = matches!(
                        expected,
                        Expected::Printk(_) | Expected::NoPrintk | Expected::Record { .. }
                    );
                    if let (true, Some(lost)) = (is_output, ran.lost()) {
                        return Err(at(Failure::new(format_args!(
                            "{lost} texts and records of the run are beyond those that are held to \
                             expectations: {MOST_TEXTS} texts, {MOST_RECORD_BYTES} bytes of records"
                        ))));
                    }
                    let mut left_out = Vec::new();
                    let difference = match expected {
                        Expected::Printk(text) => printed(texts.pop(), Some(text)),
                        Expected::NoPrintk => printed(texts.pop(), None),
                        Expected::Record { map, value } => {
                            let next = records.iter().rposition(|it: &RunRecord| it.map == *map);
                            let next = next.map(|next| records.remove(next));
                            if let (Some(next), Some(value)) = (&next, value) {
                                left_out = types.left_out(next, value);
                            }
                            record(types, next, value.as_ref())
                                .map_err(|what| at(Failure::new(what)))?
                        }
                        Expected::Element { .. }
                        | Expected::Entries { .. }
                        | Expected::Global { .. } => {
                            let compared = in_maps(expected, object, loaded, cpu)
                                .map_err(|what| at(Failure::new(what)))?;
                            if let Expected::Element { map, .. } = expected {
                                note_left_out(map, compared.key_left_out);
                            }
                            left_out = compared.left_out;
                            compared.difference
                        }
                        expected => of_run(expected, &ran),
                    };
                    report.checked.push(Checked {
                        left_out,
                        ..put(difference, &last)
                    });
                }
            }
        }
        Ok(report)
    }
}

impl Ran {
    /// Number of texts and records that are not known, if there are some.
    fn lost(&self) -> Option<u64> {
        let lost = match self {
            Ran::Packet { run, .. } => run.printk.lost,
            Ran::Capture(summary) => summary.lost,
            Ran::Stopped => 0,
        };
        (lost > 0).then_some(lost)
    }

    fn printed(&self) -> Vec<String> {
        match self {
            Ran::Packet { run, .. } => run.printk.texts.clone(),
            Ran::Capture(summary) => summary.texts.clone(),
            Ran::Stopped => Vec::new(),
        }
    }

    fn records(&self) -> Vec<RunRecord> {
        match self {
            Ran::Packet { run, .. } => run.records.clone(),
            Ran::Capture(summary) => summary.records.clone(),
            Ran::Stopped => Vec::new(),
        }
    }
}

/// Runs a program; the inner error is a trap or the time limit.
fn run(
    statement: &Statement,
    program: &mut RunnableProgram<'_>,
) -> Result<Result<Ran, RunError>, Failure> {
    match statement {
        Statement::Run {
            packet,
            context,
            repeat,
            ..
        } => {
            let packet = packet.as_ref().map(Source::read_packet).transpose()?;
            let packet = packet.unwrap_or_default();
            let context = context.as_ref().map(Source::read).transpose()?;
            let context = context.unwrap_or_default();
            match program.test_run_with_context(&packet, &context, *repeat) {
                Ok(run) => Ok(Ok(Ran::Packet {
                    packet,
                    context,
                    run: Box::new(run),
                })),
                Err(error) if error.is_stop() => Ok(Err(error)),
                Err(error) => Err(Failure::new(error)),
            }
        }
        Statement::Capture { path, .. } => {
            let input = capture_file::open(path, true)?;
            let mut summary = Summary::default();
            match program.run_capture(input, None, &mut |run, _| summary.add(run)) {
                Ok(counts) => Ok(Ok(Ran::Capture(Summary { counts, ..summary }))),
                Err(CaptureStop::Run { error, .. }) if error.is_stop() => Ok(Err(error)),
                Err(stop) => Err(capture_file::stopped(path, None, stop)),
            }
        }
        Statement::Set { .. } | Statement::Expect(_) => unreachable!("no run"),
    }
}

/// Checks that a statement's map, key, value and variable are there and fit.
fn resolve(
    statement: &Statement,
    object: &Object<'_>,
    loaded: &LoadedObject,
    cpu: u32,
) -> Result<(), String> {
    let types = object.btf();
    match statement {
        Statement::Set { map, key, value } => {
            Element::find(loaded, types, map, key, cpu)?.check(value)
        }
        Statement::Expect(Expected::Element { map, key, value }) => {
            let element = Element::find(loaded, types, map, key, cpu)?;
            value.iter().try_for_each(|value| element.check(value))
        }
        Statement::Expect(Expected::Entries { map, .. }) => maps::find(loaded, map).map(|_| ()),
        Statement::Expect(Expected::Record { map, .. }) => {
            match maps::find(loaded, map)?.map.kind() {
                MapKind::Ringbuf | MapKind::PerfEventArray => Ok(()),
                kind => Err(format!(
                    "map {map} is of kind {}; ring buffers and perf buffers have records",
                    kind.name()
                )),
            }
        }
        Statement::Expect(Expected::Global { name, value }) => {
            let (ty, mut bytes) = global(object, loaded, name)?;
            maps::read(types, ty, value, &mut bytes)
        }
        _ => Ok(()),
    }
}

/// Checks that what is expected is something that the run before it can give.
fn suits(expected: &Expected, run: &Statement, loaded: &mut LoadedObject) -> Result<(), String> {
    let (program, is_capture) = match run {
        Statement::Run { program, .. } => (program, false),
        Statement::Capture { program, .. } => (program, true),
        Statement::Set { .. } | Statement::Expect(_) => return Ok(()),
    };
    match expected {
        Expected::Verdict { name, count } => {
            if count.is_some() && !is_capture {
                return Err("a count is of packets of a capture, and the run is on one".to_owned());
            }
            let Some(kind) = loaded.program(program).map(|program| program.kind()) else {
                return Ok(());
            };
            let names = verdict_names(kind);
            let is_name = match names.is_empty() {
                true => name.parse::<i32>().is_ok(),
                false => names.contains(&&**name) || name.starts_with("unknown ("),
            };
            let names = match names.is_empty() {
                true => "numbers".to_owned(),
                false => names.join(", "),
            };
            let kind = kind.name();
            is_name.then_some(()).ok_or_else(|| {
                format!("programs of type {kind} have no verdict {name:?}; they have {names}")
            })
        }
        Expected::Retval(_)
        | Expected::Unchanged(_)
        | Expected::Bytes(..)
        | Expected::BytesAt { .. }
            if is_capture =>
        {
            Err("it is of a run on one packet, and the last run is on a capture".to_owned())
        }
        _ => Ok(()),
    }
}

/// Type and bytes of a global variable.
fn global(
    object: &Object<'_>,
    loaded: &LoadedObject,
    name: &str,
) -> Result<(beebox::btf::TypeId, Vec<u8>), String> {
    let Some(global) = object.global(name) else {
        let names: Vec<String> = object.globals().map(|global| global.name).collect();
        let names = names.join(", ");
        return Err(format!("the object has no variable {name}; it has {names}"));
    };
    let bytes = loaded
        .global_bytes(name)
        .map_err(|error| error.to_string())?;
    Ok((global.ty, bytes))
}

fn printed(got: Option<String>, expected: Option<&str>) -> Option<Difference> {
    let quote = |text: Option<&str>| match text {
        Some(text) => format!("{text:?}"),
        None => "nothing".to_owned(),
    };
    // The line end that many programs print may be left out.
    let is_equal = match (&got, expected) {
        (Some(got), Some(expected)) => got == expected || got.strip_suffix('\n') == Some(expected),
        (got, expected) => got.is_none() && expected.is_none(),
    };
    let (got, expected) = (quote(got.as_deref()), quote(expected));
    (!is_equal).then(|| format!("expected {expected}, got {got}").into())
}

/// Compares what a run gave.
fn of_run(expected: &Expected, ran: &Ran) -> Option<Difference> {
    let no_packet = || Some("the last run was on no single packet".to_owned().into());
    match (expected, ran) {
        (_, Ran::Stopped) => Some("there is no run that ended".to_owned().into()),
        (Expected::Verdict { name, count: None }, Ran::Packet { run, .. }) => {
            let (got, value) = (&run.verdict.name, run.retval as i32);
            (got != name).then(|| format!("expected {name}, got {got} ({value})").into())
        }
        (Expected::Verdict { name, count: None }, Ran::Capture(summary)) => {
            if summary.verdicts().next().is_none() {
                return Some(format!("expected {name}, the capture has no packets").into());
            }
            let others: Vec<String> = summary
                .verdicts()
                .filter(|(other, _)| other != name)
                .map(|(other, packets)| format!("{packets} {other}"))
                .collect();
            (!others.is_empty()).then(|| {
                format!("expected {name} for all packets, got {}", others.join(", ")).into()
            })
        }
        (
            Expected::Verdict {
                name,
                count: Some(count),
            },
            Ran::Capture(summary),
        ) => {
            let mut verdicts = summary.verdicts();
            let got = verdicts.find(|(other, _)| other == name);
            let got = got.map_or(0, |(_, packets)| packets);
            (got != *count).then(|| format!("expected {count} packets, got {got}").into())
        }
        (Expected::Retval(value), Ran::Packet { run, .. }) => (run.retval != *value).then(|| {
            let (value, got) = (*value as i32, run.retval as i32);
            format!("expected {value}, got {got} ({})", run.verdict.name).into()
        }),
        (
            Expected::Unchanged(output),
            Ran::Packet {
                packet,
                context,
                run,
            },
        ) => match output {
            Output::Data => of_bytes(packet, &run.data_out, 0),
            Output::Context => of_bytes(context, &run.ctx_out, 0),
        },
        (Expected::Bytes(output, bytes), Ran::Packet { run, .. }) => {
            of_bytes(bytes, left(*output, run), 0)
        }
        (
            Expected::BytesAt {
                output,
                offset,
                bytes,
            },
            Ran::Packet { run, .. },
        ) => {
            let left = left(*output, run);
            if *offset >= left.len() {
                let name = match output {
                    Output::Data => "packet",
                    Output::Context => "context",
                };
                let what = format!(
                    "expected bytes from {offset} on, the {name} has {}",
                    left.len()
                );
                return Some(what.into());
            }
            let start = (*offset).min(left.len());
            let end = offset.saturating_add(bytes.len()).min(left.len());
            of_bytes(bytes, &left[start..end.max(start)], *offset)
        }
        _ => no_packet(),
    }
}

/// Bytes that a run leaves.
fn left(output: Output, run: &TestRunOutput) -> &[u8] {
    match output {
        Output::Data => &run.data_out,
        Output::Context => &run.ctx_out,
    }
}

/// Compares a record.
fn record(
    types: &RecordTypes<'_>,
    got: Option<RunRecord>,
    expected: Option<&Value>,
) -> Result<Option<Difference>, String> {
    let show =
        |record: &RunRecord| serde_json::to_string(&types.show(record)).expect("keys are strings");
    match (expected, got) {
        (None, None) => Ok(None),
        (None, Some(record)) => Ok(Some(
            format!("expected no record, got {}", show(&record)).into(),
        )),
        (Some(value), None) => Ok(Some(format!("expected {value}, got no record").into())),
        (Some(value), Some(record)) => {
            let mut wanted = record.bytes.clone();
            types.read_into(&record, value, &mut wanted)?;
            Ok(of_value(value, &wanted, &record.bytes, &show(&record)))
        }
    }
}

/// Compares bytes that begin at an offset of the packet.
fn of_bytes(expected: &[u8], got: &[u8], offset: usize) -> Option<Difference> {
    if expected == got {
        return None;
    }
    let mut pairs = expected.iter().zip(got);
    let first = pairs.position(|(expected, got)| expected != got);
    let mut what = match first {
        Some(at) => format!(
            "byte {}: expected {:02x}, got {:02x}",
            offset + at,
            expected[at],
            got[at]
        ),
        None => String::new(),
    };
    if expected.len() != got.len() {
        let separator = if what.is_empty() { "" } else { "; " };
        let (expected, got) = (expected.len(), got.len());
        let plural = if expected == 1 { "" } else { "s" };
        let _ = write!(
            what,
            "{separator}expected {expected} byte{plural}, got {got}"
        );
    }
    // The row of the first difference.
    let row = first.unwrap_or(expected.len().min(got.len())) / 16 * 16;
    let mut excerpt = String::new();
    for (name, bytes) in [("expected", expected), ("got", got)] {
        let rest = &bytes[row.min(bytes.len())..];
        let _ = writeln!(excerpt, "  {name}:");
        hex_rows(
            &mut excerpt,
            (offset + row) as u64,
            &rest[..rest.len().min(16)],
        );
    }
    Some(Difference { what, excerpt })
}

/// Comparison of a map or variable.
#[derive(Default)]
struct Compared {
    difference: Option<Difference>,
    /// Members that the expected value leaves out.
    left_out: Vec<String>,
    /// Members of the key that are left out, which are 0.
    key_left_out: Vec<String>,
}

/// Compares maps and variables.
fn in_maps(
    expected: &Expected,
    object: &Object<'_>,
    loaded: &LoadedObject,
    cpu: u32,
) -> Result<Compared, String> {
    let types = object.btf();
    match expected {
        Expected::Entries { map, count } => {
            let map: &ObjectMap = maps::find(loaded, map)?;
            let got = map.entries().map_err(|errno| errno.to_string())?.len();
            let difference = || format!("expected {count} entries, got {got}").into();
            Ok(Compared {
                difference: (got != *count).then(difference),
                ..Compared::default()
            })
        }
        Expected::Element { map, key, value } => {
            let element = Element::find(loaded, types, map, key, cpu)?;
            let got = element.load()?;
            let difference = match (value, got) {
                (None, None) => None,
                (None, Some(bytes)) => {
                    let got = element.show(&bytes);
                    Some(format!("expected no element, got {got}").into())
                }
                (Some(value), None) => Some(format!("expected {value}, got no element").into()),
                (Some(value), Some(bytes)) => {
                    let mut wanted = bytes.clone();
                    element.read_into(value, &mut wanted)?;
                    of_value(value, &wanted, &bytes, &element.show(&bytes))
                }
            };
            let left_out = value.iter().flat_map(|value| element.left_out(value));
            Ok(Compared {
                difference,
                left_out: left_out.collect(),
                key_left_out: element.key_left_out().to_vec(),
            })
        }
        Expected::Global { name, value } => {
            let (ty, bytes) = global(object, loaded, name)?;
            let mut wanted = bytes.clone();
            maps::read(types, ty, value, &mut wanted)?;
            let shown = maps::show(types, ty, &bytes);
            Ok(Compared {
                difference: of_value(value, &wanted, &bytes, &shown),
                left_out: maps::left_out(types, ty, value, bytes.len()),
                key_left_out: Vec::new(),
            })
        }
        _ => Ok(Compared::default()),
    }
}

/// Compares a value with what it is with the expected members.
fn of_value(expected: &Value, wanted: &[u8], got: &[u8], shown: &str) -> Option<Difference> {
    let mut pairs = wanted.iter().zip(got);
    let at = pairs.position(|(wanted, got)| wanted != got)?;
    Some(format!("expected {expected}, got {shown} (differs from byte {at} on)").into())
}
