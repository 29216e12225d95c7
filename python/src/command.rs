//! The command `beebox`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, of which the first is its name; the exit code: 0 yes, 1
/// the answer is no, 2 could not answer.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| beebox_cli::main(arguments))
}
