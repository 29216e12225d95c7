//! Runs of an expectation file, and their results.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;

use crate::internal::bytes::ByteSource;
use crate::internal::captures::{CaptureError, Input};
use crate::internal::run::{
    CaptureSummary, LoadedObject, PacketRun, PrintedText, RunCaptureError, RunError, RunRecord,
    RunnableProgram, TestRunOutput, packet_behind,
};

use super::ExpectProblem;
use super::context;
use super::statement::{ContextSource, Statement};

/// Result of the last run.
pub(super) enum Ran {
    Packet {
        packet: Vec<u8>,
        /// The context that the statement gives.
        context: Option<Vec<u8>>,
        run: Box<TestRunOutput>,
        /// Executed instructions, if they were counted.
        executed: Option<u64>,
    },
    Capture(Summary),
    /// It did not end with a value.
    Stopped,
}

/// Most printed texts of a capture that are held to expectations, and most bytes of records.
pub(super) const MOST_TEXTS: usize = PrintedText::MOST;
pub(super) const MOST_RECORD_BYTES: usize = 64 << 20;

/// The results of a run over a capture.
#[derive(Default)]
pub(super) struct Summary {
    counts: CaptureSummary,
    /// Most instructions of a run by verdict, with its packet.
    most: Vec<(String, u64, u64)>,
    /// Verdicts with the number of their first packet.
    first: Vec<(String, u64)>,
    texts: Vec<String>,
    records: Vec<RunRecord>,
    record_bytes: usize,
    /// Texts and records beyond the limits.
    lost: u64,
}

impl Summary {
    pub(super) fn add(&mut self, run: PacketRun<'_>) {
        let verdict = &run.verdict.name;
        if !self.first.iter().any(|(known, _)| known == verdict) {
            self.first.push((verdict.to_string(), run.packet));
        }
        if let Some(executed) = run.executed {
            match self.most.iter_mut().find(|(known, ..)| known == verdict) {
                Some((_, most, packet)) if *most < executed => {
                    (*most, *packet) = (executed, run.packet);
                }
                Some(_) => {}
                None => self.most.push((verdict.to_string(), executed, run.packet)),
            }
        }
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

    /// The first packet of a verdict that has a property.
    pub(super) fn first(&self, is_it: impl Fn(&String) -> bool) -> Option<u64> {
        let mut first = self.first.iter();
        first
            .find(|(verdict, _)| is_it(verdict))
            .map(|(_, packet)| *packet)
    }

    /// Most instructions of a run, of those with a verdict if one is given, and its packet.
    pub(super) fn most(&self, verdict: Option<&str>) -> Option<(u64, u64)> {
        let runs = self.most.iter();
        let runs = runs.filter(|(name, ..)| verdict.is_none_or(|verdict| name == verdict));
        runs.map(|(_, most, packet)| (*most, *packet))
            .max_by_key(|(most, _)| *most)
    }

    /// Names of the verdicts, with numbers of packets.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = (&str, u64)> {
        let verdicts = self.counts.verdicts.iter();
        verdicts.map(|count| (count.name.as_str(), count.packets))
    }
}

impl Ran {
    /// Number of texts and records that are not known, if there are some.
    pub(super) fn lost(&self) -> Option<u64> {
        let lost = match self {
            Ran::Packet { run, .. } => run.printk.lost,
            Ran::Capture(summary) => summary.lost,
            Ran::Stopped => 0,
        };
        (lost > 0).then_some(lost)
    }

    pub(super) fn printed(&self) -> Vec<String> {
        match self {
            Ran::Packet { run, .. } => run.printk.texts.clone(),
            Ran::Capture(summary) => summary.texts.clone(),
            Ran::Stopped => Vec::new(),
        }
    }

    pub(super) fn records(&self) -> Vec<RunRecord> {
        match self {
            Ran::Packet { run, .. } => run.records.clone(),
            Ran::Capture(summary) => summary.records.clone(),
            Ran::Stopped => Vec::new(),
        }
    }
}

/// Runs a program; the inner error is a trap or a limit.
pub(super) fn run(
    statement: &Statement,
    program: &mut RunnableProgram<'_>,
    loaded: &LoadedObject,
) -> Result<Result<Ran, RunError>, ExpectProblem> {
    match statement {
        Statement::Run { repeat, .. } => {
            let (packet, context) = inputs(statement, loaded)?;
            match program.test_run_with_context(&packet, context.as_deref(), *repeat) {
                Ok(mut run) => {
                    let left = packet_behind(program.kind(), &packet, &run.data_out);
                    if let Some(left) = left.map(Cow::into_owned) {
                        run.data_out = left;
                    }
                    Ok(Ok(Ran::Packet {
                        packet,
                        context,
                        run: Box::new(run),
                        executed: program.executed(),
                    }))
                }
                Err(error) if error.is_stop() => Ok(Err(error)),
                Err(error) => Err(ExpectProblem::Run(Box::new(error))),
            }
        }
        Statement::Capture { path, .. } => {
            let mut summary = Summary::default();
            match program.run_capture(open(path)?, None, &mut |run, _| summary.add(run)) {
                Ok(counts) => Ok(Ok(Ran::Capture(Summary { counts, ..summary }))),
                Err(RunCaptureError::Run { error, .. }) if error.is_stop() => Ok(Err(error)),
                Err(stop) => Err(ExpectProblem::Capture {
                    path: path.clone(),
                    stop: Box::new(stop),
                }),
            }
        }
        _ => unreachable!("no run"),
    }
}

/// Packet and context of a run.
pub(super) fn inputs(
    statement: &Statement,
    loaded: &LoadedObject,
) -> Result<(Vec<u8>, Option<Vec<u8>>), ExpectProblem> {
    let Statement::Run {
        program,
        packet,
        context,
        ..
    } = statement
    else {
        return Ok((Vec::new(), None));
    };
    let packet = packet.as_ref().map(ByteSource::read_packet).transpose()?;
    let context = match context {
        None => None,
        Some(ContextSource::Bytes(source)) => Some(source.read()?),
        Some(ContextSource::Fields(value)) => {
            let bytes = context::context(loaded, program, value);
            Some(bytes.map_err(ExpectProblem::Unsuitable)?)
        }
    };
    Ok((packet.unwrap_or_default(), context))
}

/// Opens a capture; the path `-` is standard input.
pub(super) fn open(path: &Path) -> Result<Input, ExpectProblem> {
    let unreadable = |error| ExpectProblem::File {
        path: path.to_owned(),
        error,
    };
    let file = match path == Path::new("-") {
        true if io::stdin().is_terminal() => return Err(ExpectProblem::Terminal),
        true => sys::files::standard_input().map_err(unreadable)?,
        false => File::open(path).map_err(unreadable)?,
    };
    Input::try_open(file).map_err(|error: CaptureError| ExpectProblem::Capture {
        path: path.to_owned(),
        stop: Box::new(RunCaptureError::Capture(error)),
    })
}
