//! Runs the statements of an expectation file.

use report::run::shell_word;
use std::path::PathBuf;

use ::kernel::model::Model;
use object::Object;
#[cfg(feature = "trace")]
use report::why::Why;

use super::compare::{compare_maps, compare_run, printed, record};
use super::model_statement::line_and_column;
use super::resolve::{check_applicable, is_of_other_test, resolve};
#[cfg(feature = "trace")]
use super::runs::inputs;
use super::runs::{MOST_RECORD_BYTES, MOST_TEXTS, Ran, run};
use super::statement::{Expected, Line, Statement};
use super::{
    CheckReport, CheckedExpectation, ExpectDifference, ExpectError, ExpectFile, ExpectProblem,
};
use crate::internal::maps_json::{Element, KeyNames, LeftOut, RecordTypes};
#[cfg(feature = "trace")]
use crate::internal::run::{Explained, WhyOptions};
use crate::internal::run::{
    Faults, LoadedObject, RunClock, RunError, RunRecord, RunnableProgram, StorageOwner,
    can_test_run,
};

/// An expectation file, and the loaded object whose programs it runs.
/// [`Instance::check`](crate::Instance::check) is the short form.
pub struct ExpectCheck<'c, 'a> {
    /// The file.
    pub file: &'c ExpectFile,
    /// The object, for its types and variables.
    pub object: &'c Object<'a>,
    /// The object, loaded.
    pub loaded: &'c LoadedObject,
    /// The types of records.
    pub types: &'c RecordTypes<'c>,
    /// The CPU whose values of per-CPU maps are set and compared.
    pub cpu: u32,
    /// Called before each run, for limits, clock and interface.
    pub set_up: &'c dyn Fn(&mut RunnableProgram<'_>),
}

/// What runs leave for the statements behind them.
pub(super) struct State {
    pub(super) report: CheckReport,
    /// Number and program of the last run.
    pub(super) last: Option<(usize, String)>,
    /// The capture of the last run, if it was on one.
    capture: Option<PathBuf>,
    /// Statements set elements.
    pub(super) has_set: bool,
    /// The clock, CPU and seed of the next runs, where statements set them.
    pub(super) clock: Option<u64>,
    cpu: Option<u32>,
    ifindex: Option<u32>,
    seed: Option<u64>,
    /// Helpers that fail on purpose.
    pub(super) faults: Box<Faults>,
    /// The model of the kernel, if statements are about one.
    pub(super) model: Option<Box<Model>>,
    pub(super) ran: Ran,
    /// Texts and records that no expectation has named yet, the next one last.
    texts: Vec<String>,
    records: Vec<RunRecord>,
}

