//! Arguments that are bytes.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Bytes of an argument: those of a `bytes` object in place, a copy of any other.
pub(crate) enum Payload<'py> {
    Given(Bound<'py, PyBytes>),
    Copy(Vec<u8>),
}

impl Payload<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Payload::Given(bytes) => bytes.as_bytes(),
            Payload::Copy(bytes) => bytes,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Payload::Given(bytes) => bytes.as_bytes().to_vec(),
            Payload::Copy(bytes) => bytes,
        }
    }

    /// The bytes as an object of Python.
    pub(crate) fn object(&self, py: Python<'_>) -> Py<PyBytes> {
        match self {
            Payload::Given(bytes) => bytes.clone().unbind(),
            Payload::Copy(bytes) => PyBytes::new(py, bytes).unbind(),
        }
    }
}

/// The bytes of `bytes`, of a buffer (bytearray, memoryview, an array of numpy), or of what
/// `bytes(…)` takes, such as a packet of scapy.
///
/// # Errors
/// `TypeError` for numbers, text and what has no bytes.
pub(crate) fn bytes_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Payload<'py>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Payload::Given(bytes.clone()));
    }
    if let Ok(buffer) = PyBuffer::<u8>::get(value) {
        return Ok(Payload::Copy(buffer.to_vec(value.py())?));
    }
    if !value.is_instance_of::<PyString>()
        && value.hasattr("__bytes__")?
        && let Ok(bytes) = value.call_method0("__bytes__")?.cast_into::<PyBytes>()
    {
        return Ok(Payload::Given(bytes));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "bytes, a buffer of bytes or a packet is expected, not {kind}"
    )))
}
