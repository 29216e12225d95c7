//! Errors of filters, of captures and of the analysis of seccomp filters.

use std::error::Error as StdError;

use classic::JumpLimitExceeded;

use super::{Cause, Error, ErrorKind};
use crate::engine::EngineRefusal;
use crate::error::FilterError;
#[cfg(feature = "capture")]
use crate::internal::captures::{CaptureError, FilterCaptureError};
#[cfg(feature = "seccomp")]
use crate::internal::seccomp::TooComplex;

/// What an [`Error`] of these says.
#[derive(Debug)]
pub(crate) enum FilterCause {
    Filter(FilterError),
    JumpLimit(JumpLimitExceeded),
    Engine(EngineRefusal),
    #[cfg(feature = "capture")]
    Capture(CaptureError),
    #[cfg(feature = "capture")]
    FilterCapture(FilterCaptureError),
    #[cfg(feature = "seccomp")]
    TooComplex(TooComplex),
}

impl FilterCause {
    /// Its category.
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            FilterCause::Filter(error) => filter_kind(error),
            FilterCause::JumpLimit(_) => ErrorKind::Limit,
            FilterCause::Engine(_) => ErrorKind::Unsupported,
            #[cfg(feature = "capture")]
            FilterCause::Capture(error) => capture_kind(error),
            #[cfg(feature = "capture")]
            FilterCause::FilterCapture(error) => match error {
                FilterCaptureError::Capture(error) => capture_kind(error),
                FilterCaptureError::Program { refusal, .. } => filter_kind(refusal),
                FilterCaptureError::JumpLimit { .. } => ErrorKind::Limit,
                FilterCaptureError::LinkType { .. } => ErrorKind::Capture,
                FilterCaptureError::Output(_) => ErrorKind::File,
            },
            #[cfg(feature = "seccomp")]
            FilterCause::TooComplex(_) => ErrorKind::Limit,
        }
    }

    /// The error that says it.
    pub(super) fn error(&self) -> &dyn StdError {
        match self {
            FilterCause::Filter(error) => error,
            FilterCause::JumpLimit(error) => error,
            FilterCause::Engine(error) => error,
            #[cfg(feature = "capture")]
            FilterCause::Capture(error) => error,
            #[cfg(feature = "capture")]
            FilterCause::FilterCapture(error) => error,
            #[cfg(feature = "seccomp")]
            FilterCause::TooComplex(error) => error,
        }
    }
}

fn filter_kind(error: &FilterError) -> ErrorKind {
    match error {
        FilterError::Text(_) | FilterError::Expression { .. } | FilterError::Nul => {
            ErrorKind::Format
        }
        FilterError::Rule { .. } | FilterError::OtherRules => ErrorKind::Refused,
        FilterError::NoLibpcap(_) | FilterError::LinkType(_) => ErrorKind::Unsupported,
        FilterError::OutOfMemory => ErrorKind::Limit,
    }
}

#[cfg(feature = "capture")]
fn capture_kind(error: &CaptureError) -> ErrorKind {
    match error {
        CaptureError::Io { .. } => ErrorKind::File,
        CaptureError::Fault(_) => ErrorKind::Capture,
    }
}

macro_rules! from {
    ($($(#[$meta:meta])* $cause:ident($error:ty))*) => {$(
        $(#[$meta])*
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Cause::Filter(FilterCause::$cause(error)).into()
            }
        }
    )*};
}

from! {
    Filter(FilterError)
    JumpLimit(JumpLimitExceeded)
    #[doc(hidden)]
    Engine(EngineRefusal)
    #[cfg(feature = "capture")]
    #[doc(hidden)]
    Capture(CaptureError)
    #[cfg(feature = "capture")]
    #[doc(hidden)]
    FilterCapture(FilterCaptureError)
    #[cfg(feature = "seccomp")]
    #[doc(hidden)]
    TooComplex(TooComplex)
}
