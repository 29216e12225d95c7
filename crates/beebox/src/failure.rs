//! The error of loading, running and reading.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use spec::Errno;
use verifier::Refusal;
use verifier::reason::Explanation;

#[cfg(feature = "kernel-data")]
use kernel_presets::UnknownPreset;
#[cfg(feature = "coverage")]
use report::coverage::LcovFault;

#[cfg(feature = "kernel-data")]
use crate::internal::kernel::files::KernelFileError;
use crate::internal::variables::{VariableError, VariableFault};

#[cfg(any(feature = "capture", feature = "seccomp"))]
mod filter;
#[cfg(feature = "run")]
mod run;

#[cfg(any(feature = "capture", feature = "seccomp"))]
pub(crate) use filter::FilterCause;

#[cfg(feature = "run")]
pub(crate) use run::RunCause;

/// The error of the library: why an object could not be opened or loaded, a program could not run, a map or
/// variable could not be read or written, a capture or text could not be read. Its text names the object,
/// the place and the fact.
#[cfg_attr(
    all(feature = "capture", feature = "seccomp"),
    doc = "\nFunctions that make and run packet filters and seccomp filters return [`FilterError`](crate::FilterError)\n\
           and [`JumpLimitExceeded`](crate::JumpLimitExceeded), which become it by `?`."
)]
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
    /// The verifier refuses a program, the kernel a map, or a filter breaks a rule.
    Refused,
    /// Beebox does not do it, or this machine lacks what it takes.
    Unsupported,
    /// There is no program, map, variable or built-in kernel of this name.
    NotFound,
    /// A Rust type has another size than the key, value or variable.
    Type,
    /// A map of another instance differs from the object's.
    Incompatible,
    /// An operation on a map failed with an error number.
    Map,
    /// A run does not take this packet, context or option.
    Input,
    /// A run ended at a limit: time, instructions, jumps, or memory of maps; or an analysis at that of its
    /// size.
    Limit,
    /// A program that was not verified did what no verified program does.
    Trap,
    /// A capture is damaged, or its packets are no Ethernet frames or not of the link type of the output.
    Capture,
    /// A text or file (maps, expectations, a network, a kernel, a filter, an expression, coverage) is not of
    /// its form, or does not fit the object.
    Format,
}

/// What an [`Error`] says.
#[derive(Debug)]
pub(crate) enum Cause {
    File(PathBuf, io::Error),
    Object(Box<::object::Error>),
    Variable(VariableError),
    /// The description of the kernel has no registry.
    NoRegistry,
    #[cfg(feature = "kernel-data")]
    Kernel(KernelFileError),
    #[cfg(feature = "kernel-data")]
    Preset(UnknownPreset),
    #[cfg(any(feature = "capture", feature = "seccomp"))]
    Filter(FilterCause),
    #[cfg(feature = "coverage")]
    Lcov(LcovFault),
    #[cfg(feature = "run")]
    Run(RunCause),
}

impl Error {
    /// Its category.
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Cause::File(..) => ErrorKind::File,
            Cause::Object(_) => ErrorKind::Object,
            Cause::Variable(error) => match error.fault {
                VariableFault::NoVariable { .. }
                | VariableFault::NoMember(_)
                | VariableFault::NoEnumerator(_) => ErrorKind::NotFound,
                VariableFault::NoAssignment => ErrorKind::Format,
                VariableFault::Object(_) => ErrorKind::Object,
                _ => ErrorKind::Type,
            },
            Cause::NoRegistry => ErrorKind::Unsupported,
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => match error {
                KernelFileError::Path(..)
                | KernelFileError::File(..)
                | KernelFileError::Config(..) => ErrorKind::File,
                _ => ErrorKind::Format,
            },
            #[cfg(feature = "kernel-data")]
            Cause::Preset(_) => ErrorKind::NotFound,
            #[cfg(any(feature = "capture", feature = "seccomp"))]
            Cause::Filter(cause) => cause.kind(),
            #[cfg(feature = "coverage")]
            Cause::Lcov(_) => ErrorKind::Format,
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.kind(),
        }
    }

    /// The verifier's refusal, if it refuses a program.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.0 {
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.refusal(),
            _ => None,
        }
    }

    /// The explanation of that refusal: its cause, the source line, the way there.
    pub fn explanation(&self) -> Option<&Explanation> {
        match &*self.0 {
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.explanation(),
            _ => None,
        }
    }

    /// Linux's error number for it, if Linux has one.
    pub fn errno(&self) -> Option<Errno> {
        match &*self.0 {
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.errno(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Cause::File(path, error) => write!(f, "{}: {error}", path.display()),
            Cause::Object(error) => error.fmt(f),
            Cause::Variable(error) => error.fmt(f),
            Cause::NoRegistry => f.write_str("helpers and contexts of the kernel are unknown"),
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => error.fmt(f),
            #[cfg(feature = "kernel-data")]
            Cause::Preset(error) => error.fmt(f),
            #[cfg(any(feature = "capture", feature = "seccomp"))]
            Cause::Filter(cause) => fmt::Display::fmt(cause.error(), f),
            #[cfg(feature = "coverage")]
            Cause::Lcov(fault) => write!(f, "line {}: {fault}", fault.line),
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.fmt(f),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Cause::File(_, error) => Some(error),
            Cause::Object(error) => error.source(),
            Cause::Variable(error) => error.source(),
            Cause::NoRegistry => None,
            #[cfg(feature = "kernel-data")]
            Cause::Kernel(error) => error.source(),
            #[cfg(feature = "kernel-data")]
            Cause::Preset(_) => None,
            #[cfg(any(feature = "capture", feature = "seccomp"))]
            Cause::Filter(cause) => cause.error().source(),
            #[cfg(feature = "coverage")]
            Cause::Lcov(_) => None,
            #[cfg(feature = "run")]
            Cause::Run(cause) => cause.source(),
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        Error(Box::new(cause))
    }
}

#[doc(hidden)]
impl From<VariableError> for Error {
    fn from(error: VariableError) -> Error {
        Cause::Variable(error).into()
    }
}
