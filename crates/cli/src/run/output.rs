//! Output of `beebox run`.

use std::io::Write as _;

use beebox::internal::run::{RunAnswer, RunEnd, RunError};
use report::json::write_pretty;

use super::RunFormat;
use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::limits::TIMED_OUT;
use crate::stdout::{self, streamed_output, written};

/// Names the limit that ended a run, with its option.
pub(super) fn limit_text(error: &RunError) -> String {
    match error {
        RunError::Deadline => TIMED_OUT.to_owned(),
        RunError::TooLong(_) => format!("{error}; --timeout SECONDS sets one of all runs"),
        RunError::Memory(_) => format!("{error}; --memory SIZE sets another"),
        error => error.to_string(),
    }
}

/// Prints what came of runs; a trap and the time limit are a no.
pub(super) fn print(ran: &RunAnswer<'_>, format: RunFormat) -> Result<Answer, Failure> {
    if let Some(error) = ran.outputs.fault() {
        let place = std::env::temp_dir();
        let what = format_args!("temporary file in {}: {error}", place.display());
        return Err(Failure::new(what).hint("TMPDIR=DIRECTORY, where there is room"));
    }
    match format {
        RunFormat::Text => {
            stdout::print(&ran.head_text())?;
            let mut out = streamed_output(AnswerFormat::Text);
            written(ran.write_rest(&mut out).and_then(|()| out.finish()))?;
        }
        RunFormat::Json => {
            let mut out = streamed_output(AnswerFormat::Json);
            let result = write_pretty(&mut out, ran);
            let result = result.and_then(|()| out.write_all(b"\n"));
            written(result.and_then(|()| out.finish()))?;
        }
        RunFormat::Csv => return Err(Failure::new("--format csv shows --verdicts")),
        RunFormat::Html => return Err(Failure::new("--format html shows --why")),
        RunFormat::Junit => return Err(Failure::new("--format junit needs --expect FILE")),
    }
    Ok(match ran.end {
        RunEnd::Stopped { .. } => Answer::No,
        RunEnd::Packet { .. } | RunEnd::Capture { .. } => Answer::Yes,
    })
}
