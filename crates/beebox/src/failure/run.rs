//! Errors of loading and running objects.

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;

use interp::checked::Reason;
use spec::Errno;
use verifier::Refusal;
use verifier::reason::Explanation;

use super::{Cause, Error, ErrorKind};
use crate::internal::bytes::ByteSourceError;
use crate::internal::expect::{ExpectError, ExpectProblem};
use crate::internal::maps_json::MapsJsonError;
use crate::internal::name_of;
use crate::internal::network::NetworkFileError;
use crate::internal::run::{DataError, LoadError, RunCaptureError, RunError};

/// What an [`Error`] of loading and running says.
#[derive(Debug)]
pub(crate) enum RunCause {
    Load(LoadError),
    Run(RunError),
    Data(DataError),
    Capture(RunCaptureError),
    /// A file of maps.
    MapsFile(PathBuf, MapsJsonError),
    Maps(MapsJsonError),
    /// Maps that cannot be written as JSON.
    Json(String),
    /// A form of a field of a map.
    MapFormat(String),
    /// A property, a map or a file of inputs that a program cannot be fuzzed with.
    #[cfg(feature = "fuzz")]
    Fuzz(String),
    Expect(Box<ExpectError>),
    Network(NetworkFileError),
    /// What a model of the kernel does not take.
    Model(String),
    /// No program has this name; those that there are.
    NoProgram(String, Vec<String>),
    /// No map of the object has this name; those that there are.
    NoMap(String, Vec<String>),
    /// Linux's test run answers this error number to an option.
    Option(&'static str, Errno),
    /// An option of test runs that only Linux has.
    UnsupportedOption(&'static str),
}

impl RunCause {
    /// Its category.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            RunCause::Load(error) => load_kind(error),
            RunCause::Run(error) => run_kind(error),
            RunCause::Data(error) => match error {
                DataError::NoMap { .. } | DataError::NoVariable { .. } => ErrorKind::NotFound,
                DataError::Size { .. } | DataError::PerCpu { .. } => ErrorKind::Type,
                DataError::Map { .. } => ErrorKind::Map,
            },
            RunCause::Capture(stop) => capture_kind(stop),
            RunCause::MapsFile(..) | RunCause::Maps(_) => ErrorKind::Format,
            RunCause::Expect(error) => match &error.problem {
                ExpectProblem::File { .. } | ExpectProblem::Terminal => ErrorKind::File,
                ExpectProblem::Run(error) => run_kind(error),
                ExpectProblem::Capture { stop, .. } => capture_kind(stop),
                ExpectProblem::Source(error) => match **error {
                    ByteSourceError::File { .. } => ErrorKind::File,
                    _ => ErrorKind::Input,
                },
                _ => ErrorKind::Format,
            },
            RunCause::Network(_) => ErrorKind::Format,
            RunCause::Model(_) => ErrorKind::Input,
            RunCause::Json(_) => ErrorKind::Map,
            RunCause::MapFormat(_) => ErrorKind::Input,
            #[cfg(feature = "fuzz")]
            RunCause::Fuzz(_) => ErrorKind::Input,
            RunCause::NoProgram(..) | RunCause::NoMap(..) => ErrorKind::NotFound,
            RunCause::Option(..) => ErrorKind::Input,
            RunCause::UnsupportedOption(_) => ErrorKind::Unsupported,
        }
    }

    /// The verifier's refusal, if it refuses a program.
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        match self {
            RunCause::Load(LoadError::Refused { refusal, .. }) => Some(refusal),
            _ => None,
        }
    }

    /// The explanation of that refusal: its cause, the source line, the way there.
    pub(super) fn explanation(&self) -> Option<&Explanation> {
        match self {
            RunCause::Load(LoadError::Refused { explanation, .. }) => explanation.as_deref(),
            _ => None,
        }
    }

    /// Linux's error number for it, if Linux has one.
    pub(super) fn errno(&self) -> Option<Errno> {
        match self {
            RunCause::Load(error) => match error {
                LoadError::MapUnavailable { errno, .. }
                | LoadError::InnerMap { errno, .. }
                | LoadError::PerfBuffers { errno, .. }
                | LoadError::ProgramArray { errno, .. } => Some(*errno),
                LoadError::Map(map) => Some(map.refusal.errno),
                LoadError::Memory { .. } => Some(Errno::ENOMEM),
                LoadError::Refused { refusal, .. } => Some(refusal.errno),
                _ => None,
            },
            RunCause::Run(error) => run_errno(error),
            RunCause::Expect(error) => match &error.problem {
                ExpectProblem::Run(error) => run_errno(error),
                _ => None,
            },
            RunCause::Data(DataError::Map { errno, .. }) | RunCause::Option(_, errno) => {
                Some(*errno)
            }
            _ => None,
        }
    }
}

