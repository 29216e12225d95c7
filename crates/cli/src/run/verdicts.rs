//! `--verdicts`: a row for each packet.

use std::io::{self, Write};

use beebox::Engine;
use beebox::internal::run::{PacketRows, RowForm, RunEnd};

use super::RunFormat;
use super::output::limit_text;
use crate::answer::{Answer, note};
use crate::answer_format::AnswerFormat;
use crate::stdout::{print_styled, streamed_output};

/// Standard output for text with styles.
struct Styled;

impl Write for Styled {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        print_styled(&String::from_utf8_lossy(text))?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins the rows with their heading.
pub(super) fn start(format: RunFormat, engine: Engine) -> PacketRows {
    let (form, answer) = match format {
        RunFormat::Text => (RowForm::Text, AnswerFormat::Text),
        RunFormat::Csv => (RowForm::Csv, AnswerFormat::Text),
        RunFormat::Json => (RowForm::Json, AnswerFormat::Json),
        RunFormat::Html | RunFormat::Junit => (RowForm::Json, AnswerFormat::Text),
    };
    let out: Box<dyn Write> = match form {
        RowForm::Text => Box::new(Styled),
        RowForm::Csv | RowForm::Json => Box::new(streamed_output(answer)),
    };
    PacketRows::start(out, form, engine)
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
