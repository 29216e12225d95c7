//! Seccomp filters of one process.

use std::path::{Path, PathBuf};

use beebox::internal::seccomp::profile::{
    self, ContainerProfile, FilterFile, NEWEST_KERNEL, ProgramShape, Runtime, TargetMachine,
};
use beebox::internal::seccomp::read_expectations;
use beebox::seccomp::{Arch, FilterStack, SeccompFilter};
use beebox::{Engine, SockFilter};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use report::seccomp::{differences_json, differences_text, table_text};
use serde_json::json;

use crate::errors::Fault;
use crate::json::to_python;
use crate::load::json_text;
use crate::text::plain;

/// The seccomp filters of a process, the oldest first: each a path, the bytes or the text of a program,
/// or a container profile (a dict, or a file of JSON or YAML), which is compiled.
///
/// `machine` is the architecture that profiles are compiled for, `capabilities` those of the
/// container (names, or a set: all, none, docker, containerd, podman), `kernel_version` decides rules
/// with minKernel, `runtime` is runc or libseccomp.
///
/// Raises FileError if a file cannot be read, FilterError if the kernel refuses a filter, FormatError
/// for profiles that are not of their form, NotFoundError for names that are not there.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Seccomp {
    stack: FilterStack,
    name: String,
}

/// The machine that profiles are for.
struct Options {
    machine: Arch,
    capabilities: Vec<String>,
    kernel_version: Option<String>,
    runtime: Runtime,
}

impl Options {
    fn target(&self) -> Result<TargetMachine, Fault> {
        let mut caps = std::collections::BTreeSet::new();
        for list in &self.capabilities {
            caps.extend(profile::parse_capabilities(list).map_err(Fault::absent)?);
        }
        let kernel = match &self.kernel_version {
            Some(version) => version.parse().map_err(Fault::of_format)?,
            None => NEWEST_KERNEL,
        };
        Ok(TargetMachine {
            arch: self.machine,
            caps,
            kernel,
            runtime: self.runtime,
        })
    }

    fn compile(&self, name: &str, text: &[u8]) -> Result<Vec<SockFilter>, Fault> {
        let refused = |error: &dyn std::fmt::Display| Fault::of_format(format!("{name}: {error}"));
        let read = ContainerProfile::read(text).map_err(|error| refused(&error))?;
        let compiled = profile::compile(&read, &self.target()?, ProgramShape::Tree);
        Ok(compiled.map_err(|error| refused(&error))?.program)
    }

    /// The filter in a file or text.
    fn filter(&self, name: &str, path: &Path, bytes: &[u8]) -> Result<SeccompFilter, Fault> {
        let builder = SeccompFilter::builder()
            .engine(Engine::Checked)
            .byte_order(self.machine.byte_order());
        let built = match FilterFile::detect(path, bytes) {
            FilterFile::Profile => builder.build(&self.compile(name, bytes)?),
            FilterFile::JsonArray => {
                let what = "this is a JSON array, and a container profile is a JSON object";
                return Err(Fault::of_format(format!("{name}: {what}")));
            }
            FilterFile::Program => builder.parse(bytes),
        };
        built.map_err(|error| Fault::new("filter", format_args!("{name}: {error}")))
    }
}

fn arch(name: Option<&str>) -> PyResult<Arch> {
    let found = match name {
        Some(name) => Arch::from_name(name),
        None => Some(Arch::native().unwrap_or(Arch::X86_64)),
    };
    found.ok_or_else(|| {
        let name = name.unwrap_or_default();
        let known: Vec<_> = Arch::ALL.iter().map(|arch| arch.name()).collect();
        let known = known.join(", ");
        Fault::absent(format!("no architecture {name:?}; there are {known}")).into()
    })
}

fn too_complex(error: beebox::Error) -> Fault {
    Fault::new("too_complex", error)
}

