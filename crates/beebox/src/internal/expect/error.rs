//! The error of expectation files.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use ::kernel::model::ModelError;

use crate::internal::bytes::ByteSourceError;
use crate::internal::maps_json::LeftOut;
use crate::internal::name_of;
use crate::internal::run::{RunCaptureError, RunError};

/// Reason why an expectation file is not read or not checked: the file, the line and the fact.
#[derive(Debug)]
pub struct ExpectError {
    /// Name of the file.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// The fact.
    #[doc(hidden)]
    pub problem: ExpectProblem,
    /// Members that statements before it left out, which are 0.
    pub zeroed: Vec<LeftOut>,
}

/// Kinds of faults of expectation files.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExpectProblem {
    /// A file cannot be read: the file itself, or a capture.
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not text (UTF-8).
    NoText,
    /// The file has no expectation.
    Empty,
    /// A line is no statement.
    Statement {
        /// The fact.
        what: String,
        /// The forms of what it may be, of [`FORM`](super::FORM).
        forms: String,
    },
    /// A statement names what the object does not have, or does not suit the run before it.
    Unsuitable(String),
    /// A model of the kernel does not take a value.
    Value {
        /// The fact.
        what: String,
        /// Bytes of the statement in front of the value, if they are known.
        at: Option<usize>,
    },
    /// A packet or context cannot be read.
    Source(Box<ByteSourceError>),
    /// The capture is standard input, which is a terminal.
    Terminal,
    /// A capture is damaged, or a run on it failed.
    Capture {
        /// Its path.
        path: PathBuf,
        /// Why the runs stopped.
        stop: Box<RunCaptureError>,
    },
    /// No loaded program has this name.
    NoProgram(String),
    /// The program does not take its packet or context.
    Run(Box<RunError>),
    /// A run handed over more texts and records than are kept.
    Lost {
        /// Texts and records beyond those that are kept.
        lost: u64,
        /// Most texts that are kept.
        texts: usize,
        /// Most bytes of records that are kept.
        record_bytes: usize,
    },
}

impl ExpectError {
    pub(super) fn new(file: &str, line: Option<usize>, problem: ExpectProblem) -> ExpectError {
        ExpectError {
            file: file.to_owned(),
            line,
            problem,
            zeroed: Vec::new(),
        }
    }
}

impl From<ByteSourceError> for ExpectProblem {
    fn from(error: ByteSourceError) -> ExpectProblem {
        ExpectProblem::Source(Box::new(error))
    }
}

impl From<ModelError> for ExpectProblem {
    fn from(error: ModelError) -> ExpectProblem {
        ExpectProblem::Value {
            what: error.what,
            at: error.at,
        }
    }
}

impl fmt::Display for ExpectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectProblem::File { path, error } => write!(f, "{}: {error}", name_of(path)),
            ExpectProblem::NoText => write!(f, "no text"),
            ExpectProblem::Empty => write!(f, "it expects nothing"),
            ExpectProblem::Statement { what, .. }
            | ExpectProblem::Unsuitable(what)
            | ExpectProblem::Value { what, .. } => f.write_str(what),
            ExpectProblem::Source(error) => error.fmt(f),
            ExpectProblem::Terminal => write!(f, "standard input is a terminal, not a capture"),
            ExpectProblem::Capture { path, stop } => write!(f, "{}: {stop}", name_of(path)),
            ExpectProblem::NoProgram(program) => write!(f, "program {program} is not loaded"),
            ExpectProblem::Run(error) => error.fmt(f),
            ExpectProblem::Lost {
                lost,
                texts,
                record_bytes,
            } => write!(
                f,
                "{lost} texts and records of the run are beyond those that are held to \
                 expectations: {texts} texts, {record_bytes} bytes of records"
            ),
        }
    }
}

impl Error for ExpectProblem {}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.problem) {
            (Some(line), problem) => write!(f, "{}:{line}: {problem}", self.file),
            // The path is the file's.
            (None, problem @ ExpectProblem::File { .. }) => problem.fmt(f),
            (None, problem) => write!(f, "{}: {problem}", self.file),
        }
    }
}

impl Error for ExpectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            ExpectProblem::File { error, .. } => Some(error),
            ExpectProblem::Source(error) => Some(&**error),
            ExpectProblem::Capture { stop, .. } => Some(&**stop),
            ExpectProblem::Run(error) => Some(&**error),
            _ => None,
        }
    }
}