impl<'c> ExpectCheck<'c, '_> {
    /// Runs the file over the maps of the object. Everything is resolved before anything runs.
    ///
    /// # Errors
    /// For statements that name what the object does not have or that do not suit the run before
    /// them; for inputs that cannot be read or that the program does not take; for a file without
    /// expectations.
    pub fn run(&self) -> Result<CheckReport, ExpectError> {
        self.resolve()?;
        if let Some((name, _)) = self.file.tests().first() {
            let line = self
                .file
                .lines
                .iter()
                .find(|line| line.text.starts_with("test "));
            let what = format!("test {name:?}: `beebox test` runs files of named tests");
            let problem = ExpectProblem::Unsuitable(what);
            let line = line.map(|line| line.number);
            return Err(ExpectError::new(self.file.name(), line, problem));
        }
        let is_expectation = |line: &Line| matches!(line.statement, Statement::Expect(_));
        if !self.file.lines.iter().any(is_expectation) {
            let name = self.file.name();
            return Err(ExpectError::new(name, None, ExpectProblem::Empty));
        }
        let mut state = self.start();
        self.declare(&mut state)?;
        for line in &self.file.lines {
            if let Err(problem) = self.step(&mut state, line) {
                let mut error = self.at(line, problem);
                error.zeroed = state.report.zeroed;
                return Err(error);
            }
        }
        state.report.unwritten = self.loaded.unwritten_stack_reads();
        Ok(state.report)
    }

    /// Tells the run of a number, from 1, of a file that was run over another load of the object; of a run
    /// on a capture that on a packet. `None` where it cannot be told.
    #[cfg(feature = "trace")]
    pub fn explain(
        &self,
        run: usize,
        packet: Option<u64>,
        with: WhyOptions<'c>,
    ) -> Option<Box<Why>> {
        let mut state = self.start();
        self.declare(&mut state).ok()?;
        for line in &self.file.lines {
            let Some(program) = line.statement.program() else {
                self.step(&mut state, line).ok()?;
                continue;
            };
            if state.report.runs + 1 < run {
                self.step(&mut state, line).ok()?;
                continue;
            }
            state.report.runs += 1;
            let mut runnable = self.runnable(&mut state, program).ok()?;
            self.lend_model(&mut state, &mut runnable);
            return match &line.statement {
                Statement::RunModel { value, repeat, .. } => {
                    // The last one is told.
                    if *repeat > 1 {
                        let before = (value, repeat - 1);
                        self.repeat(&mut state, &mut runnable, before).ok()?.ok()?;
                    }
                    self.make_context(&mut state, &mut runnable, value).ok()?;
                    runnable.explain_model_run(with).ok()
                }
                Statement::Iterate { .. } => None,
                Statement::Capture { path, .. } => {
                    let input = super::runs::open(path).ok()?;
                    match runnable.explain_captured(input, packet?, with).ok()? {
                        Explained::Packet(why) => Some(why),
                        Explained::Fewer(_) => None,
                    }
                }
                statement => {
                    let (packet, context) = inputs(statement, self.loaded).ok()?;
                    let context = context.as_deref();
                    runnable.explain_test_run(&packet, context, with).ok()
                }
            };
        }
        None
    }

    /// True if programs run in a model of the kernel.
    pub(super) fn has_model(&self) -> bool {
        self.file.has_model()
            || self.file.programs().any(|(_, name)| {
                let place = self.loaded.program_place(name);
                place.is_some_and(|place| !can_test_run(self.loaded.program_kind(place)))
            })
    }

    /// The state in front of the first statement.
    fn start(&self) -> State {
        let fallback_reason = self.file.programs().find_map(|(_, name)| {
            let program = self.loaded.program_of(name)?;
            Some((name.to_owned(), program.fallback_reason()?.to_string()))
        });
        State {
            report: CheckReport {
                file: self.file.name().to_owned(),
                fallback_reason,
                unwritten: Vec::new(),
                is_model: self.has_model(),
                runs: 0,
                expectations: Vec::new(),
                zeroed: Vec::new(),
            },
            last: None,
            ran: Ran::Stopped,
            capture: None,
            has_set: false,
            clock: None,
            cpu: None,
            ifindex: None,
            seed: None,
            faults: Box::default(),
            model: None,
            texts: Vec::new(),
            records: Vec::new(),
        }
    }

    fn step(&self, state: &mut State, line: &Line) -> Result<(), ExpectProblem> {
        match &line.statement {
            _ if is_of_other_test(line, self.object, self.loaded) => Ok(()),
            Statement::Set { map, key, value } => {
                state.has_set = true;
                self.set(state, (map, key), value)
                    .map(|members| state.zero(line, map, members))
                    .map_err(ExpectProblem::Unsuitable)
            }
            Statement::Run { program, .. } | Statement::Capture { program, .. } => {
                self.run_program(state, line, program)
            }
            Statement::Given { .. }
            | Statement::Process(_)
            | Statement::Result { .. }
            | Statement::RunModel { .. }
            | Statement::Iterate { .. } => self.step_model(state, line),
            Statement::Expect(Expected::ContextFields(value)) if matches!(&state.ran, Ran::Packet { run, .. } if !run.ctx_out.is_empty()) => {
                self.expect_context(state, line, value)
            }
            Statement::Expect(
                expected @ (Expected::Call { .. }
                | Expected::Seq(_)
                | Expected::ContextFields(_)
                | Expected::Memory { .. }),
            ) => self.expect_of_model(state, line, expected),
            Statement::Expect(expected) => self.expect(state, line, expected),
            Statement::Delete { map, key } => {
                state.has_set = true;
                self.delete(state, map, key)
                    .map_err(ExpectProblem::Unsuitable)
            }
            Statement::Time {
                nanoseconds,
                is_advance,
            } => {
                state.has_set = true;
                let before = state.clock.filter(|_| *is_advance).unwrap_or(0);
                state.clock = Some(before.saturating_add(*nanoseconds));
                Ok(())
            }
            Statement::Seed(seed) => {
                (state.seed, state.has_set) = (Some(*seed), true);
                Ok(())
            }
            Statement::Cpu(cpu) => {
                (state.cpu, state.has_set) = (Some(*cpu), true);
                Ok(())
            }
            Statement::Ifindex(index) => {
                (state.ifindex, state.has_set) = (Some(*index), true);
                Ok(())
            }
            Statement::Fault(fault) => {
                state.has_set = true;
                state.faults.add(fault.clone());
                Ok(())
            }
            Statement::Test(_)
            | Statement::Object(_)
            | Statement::SharedMaps
            | Statement::Network(_) => Ok(()),
        }
    }

    pub(super) fn at(&self, line: &Line, problem: ExpectProblem) -> ExpectError {
        let (below, problem) = match problem {
            ExpectProblem::Value { what, at: Some(at) } => {
                let (below, column) = line_and_column(&line.source, at);
                let what = format!("column {column}: {what}");
                (below, ExpectProblem::Unsuitable(what))
            }
            problem => (0, problem),
        };
        ExpectError::new(self.file.name(), Some(line.number + below), problem)
    }

    fn resolve(&self) -> Result<(), ExpectError> {
        let mut before = None;
        for line in &self.file.lines {
            if is_of_other_test(line, self.object, self.loaded) {
                continue;
            }
            if line.statement.program().is_some() {
                before = Some(&line.statement);
            }
            let found = resolve(&line.statement, self.object, self.loaded, self.cpu);
            let found = found.and_then(|()| match (&line.statement, before) {
                (Statement::Expect(expected), Some(run)) => {
                    check_applicable(expected, run, self.loaded)
                }
                _ => Ok(()),
            });
            found.map_err(|what| self.at(line, ExpectProblem::Unsuitable(what)))?;
        }
        Ok(())
    }

    /// Stores an element; the members that the statement leaves out.
    fn set(
        &self,
        state: &State,
        (map, key): (&str, &serde_json::Value),
        value: &serde_json::Value,
    ) -> Result<Vec<String>, String> {
        let owner = |name: &str| state.owner(name);
        let names = self.key_names(state, &owner);
        let element = Element::find(self.loaded, self.object.btf(), (map, key), names)?;
        let stored = element.store(value);
        let left_out = stored.map_err(|what| format!("map {map}: {what}"))?;
        Ok([element.key_left_out(), &left_out].concat())
    }

    fn delete(&self, state: &State, map: &str, key: &serde_json::Value) -> Result<(), String> {
        let owner = |name: &str| state.owner(name);
        let names = self.key_names(state, &owner);
        let element = Element::find(self.loaded, self.object.btf(), (map, key), names)?;
        element.delete()
    }

    /// What keys of elements may name: values of per-CPU maps are those of the CPU that runs.
    fn key_names<'n>(
        &self,
        state: &State,
        owner: &'n dyn Fn(&str) -> Result<StorageOwner, String>,
    ) -> KeyNames<'n> {
        let cpu = state.cpu.unwrap_or(self.cpu);
        KeyNames { cpu, owner }
    }

    /// The program, as statements in front of its next run have set it.
    pub(super) fn runnable(
        &self,
        state: &mut State,
        program: &str,
    ) -> Result<RunnableProgram<'c>, ExpectProblem> {
        let place = self.loaded.program_place(program);
        let place = place.ok_or_else(|| ExpectProblem::NoProgram(program.to_owned()))?;
        let cpu = state.cpu.unwrap_or(self.cpu);
        let mut runnable = match state.seed {
            // Each run has numbers of its own.
            Some(seed) => {
                let seed = seed.wrapping_add(state.report.runs as u64);
                self.loaded.runnable_with_seed(place, cpu, seed)
            }
            None => self.loaded.runnable(place, cpu),
        };
        (self.set_up)(&mut runnable);
        if let Some(clock) = state.clock {
            runnable.set_clock(RunClock::Fixed(clock));
        }
        if let Some(index) = state.ifindex {
            runnable.set_ifindex(index);
        }
        runnable.count_executed(self.file.has_budgets());
        runnable.set_faults(Some(std::mem::take(&mut state.faults)));
        runnable.collect_records(true);
        Ok(runnable)
    }

    fn run_program(
        &self,
        state: &mut State,
        line: &Line,
        program: &str,
    ) -> Result<(), ExpectProblem> {
        state.report.runs += 1;
        state.capture = match &line.statement {
            Statement::Capture { path, .. } => Some(path.clone()),
            _ => None,
        };
        state.last = Some((state.report.runs, program.to_owned()));
        let mut runnable = self.runnable(state, program)?;
        self.lend_model(state, &mut runnable);
        let ran = run(&line.statement, &mut runnable, self.loaded);
        state.model = runnable.take_model();
        state.faults = runnable.take_faults().unwrap_or_default();
        self.end(state, line, ran?);
        Ok(())
    }

    /// Notes what came of a run.
    pub(super) fn end(&self, state: &mut State, line: &Line, ran: Result<Ran, RunError>) {
        state.ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                let difference = stopped(error);
                state.put(line, Some(difference), Vec::new());
                Ran::Stopped
            }
        };
        state.texts = state.ran.printed();
        state.texts.reverse();
        state.records = state.ran.records();
        state.records.reverse();
    }

    fn expect(
        &self,
        state: &mut State,
        line: &Line,
        expected: &Expected,
    ) -> Result<(), ExpectProblem> {
        let is_output = matches!(
            expected,
            Expected::Printk(_) | Expected::NoPrintk | Expected::Record { .. }
        );
        if let (true, Some(lost)) = (is_output, state.ran.lost()) {
            return Err(ExpectProblem::Lost {
                lost,
                texts: MOST_TEXTS,
                record_bytes: MOST_RECORD_BYTES,
            });
        }
        let mut left_out = Vec::new();
        let difference = match expected {
            Expected::Printk(text) => printed(state.texts.pop(), Some(text)),
            Expected::NoPrintk => printed(state.texts.pop(), None),
            Expected::Record { map, value } => {
                let next = state.records.iter().rposition(|it| it.map == *map);
                let next = next.map(|next| state.records.remove(next));
                if let (Some(next), Some(value)) = (&next, value) {
                    left_out = self.types.left_out(next, value);
                }
                record(self.types, next, value.as_ref()).map_err(ExpectProblem::Unsuitable)?
            }
            Expected::Element { .. } | Expected::Entries { .. } | Expected::Global { .. } => {
                let owner = |name: &str| state.owner(name);
                let names = self.key_names(state, &owner);
                let compared = compare_maps(expected, self.object, self.loaded, names)
                    .map_err(ExpectProblem::Unsuitable)?;
                if let Expected::Element { map, .. } = expected {
                    state.zero(line, map, compared.key_left_out);
                }
                left_out = compared.left_out;
                compared.difference
            }
            expected => {
                let mut difference = compare_run(expected, &state.ran);
                if let Some(difference) = &mut difference {
                    difference.shown_by = state.first_of(expected);
                }
                difference
            }
        };
        state.put(line, difference, left_out);
        Ok(())
    }
}

