//! Runs tests, in threads.

use std::fmt;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use object::{Error, Object};
use report::why;
use spec::{Errno, Kernel};

use super::{NamedTest, TestFile, TestResults};
use crate::Engine;
use crate::coverage::Coverage;
use crate::internal::expect::{
    CheckReport, CheckedExpectation, ExpectCheck, ExpectDifference, ExpectError,
};
use crate::internal::loading::{Guess, LoadingError, ObjectLoading};
use crate::internal::maps_json::RecordTypes;
use crate::internal::name_of;
use crate::internal::object::is_object;
use crate::internal::run::{
    Debug, LoadError, LoadOptions, LoadedObject, PERF_BUFFER_BYTES, WhyOptions,
    leave_out_struct_ops, load_only,
};
use crate::internal::threads::map_in_threads;

/// Columns of the text that tells a run.
const WIDTH: usize = 80;

/// What came of a test.
pub struct TestOutcome {
    /// Its file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// The time of its runs.
    pub time: Duration,
    /// What differs.
    pub report: CheckReport,
    /// How the run that differs went, as text.
    pub why: Option<String>,
}

/// Why a test is not run.
#[derive(Debug)]
pub enum TestFault {
    /// The file is no object.
    NoObject,
    /// The object cannot be opened.
    Open(Error),
    /// What a loader sets cannot be set.
    Loading(LoadingError),
    /// A statement names a program that the object does not have.
    NoProgram {
        /// The line of the statement.
        line: usize,
        /// The name.
        name: String,
        /// Names of the programs.
        known: Vec<String>,
    },
    /// The object cannot be loaded, and not because Linux refuses it.
    Load(LoadError),
    /// Perf buffers cannot be opened.
    PerfBuffers(Errno),
    /// The statements of a test of this name cannot be run.
    Expect(String, Box<ExpectError>),
}

impl fmt::Display for TestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestFault::NoObject => f.write_str("this file is not a BPF object"),
            TestFault::Open(error) => error.fmt(f),
            TestFault::Loading(error) => error.fmt(f),
            TestFault::NoProgram { line, name, .. } => {
                write!(f, "line {line}: the object has no program {name:?}")
            }
            TestFault::Load(error) => error.fmt(f),
            TestFault::PerfBuffers(errno) => write!(f, "perf buffers: {errno}"),
            TestFault::Expect(test, error) => write!(f, "test {test:?}: {error}"),
        }
    }
}

impl std::error::Error for TestFault {}

/// Reads the objects of tests, and says what is wrong with them.
pub trait TestHost: Sync {
    /// Error of a test.
    type Error: Send;

    /// The bytes of an object.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, file: &TestFile) -> Result<Vec<u8>, Self::Error>;

    /// The error for a fault.
    fn fault(&self, file: &TestFile, fault: TestFault) -> Self::Error;

    /// The loader whose conventions count is guessed.
    fn guessed(&self, file: &TestFile, guess: &Guess) {
        let _ = (file, guess);
    }
}

/// How tests are run.
pub struct TestPlan<'p> {
    /// The kernel.
    pub kernel: &'p Kernel,
    /// How objects are opened.
    pub loading: &'p ObjectLoading,
    /// The engine.
    pub engine: Engine,
    /// Number of threads; `None` for as many as there are processors.
    pub jobs: Option<usize>,
    /// Count what tests execute.
    pub counts: bool,
    /// Tell the last run of tests that pass.
    pub tells_passed: bool,
    /// Tell the run of a test that fails.
    pub tells_failed: bool,
}

/// The tests of a file that share maps, or one test.
struct Unit<'f> {
    file: &'f TestFile,
    tests: &'f [NamedTest],
}

impl TestPlan<'_> {
    /// Runs the tests of files; what came of them in the order of the files.
    ///
    /// # Errors
    /// The first one that keeps a test from being run.
    pub fn run<H: TestHost>(&self, files: &[TestFile], host: &H) -> Result<TestResults, H::Error> {
        let units = files.iter().flat_map(|file| {
            let size = match file.shares_maps {
                true => file.tests.len().max(1),
                false => 1,
            };
            let chunks = file.tests.chunks(size);
            chunks.map(move |tests| Unit { file, tests })
        });
        let units: Vec<Unit<'_>> = units.collect();
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.unwrap_or_else(processors);
        let executed = Mutex::new(Coverage::default());
        let ran = map_in_threads(jobs, &units, |unit| {
            let (outcomes, coverage) = run_unit(self, host, unit)?;
            let mut executed = executed.lock().unwrap_or_else(|lock| lock.into_inner());
            executed.merge(coverage);
            Ok(outcomes)
        });
        let outcomes = ran.into_iter().collect::<Result<Vec<_>, H::Error>>()?;
        Ok(TestResults {
            outcomes: outcomes.into_iter().flatten().collect(),
            coverage: executed
                .into_inner()
                .unwrap_or_else(|lock| lock.into_inner()),
        })
    }
}

