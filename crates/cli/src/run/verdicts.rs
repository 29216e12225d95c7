//! `--verdicts`: a row for each packet.

use beebox::Engine;
use beebox::internal::run::{PacketRows, RowForm, RunEnd};

use super::RunFormat;
use super::output::limit_text;
use crate::answer::{Answer, note};
use crate::answer_format::AnswerFormat;
use crate::stdout::streamed_output;

/// Begins the rows with their heading.
pub(super) fn start(format: RunFormat, engine: Engine) -> PacketRows {
    let (form, answer) = match format {
        RunFormat::Text => (RowForm::Text, AnswerFormat::Text),
        RunFormat::Csv => (RowForm::Csv, AnswerFormat::Text),
        RunFormat::Json => (RowForm::Json, AnswerFormat::Json),
        RunFormat::Html | RunFormat::Junit => (RowForm::Json, AnswerFormat::Text),
    };
    PacketRows::start(Box::new(streamed_output(answer)), form, engine)
}

/// The answer behind the rows of data, which says what stopped the run on standard error.
pub(super) fn ended(end: &RunEnd) -> Answer {
    match end {
        RunEnd::Stopped { packet, error } => {
            let packet = packet.map_or_else(String::new, |packet| format!("packet {packet}: "));
            note(format_args!("{packet}{}", limit_text(error)));
            Answer::No
        }
        RunEnd::Packet { .. } | RunEnd::Capture { .. } => Answer::Yes,
    }
}
