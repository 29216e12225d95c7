//! A model of the kernel around programs that Linux does not test-run.

use ::kernel::model::{Model, ModelError, ModelMemory, ModelValue};

use crate::failure::{Error, RunCause};
use crate::instance::Instance;

/// A model of the kernel around programs that Linux does not test-run: what a test gives of it (objects by
/// their types, the process, results of functions), in the language of
/// [expectation files](crate::expect), and what programs did to it. A clone is a fixture for another test.
///
/// ```
/// use beebox::{KernelModel, Loader, Object, TestRun};
///
/// fn main() -> Result<(), beebox::Error> {
/// #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
///     let object = Object::open("examples/tools/execsnoop.bpf.o")?;
///     let instance = Loader::default().models(true).load(&object)?;
///     let mut model = KernelModel::new(&instance)?;
///     model.give("init", "task_struct { tgid: 1 }")?;
///     model.give("shell", "task_struct { tgid: 7, comm: \"bash\", real_parent: @init }")?;
///
///     let on_exec = instance.program("on_exec")?;
///     let arguments = "{ p: @shell, bprm: { filename: \"/usr/bin/ls\" } }";
///     let result = on_exec.model_run(&mut model, arguments, &TestRun::default())?;
///     assert_eq!(result.retval, 0);
///     assert_eq!(result.records.len(), 1);
///
///     // What was not given is an error that names it.
///     let arguments = "{ p: { tgid: 7 }, bprm: { filename: \"/usr/bin/ls\" } }";
///     let error = on_exec.model_run(&mut model, arguments, &TestRun::default()).unwrap_err();
///     let missing = "task_struct.real_parent of argument p was not given";
///     assert!(error.to_string().contains(missing), "{error}");
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct KernelModel(Box<Model>);

impl KernelModel {
    /// A model of the kernel that an instance was loaded for, in which nothing is given.
    ///
    /// # Errors
    /// If the types of that kernel are unknown.
    pub fn new(instance: &Instance) -> Result<KernelModel, Error> {
        let (types, addresses) = instance.model_types();
        let types = types.ok_or_else(|| fault("the types of the kernel are unknown".to_owned()))?;
        let memory = ModelMemory::new(types, addresses.given);
        Ok(KernelModel(Box::new(Model::new(memory))))
    }

    /// The model for a run.
    pub(crate) fn lend(&self) -> Box<Model> {
        let mut lent = self.0.clone();
        lent.begin();
        lent.has_time = true;
        lent
    }

    /// Takes what a run left.
    pub(crate) fn give_back(&mut self, left: Option<Box<Model>>) {
        if let Some(left) = left {
            self.0 = left;
        }
    }

    /// Makes room for an object of a type, so that others can refer to it before it is given.
    ///
    /// # Errors
    /// If the name is taken or the kernel has no such type.
    pub fn declare(&mut self, name: &str, ty: &str) -> Result<(), Error> {
        self.0.memory.declare(name, ty).map_err(fault)
    }

    /// Gives an object, `TYPE {FIELD: VALUE}`, or fields of one that was declared or given,
    /// `{FIELD: VALUE}`.
    ///
    /// # Errors
    /// If a name or type is unknown, or a field does not take its value.
    pub fn give(&mut self, name: &str, object: &str) -> Result<(), Error> {
        let value = parse(object)?;
        if !matches!(value, ModelValue::Fields { .. }) {
            return Err(fault(format!(
                "@{name} takes TYPE {{FIELD: VALUE}}, or {{FIELD: VALUE}} for more of it, not {value}"
            )));
        }
        if let ModelValue::Fields { ty: Some(ty), .. } = &value
            && self.0.memory.address(name).is_err()
        {
            self.declare(name, ty)?;
        }
        self.0
            .memory
            .give(name, &value)
            .map_err(|error| placed(object, error))
    }

    /// Gives members of the process that programs run in: `{pid: 7, task: @shell}`.
    ///
    /// # Errors
    /// For other members and values.
    pub fn process(&mut self, members: &str) -> Result<(), Error> {
        let given = self.0.give_process(&parse(members)?);
        given.map_err(|error| placed(members, error))
    }

    /// Gives what calls of a helper or kfunc return: all of them, or the one of a number from 1.
    ///
    /// # Errors
    /// If there is no such function, or it returns no such value.
    pub fn result(&mut self, function: &str, call: Option<u64>, value: &str) -> Result<(), Error> {
        let given = self.0.give_result(function, call, &parse(value)?, &[]);
        given.map_err(|error| placed(value, error))
    }

    /// The calls of functions that are not modelled, in words, which the last run made.
    pub fn calls(&self) -> Vec<String> {
        let calls = self.0.calls();
        calls.iter().map(|call| self.0.show_call(call)).collect()
    }

    /// Takes the text that iterators wrote.
    pub fn take_seq(&mut self) -> String {
        String::from_utf8_lossy(&self.0.take_seq()).into_owned()
    }

    /// How a field of an object differs from a value, in words; `None` if it does not.
    ///
    /// # Errors
    /// If there is no such object or field, or it takes no such value.
    pub fn difference(
        &mut self,
        name: &str,
        field: &str,
        value: &str,
    ) -> Result<Option<String>, Error> {
        let path: Vec<String> = field.split('.').map(str::to_owned).collect();
        let compared = self.0.compare_member(name, &path, &parse(value)?);
        compared.map_err(|error| placed(value, error))
    }
}

/// A value of the language.
pub(crate) fn parse(text: &str) -> Result<ModelValue, Error> {
    ModelValue::parse(text).map_err(|error| fault(format!("{text}: {error}")))
}

/// The error of a value of a text, with its column.
pub(crate) fn placed(text: &str, error: ModelError) -> Error {
    match error.at.and_then(|at| text.get(..at)) {
        Some(before) => fault(format!(
            "column {}: {}",
            before.chars().count() + 1,
            error.what
        )),
        None => fault(error.what),
    }
}

/// The error of what a model does not take.
pub(crate) fn fault(what: String) -> Error {
    RunCause::Model(what).into()
}
