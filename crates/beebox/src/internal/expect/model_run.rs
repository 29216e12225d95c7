//! Statements about models of the kernel: what they give, their runs, and what is expected of these.

use ::kernel::model::{Model, ModelMemory, ModelValue};

use super::check::State;
use super::runs::Ran;
use super::statement::{Expected, Line, Statement};
use super::{ExpectCheck, ExpectDifference, ExpectError, ExpectProblem};
use crate::internal::run::RunnableProgram;

/// Bytes of a differing text that are shown.
const SHOWN: usize = 200;

impl<'c> ExpectCheck<'c, '_> {
    /// Makes the model of the file, with room for all objects, so that they refer to each other.
    pub(super) fn declare(&self, state: &mut State) -> Result<(), ExpectError> {
        if !self.file.has_model() {
            return Ok(());
        }
        let Some(types) = self.loaded.kernel_types() else {
            let what = "the types of the kernel are unknown, which a model needs".to_owned();
            let problem = ExpectProblem::Unsuitable(what);
            return Err(ExpectError::new(self.file.name(), None, problem));
        };
        let mut memory = ModelMemory::new(types, self.loaded.addresses().given);
        for line in &self.file.lines {
            if let Statement::Given {
                name,
                value: ModelValue::Fields { ty: Some(ty), .. },
                is_new: true,
            } = &line.statement
            {
                let declared = memory.declare(name, ty);
                declared.map_err(|what| self.at(line, ExpectProblem::Unsuitable(what)))?;
            }
        }
        state.model = Some(Box::new(Model::new(memory)));
        Ok(())
    }

    /// Hands the model to a program for its next runs.
    pub(super) fn lend_model(&self, state: &mut State, program: &mut RunnableProgram<'c>) {
        if let Some(model) = &mut state.model {
            let runs_in_model = crate::internal::run::can_test_run(program.kind());
            model.has_time = state.clock.is_some() || runs_in_model;
            model.begin();
        }
        program.set_model(state.model.take());
    }

    /// Makes the context of the next run.
    pub(super) fn make_context(
        &self,
        state: &mut State,
        program: &mut RunnableProgram<'c>,
        value: &ModelValue,
    ) -> Result<(), ExpectProblem> {
        let Some(mut model) = program.take_model() else {
            return Ok(());
        };
        let made = model.make_context(program.loaded_program(), value);
        match made {
            Ok(()) => {
                program.set_model(Some(model));
                Ok(())
            }
            Err(what) => {
                state.model = Some(model);
                Err(ExpectProblem::Unsuitable(what))
            }
        }
    }

    pub(super) fn step_model(&self, state: &mut State, line: &Line) -> Result<(), ExpectProblem> {
        match &line.statement {
            Statement::RunModel { program, value } => {
                let values = std::slice::from_ref(value);
                return self.run_model(state, line, program, values);
            }
            Statement::Iterate { program, elements } => {
                let values: Vec<ModelValue> = (0..=elements.len())
                    .map(|number| iteration(number, elements.get(number)))
                    .collect();
                return self.run_model(state, line, program, &values);
            }
            _ => {}
        }
        state.has_set = true;
        let Some(model) = &mut state.model else {
            return Ok(());
        };
        let given = match &line.statement {
            Statement::Given { name, value, .. } => model.memory.give(name, value),
            Statement::Process(value) => model.give_process(value),
            Statement::Result {
                function,
                at,
                value,
                fills,
            } => model.give_result(function, *at, value, fills),
            _ => Ok(()),
        };
        given.map_err(ExpectProblem::Unsuitable)
    }

    /// Runs a program on contexts, one after the other.
    fn run_model(
        &self,
        state: &mut State,
        line: &Line,
        name: &str,
        values: &[ModelValue],
    ) -> Result<(), ExpectProblem> {
        state.report.runs += 1;
        state.last = Some((state.report.runs, name.to_owned()));
        let mut program = self.runnable(state, name)?;
        self.lend_model(state, &mut program);
        let mut all: Option<crate::internal::run::TestRunOutput> = None;
        for value in values {
            let value = self.with_context_names(&program, value);
            self.make_context(state, &mut program, &value)?;
            match program.model_run() {
                Ok(mut output) => {
                    if let Some(before) = all.take() {
                        output.records.splice(0..0, before.records);
                        output.printk.texts.splice(0..0, before.printk.texts);
                        output.printk.lost += before.printk.lost;
                    }
                    all = Some(output);
                }
                Err(error) => {
                    state.model = program.take_model();
                    self.return_faults(state, &mut program);
                    if !error.is_stop() {
                        return Err(ExpectProblem::Run(Box::new(error)));
                    }
                    self.end(state, line, Err(error));
                    return Ok(());
                }
            }
        }
        state.model = program.take_model();
        self.return_faults(state, &mut program);
        if let Some(run) = all {
            let ran = Ran::Packet {
                packet: Vec::new(),
                context: None,
                run: Box::new(run),
                executed: program.executed(),
            };
            self.end(state, line, Ok(ran));
        }
        Ok(())
    }

    /// The element of an iterator by the name of its first member.
    fn with_context_names(&self, program: &RunnableProgram<'_>, value: &ModelValue) -> ModelValue {
        let ModelValue::Fields {
            ty,
            fields,
            others_are_zero,
        } = value
        else {
            return value.clone();
        };
        let of = program.loaded_program();
        let named = fields.iter().map(|(path, value)| match &path[..] {
            [name] if name == ELEMENT => {
                let name = self
                    .loaded
                    .kernel_types()
                    .and_then(|types| ::kernel::model::iterated_member(of, &types));
                (
                    vec![name.unwrap_or_else(|| ELEMENT.to_owned())],
                    value.clone(),
                )
            }
            _ => (path.clone(), value.clone()),
        });
        ModelValue::Fields {
            ty: ty.clone(),
            fields: named.collect(),
            others_are_zero: *others_are_zero,
        }
    }

    /// Takes back the faults of a program.
    fn return_faults(&self, state: &mut State, program: &mut RunnableProgram<'_>) {
        state.faults = program.take_faults().unwrap_or_default();
    }

    pub(super) fn expect_of_model(
        &self,
        state: &mut State,
        line: &Line,
        expected: &Expected,
    ) -> Result<(), ExpectProblem> {
        let difference = match (&mut state.model, &state.ran) {
            (None, _) => {
                let what = "no statement before it is about a model of the kernel".to_owned();
                return Err(ExpectProblem::Unsuitable(what));
            }
            (Some(_), Ran::Stopped) => Some("there is no run that ended".to_owned()),
            (Some(model), _) => compare(model, expected).map_err(ExpectProblem::Unsuitable)?,
        };
        state.put(line, difference.map(ExpectDifference::from), Vec::new());
        Ok(())
    }
}

