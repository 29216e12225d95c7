//! Descriptions of kernels.

use std::path::PathBuf;
use std::sync::Arc;

use beebox::Kernel as Described;
use beebox::internal::btf::{TypeFile, TypeFileError};
use beebox::internal::kernel::linux_6_18;
use beebox::kernel::{Kernels as _, Preset};
use pyo3::prelude::*;

use crate::errors::{Fault, raised};

/// A kernel, for which objects are linked and programs verified.
///
/// `Kernel.builtin()` is Linux 6.18 as Debian configures it. Where a kernel is an argument, a name
/// stands for `Kernel.builtin(name)`, a path for `Kernel.open(path)`, and `None` for the built-in one.
#[pyclass(frozen, module = "beebox", from_py_object)]
#[derive(Clone)]
pub(crate) struct Kernel(pub(crate) Described);

#[pymethods]
impl Kernel {
    /// A built-in kernel: a series (`"6.12"`), a version (`"6.12.117"`), a distribution
    /// (`"debian-12"`), or `"6.18-minimal"` (without modules, kprobes and sched_ext). `"6.18"` is as
    /// Debian configures it.
    ///
    /// Raises NotFoundError for another name.
    #[staticmethod]
    #[pyo3(signature = (name = "6.18"))]
    fn builtin(py: Python<'_>, name: &str) -> PyResult<Kernel> {
        let kernel = py.detach(|| Described::preset(name));
        kernel
            .map(Kernel)
            .map_err(|error| Fault::absent(error.to_string()).into())
    }

    /// Names of the built-in kernels that a word means, oldest first: `"all"` (one of each series),
    /// `"lts"`, a range of series (`"6.1-6.12"`, `"6.12-"`), or a name of `Kernel.builtin`.
    ///
    /// Raises NotFoundError if it means none.
    #[staticmethod]
    #[pyo3(signature = (word = "all"))]
    fn presets(word: &str) -> PyResult<Vec<&'static str>> {
        let presets = Described::select(word);
        let presets = presets.map_err(|error| PyErr::from(Fault::absent(error.to_string())))?;
        Ok(presets.into_iter().map(Preset::name).collect())
    }

    /// The kernel that a file of BTF describes (`vmlinux`), or a directory with files of its BTF,
    /// configuration, symbols and modules.
    ///
    /// Raises FileError or FormatError if a file cannot be read or is not of its kind.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Kernel> {
        py.detach(|| Described::open(path))
            .map(Kernel)
            .map_err(raised)
    }

    /// The running kernel, with the helpers, contexts and kfuncs of the built-in one.
    ///
    /// Raises FileError if its BTF cannot be read.
    #[staticmethod]
    fn running(py: Python<'_>) -> PyResult<Kernel> {
        py.detach(Described::running).map(Kernel).map_err(raised)
    }

    /// The kernel with other types for CO-RE relocations, from a file with BTF (libbpf's
    /// `btf_custom_path`).
    ///
    /// Raises FileError or FormatError if the file cannot be read or has no BTF.
    fn with_core_btf(&self, py: Python<'_>, path: PathBuf) -> PyResult<Kernel> {
        let read = py.detach(|| TypeFile::open(&path));
        let read = read.map_err(|error| {
            let kind = match error {
                TypeFileError::File(_) => "file",
                _ => "format",
            };
            raised(Fault::new(kind, error).within(path.display()))
        })?;
        Ok(Kernel(self.0.clone().with_core_btf(Arc::new(read.btf))))
    }

    /// Its name in messages.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Its version, such as `"6.18.44"`; None if it is unknown.
    #[getter]
    fn version(&self) -> Option<String> {
        self.0.version().map(|version| version.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<Kernel {}>", self.0.name())
    }
}

/// A kernel as an argument.
pub(crate) enum KernelArg {
    Given(Py<Kernel>),
    Named(Box<Described>),
    Path(PathBuf),
}

impl<'a, 'py> FromPyObject<'a, 'py> for KernelArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<KernelArg> {
        if let Ok(kernel) = value.cast::<Kernel>() {
            return Ok(KernelArg::Given(kernel.to_owned().unbind()));
        }
        if let Ok(name) = value.extract::<&str>()
            && (Described::preset(name).is_ok() || Described::select(name).is_ok())
        {
            let kernel = Kernel::builtin(value.py(), name)?.0;
            return Ok(KernelArg::Named(Box::new(kernel)));
        }
        let path: PathBuf = value.extract()?;
        match value.extract::<&str>() {
            // A name of another kernel, rather than the path of a file.
            Ok(name) if !path.exists() && !name.contains('/') => {
                let presets = Described::select("all").unwrap_or_default();
                let presets: Vec<_> = presets.into_iter().map(Preset::name).collect();
                let known = format!("there are {}", presets.join(", "));
                let what = format!("no kernel {name:?} is built in, and no file; {known}");
                Err(Fault::absent(what).into())
            }
            _ => Ok(KernelArg::Path(path)),
        }
    }
}

/// The kernel of an argument.
pub(crate) fn read(py: Python<'_>, given: Option<KernelArg>) -> PyResult<Described> {
    match given {
        None => Ok(linux_6_18()),
        Some(KernelArg::Given(kernel)) => Ok(kernel.get().0.clone()),
        Some(KernelArg::Named(kernel)) => Ok(*kernel),
        Some(KernelArg::Path(path)) => Ok(Kernel::open(py, path)?.0),
    }
}