#[pymethods]
impl Seccomp {
    #[new]
    #[pyo3(signature = (*filters, machine = None, capabilities = None,
        kernel_version = None, runtime = "runc"))]
    fn new(
        py: Python<'_>,
        filters: Vec<Bound<'_, PyAny>>,
        machine: Option<&str>,
        capabilities: Option<Vec<String>>,
        kernel_version: Option<String>,
        runtime: &str,
    ) -> PyResult<Seccomp> {
        let options = Options {
            machine: arch(machine)?,
            capabilities: capabilities.unwrap_or_default(),
            kernel_version,
            runtime: match runtime {
                "runc" => Runtime::Runc,
                "libseccomp" => Runtime::Libseccomp,
                _ => {
                    let what = format!("no runtime {runtime:?}; there are runc and libseccomp");
                    return Err(Fault::absent(what).into());
                }
            },
        };
        let mut stack = FilterStack::default();
        let mut names = Vec::new();
        for given in filters {
            let (name, path, bytes) = read(py, &given)?;
            let filter = py.detach(|| options.filter(&name, &path, &bytes))?;
            stack.install(filter).map_err(|refusal| {
                let what = refusal.rule.sentence();
                PyErr::from(Fault::new("filter", format_args!("{name}: {what}")))
            })?;
            names.push(name);
        }
        Ok(Seccomp {
            stack,
            name: names.join(" + "),
        })
    }

    /// The kernel's action for a call, such as `"ERRNO(1)"`.
    ///
    /// Raises NotFoundError if the architecture has no such call.
    #[pyo3(signature = (name, *arguments, arch = None))]
    fn decide(
        &self,
        name: &str,
        arguments: Vec<Bound<'_, PyAny>>,
        arch: Option<&str>,
    ) -> PyResult<String> {
        let arch = self::arch(arch)?;
        let mut args = [0; 6];
        if arguments.len() > args.len() {
            let what = format!("{} arguments: a call has six", arguments.len());
            return Err(Fault::of_type(what).into());
        }
        for (argument, into) in arguments.iter().zip(&mut args) {
            // Negative ones in two's complement.
            *into = match argument.extract::<u64>() {
                Ok(value) => value,
                Err(_) => argument.extract::<i64>()? as u64,
            };
        }
        let found = arch.call(name, args);
        let absent = || PyErr::from(Fault::absent(format!("{} has no call {name}", arch.name())));
        let call = found.ok_or_else(absent)?;
        Ok(self.stack.decide(&call).to_string())
    }

    /// The actions for all calls with all arguments: a dict as `beebox seccomp table --json` has it,
    /// for the architectures that the filters single out, or for `archs`.
    ///
    /// Raises TooComplexError beyond the budget of the analysis.
    #[pyo3(signature = (archs = None))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        archs: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let archs = archs.map(named).transpose()?;
        let table = py.detach(|| -> Result<_, TooComplex> {
            let mut analysis = self.stack.analyze()?;
            let archs = archs.map_or_else(|| analysis.shown_architectures(), Ok)?;
            let mut tables = analysis.tables_json(&archs)?;
            tables["unreachable"] = json!(analysis.unreachable());
            Ok(tables)
        });
        to_python(py, &table.map_err(too_complex)?)
    }

    /// The table for people.
    #[pyo3(signature = (archs = None, *, all = false))]
    fn table_text(
        &self,
        py: Python<'_>,
        archs: Option<Vec<String>>,
        all: bool,
    ) -> PyResult<String> {
        let archs = archs.map(named).transpose()?;
        let text = py.detach(|| -> Result<_, TooComplex> {
            let mut analysis = self.stack.analyze()?;
            let mut text = String::new();
            let archs = archs.map_or_else(|| analysis.shown_architectures(), Ok)?;
            for arch in archs {
                text += &table_text(&analysis.table(arch)?, all, "");
                text.push('\n');
            }
            Ok(text)
        });
        Ok(plain(&text.map_err(too_complex)?))
    }

    /// The calls for which other filters take another action, each with an example.
    ///
    /// Raises TooComplexError beyond the budget of the analysis.
    fn diff(&self, py: Python<'_>, other: &Bound<'_, Seccomp>) -> PyResult<SeccompDiff> {
        let other = other.get();
        let found = py.detach(|| self.stack.diff(&other.stack));
        let found = found.map_err(too_complex)?;
        let text = differences_text(&found, [&self.name, &other.name]);
        Ok(SeccompDiff {
            list: differences_json(&found),
            text: plain(&text),
        })
    }

    /// The expectations, one a line as in `beebox seccomp assert`, that are missed: none if all hold.
    ///
    /// Raises FormatError for a line that is no expectation, TooComplexError beyond the budget.
    fn misses<'py>(&self, py: Python<'py>, expectations: &str) -> PyResult<Bound<'py, PyAny>> {
        let list = py.detach(|| read_expectations(expectations));
        let list = list.map_err(Fault::of_format)?;
        let misses = py.detach(|| -> Result<_, TooComplex> {
            Ok(self.stack.analyze()?.misses(&list)?.json())
        });
        to_python(py, &misses.map_err(too_complex)?)
    }

    /// Raises AssertionError with the expectations that are missed, if one is.
    fn assert_expectations(&self, py: Python<'_>, expectations: &str) -> PyResult<()> {
        let misses = self.misses(py, expectations)?;
        if misses.len()? == 0 {
            return Ok(());
        }
        let mut text = format!("{}:", self.name);
        for miss in misses.try_iter()? {
            let miss = miss?;
            let (line, expected) = (miss.get_item("line")?, miss.get_item("expectation")?);
            let (found, example) = (miss.get_item("found")?, miss.get_item("example")?);
            text += &format!("\nline {line}: {expected}\n  {found}, for example {example}");
        }
        Err(pyo3::exceptions::PyAssertionError::new_err(text))
    }

    fn __len__(&self) -> usize {
        self.stack.filters().len()
    }

    fn __repr__(&self) -> String {
        format!("<Seccomp {}>", self.name)
    }
}

fn named(names: Vec<String>) -> PyResult<Vec<Arch>> {
    names.iter().map(|name| arch(Some(name))).collect()
}

/// A filter of an argument: its name, its path, and its bytes.
fn read(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<(String, PathBuf, Vec<u8>)> {
    if given.cast::<PyDict>().is_ok() {
        let text = json_text(py, given)?;
        return Ok((
            "profile".to_owned(),
            "profile.json".into(),
            text.into_bytes(),
        ));
    }
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok((
            "filter".to_owned(),
            PathBuf::new(),
            bytes.as_bytes().to_vec(),
        ));
    }
    if let Ok(text) = given.extract::<&str>()
        && text.contains('\n')
    {
        return Ok((
            "filter".to_owned(),
            PathBuf::new(),
            text.as_bytes().to_vec(),
        ));
    }
    let path: PathBuf = given.extract()?;
    let name = path.display().to_string();
    let failed = |error| PyErr::from(Fault::new("file", format_args!("{name}: {error}")));
    let bytes = py.detach(|| std::fs::read(&path)).map_err(failed)?;
    Ok((name, path, bytes))
}

/// The differences of two stacks of filters; `bool(diff)` is true if there are some.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct SeccompDiff {
    list: serde_json::Value,
    text: String,
}

#[pymethods]
impl SeccompDiff {
    /// The differences, as `beebox seccomp diff --json` has them.
    #[getter]
    fn differences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.list)
    }

    fn __bool__(&self) -> bool {
        self.__len__() > 0
    }

    fn __len__(&self) -> usize {
        self.list.as_array().map_or(0, Vec::len)
    }

    fn __str__(&self) -> &str {
        &self.text
    }
}