/// The name that stands for the first member of an iterator's context behind `meta`.
const ELEMENT: &str = "element of the iterator";

/// The context of a run of an iterator.
fn iteration(number: usize, element: Option<&ModelValue>) -> ModelValue {
    let path = |name: &str| vec![name.to_owned()];
    let meta = ModelValue::Fields {
        ty: None,
        fields: vec![
            (
                path("seq"),
                ModelValue::Fields {
                    ty: None,
                    fields: Vec::new(),
                    others_are_zero: true,
                },
            ),
            (path("session_id"), ModelValue::Number(1)),
            (path("seq_num"), ModelValue::Number(number as i128)),
        ],
        others_are_zero: false,
    };
    let mut fields = vec![(path("meta"), meta)];
    let mut others_are_zero = false;
    match element {
        Some(ModelValue::Fields {
            ty: None,
            fields: given,
            ..
        }) => fields.extend(given.iter().cloned()),
        Some(element) => fields.push((path(ELEMENT), element.clone())),
        // The last call has null pointers.
        None => others_are_zero = true,
    }
    ModelValue::Fields {
        ty: None,
        fields,
        others_are_zero,
    }
}

/// What a run did, beside what is expected.
fn compare(model: &mut Model, expected: &Expected) -> Result<Option<String>, String> {
    match expected {
        Expected::Call { function: None, .. } => {
            let next = model.next_call();
            Ok(next.map(|call| format!("expected no call, got {}", model.show_call(&call))))
        }
        Expected::Call {
            function: Some(function),
            arguments,
        } => {
            let next = model.take_call(function)?;
            match (next, arguments) {
                (None, None) => Ok(None),
                (None, Some(_)) => Ok(Some(format!("expected a call of {function}, got none"))),
                (Some(call), None) => Ok(Some(format!(
                    "expected no call, got {}",
                    model.show_call(&call)
                ))),
                (Some(call), Some(arguments)) => {
                    let difference = model.compare_call(&call, arguments)?;
                    Ok(difference.map(|what| format!("{what} in {}", model.show_call(&call))))
                }
            }
        }
        Expected::Seq(text) => {
            let got = model.take_seq();
            let wanted = text.as_deref().unwrap_or_default();
            let shown = |bytes: &[u8]| match bytes {
                [] => "nothing".to_owned(),
                bytes => format!(
                    "{:?}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)])
                ),
            };
            let is_equal = got == wanted.as_bytes();
            Ok((!is_equal)
                .then(|| format!("expected {}, got {}", shown(wanted.as_bytes()), shown(&got))))
        }
        Expected::ContextFields(value) => model.compare_context(value),
        Expected::Memory { name, path, value } => model.compare_member(name, path, value),
        _ => Ok(None),
    }
}
