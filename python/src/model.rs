//! Models of the kernel around programs, and runs in them.

use std::sync::{Mutex, MutexGuard};

use beebox::TestRun;
use beebox::KernelModel;
use pyo3::prelude::*;

use crate::errors::raised;
use crate::instance::Instance;
use crate::load::json_text;
use crate::program::{Program, read_clock};
use crate::result::TestRunResult;

/// A model of the kernel around programs, in which nothing is given: `Instance.model()`. Values are texts in the
/// language of expectation files, or what JSON has: dicts, lists, numbers, texts.
///
/// Programs that Linux does not test-run need `Object.load(models=True)`.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Model(Mutex<KernelModel>);

impl Model {
    pub(crate) fn lock(&self) -> MutexGuard<'_, KernelModel> {
        self.0.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

#[pymethods]
impl Model {
    /// Gives an object of kernel memory, `model.give("init", 'task_struct {pid: 1, comm: "systemd"}')`, or more
    /// of one, `model.give("init", {"tgid": 1})`.
    ///
    /// Raises RunError for unknown types, members and names, and values that do not suit.
    fn give(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = json_text(py, value)?;
        self.lock().give(name, &value).map_err(raised)
    }

    /// Makes room for an object of a type, so that others can refer to it before it is given.
    ///
    /// Raises RunError if the name is taken or the kernel has no such type.
    #[pyo3(signature = (name, r#type))]
    fn declare(&self, name: &str, r#type: &str) -> PyResult<()> {
        self.lock().declare(name, r#type).map_err(raised)
    }

    /// Gives members of the process: `model.process({"pid": 7, "comm": "bash"})`, `"{task: @shell}"`.
    ///
    /// Raises RunError for other members and values.
    fn process(&self, py: Python<'_>, members: &Bound<'_, PyAny>) -> PyResult<()> {
        let members = json_text(py, members)?;
        self.lock().process(&members).map_err(raised)
    }

    /// Has calls of a helper or kfunc return a value, all of them or that of a number from 1: what the machine
    /// is, or a fault, `model.result("bpf_map_update_elem", "-ENOSPC", at=3)`.
    ///
    /// Raises RunError if there is no such function, or it returns no such value.
    #[pyo3(signature = (function, value, *, at = None))]
    fn result(
        &self,
        py: Python<'_>,
        function: &str,
        value: &Bound<'_, PyAny>,
        at: Option<u64>,
    ) -> PyResult<()> {
        let value = json_text(py, value)?;
        self.lock().result(function, at, &value).map_err(raised)
    }

    /// The calls of functions that are not modelled, in words, which the last run made.
    #[getter]
    fn calls(&self) -> Vec<String> {
        self.lock().calls()
    }

    /// Takes the text that iterators wrote.
    fn take_seq(&self) -> String {
        self.lock().take_seq()
    }

    /// How a field of an object differs from a value, in words; None if it does not.
    ///
    /// Raises RunError if there is no such object or field, or it takes no such value.
    fn difference(
        &self,
        py: Python<'_>,
        name: &str,
        field: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let value = json_text(py, value)?;
        self.lock().difference(name, field, &value).map_err(raised)
    }

    /// A model of its own with the same objects, process and results.
    fn copy(&self) -> Model {
        Model(Mutex::new(self.lock().clone()))
    }

    fn __repr__(&self) -> &'static str {
        "<Model>"
    }
}

#[pymethods]
impl Instance {
    /// A model of the kernel that the object is loaded for, in which nothing is given.
    ///
    /// Raises RunError if the types of that kernel are unknown.
    fn model(&self) -> PyResult<Model> {
        let model = KernelModel::new(&self.0.instance).map_err(raised)?;
        Ok(Model(Mutex::new(model)))
    }
}

#[pymethods]
impl Program {
    /// Runs it once in a model of the kernel, on arguments or fields of its context by name:
    /// `program.model_run(model, "{p: @shell, old_pid: 7}")`. Objects stay in the model as the run left them.
    ///
    /// Raises RunError for programs that get packets, for unknown names and values that do not suit; TrapError
    /// for runs that read what was not given.
    #[pyo3(signature = (model, arguments, *, cpu = 0, clock = None))]
    fn model_run(
        &self,
        py: Python<'_>,
        model: &Bound<'_, Model>,
        arguments: &Bound<'_, PyAny>,
        cpu: u32,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TestRunResult> {
        let arguments = json_text(py, arguments)?;
        let run = TestRun::default().cpu(cpu).clock(read_clock(clock)?);
        let model = model.get();
        let ran = py.detach(|| self.program.model_run(&mut model.lock(), &arguments, &run));
        Ok(TestRunResult {
            result: ran.map_err(raised)?,
            program: self.program.clone(),
            shared: self.shared.clone(),
            data_in: None,
        })
    }
}
