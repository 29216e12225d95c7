//! Errors of the library as exceptions of the package: one class for each category
//! (`beebox/_errors.py`), with `kind`, `message` and, where Linux has one, `errno`.

use std::fmt::Display;

use beebox::internal::verify::explanation_text;
use beebox::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What an exception says.
#[derive(Debug)]
pub(crate) struct Fault {
    kind: &'static str,
    message: String,
    errno: Option<i32>,
    explanation: Option<String>,
    log: Option<String>,
}

impl Fault {
    /// A fault of a category, by its name in Python.
    pub(crate) fn new(kind: &'static str, message: impl ToString) -> Fault {
        Fault {
            kind,
            message: message.to_string(),
            errno: None,
            explanation: None,
            log: None,
        }
    }

    /// A value of another type or range than what it stands for.
    pub(crate) fn of_type(message: impl ToString) -> Fault {
        Fault::new("type", message)
    }

    /// A text that is not of its form.
    pub(crate) fn of_format(message: impl ToString) -> Fault {
        Fault::new("format", message)
    }

    /// A name or key that is not there.
    pub(crate) fn absent(message: impl ToString) -> Fault {
        Fault::new("not_found", message)
    }

    /// Adds the place in front.
    pub(crate) fn within(mut self, place: impl Display) -> Fault {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Linux's error number of an operation.
    pub(crate) fn with_errno(mut self, errno: i32) -> Fault {
        self.errno = Some(errno);
        self
    }

    /// The verifier's log of a refusal.
    pub(crate) fn with_log(mut self, log: String) -> Fault {
        self.log = Some(log);
        self
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let kind = match error.kind() {
            ErrorKind::File => "file",
            ErrorKind::Object => "object",
            ErrorKind::Refused => "refused",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Type => "type",
            ErrorKind::Incompatible => "incompatible",
            ErrorKind::Map => "map",
            ErrorKind::Input => "input",
            ErrorKind::Limit => "limit",
            ErrorKind::Trap => "trap",
            ErrorKind::Capture => "capture",
            ErrorKind::Format => "format",
            _ => "other",
        };
        Fault {
            errno: error.errno().map(|errno| errno.0),
            explanation: error.explanation().map(explanation_text),
            ..Fault::new(kind, error)
        }
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        Python::attach(|py| fault.raise(py).unwrap_or_else(|error| error))
    }
}

impl Fault {
    fn raise(self, py: Python<'_>) -> PyResult<PyErr> {
        let fields = PyDict::new(py);
        fields.set_item("errno", self.errno)?;
        fields.set_item("explanation", self.explanation)?;
        fields.set_item("log", self.log)?;
        let make = py.import("beebox._errors")?.getattr("make")?;
        let error = make.call((self.kind, self.message), Some(&fields))?;
        Ok(PyErr::from_value(error))
    }
}

/// An error of the library as an exception.
pub(crate) fn raised(error: impl Into<Fault>) -> PyErr {
    error.into().into()
}
