//! Statements about models of the kernel: what they give, their runs, and what is expected of these.

use ::kernel::model::{Iteration, IteratorContext, Model, ModelError, ModelMemory, ModelValue};

use super::check::State;
use super::context::compare_fields;
use super::runs::Ran;
use super::statement::{Expected, Line, Statement};
use super::{ExpectCheck, ExpectDifference, ExpectError, ExpectProblem};
use crate::internal::run::{RunError, RunnableProgram, TestRunOutput};

/// Bytes of a differing text that are shown.
const SHOWN: usize = 200;

impl<'c> ExpectCheck<'c, '_> {
    /// Makes the model of the file, with room for all objects, so that they refer to each other.
    pub(super) fn declare(&self, state: &mut State) -> Result<(), ExpectError> {
        if !self.has_model() {
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
            Err(error) => {
                state.model = Some(model);
                Err(error.into())
            }
        }
    }

    pub(super) fn step_model(&self, state: &mut State, line: &Line) -> Result<(), ExpectProblem> {
        match &line.statement {
            Statement::RunModel {
                program,
                value,
                repeat,
            } => {
                return self.run_model(state, line, program, Input::Context(value, *repeat));
            }
            Statement::Iterate { program, elements } => {
                return self.run_model(state, line, program, Input::Elements(elements));
            }
            _ => {}
        }
        state.has_set = true;
        let Some(model) = &mut state.model else {
            return Ok(());
        };
        let given: Result<(), ModelError> = match &line.statement {
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
        given.map_err(ExpectProblem::from)
    }

    /// Runs a program on a context, or an iterator over its elements.
    fn run_model(
        &self,
        state: &mut State,
        line: &Line,
        name: &str,
        input: Input<'_>,
    ) -> Result<(), ExpectProblem> {
        state.report.runs += 1;
        state.last = Some((state.report.runs, name.to_owned()));
        let mut program = self.runnable(state, name)?;
        self.lend_model(state, &mut program);
        let ran = match input {
            Input::Context(value, repeat) => self.repeat(state, &mut program, (value, repeat)),
            Input::Elements(elements) => self.iterate(state, &mut program, elements),
        };
        if let Some(model) = program.take_model() {
            state.model = Some(model);
        }
        state.faults = program.take_faults().unwrap_or_default();
        match ran? {
            Err(error) if !error.is_stop() => {
                return Err(ExpectProblem::Run(Box::new(error)));
            }
            Err(error) => self.end(state, line, Err(error)),
            Ok(run) => {
                let ran = Ran::Packet {
                    packet: Vec::new(),
                    context: None,
                    run: Box::new(run),
                    executed: program.executed(),
                };
                self.end(state, line, Ok(ran));
            }
        }
        Ok(())
    }

    /// Runs on a context so many times, each time on one that is made anew; the result is that of the last run,
    /// with the records and texts of all.
    pub(super) fn repeat(
        &self,
        state: &mut State,
        program: &mut RunnableProgram<'c>,
        (value, times): (&ModelValue, u32),
    ) -> Result<Result<TestRunOutput, RunError>, ExpectProblem> {
        self.make_context(state, program, value)?;
        let mut all = program.model_run();
        for _ in 1..times {
            let Ok(before) = all else {
                break;
            };
            self.make_context(state, program, value)?;
            all = program
                .model_run()
                .map(|output| with_output_before(output, before));
        }
        Ok(all)
    }

    /// Reads an iterator to its end, as `cat` does: reads of Linux give the text of the elements up to one
    /// for which the program returns 1, whose own text is lost, and begin with it again the next time; one that
    /// gives no text ends with EAGAIN.
    fn iterate(
        &self,
        state: &mut State,
        program: &mut RunnableProgram<'c>,
        elements: &[ModelValue],
    ) -> Result<Result<TestRunOutput, RunError>, ExpectProblem> {
        let types = self.loaded.kernel_types();
        let of = types.and_then(|types| IteratorContext::of(program.loaded_program(), &types));
        let Some(of) = of else {
            let what = format!(
                "programs of type {} are no iterators: run NAME {{…}}",
                program.kind().name()
            );
            return Err(ExpectProblem::Unsuitable(what));
        };
        let mut iteration = Iteration::new(&of, elements);
        let mut all: Option<TestRunOutput> = None;
        while let Some(value) = iteration.next_context() {
            self.make_context(state, program, &value)?;
            let written = seq_len(program);
            let output = match program.model_run() {
                Ok(output) => output,
                Err(error) => return Ok(Err(error)),
            };
            let retries = iteration.end_call(output.retval, seq_len(program) > written);
            if retries && let Some(model) = program.model() {
                model.cut_seq(written);
            }
            all = Some(match all {
                None => output,
                Some(before) => with_output_before(output, before),
            });
        }
        let Some(mut output) = all else {
            let what = "nothing is called for no element".to_owned();
            return Err(ExpectProblem::Unsuitable(what));
        };
        if let Some(errno) = iteration.error() {
            output.retval = errno;
        }
        Ok(Ok(output))
    }

    /// Compares fields of the context behind a run on a packet or context.
    pub(super) fn expect_context(
        &self,
        state: &mut State,
        line: &Line,
        value: &ModelValue,
    ) -> Result<(), ExpectProblem> {
        if let (Ran::Packet { run, .. }, Some((_, program))) = (&state.ran, &state.last) {
            let difference = compare_fields(self.loaded, program, value, &run.ctx_out);
            let difference = difference.map_err(ExpectProblem::Unsuitable)?;
            state.put(line, difference.map(ExpectDifference::from), Vec::new());
        }
        Ok(())
    }

    pub(super) fn expect_of_model(
        &self,
        state: &mut State,
        line: &Line,
        expected: &Expected,
    ) -> Result<(), ExpectProblem> {
        let difference = match (&mut state.model, &state.ran) {
            (None, Ran::Stopped) if state.last.is_some() => {
                Some("there is no run that ended".to_owned())
            }
            (None, _) => {
                let what = match expected {
                    Expected::ContextFields(_) => "the run before it leaves no context",
                    _ => {
                        "it is about runs in a model of the kernel (run PROGRAM {NAME: VALUE}), and there \
                         is none before it"
                    }
                };
                return Err(ExpectProblem::Unsuitable(what.to_owned()));
            }
            (Some(_), Ran::Stopped) => Some("there is no run that ended".to_owned()),
            (Some(model), _) => compare(model, expected)?,
        };
        state.put(line, difference.map(ExpectDifference::from), Vec::new());
        Ok(())
    }
}

/// What a program runs on.
enum Input<'v> {
    Context(&'v ModelValue, u32),
    Elements(&'v [ModelValue]),
}

/// Bytes of text that the iterator has written.
fn seq_len(program: &RunnableProgram<'_>) -> usize {
    program.model().map_or(0, |model| model.seq_len())
}

/// The output of a call behind that of others.
fn with_output_before(mut output: TestRunOutput, before: TestRunOutput) -> TestRunOutput {
    output.records.splice(0..0, before.records);
    output.printk.texts.splice(0..0, before.printk.texts);
    output.printk.lost += before.printk.lost;
    output
}

/// What a run did, beside what is expected.
fn compare(model: &mut Model, expected: &Expected) -> Result<Option<String>, ModelError> {
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
