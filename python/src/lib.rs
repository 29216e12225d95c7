//! Beebox for Python: the extension module `beebox._beebox`.
//!
//! Each class wraps a handle of the library, is frozen, and can be shared by threads; the GIL is
//! released while Rust works. `codec/` converts values between BTF types and Python, `errors.rs`
//! errors into exceptions; `table/` hands captures and maps over as Arrow. What only formats (HTML, packets by field, exceptions, the plugin of
//! pytest) is Python, in `python/beebox`.
#![deny(unsafe_code)]

mod batch;
mod bytes;
mod capture;
mod codec;
mod command;
mod errors;
mod expect;
mod filter;
mod gateway;
mod instance;
mod json;
mod kernel;
mod load;
mod map;
mod model;
mod object;
mod options;
mod packets;
mod program;
mod records;
mod result;
mod seccomp;
mod table;
mod text;
mod types;
mod verify;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The extension module; `beebox` exports what it has.
#[pymodule(gil_used = false)]
mod _beebox {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::capture::{CaptureRun, PacketSeen};
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::expect::{CheckReport, Expectation, Expectations};
    #[pymodule_export]
    use crate::filter::{Filter, PacketCounts};
    #[pymodule_export]
    use crate::gateway::Rules;
    #[pymodule_export]
    use crate::instance::{Globals, Instance};
    #[pymodule_export]
    use crate::kernel::Kernel;
    #[pymodule_export]
    use crate::map::Map;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::object::Object;
    #[pymodule_export]
    use crate::program::Program;
    #[pymodule_export]
    use crate::records::{Record, Records};
    #[pymodule_export]
    use crate::result::TestRunResult;
    #[pymodule_export]
    use crate::seccomp::{Seccomp, SeccompDiff};
    #[pymodule_export]
    use crate::table::{CaptureTable, capture_parts};
    #[pymodule_export]
    use crate::verify::{ProgramResult, Verification};
}

/// A value as HTML, by a function of `beebox._html`.
fn html(value: &Bound<'_, PyAny>, function: &str) -> PyResult<Py<PyAny>> {
    let module = value.py().import("beebox._html")?;
    Ok(module.getattr(function)?.call1((value,))?.unbind())
}

/// The class of verdicts, a `str`.
fn verdict_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "beebox._verdict", "Verdict")
}
