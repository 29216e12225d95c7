//! The error of loading, running and reading.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use interp::checked::Reason;
use spec::Errno;
use verifier::Refusal;
use verifier::reason::Explanation;

use crate::internal::bytes::{ByteSourceError, name_of};
use crate::internal::expect::{ExpectError, ExpectProblem};
#[cfg(feature = "kernel-data")]
use crate::internal::kernel::files::KernelFileError;
use crate::internal::maps_json::MapsJsonError;
use crate::internal::network::NetworkFileError;
use crate::internal::run::{DataError, LoadError, RunCaptureError, RunError};
use crate::internal::variables::{VariableError, VariableFault};

/// Reason why an object could not be opened or loaded, a program could not run, or a map or
/// variable could not be read or written. Its text names the object, the place and the fact.
#[derive(Debug)]
pub struct Error(Box<Cause>);

/// Category of an [`Error`], for callers that act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be read or written.
    File,
    /// A file is no object of clang, or cannot be linked for the kernel.
    Object,
    /// The verifier refuses a program, or the kernel a map.
    Refused,
    /// Linux does it, and Beebox does not.
    Unsupported,
    /// There is no program, map or variable of this name.
    NotFound,
    /// A Rust type has another size than the key, value or variable.
    Type,
    /// A map of another instance differs from the object's.
    Incompatible,
    /// An operation on a map failed with an error number.
    Map,
    /// A run does not take this packet, context or option.
    Input,
    /// A run ended at a limit: time, instructions, or memory of maps.
    Limit,
    /// A program that was not verified did what no verified program does.
    Trap,
    /// A packet of a capture is damaged or no Ethernet frame.
    Capture,
    /// A file of maps, of expectations, of a network or of a kernel is not of its form, or does not
    /// fit the object.
    Format,
}

/// What an [`Error`] says.
#[derive(Debug)]
pub(crate) enum Cause {
    File(PathBuf, io::Error),
    Object(Box<::object::Error>),
    Load(LoadError),
    Run(RunError),
    Data(DataError),
    Capture(RunCaptureError),
    /// A file of maps.
    MapsFile(PathBuf, MapsJsonError),
    Maps(MapsJsonError),
    Variable(VariableError),
    /// Maps that cannot be written as JSON.
    Json(String),
    Expect(Box<ExpectError>),
    #[cfg(feature = "kernel-data")]
    Kernel(KernelFileError),
    Network(NetworkFileError),
    /// No program has this name; those that there are.
    NoProgram(String, Vec<String>),
    /// No map of the object has this name; those that there are.
    NoMap(String, Vec<String>),
    /// Linux's test run answers this error number to an option.
    Option(&'static str, Errno),
    /// An option of test runs that only Linux has.
    UnsupportedOption(&'static str),
}

impl Error {
    /// Its category.
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Cause::File(..) => ErrorKind::File,
            Cause::Object(_) => ErrorKind::Object,
            Cause::Load(error) => load_kind(error),
            Cause::Run(error) => run_kind(error),
            Cause::Data(error) => match error {
                DataError::NoMap { .. } | DataError::NoVariable { .. } => ErrorKind::NotFound,
                DataError::Size { .. } | DataError::PerCpu { .. } => ErrorKind::Type,
                DataError::Map { .. } => ErrorKind::Map,
            },
            Cause::Capture(stop) => capture_kind(stop),
            Cause::MapsFile(..) | Cause::Maps(_) => ErrorKind::Format,
            Cause::Expect(error) => match &error.problem {
                ExpectProblem::File { .. } | ExpectProblem::Terminal => ErrorKind::File,
                ExpectProblem::Run(error) => run_kind(error),
                ExpectProblem::Capture { stop, .. } => capture_kind(stop),
                ExpectProblem::Source(error) => match **error {
                    ByteSourceError::File { .. } => ErrorKind::File,
                    _ => ErrorKind::Input,
                },
                _ => ErrorKind::Format,
            },
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => match error {
                KernelFileError::Path(..)
                | KernelFileError::File(..)
                | KernelFileError::Config(..) => ErrorKind::File,
                _ => ErrorKind::Format,
            },
            Cause::Network(_) => ErrorKind::Format,
            Cause::Json(_) => ErrorKind::Map,
            Cause::Variable(error) => match error.fault {
                VariableFault::NoVariable { .. }
                | VariableFault::NoMember(_)
                | VariableFault::NoEnumerator(_) => ErrorKind::NotFound,
                VariableFault::NoAssignment => ErrorKind::Format,
                VariableFault::Object(_) => ErrorKind::Object,
                _ => ErrorKind::Type,
            },
            Cause::NoProgram(..) | Cause::NoMap(..) => ErrorKind::NotFound,
            Cause::Option(..) => ErrorKind::Input,
            Cause::UnsupportedOption(_) => ErrorKind::Unsupported,
        }
    }

