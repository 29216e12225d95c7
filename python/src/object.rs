//! Objects as files with their bytes.

use std::path::PathBuf;

use beebox::LoaderKind;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::bytes::bytes_of;
use crate::errors::{Fault, raised};
use crate::instance::Instance;
use crate::kernel::{self, KernelArg};
use crate::load::LoadArgs;
use crate::verify::{self, Verification, VerifyArgs};

/// A BPF object (`.bpf.o`), from a path or from its bytes.
///
/// `loader` is the loader whose conventions count: libbpf, libbpf-0.8, cilium-ebpf, aya or
/// iproute2.
///
/// Raises FileError if the file cannot be read, ObjectError if it is no object of clang that the
/// loader takes.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Object(pub(crate) beebox::Object);

#[pymethods]
impl Object {
    #[new]
    #[pyo3(signature = (source, *, loader = "libbpf"))]
    fn new(source: &Bound<'_, PyAny>, loader: &str) -> PyResult<Object> {
        let kind = LoaderKind::from_name(loader).ok_or_else(|| {
            let known: Vec<_> = LoaderKind::ALL.iter().map(|kind| kind.name()).collect();
            let known = known.join(", ");
            PyErr::from(Fault::absent(format!(
                "no loader {loader:?}; there are {known}"
            )))
        })?;
        let py = source.py();
        let opened = match source.extract::<PathBuf>() {
            Ok(_) if source.is_instance_of::<PyBytes>() => None,
            Ok(path) => Some(py.detach(|| beebox::Object::open_for(path, kind))),
            Err(_) => None,
        };
        let opened = match opened {
            Some(opened) => opened,
            None => {
                let bytes = bytes_of(source).map_err(|_| {
                    let kind = source.get_type().name();
                    let kind = kind.map_or_else(|_| "it".to_owned(), |kind| kind.to_string());
                    let what = "a path or the bytes of an object is expected";
                    PyErr::from(Fault::of_type(format!("{what}, got {kind}")))
                })?;
                let bytes = bytes.as_slice();
                py.detach(|| beebox::Object::from_bytes_for(bytes, kind))
            }
        };
        opened.map(Object).map_err(raised)
    }

    /// Its name: that of the file up to the first dot, `object` for one from bytes.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Names of its programs, in the order of the file.
    #[getter]
    fn programs(&self) -> Vec<String> {
        self.0.program_names().to_vec()
    }

    /// Names of its maps, those of global variables among them.
    #[getter]
    fn maps(&self) -> Vec<String> {
        self.0.map_names().to_vec()
    }

    /// Verifies its programs, each loaded alone as libbpf does it; a row for each. Refusals are
    /// results, not exceptions.
    ///
    /// Keyword arguments: `kernel`, `programs` (names; all if there are none), `log_level` (bits: 1
    /// the path that is refused, 2 every instruction, 4 statistics), `explain`, `cost`, `facts`,
    /// `privileges` (`"all"`, `"none"` or some of bpf, perfmon, net_admin, sys_admin with commas),
    /// `define` (values of undefined symbols), `program_type` (of programs whose section implies
    /// none), `program_types` and `attach` (by name of the program), `globals` (values before
    /// loading), `flags` (BPF_F_* load flags), `test_tags` (those of the kernel's selftests),
    /// `target` (an object and the name of its program that others replace or trace).
    ///
    /// Raises ObjectError if the object cannot be opened, NotFoundError for names that are not there,
    /// FormatError for values that are not of their form.
    #[pyo3(signature = (*, kernel = None, **options))]
    fn verify(
        &self,
        py: Python<'_>,
        kernel: Option<KernelArg>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Verification> {
        let args = VerifyArgs::read(options)?;
        let kernel = kernel::read(py, kernel)?;
        verify::verify(py, &self.0, kernel, &args)
    }

    /// Loads it: links it for a kernel, verifies its programs, makes its maps, and compiles the
    /// programs.
    ///
    /// Keyword arguments: `kernel`, `engine` (native, interp or checked), `unverified`, `programs`,
    /// `program_types`, `globals`, `define`, `max_entries`, `map_formats`, `reuse_maps`,
    /// `map_memory` (bytes), `time_limit` (seconds of a run, or None), `instruction_limit`, `seed`,
    /// `cpus`, `perf_buffers` (bytes for each CPU), `system` (machine and network, as a dict or
    /// JSON text).
    ///
    /// Raises VerifierError with `log` and `explanation` if a program is refused, LoadError if it
    /// cannot be linked, UnsupportedError, NotFoundError and FormatError for options that do not fit.
    #[pyo3(signature = (*, kernel = None, **options))]
    fn load(
        &self,
        py: Python<'_>,
        kernel: Option<KernelArg>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Instance> {
        let args = LoadArgs::read(py, options)?;
        let kernel = kernel::read(py, kernel)?;
        args.load(py, &self.0, &kernel)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.bytes())
    }

    fn __repr__(&self) -> String {
        let programs = self.0.program_names().join(", ");
        format!("<Object {}: {programs}>", self.0.name())
    }
}