fn run_errno(error: &RunError) -> Option<Errno> {
    match error {
        RunError::Context { errno, .. } | RunError::Size { errno, .. } => Some(*errno),
        RunError::Group(errno) => Some(*errno),
        _ => None,
    }
}

fn capture_kind(stop: &RunCaptureError) -> ErrorKind {
    match stop {
        RunCaptureError::Run { error, .. } => run_kind(error),
        RunCaptureError::Output(_) | RunCaptureError::Filter(_) => ErrorKind::File,
        RunCaptureError::Capture(_)
        | RunCaptureError::LinkType { .. }
        | RunCaptureError::OtherLinkType(_) => ErrorKind::Capture,
    }
}

fn load_kind(error: &LoadError) -> ErrorKind {
    match error {
        LoadError::Link(_) | LoadError::Functions(_) => ErrorKind::Object,
        LoadError::Map(_)
        | LoadError::InnerMap { .. }
        | LoadError::ProgramArray { .. }
        | LoadError::Refused { .. } => ErrorKind::Refused,
        LoadError::Memory { .. } => ErrorKind::Limit,
        LoadError::Reuse { .. } => ErrorKind::Incompatible,
        LoadError::PerfBuffers { .. } => ErrorKind::Map,
        LoadError::NoRegistry
        | LoadError::MapUnavailable { .. }
        | LoadError::Type { .. }
        | LoadError::Function { .. }
        | LoadError::Unsupported { .. } => ErrorKind::Unsupported,
    }
}

fn run_kind(error: &RunError) -> ErrorKind {
    match error {
        RunError::Context { .. }
        | RunError::Group(_)
        | RunError::NoPackets(_)
        | RunError::AttachType(_)
        | RunError::Size { .. }
        | RunError::Cpu(_)
        | RunError::NoRoom(_) => ErrorKind::Input,
        RunError::Helper(_) => ErrorKind::Unsupported,
        RunError::Deadline | RunError::TooLong(_) | RunError::Timers(_) | RunError::Memory(_) => {
            ErrorKind::Limit
        }
        RunError::Trap(place) => match place.trap.reason {
            Reason::InstructionLimit(_) => ErrorKind::Limit,
            _ => ErrorKind::Trap,
        },
    }
}

impl fmt::Display for RunCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunCause::Load(error) => error.fmt(f),
            RunCause::Run(error) => error.fmt(f),
            RunCause::Data(error) => error.fmt(f),
            RunCause::Capture(error) => error.fmt(f),
            RunCause::MapsFile(path, error) => write!(f, "{}: {error}", name_of(path)),
            RunCause::Maps(error) => error.fmt(f),
            RunCause::Json(error) | RunCause::MapFormat(error) => f.write_str(error),
            #[cfg(feature = "fuzz")]
            RunCause::Fuzz(what) => f.write_str(what),
            RunCause::Expect(error) => error.fmt(f),
            RunCause::Network(error) => error.fmt(f),
            RunCause::Model(what) => f.write_str(what),
            RunCause::NoProgram(name, known) => write!(
                f,
                "the instance has no program {name}; there are {}",
                known.join(", ")
            ),
            RunCause::NoMap(name, known) => write!(
                f,
                "the object has no map {name}; there are {}",
                known.join(", ")
            ),
            RunCause::Option(rule, errno) => write!(f, "{rule}: Linux's test run answers {errno}"),
            RunCause::UnsupportedOption(option) => {
                write!(
                    f,
                    "{option}: Linux's test run takes it, that of Beebox does not"
                )
            }
        }
    }
}

impl RunCause {
    /// The error behind it.
    pub(super) fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            RunCause::Load(error) => error.source(),
            RunCause::Run(error) => error.source(),
            RunCause::Data(error) => error.source(),
            RunCause::Capture(error) => error.source(),
            RunCause::MapsFile(_, error) => Some(error),
            RunCause::Maps(error) => error.source(),
            RunCause::Expect(error) => error.source(),
            #[cfg(feature = "fuzz")]
            RunCause::Fuzz(_) => None,
            RunCause::Json(_)
            | RunCause::MapFormat(_)
            | RunCause::Network(_)
            | RunCause::Model(_)
            | RunCause::NoProgram(..)
            | RunCause::NoMap(..)
            | RunCause::Option(..)
            | RunCause::UnsupportedOption(_) => None,
        }
    }
}

impl From<RunCause> for Error {
    fn from(cause: RunCause) -> Error {
        Cause::Run(cause).into()
    }
}

macro_rules! from {
    ($($cause:ident($error:ty))*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                RunCause::$cause(error).into()
            }
        }
    )*};
}

from! {
    Load(LoadError) Run(RunError) Data(DataError) Capture(RunCaptureError) Maps(MapsJsonError)
}

impl From<ExpectError> for Error {
    fn from(error: ExpectError) -> Error {
        RunCause::Expect(Box::new(error)).into()
    }
}
