//! Runs tests, in threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use beebox::Kernel;
use beebox::coverage::Coverage;
use beebox::expect::{CheckReport, CheckedExpectation, ExpectDifference};
use beebox::internal::expect::ExpectCheck;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::maps_json::RecordTypes;
use beebox::internal::object::Object;
use beebox::internal::run::{
    Debug, LoadError, LoadOptions, LoadedObject, WhyOptions, leave_out_struct_ops,
    programs_in_arrays,
};
use report::why;

use super::Args;
use super::files::{NamedTest, TestFile};
use crate::answer::Failure;
use crate::loading::{change, load_failure, note_guess};
use crate::object_input::ObjectFile;
use crate::run::{PERF_BUFFER_BYTES, expect};

/// Columns of the text that tells a run.
const WIDTH: usize = 80;

/// What came of a test.
pub(super) struct TestOutcome {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) time: Duration,
    pub(super) report: CheckReport,
    /// How the run that differs went, as text.
    pub(super) why: Option<String>,
}

/// The tests of a file that share maps, or one test.
struct Unit<'f> {
    file: &'f TestFile,
    tests: &'f [NamedTest],
}

/// Runs the tests of files; what came of them in the order of the files.
pub(super) fn all(
    args: &Args,
    kernel: &Kernel,
    loading: &ObjectLoading,
    files: &[TestFile],
) -> Result<Vec<TestOutcome>, Failure> {
    let units: Vec<Unit<'_>> = files
        .iter()
        .flat_map(|file| {
            let size = match file.shares_maps {
                true => file.tests.len().max(1),
                false => 1,
            };
            file.tests
                .chunks(size)
                .map(move |tests| Unit { file, tests })
        })
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Coverage::default(), Vec::new()));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(processors, |jobs| jobs as usize);
    thread::scope(|scope| {
        for _ in 0..jobs.min(units.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(index) else {
                        return;
                    };
                    let ran = run_unit(args, kernel, loading, unit);
                    let mut done = done.lock().unwrap_or_else(|lock| lock.into_inner());
                    let ran = ran.map(|(outcomes, coverage)| {
                        done.0.merge(coverage);
                        outcomes
                    });
                    done.1.push((index, ran));
                }
            });
        }
    });
    let (coverage, mut ran) = done.into_inner().unwrap_or_else(|lock| lock.into_inner());
    ran.sort_by_key(|(index, _)| *index);
    let outcomes: Result<Vec<_>, Failure> = ran.into_iter().map(|(_, ran)| ran).collect();
    let outcomes = outcomes?.into_iter().flatten().collect();
    if !args.coverage.is_empty() {
        crate::coverage::write(&coverage, &args.coverage)?;
        crate::coverage::note(&coverage);
    }
    Ok(outcomes)
}

/// Runs the tests of a unit over one load of the object.
fn run_unit(
    args: &Args,
    kernel: &Kernel,
    loading: &ObjectLoading,
    unit: &Unit<'_>,
) -> Result<(Vec<TestOutcome>, Coverage), Failure> {
    let path = &unit.file.object;
    let place = unit.file.path.display();
    let file = ObjectFile::read(path).map_err(|failure| failure.within(&place))?;
    if !file.is_object() {
        let what = format_args!("{}: this file is not a BPF object", path.display());
        return Err(Failure::new(what).within(&place));
    }
    let mut object = file.open_by(loading, &[])?;
    note_guess(&object, &crate::input::name(path));
    change(&mut object, loading).map_err(|failure| failure.within(path.display()))?;
    choose(&mut object, unit)?;
    let load = || load(args, kernel, &object, unit);
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
        let report = report.map_err(|error| {
            let name = &test.name;
            let failure = expect::failure(error);
            failure.within(format_args!("test {name:?}"))
        })?;
        let time = start.elapsed();
        let is_told = match report.is_met() {
            true => args.why && test.is_chosen,
            false => !args.no_why,
        };
        let told = match is_told && !unit.file.shares_maps {
            false => None,
            true => match load()? {
                Err(_) => None,
                Ok(fresh) => {
                    let debug = Debug::read(file.bytes());
                    let with = WhyOptions {
                        kernel,
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
fn choose(object: &mut Object<'_>, unit: &Unit<'_>) -> Result<(), Failure> {
    let mut wanted: Vec<String> = Vec::new();
    for test in unit.tests {
        for (line, program) in test.file.programs() {
            if !object.programs().any(|(_, known)| known.name == *program) {
                let names: Vec<String> = object
                    .programs()
                    .map(|(_, known)| known.name.to_string())
                    .collect();
                let place = format_args!("{}:{line}", unit.file.path.display()).to_string();
                let object = unit.file.object.display();
                let what = format_args!("{object} has no program {program:?}");
                let failure = Failure::new(what).within(place);
                return Err(failure.hint(format_args!("run with one of {}", names.join(", "))));
            }
            wanted.push(program.to_owned());
        }
    }
    autoload(object, wanted);
    Ok(())
}

/// Has these programs loaded, and those that they may go on with.
pub(crate) fn autoload(object: &mut Object<'_>, mut wanted: Vec<String>) {
    wanted.extend(programs_in_arrays(object, &wanted));
    object.set_autoload(|program| wanted.iter().any(|name| program.name == **name));
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
    args: &Args,
    kernel: &Kernel,
    object: &Object<'_>,
    unit: &Unit<'_>,
) -> Result<Result<LoadedObject, String>, Failure> {
    let options = LoadOptions {
        engine: args.engine.unwrap_or(LoadOptions::default().engine),
        counts: !args.coverage.is_empty(),
        models: true,
        ..LoadOptions::default()
    };
    let name = unit.file.object.display();
    let loaded = LoadedObject::load(object, kernel, &options);
    let mut loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error @ (LoadError::Refused { .. } | LoadError::Map(_) | LoadError::Memory { .. })) => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(load_failure(error, &name.to_string())),
    };
    if let Some(system) = &unit.file.system {
        loaded.set_system(system.clone());
    }
    let opened = loaded.open_perf_buffers(PERF_BUFFER_BYTES);
    opened.map_err(|errno| Failure::new(format_args!("{name}: perf buffers: {errno}")))?;
    Ok(Ok(loaded))
}