/// Runs the tests of a unit over one load of the object.
fn run_unit<H: TestHost>(
    plan: &TestPlan<'_>,
    host: &H,
    unit: &Unit<'_>,
) -> Result<(Vec<TestOutcome>, Coverage), H::Error> {
    let path = &unit.file.object;
    let fault = |fault| host.fault(unit.file, fault);
    let bytes = host.read(unit.file)?;
    if !is_object(&bytes) {
        return Err(fault(TestFault::NoObject));
    }
    let opened = plan.loading.open(&bytes, &name_of(path));
    let mut object = opened.map_err(|error| fault(TestFault::Open(error)))?;
    if let Some(guess) = object.guess() {
        host.guessed(unit.file, guess);
    }
    let changed = plan.loading.change(&mut object);
    changed.map_err(|error| fault(TestFault::Loading(error)))?;
    choose(&mut object, unit).map_err(fault)?;
    let load = || load(plan, &object, unit).map_err(fault);
    let loaded = match load()? {
        Ok(loaded) => loaded,
        Err(why) => {
            let chosen = unit.tests.iter().filter(|test| test.is_chosen);
            let outcomes = chosen.map(|test| not_loaded(unit, test, &why)).collect();
            return Ok((outcomes, Coverage::default()));
        }
    };
    let types = RecordTypes::new(&object);
    let mut outcomes = Vec::new();
    for test in unit.tests {
        let start = Instant::now();
        let check = |loaded| ExpectCheck {
            file: &test.file,
            object: &object,
            loaded,
            types: &types,
            cpu: 0,
            set_up: &|_| {},
        };
        let report = check(&loaded).run();
        let report =
            report.map_err(|error| fault(TestFault::Expect(test.name.clone(), Box::new(error))))?;
        let time = start.elapsed();
        let is_told = match report.is_met() {
            true => plan.tells_passed && test.is_chosen,
            false => plan.tells_failed,
        };
        let told = match is_told && !unit.file.shares_maps {
            false => None,
            true => match load()? {
                Err(_) => None,
                Ok(fresh) => {
                    let debug = Debug::read(&bytes);
                    let with = WhyOptions {
                        kernel: plan.kernel,
                        debug: debug.as_ref(),
                        types: &types,
                        tail_from: None,
                        folds: true,
                    };
                    let told = first_difference(&report).or(Some((report.runs, None)));
                    let check = check(&fresh);
                    told.and_then(|(run, packet)| check.explain(run, packet, with))
                }
            },
        };
        if test.is_chosen {
            outcomes.push(TestOutcome {
                file: unit.file.path.display().to_string(),
                name: test.name.clone(),
                time,
                report,
                why: told.map(|told| why::text(&told, WIDTH)),
            });
        }
    }
    let mut coverage = loaded.coverage();
    if let Some(beside) = path.parent() {
        coverage.find_sources(beside);
    }
    Ok((outcomes, coverage))
}

/// The first run that differs, and of one on a capture the packet.
fn first_difference(report: &CheckReport) -> Option<(usize, Option<u64>)> {
    let mut checked = report.expectations.iter();
    let first = checked.find(|checked| checked.difference.is_some())?;
    let packet = first.difference.as_ref()?.shown_by.as_ref();
    Some((first.run.as_ref()?.0, packet.map(|(packet, _)| *packet)))
}

/// Has the programs loaded that tests run.
fn choose(object: &mut Object<'_>, unit: &Unit<'_>) -> Result<(), TestFault> {
    let mut wanted: Vec<String> = Vec::new();
    for test in unit.tests {
        for (line, program) in test.file.programs() {
            if !object.programs().any(|(_, known)| known.name == *program) {
                let known = object.programs();
                return Err(TestFault::NoProgram {
                    line,
                    name: program.to_owned(),
                    known: known.map(|(_, known)| known.name.to_string()).collect(),
                });
            }
            wanted.push(program.to_owned());
        }
    }
    load_tested(object, wanted);
    Ok(())
}

/// Has these programs loaded, and those that they may go on with.
pub fn load_tested(object: &mut Object<'_>, wanted: Vec<String>) {
    let wanted = load_only(object, wanted, None);
    let mut programs = object.programs();
    let is_member = programs.any(|(_, program)| {
        let is_it = wanted.iter().any(|name| program.name == **name);
        is_it && program.section_name.as_bytes().starts_with(b"struct_ops")
    });
    drop(programs);
    if !is_member {
        leave_out_struct_ops(object);
    }
}

/// A test whose object is refused.
fn not_loaded(unit: &Unit<'_>, test: &NamedTest, why: &str) -> TestOutcome {
    let difference = CheckedExpectation {
        line: 1,
        text: format!("object {}", unit.file.object.display()),
        run: None,
        difference: Some(ExpectDifference::from(why.to_owned())),
        left_out: Vec::new(),
    };
    TestOutcome {
        file: unit.file.path.display().to_string(),
        name: test.name.clone(),
        time: Duration::ZERO,
        report: CheckReport {
            file: unit.file.path.display().to_string(),
            fallback_reason: None,
            unwritten: Vec::new(),
            is_model: false,
            runs: 0,
            expectations: vec![difference],
            zeroed: Vec::new(),
        },
        why: None,
    }
}

/// The object, loaded; the inner error says why it is refused.
fn load(
    plan: &TestPlan<'_>,
    object: &Object<'_>,
    unit: &Unit<'_>,
) -> Result<Result<LoadedObject, String>, TestFault> {
    let options = LoadOptions {
        engine: plan.engine,
        counts: plan.counts,
        models: true,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(object, plan.kernel, &options);
    let mut loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error @ (LoadError::Refused { .. } | LoadError::Map(_) | LoadError::Memory { .. })) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(TestFault::Load(error)),
    };
    if let Some(system) = &unit.file.system {
        loaded.set_system(system.clone());
    }
    let opened = loaded.open_perf_buffers(PERF_BUFFER_BYTES);
    opened.map_err(TestFault::PerfBuffers)?;
    Ok(Ok(loaded))
}