    /// The verifier's refusal, if it refuses a program.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.0 {
            Cause::Load(LoadError::Refused { refusal, .. }) => Some(refusal),
            _ => None,
        }
    }

    /// The explanation of that refusal: its cause, the source line, the way there.
    pub fn explanation(&self) -> Option<&Explanation> {
        match &*self.0 {
            Cause::Load(LoadError::Refused { explanation, .. }) => explanation.as_deref(),
            _ => None,
        }
    }

    /// Linux's error number for it, if Linux has one.
    pub fn errno(&self) -> Option<Errno> {
        match &*self.0 {
            Cause::Load(error) => match error {
                LoadError::MapUnavailable { errno, .. }
                | LoadError::InnerMap { errno, .. }
                | LoadError::PerfBuffers { errno, .. }
                | LoadError::ProgramArray { errno, .. } => Some(*errno),
                LoadError::Refused { refusal, .. } => Some(refusal.errno),
                _ => None,
            },
            Cause::Run(error) => run_errno(error),
            Cause::Expect(error) => match &error.problem {
                ExpectProblem::Run(error) => run_errno(error),
                _ => None,
            },
            Cause::Data(DataError::Map { errno, .. }) | Cause::Option(_, errno) => Some(*errno),
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
        RunCaptureError::Output(_) => ErrorKind::File,
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Cause::File(path, error) => write!(f, "{}: {error}", path.display()),
            Cause::Object(error) => error.fmt(f),
            Cause::Load(error) => error.fmt(f),
            Cause::Run(error) => error.fmt(f),
            Cause::Data(error) => error.fmt(f),
            Cause::Capture(error) => error.fmt(f),
            Cause::MapsFile(path, error) => write!(f, "{}: {error}", name_of(path)),
            Cause::Maps(error) => error.fmt(f),
            Cause::Variable(error) => error.fmt(f),
            Cause::Json(error) => f.write_str(error),
            Cause::Expect(error) => error.fmt(f),
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => error.fmt(f),
            Cause::Network(error) => error.fmt(f),
            Cause::NoProgram(name, known) => write!(
                f,
                "the instance has no program {name}; there are {}",
                known.join(", ")
            ),
            Cause::NoMap(name, known) => write!(
                f,
                "the object has no map {name}; there are {}",
                known.join(", ")
            ),
            Cause::Option(rule, errno) => write!(f, "{rule}: Linux's test run answers {errno}"),
            Cause::UnsupportedOption(option) => {
                write!(
                    f,
                    "{option}: Linux's test run takes it, that of Beebox does not"
                )
            }
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Cause::File(_, error) => Some(error),
            Cause::Object(error) => error.source(),
            Cause::Load(error) => error.source(),
            Cause::Run(error) => error.source(),
            Cause::Data(error) => error.source(),
            Cause::Capture(error) => error.source(),
            Cause::MapsFile(_, error) => Some(error),
            Cause::Maps(error) => error.source(),
            Cause::Variable(error) => error.source(),
            Cause::Expect(error) => error.source(),
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => error.source(),
            Cause::Json(_)
            | Cause::Network(_)
            | Cause::NoProgram(..)
            | Cause::NoMap(..)
            | Cause::Option(..)
            | Cause::UnsupportedOption(_) => None,
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        Error(Box::new(cause))
    }
}

macro_rules! from {
    ($($cause:ident($error:ty))*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Cause::$cause(error).into()
            }
        }
    )*};
}

from! {
    Load(LoadError) Run(RunError) Data(DataError) Capture(RunCaptureError) Maps(MapsJsonError)
    Variable(VariableError)
}

impl From<ExpectError> for Error {
    fn from(error: ExpectError) -> Error {
        Cause::Expect(Box::new(error)).into()
    }
}
