//! What a run gives.

use std::sync::Arc;

use beebox::internal::run::redirect_text;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::instance::Shared;
use crate::program::Program;
use crate::records::Record;

/// The result of `Program.test_run`.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct TestRunResult {
    pub(crate) result: beebox::TestRunResult,
    pub(crate) program: beebox::Program,
    pub(crate) shared: Arc<Shared>,
    pub(crate) data_in: Option<Py<PyBytes>>,
}

#[pymethods]
impl TestRunResult {
    /// The low 32 bits of `r0` of the last run.
    #[getter]
    fn retval(&self) -> u32 {
        self.result.retval
    }

    /// The name of the verdict, such as `"XDP_DROP"`: a str with the result as `.result`.
    #[getter]
    fn verdict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let class = crate::verdict_class(py)?;
        let verdict = class.call1((slf.get().result.verdict.name(),))?;
        verdict.setattr("result", slf)?;
        Ok(verdict)
    }

    /// True if the packet goes on.
    #[getter]
    fn passes(&self) -> bool {
        self.result.verdict.passes()
    }

    /// Where the last run redirected the packet, in words.
    #[getter]
    fn redirect(&self) -> Option<String> {
        self.result.redirect.map(redirect_text)
    }

    /// The packet that the run got.
    #[getter]
    fn data_in(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        self.data_in.as_ref().map(|data| data.clone_ref(py))
    }

    /// The packet after the runs, at most `data_size_out` bytes.
    #[getter]
    fn data_out<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.result.data_out)
    }

    /// Bytes of the packet after the runs.
    #[getter]
    fn data_size_out(&self) -> usize {
        self.result.data_size_out
    }

    /// The context after the runs, at most `ctx_size_out` bytes.
    #[getter]
    fn ctx_out<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.result.ctx_out)
    }

    /// Bytes of the context after the runs.
    #[getter]
    fn ctx_size_out(&self) -> usize {
        self.result.ctx_size_out
    }

    /// Mean time of a run in nanoseconds.
    #[getter]
    fn duration(&self) -> u64 {
        self.result.duration.as_nanos() as u64
    }

    /// Texts that the runs printed.
    #[getter]
    fn printk(&self) -> Vec<String> {
        self.result.printk.texts.clone()
    }

    /// Records of ring and perf buffers that waited after the runs, decoded by type.
    #[getter]
    fn records(&self, py: Python<'_>) -> PyResult<Vec<Record>> {
        let records = self.result.records.iter();
        records
            .map(|record| Record::new(py, record, None, &self.shared.types))
            .collect()
    }

    /// The program that ran.
    #[getter]
    fn program(&self) -> Program {
        Program::new(self.program.clone(), self.shared.clone())
    }

    fn __repr__(&self) -> String {
        let (name, verdict) = (self.program.name(), self.result.verdict.name());
        let size = self.result.data_size_out;
        format!("<{name}: {verdict} ({}), {size} bytes>", self.result.retval)
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "run_html")
    }
}
