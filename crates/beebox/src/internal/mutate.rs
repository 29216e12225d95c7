//! Mutation of programs: changes of one instruction that the verifier still accepts, run through tests. A
//! change that no test notices is something that no test asks for.
//!
//! [`mutate`] runs each test once on the program as it is, with counters: of a change only those tests are
//! run that execute the instruction. A program is verified and compiled once for each change; where all maps
//! can be set back, the tests of a change share the load.

mod change;
mod report;
mod text;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub use report::{MissedLine, Mutant, MutantOutcome, MutationError, MutationReport};

use isa::ebpf::{Insn, encode};
use object::Object;
use object::maps::Global;
use program::Program;
use spec::{Kernel, SplitMix};
use vm::System;

use crate::internal::expect::{ExpectCheck, ExpectFile};
use crate::internal::maps_json::RecordTypes;
use crate::internal::run::{LoadError, LoadOptions, LoadedObject, Marked};
use crate::internal::test_files::TestFile;
use crate::internal::threads::map_in_threads;

/// A test: files that run one after the other over the same maps.
pub struct MutationTest {
    /// Its name in reports.
    pub name: String,
    /// The statements.
    pub files: Vec<ExpectFile>,
    /// The network that programs see.
    pub system: Option<System>,
}

impl MutationTest {
    /// The tests of files; those that share maps are one.
    pub fn of_files(files: Vec<TestFile>) -> Vec<MutationTest> {
        let mut tests = Vec::new();
        for file in files {
            let (system, path) = (file.system, file.path.display().to_string());
            if file.shares_maps {
                let files = file.tests.into_iter().map(|test| test.file);
                tests.push(MutationTest {
                    name: path,
                    files: files.collect(),
                    system,
                });
                continue;
            }
            for test in file.tests.into_iter().filter(|test| test.is_chosen) {
                tests.push(MutationTest {
                    name: format!("{path}: {}", test.name),
                    files: vec![test.file],
                    system: system.clone(),
                });
            }
        }
        tests
    }
}

/// Which changes are made.
#[derive(Clone, Copy, Debug)]
pub struct MutationPlan {
    /// Other registers and neighbouring jump targets, too.
    pub all: bool,
    /// Most changes, chosen by the seed.
    pub limit: Option<usize>,
    /// Seed of the choice.
    pub seed: u64,
    /// Number of threads.
    pub jobs: usize,
}

/// Most time of a run: a change may make a loop long.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Objects and tests that all changes have.
struct Bench<'m, 'o> {
    object: &'m Object<'o>,
    kernel: &'m Kernel,
    tests: &'m [MutationTest],
    types: RecordTypes<'m>,
    programs: Vec<Program>,
    globals: Vec<Global>,
    /// By program, slot: the tests that execute it.
    executed: Vec<Vec<Vec<usize>>>,
}

/// A change that is to be tried.
#[derive(Clone, Copy)]
struct Candidate {
    program: usize,
    slot: usize,
    after: Insn,
}

/// Makes changes and runs the tests. `observe` gets the number of changes that were tried, of how many.
///
/// # Errors
/// If the object cannot be loaded or a test does not pass on it as it is.
pub fn mutate(
    object: &Object<'_>,
    kernel: &Kernel,
    tests: &[MutationTest],
    plan: MutationPlan,
    observe: &(dyn Fn(usize, usize) + Sync),
) -> Result<MutationReport, MutationError> {
    let mut bench = Bench {
        object,
        kernel,
        tests,
        types: RecordTypes::new(object),
        programs: LoadedObject::link(object, kernel).map_err(MutationError::Load)?,
        globals: object.globals().collect(),
        executed: Vec::new(),
    };
    let reached = bench.measure()?;
    let candidates = bench.candidates(&reached, plan);
    let tried = AtomicUsize::new(0);
    let outcomes = map_in_threads(plan.jobs, &candidates, |candidate| {
        let outcome = bench.try_change(candidate);
        observe(tried.fetch_add(1, Ordering::Relaxed) + 1, candidates.len());
        outcome
    });
    let mutants = candidates.iter().zip(outcomes).map(|(candidate, outcome)| {
        let Candidate {
            program,
            slot,
            after,
        } = *candidate;
        let program = &bench.programs[program];
        Mutant {
            program: program.name().to_owned(),
            slot,
            before: program.decode()[slot].to_string(),
            after: after.to_string(),
            line: line_of(program, slot),
            outcome,
        }
    });
    Ok(MutationReport {
        mutants: mutants.collect(),
        executed_lines: bench.executed_lines(),
    })
}

/// File, number and text of the source line of an instruction.
fn line_of(program: &Program, slot: usize) -> Option<(String, u32, String)> {
    let (line, types) = (program.line_at(slot as u32)?, program.btf()?);
    let text = types.string(line.text).to_string();
    Some((
        types.string(line.file).to_string(),
        line.line,
        text.trim().to_owned(),
    ))
}

