//! Filtering the captures: one after the other, or merged by time.

use std::time::Instant;

use beebox::JumpLimitExceeded;
use beebox::captures::PacketCounts;
use beebox::internal::captures::{
    self, FileCounts, FilterCaptureError, FilterSummary, Options, Output,
};
use sys::interruptible::Interruption;

use super::inputs::NamedInput;
use super::programs::Chosen;
use super::stopwatch::Stopwatch;
use super::summary::{self, Progress};
use super::{Args, inputs, output};
use crate::answer::{Answer, Failure};
use crate::output_path::OutputPath;

/// Result of filtering.
struct Run {
    /// The captures that were read, with their counts.
    files: Vec<FileCounts>,
    jobs: usize,
    /// Time spent waiting for input.
    waited: Stopwatch,
    /// Failure that ended it before the end of the captures.
    fault: Option<Failure>,
    /// True if it is one of a capture.
    is_damaged: bool,
}

/// Filters all captures, as far as there is no fault. A signal that ends their reading ends the
/// process when the output is complete.
pub(super) fn filter_all(
    mut inputs: Vec<NamedInput>,
    programs: &Chosen,
    args: &Args,
    output: Option<OutputPath<'_>>,
    interruption: &Interruption,
) -> Result<Answer, Failure> {
    let start = Instant::now();
    let outside = Stopwatch::default();
    let options = Options {
        jobs: threads(args, programs),
        limit: args.limit,
        snaplen: args.snaplen.filter(|bytes| *bytes > 0),
    };
    let mut target = match output {
        Some(path) => {
            let format = args.output_format;
            let created = output::Target::create(path, format, &mut inputs, &outside, interruption);
            Some(created?)
        }
        None => None,
    };
    let mut output = target.as_mut().map(output::Target::output);
    let mut run = match args.merge {
        true => merged(inputs, programs, &options, output.as_mut(), args),
        false => one_after_the_other(inputs, programs, options, output.as_mut(), args)?,
    };
    let signal = interruption.received().filter(|_| run.is_damaged);
    if signal.is_some() {
        run.fault = None;
    }
    if let Some(warning) = programs.link_type_warning() {
        diagnostic!("beebox: warning: {warning}");
    }
    let written = match target {
        // What a damaged capture has before the damage is the output; after other faults there
        // is none.
        Some(target) if run.fault.is_none() || run.is_damaged => target.finish(args.output.given()),
        _ => Ok(()),
    };
    let summary = FilterSummary {
        files: run.files,
        elapsed: start.elapsed(),
        outside: outside.elapsed() + run.waited.elapsed(),
        engine: args.engine,
        jobs: run.jobs,
    };
    summary::print(&summary, args, run.fault.as_ref())?;
    if let (Some(signal), Ok(())) = (signal, &written) {
        signal.raise();
    }
    match (run.fault, written) {
        (Some(failure), _) | (None, Err(failure)) => Err(failure),
        (None, Ok(())) if summary.total().matched == 0 => Ok(Answer::No),
        (None, Ok(())) => Ok(Answer::Yes),
    }
}

fn one_after_the_other(
    inputs: Vec<NamedInput>,
    programs: &Chosen,
    mut options: Options,
    mut output: Option<&mut Output<'_>>,
    args: &Args,
) -> Result<Run, Failure> {
    if let Some(output) = &mut output {
        let started = output.start_file(&options);
        started.map_err(|error| output::failure(args.output.given(), &error))?;
    }
    let mut progress = Progress::new(&inputs);
    let mut run = Run {
        files: Vec::new(),
        jobs: 1,
        waited: Stopwatch::default(),
        fault: None,
        is_damaged: false,
    };
    for NamedInput {
        name,
        input,
        waiting,
        ..
    } in inputs
    {
        let done = progress.done();
        run.jobs = run.jobs.max(input.threads(options.jobs));
        let (tally, result) = captures::filter_capture(
            input,
            programs,
            &options,
            output.as_deref_mut(),
            &mut |offset| progress.show(done + offset),
        );
        run.waited.add(waiting.elapsed());
        options.limit = options.limit.map(|limit| limit - tally.matched);
        if let Err(stop) = result {
            run.is_damaged = matches!(stop, FilterCaptureError::Capture(_));
            run.fault = Some(stopped(stop, &name, programs, args));
        }
        run.files.push(FileCounts {
            name,
            counts: tally,
        });
        if run.fault.is_some() || options.limit == Some(0) {
            break;
        }
    }
    progress.clear();
    Ok(run)
}

fn merged(
    inputs: Vec<NamedInput>,
    programs: &Chosen,
    options: &Options,
    output: Option<&mut Output<'_>>,
    args: &Args,
) -> Run {
    let mut progress = Progress::new(&inputs);
    let (mut names, mut waiting, mut opened) = (Vec::new(), Vec::new(), Vec::new());
    for named in inputs {
        names.push(named.name);
        waiting.push(named.waiting);
        opened.push(named.input);
    }
    let result = captures::merge(opened, programs, options, output, &mut |offset| {
        progress.show(offset)
    });
    progress.clear();
    let waited = Stopwatch::default();
    waiting.iter().for_each(|one| waited.add(one.elapsed()));
    let is_damaged = matches!(result.stopped, Some((_, FilterCaptureError::Capture(_))));
    let fault = result
        .stopped
        .map(|(at, stop)| stopped(stop, &names[at], programs, args));
    let tallies = result.tallies.into_iter();
    let file = |(name, counts): (String, PacketCounts)| FileCounts { name, counts };
    Run {
        files: names.into_iter().zip(tallies).map(file).collect(),
        jobs: 1,
        waited,
        fault,
        is_damaged,
    }
}

/// Number of threads. A filter that draws random numbers uses one, so that the result does
/// not depend on the distribution of packets.
fn threads(args: &Args, programs: &Chosen) -> usize {
    let wanted = match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    if programs.draws_random_numbers() {
        1
    } else {
        wanted
    }
}

/// Warning about a capture that was not read to its end.
fn stopped(stop: FilterCaptureError, name: &str, programs: &Chosen, args: &Args) -> Failure {
    match stop {
        FilterCaptureError::Capture(error) => inputs::unreadable(name, &error),
        FilterCaptureError::Program { packet, refusal } => {
            programs.refused(&refusal, &format!("{name}: packet {packet}"))
        }
        FilterCaptureError::JumpLimit { packet } => {
            Failure::new(format_args!("{name}: packet {packet}: {JumpLimitExceeded}"))
        }
        FilterCaptureError::LinkType { packet, mismatch } => {
            output::other_link_type(mismatch).within(format_args!("{name}: packet {packet}"))
        }
        FilterCaptureError::Output(error) => output::failure(args.output.given(), &error),
    }
}
