//! Expectation files, and maps as JSON.

use std::path::PathBuf;

use beebox::expect::{CheckReport as Report, CheckedExpectation, ExpectFile};
use beebox::MapsJson;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Fault, raised};
use crate::instance::Instance;
use crate::json::to_python;

/// An expectation file: statements that fill maps, run programs and say what has to come.
///
/// `Expectations(path)` reads a file, `Expectations.parse(text)` a text.
///
/// Raises FileError if the file cannot be read, FormatError with the line that is no statement.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Expectations {
    file: ExpectFile,
    name: String,
}

#[pymethods]
impl Expectations {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Expectations> {
        let file = py.detach(|| ExpectFile::open(&path)).map_err(raised)?;
        let name = path.display().to_string();
        Ok(Expectations { file, name })
    }

    /// Reads a text. Messages begin with `name`, paths in it are relative to `directory`, else to
    /// the current one.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "expectations", directory = None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        name: &str,
        directory: Option<PathBuf>,
    ) -> PyResult<Expectations> {
        let directory = directory.unwrap_or_default();
        let file = py.detach(|| ExpectFile::parse(name, text, &directory));
        let file = file.map_err(raised)?;
        let name = name.to_owned();
        Ok(Expectations { file, name })
    }

    /// Its name in messages.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<Expectations {}>", self.name)
    }
}

#[pymethods]
impl Instance {
    /// Runs expectations over the maps of the instance, on CPU 0. Records need buffers
    /// (`load(perf_buffers=…)`). A path stands for `Expectations(path)`.
    ///
    /// Raises FormatError if a statement does not suit the object, FileError for inputs that cannot
    /// be read; differences are part of the report.
    fn check(&self, py: Python<'_>, expectations: &Bound<'_, PyAny>) -> PyResult<CheckReport> {
        let read;
        let expectations = match expectations.cast::<Expectations>() {
            Ok(given) => given.get(),
            Err(_) => {
                read = Expectations::new(py, expectations.extract()?)?;
                &read
            }
        };
        let (instance, object) = (&self.0.instance, &self.0.object);
        let report = py.detach(|| instance.check(object, &expectations.file));
        report.map(CheckReport).map_err(raised)
    }

    /// Fills maps from a dict of lists, `{"blocked": [{"key": …, "value": …}]}` in the form of
    /// bpftool's dumps, or from a file with it. Returns members that entries leave out, which are 0.
    ///
    /// Raises FormatError for the first map or entry that does not fit; what is in front of it has
    /// been put.
    fn fill_maps(&self, entries: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let py = entries.py();
        let maps = match entries.cast::<PyDict>() {
            Ok(_) => {
                let text: String = py
                    .import("json")?
                    .call_method1("dumps", (entries,))?
                    .extract()?;
                py.detach(|| MapsJson::parse(text.as_bytes()))
                    .map_err(raised)?
            }
            Err(_) => {
                let path: PathBuf = entries.extract()?;
                py.detach(|| MapsJson::open(&path)).map_err(raised)?
            }
        };
        let (instance, object) = (&self.0.instance, &self.0.object);
        let left_out = py
            .detach(|| instance.fill_maps(object, &maps))
            .map_err(raised)?;
        Ok(left_out.iter().map(ToString::to_string).collect())
    }

    /// The contents of the maps that have keys, and the pages of arenas, as `fill_maps` takes them.
    fn dump_maps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (instance, object) = (&self.0.instance, &self.0.object);
        let text = py.detach(|| instance.maps_json(object)).map_err(raised)?;
        py.import("json")?.call_method1("loads", (text,))
    }
}

/// The results of an expectation file; `bool(report)` is true if nothing differs.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct CheckReport(Report);

#[pymethods]
impl CheckReport {
    /// True if nothing differs.
    #[getter]
    fn is_met(&self) -> bool {
        self.0.is_met()
    }

    /// Name of the file.
    #[getter]
    fn file(&self) -> &str {
        &self.0.file
    }

    /// Number of `run` and `capture` statements.
    #[getter]
    fn runs(&self) -> usize {
        self.0.runs
    }

    /// The expectations in the order of the file, and runs that did not end with a value.
    #[getter]
    fn expectations(&self) -> Vec<Expectation> {
        let all = self.0.expectations.iter();
        all.cloned().map(Expectation).collect()
    }

    /// Those that are not met.
    #[getter]
    fn differences(&self) -> Vec<Expectation> {
        let all = self.0.expectations.iter();
        let differing = all.filter(|checked| checked.difference.is_some());
        differing.cloned().map(Expectation).collect()
    }

    /// XML of JUnit, with a test case for each expectation.
    fn junit(&self) -> String {
        self.0.junit()
    }

    /// The report as `beebox run --expect --format json` has it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }

    fn __bool__(&self) -> bool {
        self.0.is_met()
    }

    fn __str__(&self) -> String {
        self.0.to_string().trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        format!("<CheckReport: {}>", self.__str__())
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "report_html")
    }
}

/// An expectation that was checked.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Expectation(CheckedExpectation);

#[pymethods]
impl Expectation {
    /// Its line, from 1.
    #[getter]
    fn line(&self) -> usize {
        self.0.line
    }

    /// The line as written.
    #[getter]
    fn text(&self) -> &str {
        &self.0.text
    }

    /// The last run before it: its number from 1, and its program.
    #[getter]
    fn run(&self) -> Option<(usize, String)> {
        self.0.run.clone()
    }

    /// The difference in one line, if it is not met.
    #[getter]
    fn difference(&self) -> Option<&str> {
        self.0.difference.as_ref().map(|it| it.what.as_str())
    }

    /// The bytes around the difference, in lines.
    #[getter]
    fn excerpt(&self) -> Option<&str> {
        self.0.difference.as_ref().map(|it| it.excerpt.as_str())
    }

    fn __repr__(&self) -> String {
        let difference = self.0.difference.as_ref();
        let state = difference.map_or("met", |it| it.what.as_str());
        format!("<line {}: {}: {state}>", self.0.line, self.0.text)
    }
}
