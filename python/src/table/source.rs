//! Where captures come from: paths, addresses that fsspec knows, and files of Python.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use beebox::internal::captures::{CaptureError, Elsewhere, Input};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::Fault;

/// Bytes that are asked of a file of Python at first, and at once after some more requests.
const FIRST_PORTION: usize = 256 << 10;
const PORTION: usize = 8 << 20;

/// A capture that is not yet open.
pub(super) enum Source {
    /// A file of the system.
    Path(PathBuf),
    /// An address, such as `s3://bucket/day.pcap`.
    Address(String),
    /// A file object of Python, open for reading bytes.
    File { name: String, file: Py<PyAny> },
}

impl Source {
    /// The source that an argument is.
    ///
    /// # Errors
    /// `TypeError` for what is neither path, address nor file.
    pub(super) fn read(argument: &Bound<'_, PyAny>) -> PyResult<Source> {
        if let Ok(text) = argument.cast::<PyString>() {
            let text = text.to_str()?;
            if text.contains("://") {
                return Ok(Source::Address(text.to_owned()));
            }
        }
        if let Ok(path) = argument.extract::<PathBuf>() {
            return Ok(Source::Path(path));
        }
        if !argument.hasattr("read")? {
            let kind = argument.get_type().name()?;
            let what = format!("a path, an address or an open file is expected, not {kind}");
            return Err(pyo3::exceptions::PyTypeError::new_err(what));
        }
        let name = argument.getattr("name").and_then(|name| name.extract());
        Ok(Source::File {
            name: name.unwrap_or_else(|_| "file".to_owned()),
            file: argument.clone().unbind(),
        })
    }

    /// Its name in the column `file`.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Path(path) => path.display().to_string(),
            Source::Address(address) => address.clone(),
            Source::File { name, .. } => name.clone(),
        }
    }

    /// Opens it and reads its header.
    pub(super) fn open(&self) -> Result<Input, CaptureError> {
        let failed = |source| CaptureError::Io { offset: 0, source };
        let file = match self {
            Source::Path(path) => return Input::try_open_path(path),
            Source::Address(address) => Python::attach(|py| open_address(py, address)),
            Source::File { file, .. } => Python::attach(|py| Ok(file.clone_ref(py))),
        };
        Input::open_elsewhere(Arc::new(PyFile(file.map_err(failed)?)))
    }
}

fn open_address(py: Python<'_>, address: &str) -> io::Result<Py<PyAny>> {
    let opened = py
        .import("beebox._remote")
        .and_then(|module| module.call_method1("open_remote", (address,)));
    Ok(opened.map_err(|error| io_error(py, &error))?.unbind())
}

fn io_error(py: Python<'_>, error: &PyErr) -> io::Error {
    let kind = error.get_type(py).name();
    let kind = kind.map_or_else(|_| String::new(), |name| format!("{name}: "));
    io::Error::other(format!("{kind}{}", error.value(py)))
}

/// A file object of Python.
struct PyFile(Py<PyAny>);

impl Elsewhere for PyFile {
    fn read_from(&self, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(PyRead {
            file: Python::attach(|py| self.0.clone_ref(py)),
            offset,
            size: FIRST_PORTION,
            portion: None,
            taken: 0,
        }))
    }

    fn length(&self) -> io::Result<u64> {
        Python::attach(|py| {
            let end = self.0.call_method1(py, intern!(py, "seek"), (0, 2));
            let end = end.and_then(|end| end.extract(py));
            end.map_err(|error| io_error(py, &error))
        })
    }
}

/// A reader of a file object, which keeps its own position.
struct PyRead {
    file: Py<PyAny>,
    /// Offset behind the portion.
    offset: u64,
    /// Bytes of the next portion.
    size: usize,
    portion: Option<Py<PyBytes>>,
    taken: usize,
}

impl Read for PyRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let is_empty = |portion: &Py<PyBytes>| self.taken >= portion.as_bytes(py).len();
            if self.portion.as_ref().is_none_or(is_empty) {
                let portion = self
                    .next_portion(py)
                    .map_err(|error| io_error(py, &error))?;
                self.offset += portion.as_bytes().len() as u64;
                self.portion = Some(portion.unbind());
                self.size = (2 * self.size).min(PORTION);
                self.taken = 0;
            }
            let portion = self.portion.as_ref().map_or(&[][..], |it| it.as_bytes(py));
            let rest = &portion[self.taken..];
            let len = rest.len().min(into.len());
            into[..len].copy_from_slice(&rest[..len]);
            self.taken += len;
            Ok(len)
        })
    }
}

impl PyRead {
    fn next_portion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.file.bind(py);
        file.call_method1(intern!(py, "seek"), (self.offset,))?;
        let read = file.call_method1(intern!(py, "read"), (self.size,))?;
        let what = || PyErr::from(Fault::of_type("the file is not open for bytes"));
        read.cast_into::<PyBytes>().map_err(|_| what())
    }
}
