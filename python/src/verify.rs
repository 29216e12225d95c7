//! Verification of the programs of an object.

use std::sync::Arc;

use beebox::internal::btf::Btf;
use beebox::internal::kernel::{Privileges, Source};
use beebox::internal::loading::ObjectLoading;
use beebox::internal::program::{LoadFlags, Program};
use beebox::internal::verify::results::{
    FileContents, FileFault, Files, Job, Logs, Note, Row, verify_files,
};
use beebox::internal::verify::veristat::{Filters, ResultVerdict};
use beebox::internal::verify::{Options, ProgramLoader};
use beebox::Assignment;
use beebox::{Kernel, Object, ProgramType};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::errors::Fault;
use crate::json::to_python;
use crate::options::{assignments, of_option, pairs, program_type, program_types, unknown};
use crate::text::plain;

const KNOWN: &[&str] = &[
    "kernel",
    "programs",
    "log_level",
    "explain",
    "cost",
    "facts",
    "privileges",
    "define",
    "program_type",
    "program_types",
    "attach",
    "globals",
    "flags",
    "test_tags",
    "target",
];

/// Keyword arguments of `Object.verify`.
pub(crate) struct VerifyArgs {
    options: Options,
    explains: bool,
    programs: Vec<String>,
    privileges: Option<Privileges>,
    loading: ObjectLoading,
    flags: u32,
    test_tags: bool,
    /// The object and the program that freplace and tracing programs attach to.
    target: Option<(Object, String)>,
}

impl Default for VerifyArgs {
    fn default() -> VerifyArgs {
        VerifyArgs {
            options: Options {
                log_level: 1,
                ..Options::default()
            },
            explains: true,
            programs: Vec::new(),
            privileges: None,
            loading: ObjectLoading::default(),
            flags: 0,
            test_tags: false,
            target: None,
        }
    }
}

impl VerifyArgs {
    /// Those for the programs that a loader loads.
    pub(crate) fn for_load(
        programs: Vec<String>,
        defines: &[(String, u64)],
        kinds: &[(String, ProgramType)],
        globals: &[Assignment],
    ) -> VerifyArgs {
        VerifyArgs {
            programs,
            explains: false,
            loading: ObjectLoading {
                defines: defines.to_vec(),
                kinds: kinds.to_vec(),
                globals: globals.to_vec(),
                ..ObjectLoading::default()
            },
            ..VerifyArgs::default()
        }
    }

    pub(crate) fn read(options: Option<&Bound<'_, PyDict>>) -> PyResult<VerifyArgs> {
        let mut args = VerifyArgs::default();
        for (name, value) in options.into_iter().flatten() {
            let name: String = name.extract()?;
            if !KNOWN.contains(&name.as_str()) {
                return Err(unknown(&name, KNOWN));
            }
            if !value.is_none() {
                let set = args.set(&name, &value);
                set.map_err(|error| of_option(value.py(), &name, error))?;
            }
        }
        Ok(args)
    }

    /// Sets an option by its name.
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "programs" => self.programs = value.extract()?,
            "log_level" => self.options.log_level = log_level(value)?,
            "explain" => self.explains = value.extract()?,
            "cost" => self.options.collect_cost = value.extract()?,
            "facts" => self.options.collect_facts = value.extract()?,
            "privileges" => {
                let parsed = value.extract::<String>()?.parse();
                self.privileges = Some(parsed.map_err(|error| bad(&error))?);
            }
            "define" => self.loading.defines = pairs(value)?,
            "program_type" => {
                self.loading.kind = Some(program_type(&value.extract::<String>()?)?);
            }
            "program_types" => self.loading.kinds = program_types(value)?,
            "attach" => self.loading.attach = pairs(value)?,
            "globals" => self.loading.globals = assignments(value)?,
            "flags" => self.flags = value.extract()?,
            "test_tags" => self.test_tags = value.extract()?,
            "target" => {
                let (object, program): (Bound<'_, PyAny>, String) = value.extract()?;
                let object = object.cast::<crate::object::Object>()?;
                self.target = Some((object.get().0.clone(), program));
            }
            _ => return Err(unknown(name, KNOWN)),
        }
        Ok(())
    }
}

/// The levels of Linux, and 8 for fixed logs.
fn log_level(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let level = value.extract().ok().filter(|level| *level <= 15);
    level.ok_or_else(|| {
        let given = value.repr().map(|it| it.to_string()).unwrap_or_default();
        Fault::of_type(format!("log_level: an int from 0 to 15 fits, got {given}")).into()
    })
}

fn bad(error: &impl ToString) -> PyErr {
    Fault::of_format(error.to_string()).into()
}

