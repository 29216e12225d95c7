//! Expectation files: the run of the command line, and what the command says of errors.

use report::json::pretty;
use std::path::Path;

use beebox::expect::{CheckReport, ExpectFile};
use beebox::internal::expect::ExpectError;
use beebox::internal::expect::ExpectProblem;
use beebox::internal::expect::FORM;
use beebox::internal::run::{RunCaptureError, RunError};

use super::maps_file::note_left_out;
use super::output::limit_text;
use super::{Args, RunFormat, why_command};
use crate::answer::{Answer, Failure};
use crate::capture_file;
use crate::input::source_failure;
use crate::stdout::{print_folded, write_json, write_output};

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<ExpectFile, Failure> {
    ExpectFile::try_open(path).map_err(failure)
}

/// The failure for a file that is not read or not checked, after notes on what it left out.
pub(crate) fn failure(error: ExpectError) -> Failure {
    note_left_out(&error.file, &error.zeroed);
    let is_of_line = error.line.is_some();
    let place = match error.line {
        Some(line) => format!("{}:{line}", error.file),
        None => error.file.clone(),
    };
    match error.problem {
        ExpectProblem::File { path, error } => {
            let failure = Failure::of_file(&path, &error);
            match is_of_line {
                true => failure.within(place),
                false => failure,
            }
        }
        ExpectProblem::Source(error) => source_failure(*error).within(place),
        ExpectProblem::Capture { path, stop } => match *stop {
            RunCaptureError::Capture(error) => capture_file::unopened(&path, error, true),
            stop => capture_file::stopped(&path, None, stop),
        }
        .within(place),
        // The words of a packet are no statement.
        ExpectProblem::Statement { what, .. } if what.starts_with("column ") => {
            Failure::new(what).within(place)
        }
        ExpectProblem::Statement { what, forms } => Failure::new(what)
            .within(place)
            .hint(format_args!("one of these statements on a line:\n{forms}")),
        problem @ (ExpectProblem::NoText | ExpectProblem::Empty) => Failure::new(problem)
            .within(place)
            .hint(format_args!("one of these statements on a line:\n{FORM}")),
        problem => Failure::new(problem).within(place),
    }
}

/// Adds the run of the command line to a file that lists none.
pub(super) fn insert_run(file: &mut ExpectFile, program: &str, args: &Args) {
    let repeat = args.repeat.unwrap_or(1);
    match (&args.inputs.packet, &args.inputs.pcap) {
        (None, Some(path)) => file.insert_capture(program, path.clone(), "--pcap"),
        (packet, _) => {
            let option = if packet.is_some() {
                "--packet"
            } else {
                "--ctx"
            };
            file.insert_run(
                program,
                packet.clone(),
                args.inputs.ctx.clone(),
                repeat,
                option,
            );
        }
    }
}

/// Prints the results.
pub(super) fn print(mut report: CheckReport, args: &Args) -> Result<Answer, Failure> {
    let format = args.format();
    for checked in &mut report.expectations {
        if let Some(difference) = &mut checked.difference
            && let Some(limit @ (RunError::Deadline | RunError::TooLong(_) | RunError::Memory(_))) =
                &difference.stopped
        {
            difference.what = limit_text(limit);
        }
    }
    let differences = report.expectations.iter_mut();
    for difference in differences.filter_map(|checked| checked.difference.as_mut()) {
        if let Some((_, why)) = &mut difference.shown_by {
            *why = why_command::of_options(args, why);
        }
    }
    match format {
        RunFormat::Text => print_folded(&report.to_string())?,
        RunFormat::Json => {
            let record = serde_json::to_value(&report).map_err(Failure::new)?;
            write_json(pretty(&record).as_bytes())?;
        }
        RunFormat::Csv => return Err(Failure::new("--format csv shows --verdicts")),
        RunFormat::Html => return Err(Failure::new("--format html shows --why")),
        RunFormat::Junit => write_output(report.junit().as_bytes(), None)?,
    }
    Ok(match report.is_met() {
        true => Answer::Yes,
        false => Answer::No,
    })
}