impl State {
    /// The owner of local storage that an object of a name is.
    fn owner(&self, name: &str) -> Result<StorageOwner, String> {
        let model = self.model.as_ref();
        let model =
            model.ok_or_else(|| format!("@{name} was not given: given @{name} = TYPE {{…}}"))?;
        let address = model.memory.address(name)?;
        Ok(match model.task() == Some(address) {
            true => StorageOwner::Task,
            false => StorageOwner::Number(address),
        })
    }

    /// The first packet of the capture whose verdict an expectation is about, and the options that
    /// tell its run; `None` where statements before it change maps, which the options do not.
    fn first_of(&self, expected: &Expected) -> Option<(u64, String)> {
        let Ran::Capture(summary) = &self.ran else {
            return None;
        };
        let packet = summary.first(|verdict| match expected {
            Expected::Verdict { name, count: None } => verdict != name,
            Expected::Verdict { name, .. } | Expected::NotVerdict(name) => verdict == name,
            _ => false,
        })?;
        let (path, (runs, program)) = (self.capture.as_ref()?, self.last.as_ref()?);
        let is_alone = *runs == 1 && !self.has_set;
        let (program, path) = (shell_word(program), shell_word(&path.display().to_string()));
        let options = format!("--prog {program} --pcap {path} --why {packet}");
        is_alone.then_some((packet, options))
    }

    pub(super) fn put(
        &mut self,
        line: &Line,
        difference: Option<ExpectDifference>,
        left_out: Vec<String>,
    ) {
        self.report.expectations.push(CheckedExpectation {
            line: line.number,
            text: line.text.clone(),
            run: self.last.clone(),
            difference,
            left_out,
        });
    }

    /// Notes members of a map's key and value that are left out.
    fn zero(&mut self, line: &Line, map: &str, members: Vec<String>) {
        if !members.is_empty() {
            self.report.zeroed.push(LeftOut {
                line: Some(line.number),
                map: map.to_owned(),
                members,
            });
        }
    }
}

/// The difference of a run that a limit or a trap ended.
fn stopped(error: RunError) -> ExpectDifference {
    let text = error.to_string();
    let (what, excerpt) = match &error {
        RunError::Deadline | RunError::TooLong(_) | RunError::Memory(_) => (text, String::new()),
        _ => (
            "it ends with a trap".to_owned(),
            format!("  {}\n", text.replace('\n', "\n  ")),
        ),
    };
    ExpectDifference {
        what,
        excerpt,
        stopped: Some(error),
        shown_by: None,
    }
}