/// One object in memory.
struct OneObject<'o> {
    object: &'o Object,
    names: [String; 1],
}

impl Files for OneObject<'_> {
    type Error = Fault;

    fn names(&self) -> &[String] {
        &self.names
    }

    fn given_name(&self, _at: usize) -> String {
        self.names[0].clone()
    }

    fn size(&self, _at: usize) -> u64 {
        self.object.bytes().len() as u64
    }

    fn read(&self, _at: usize) -> Result<FileContents, Fault> {
        Ok(FileContents::Object(self.object.bytes().to_vec()))
    }

    fn read_btf(&self, _at: usize, _name: &str) -> Option<Arc<Btf<'static>>> {
        None
    }

    fn fault(&self, _at: usize, fault: FileFault) -> Fault {
        let kind = match &fault {
            FileFault::Object(..) | FileFault::NoPrograms => "object",
            FileFault::Loading(_) => "not_found",
            FileFault::MapKind(_) => "unsupported",
        };
        Fault::new(kind, format_args!("{}: {fault}", self.names[0]))
    }

    // Rows have the notes of their maps.
    fn note(&self, _at: usize, _note: Note<'_>) {}
}

/// Verifies the programs of an object.
pub(crate) fn verify(
    py: Python<'_>,
    object: &Object,
    kernel: Kernel,
    args: &VerifyArgs,
) -> PyResult<Verification> {
    let known = object.program_names();
    if let Some(name) = args.programs.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(Fault::absent(format!("no program {name}; there are {known}")).into());
    }
    let rows = py.detach(|| rows(object, kernel, args))?;
    let rows = rows.into_iter().map(|row| Py::new(py, ProgramResult(row)));
    Ok(Verification {
        rows: rows.collect::<PyResult<_>>()?,
    })
}

/// The log of the first program that is refused.
pub(crate) fn first_refused(
    py: Python<'_>,
    object: &Object,
    kernel: &Kernel,
    args: &VerifyArgs,
) -> Option<String> {
    let rows = py.detach(|| rows(object, kernel.clone(), args)).ok()?;
    let mut refused = rows
        .into_iter()
        .filter(|row| row.verdict == ResultVerdict::Failure);
    refused.next().map(|row| row.log)
}

fn rows(object: &Object, kernel: Kernel, args: &VerifyArgs) -> Result<Vec<Row>, Fault> {
    let kernel = match args.privileges {
        Some(privileges) => kernel.with_privileges(privileges, Source::Given),
        None => kernel,
    };
    let files = OneObject {
        object,
        names: [object.name().to_owned()],
    };
    let target = args.target.as_ref();
    let target = target.map(|(object, program)| target_of(object, program, &kernel));
    let mut loading = args.loading.clone();
    loading.loader = Some(object.loader());
    let job = Job {
        programs: &args.programs,
        filters: &Filters::default(),
        flags: LoadFlags(args.flags),
        test_tags: args.test_tags,
        options: args.options.clone(),
        explains: args.explains,
        loading,
        target: target.transpose()?,
        logs: Logs::new(args.options.log_level, None, None),
        threads: 1,
    };
    let results = verify_files(&files, &job, &kernel);
    let mut results = results.ok_or_else(|| {
        Fault::new(
            "unsupported",
            "helpers and contexts of the kernel are unknown",
        )
    })?;
    if let Some(fault) = results.failures.pop() {
        return Err(fault);
    }
    let mut defines = args.loading.defines.iter().map(|(name, _)| name);
    if let Some(name) = defines.find(|name| !results.definable.contains(*name)) {
        let what = "no undefined symbol, kconfig value or variable of the kernel is called so";
        return Err(Fault::absent(format!("define {name}: {what}")));
    }
    Ok(results.rows)
}

/// The program of an object that others attach to.
fn target_of(object: &Object, name: &str, kernel: &Kernel) -> Result<Arc<Program>, Fault> {
    let is_chosen = |program: &str| program == name;
    let loader = ProgramLoader::new(kernel).with_choice(&is_chosen);
    let mut found = None;
    let refused = |error| Fault::new("object", format_args!("{}: {error}", object.name()));
    let loaded = loader.load_each(object.bytes(), object.name(), &mut |loaded| {
        found = Some(loaded.program);
    });
    loaded.map_err(refused)?;
    let absent = || Fault::absent(format!("target {}: no program {name}", object.name()));
    Ok(Arc::new(found.ok_or_else(absent)?.map_err(refused)?))
}

/// The verification of the programs of an object: a sequence of `ProgramResult`, by index or by the
/// name of a program.
#[pyclass(frozen, sequence, module = "beebox")]
pub(crate) struct Verification {
    rows: Vec<Py<ProgramResult>>,
}