impl Bench<'_, '_> {
    fn load(&self, programs: Vec<Program>, counts: bool) -> Result<LoadedObject, LoadError> {
        let options = LoadOptions {
            timeout: Some(TIMEOUT),
            journals: true,
            models: true,
            counts,
            ..LoadOptions::default()
        };
        let globals = self.globals.clone();
        let mut loaded = LoadedObject::from_linked(programs, globals, self.kernel, &options)?;
        const PERF_BUFFER_BYTES: usize = 1 << 20;
        // Without buffers, programs get ENOENT, which tests notice.
        let _ = loaded.open_perf_buffers(PERF_BUFFER_BYTES);
        Ok(loaded)
    }

    /// Runs a test; what is wrong.
    fn run(&self, test: &MutationTest, loaded: &mut LoadedObject) -> Result<(), String> {
        loaded.set_system(test.system.clone().unwrap_or(System::DEFAULT));
        for file in &test.files {
            let check = ExpectCheck {
                file,
                object: self.object,
                loaded,
                types: &self.types,
                cpu: 0,
                set_up: &|_| {},
            };
            let report = check.run().map_err(|error| error.to_string())?;
            if !report.is_met() {
                let text = report.differences_text();
                return Err(text.trim_end().to_owned());
            }
        }
        Ok(())
    }

    /// Runs the tests on the object as it is: which of them execute which instructions, and which
    /// instructions any run may come to.
    fn measure(&mut self) -> Result<Vec<Vec<bool>>, MutationError> {
        let slots = self.programs.iter().map(|program| program.decode().len());
        let mut executed: Vec<Vec<Vec<usize>>> = slots.map(|len| vec![Vec::new(); len]).collect();
        let mut reached = Vec::new();
        for (number, test) in self.tests.iter().enumerate() {
            let mut loaded = self
                .load(self.programs.clone(), true)
                .map_err(MutationError::Load)?;
            self.run(test, &mut loaded)
                .map_err(|what| MutationError::Test {
                    name: test.name.clone(),
                    what,
                })?;
            for (place, counts) in loaded.executed_insns().into_iter().enumerate() {
                for (slot, count) in counts.into_iter().enumerate() {
                    if count > 0 {
                        executed[place][slot].push(number);
                    }
                }
            }
            reached = loaded.reached_insns();
        }
        match reached.is_empty() {
            true => Err(MutationError::NoTests),
            false => {
                self.executed = executed;
                Ok(reached)
            }
        }
    }

    fn executed_lines(&self) -> BTreeSet<(String, u32)> {
        let mut lines = BTreeSet::new();
        for (program, executed) in self.programs.iter().zip(&self.executed) {
            let slots = executed.iter().enumerate();
            for (slot, _) in slots.filter(|(_, tests)| !tests.is_empty()) {
                lines.extend(line_of(program, slot).map(|(file, line, _)| (file, line)));
            }
        }
        lines
    }

    fn candidates(&self, reached: &[Vec<bool>], plan: MutationPlan) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (place, program) in self.programs.iter().enumerate() {
            for (slot, insn) in program.decode().into_iter().enumerate() {
                if !reached[place][slot] {
                    continue;
                }
                let changes = change::changes(insn, plan.all).into_iter();
                candidates.extend(changes.map(|after| Candidate {
                    program: place,
                    slot,
                    after,
                }));
            }
        }
        if let Some(limit) = plan.limit {
            let mut random = SplitMix::new(plan.seed);
            while candidates.len() > limit {
                let at = random.next_u64() as usize % candidates.len();
                candidates.remove(at);
            }
        }
        candidates
    }

    fn try_change(&self, candidate: &Candidate) -> MutantOutcome {
        let Some(programs) = self.changed(candidate) else {
            return MutantOutcome::Refused;
        };
        let tests = &self.executed[candidate.program][candidate.slot];
        let mut loaded = match self.load(programs.clone(), false) {
            Ok(loaded) => loaded,
            Err(_) => return MutantOutcome::Refused,
        };
        let is_set_back = loaded.kept_maps().next().is_none() && !loaded.has_timers();
        let marked: Option<Marked> = is_set_back.then(|| loaded.mark());
        for (number, test) in tests.iter().enumerate() {
            let test = &self.tests[*test];
            match (&marked, number) {
                (_, 0) => {}
                (Some(marked), _) => loaded.reset(marked),
                (None, _) => match self.load(programs.clone(), false) {
                    Ok(anew) => loaded = anew,
                    Err(_) => return MutantOutcome::Refused,
                },
            }
            if self.run(test, &mut loaded).is_err() {
                return MutantOutcome::Noticed {
                    test: test.name.clone(),
                };
            }
        }
        MutantOutcome::Missed {
            is_executed: !tests.is_empty(),
        }
    }

    /// The programs with a change; `None` if it is no program.
    fn changed(&self, candidate: &Candidate) -> Option<Vec<Program>> {
        let mut programs = self.programs.clone();
        let program = &mut programs[candidate.program];
        let mut insns = program.decode();
        insns[candidate.slot] = candidate.after;
        let insns = encode(&insns).ok()?;
        *program = program.to_builder().insns(insns).build().ok()?;
        Some(programs)
    }
}
