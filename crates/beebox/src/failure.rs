//! The error of loading, running and reading.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use spec::Errno;
use verifier::Refusal;
use verifier::reason::Explanation;

#[cfg(feature = "kernel-data")]
use crate::internal::kernel::files::KernelFileError;
use crate::internal::variables::{VariableError, VariableFault};

#[cfg(feature = "run")]
mod run;

#[cfg(feature = "run")]
pub(crate) use run::RunCause;

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
    Variable(VariableError),
    /// The description of the kernel has no registry.
    NoRegistry,
    #[cfg(feature = "kernel-data")]
    Kernel(KernelFileError),
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