#[pymethods]
impl Verification {
    /// The rows, one for each program.
    #[getter]
    fn rows(&self, py: Python<'_>) -> Vec<Py<ProgramResult>> {
        self.rows.iter().map(|row| row.clone_ref(py)).collect()
    }

    /// True if every program is accepted.
    #[getter]
    fn accepted(&self) -> bool {
        let mut rows = self.rows.iter();
        rows.all(|row| row.get().accepted())
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__(&self, at: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = at.py();
        if let Ok(slice) = at.cast::<PySlice>() {
            let rows = self.rows(py).into_pyobject(py)?;
            return Ok(rows.get_item(slice)?.unbind());
        }
        if let Ok(index) = at.extract::<isize>() {
            let place = match index < 0 {
                true => self.rows.len().checked_add_signed(index),
                false => Some(index as usize),
            };
            let row = place.and_then(|place| self.rows.get(place));
            let row = row.ok_or_else(|| PyIndexError::new_err("no such row"))?;
            return Ok(row.clone_ref(py).into_any());
        }
        let Ok(name) = at.extract::<String>() else {
            return Err(PyTypeError::new_err("an index or the name of a program"));
        };
        let mut rows = self.rows.iter();
        match rows.find(|row| row.get().0.prog_name == name) {
            Some(row) => Ok(row.clone_ref(py).into_any()),
            None => {
                let known = self.rows.iter().map(|row| row.get().0.prog_name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                Err(Fault::absent(format!("no program {name}; there are {known}")).into())
            }
        }
    }

    fn __repr__(&self) -> String {
        let rows = self.rows.iter().map(|row| row.get().__repr__());
        format!("[{}]", rows.collect::<Vec<_>>().join(", "))
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "verification_html")
    }
}

/// The verification of one program.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct ProgramResult(Row);

#[pymethods]
impl ProgramResult {
    /// Name of the program.
    #[getter]
    fn program(&self) -> &str {
        &self.0.prog_name
    }

    /// Type of the program, such as `"xdp"`.
    #[getter]
    fn program_type(&self) -> &str {
        &self.0.prog_type
    }

    /// The attach type that it states, if it states one.
    #[getter]
    fn attach_type(&self) -> Option<&str> {
        self.0.stated_attach_type.as_deref()
    }

    /// `"success"`, `"failure"`, or `"unsupported"`, which is no verdict.
    #[getter]
    fn verdict(&self) -> &str {
        self.0.verdict.name()
    }

    /// True if the kernel accepts it.
    #[getter]
    fn accepted(&self) -> bool {
        self.0.verdict == ResultVerdict::Success
    }

    /// Instructions that the verifier processed.
    #[getter]
    fn insns(&self) -> u64 {
        self.0.total_insns
    }

    /// States that it explored.
    #[getter]
    fn states(&self) -> u64 {
        self.0.total_states
    }

    /// Most states at a time.
    #[getter]
    fn peak_states(&self) -> u64 {
        self.0.peak_states
    }

    /// Most states of an instruction.
    #[getter]
    fn max_states_per_insn(&self) -> u64 {
        self.0.max_states_per_insn
    }

    /// Instructions of the program.
    #[getter]
    fn prog_size(&self) -> u64 {
        self.0.prog_size
    }

    /// Bytes of stack, summed over subprograms as veristat does it.
    #[getter]
    fn stack_depth(&self) -> u64 {
        self.0.stack_depth
    }

    /// Reason of a refusal, or what is not supported; empty for accepted programs.
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Linux's error number of a refusal.
    #[getter]
    fn errno(&self) -> Option<i32> {
        self.0.errno
    }

    /// The kernel's log, of the level that was asked for.
    #[getter]
    fn log(&self) -> &str {
        &self.0.log
    }

    /// The explanation of a refusal, of several lines.
    #[getter]
    fn explanation(&self) -> Option<String> {
        self.0.explanation.as_ref().map(|it| plain(&it.text))
    }

    /// Time of the verification in microseconds.
    #[getter]
    fn duration_us(&self) -> u64 {
        self.0.duration_us
    }

    /// Assumptions about the maps of the program.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes.clone()
    }

    /// The row as `beebox verify --json` has it, with the explanation, costs and facts as data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0)
    }

    fn __repr__(&self) -> String {
        let (name, verdict) = (&self.0.prog_name, self.0.verdict.name());
        match self.0.verdict {
            ResultVerdict::Success => {
                format!("<{name}: {verdict}, {} insns>", self.0.total_insns)
            }
            _ => format!("<{name}: {verdict}: {}>", self.0.reason),
        }
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "program_result_html")
    }
}
