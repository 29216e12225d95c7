//! Verification of all programs of several files, in parallel by file.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use beebox::Kernel;
use beebox::internal::object::{Blame, Object};
use beebox::internal::program;
use beebox::internal::program::{AttachType, LoadFlags, ProgramType};
use beebox::internal::verify::Registry;
use beebox::internal::verify::{self, LogOutput};
use beebox::internal::verify::{ProgramLoader, StandaloneProgram};
use beebox::variables::Assignment;
use beebox::verify::{Options, Verification};
use program::Program;

use report::veristat::{Filters, ResultVerdict};

use super::cost::ProgramCost;
use super::facts::FactTable;
use super::globals;
use super::log::Logs;
use super::row::{Explained, MapRow, Row};
use super::{recorded, row, single};
use crate::answer::Failure;
use crate::answer_format::count;
use crate::object_input::{ObjectFile, no_programs, refused_beside, short_names};
use crate::type_file::read_types;

/// Results of the programs of a file.
#[derive(Default)]
struct FileResults {
    rows: Vec<Row>,
    left_out: Vec<String>,
    /// True if a program has no verdict because the kernel lacks a part.
    is_lacking: bool,
}

type FileResult = Result<FileResults, Failure>;

/// Bytes of stack of a thread that verifies.
const THREAD_STACK: usize = 64 << 20;

/// Options of a verification.
pub(super) struct Job<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) programs: &'a [String],
    pub(super) filters: &'a Filters,
    /// Load flags beside those that sections ask for.
    pub(super) flags: LoadFlags,
    /// True if declaration tags of the kernel's selftests are obeyed.
    pub(super) test_tags: bool,
    pub(super) options: Options,
    /// Explain refusals.
    pub(super) explains: bool,
    /// Print notes on standard error.
    pub(super) notes: bool,
    /// Print on standard error how programs are loaded.
    pub(super) debugs: bool,
    /// The program type of files that hold instructions alone.
    pub(super) kind: Option<ProgramType>,
    pub(super) globals: Vec<Assignment>,
    pub(super) logs: Logs,
    pub(super) threads: usize,
}

/// Results, in the order of the files and of their programs, and the files that
/// cannot be opened.
#[derive(Default)]
pub(super) struct Results {
    pub(super) rows: Vec<Row>,
    /// Programs that names and filters leave out, as `FILE/PROG`.
    pub(super) left_out: Vec<String>,
    /// True if a program has no verdict because the kernel lacks a part.
    pub(super) is_lacking: bool,
    pub(super) failures: Vec<Failure>,
}

impl Results {
    fn add(&mut self, of_file: FileResult) {
        match of_file {
            Ok(found) => {
                self.rows.extend(found.rows);
                self.left_out.extend(found.left_out);
                self.is_lacking |= found.is_lacking;
            }
            Err(failure) => self.failures.push(failure),
        }
    }
}

/// Verifies every selected program.
pub(super) fn verify(job: &Job<'_>, kernel: &Kernel) -> Result<Results, Failure> {
    let registry = kernel.registry().ok_or_else(|| {
        Failure::new("helpers and contexts of the kernel are unknown").within(kernel.name())
    })?;
    let mut all = Results::default();
    let names = short_names(job.files);
    let verify_at = |at: usize| verify_file(job, &job.files[at], &names[at], kernel, registry);
    if job.threads == 1 || job.files.len() == 1 {
        for at in 0..job.files.len() {
            all.add(verify_at(at));
        }
        return Ok(all);
    }
    let order = largest_first(job.files);
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<FileResult>> = job.files.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..job.threads.min(job.files.len()) {
            let work = || {
                let take = || order.get(next.fetch_add(1, Ordering::Relaxed));
                while let Some(&at) = take() {
                    results[at].get_or_init(|| verify_at(at));
                }
            };
            let thread = std::thread::Builder::new().stack_size(THREAD_STACK);
            // Without another thread, those that run do all of it.
            let _ = thread.spawn_scoped(scope, work);
        }
    });
    for result in results {
        let result = result.into_inner();
        all.add(result.unwrap_or_else(|| Err(Failure::new("no thread could be started"))));
    }
    Ok(all)
}

/// Indices of files, the largest first: what takes longest does not begin last, when other
/// threads have nothing left to do.
fn largest_first(files: &[PathBuf]) -> Vec<usize> {
    let size = |at: &usize| fs::metadata(&files[*at]).map_or(0, |about| about.len());
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_cached_key(|at| Reverse(size(at)));
    order
}

/// Verifies the programs of a file. `name` is that of the file in results.
fn verify_file(
    job: &Job<'_>,
    path: &Path,
    name: &str,
    kernel: &Kernel,
    registry: &Registry,
) -> FileResult {
    let file = ObjectFile::read(path)?;
    let given = crate::input::name(path);
    // Filters have last parts of paths, as veristat's.
    let base = name.rsplit('/').next().unwrap_or(name);
    let left_out = RefCell::new(Vec::new());
    let is_chosen = |prog: &str| {
        let is_named = job.programs.is_empty() || job.programs.iter().any(|name| name == prog);
        let is_chosen = is_named && job.filters.keep(base, prog);
        if !is_chosen {
            left_out.borrow_mut().push(format!("{name}/{prog}"));
        }
        is_chosen
    };
    if let Some(single) = single::read(&file, job.kind, job.flags)? {
        let loaded = single.loaded(base, kernel);
        if !is_chosen(&loaded.name) {
            return Ok(FileResults {
                left_out: left_out.take(),
                ..FileResults::default()
            });
        }
        if let Some(failure) = single.missing_map(registry) {
            return Err(failure.within(&given));
        }
        if job.notes {
            note_btf(&given, &loaded);
        }
        let mut row = verify_one(name, &loaded, job, kernel, registry);
        if let Ok(program) = &loaded.program {
            let log = |log: &mut dyn LogOutput| write_log(program, kernel, registry, log);
            row.recorded = recorded::compare(&single.answers, &row, kernel, &log);
        }
        return Ok(FileResults {
            is_lacking: is_lacking(&loaded, registry),
            rows: vec![row],
            ..FileResults::default()
        });
    }
    let refused = RefCell::new(None);
    let change = |object: &mut Object<'_>| {
        if let Some(kind) = job.kind {
            object.set_missing_kinds(kind);
        }
        if let Err(failure) = globals::apply(object, &job.globals) {
            refused.replace(Some(failure));
        }
    };
    let mut rows = Vec::new();
    let mut is_noted = false;
    let mut is_file_lacking = false;
    let mut noted = BTreeSet::new();
    let mut verify = |loaded: StandaloneProgram| {
        if job.notes {
            note_maps(&given, &loaded, &mut noted);
        }
        if job.notes && !is_noted {
            is_noted = note_btf(&given, &loaded);
        }
        is_file_lacking |= is_lacking(&loaded, registry);
        if refused.borrow().is_none() {
            rows.push(verify_one(name, &loaded, job, kernel, registry));
        }
    };
    let read_btf = |name: &str| {
        let beside = path.with_file_name(name);
        Some(Arc::new(read_types(&beside).ok()?.btf))
    };
    let mut loader = ProgramLoader::new(kernel)
        .with_flags(job.flags)
        .with_choice(&is_chosen)
        .with_change(&change);
    if job.test_tags {
        loader = loader.with_test_tags(&read_btf);
    }
    let loaded = loader.load_each(file.bytes(), &given, &mut verify);
    loaded.map_err(|error| {
        let failure = refused_beside(error, Some(kernel), path, job.files);
        match file.is_object() {
            true => failure,
            false if single::is_source(path) => failure,
            false => single::unreadable_file(path, file.bytes(), failure),
        }
    })?;
    if rows.is_empty() && left_out.borrow().is_empty() && refused.borrow().is_none() {
        return Err(no_programs().within(&given));
    }
    match refused.take() {
        Some(failure) => Err(failure.within(&given)),
        None => Ok(FileResults {
            rows,
            left_out: left_out.take(),
            is_lacking: is_file_lacking,
        }),
    }
}

/// Notes that the kernel refuses the BTF of a program; true if it does.
fn note_btf(file: &str, loaded: &StandaloneProgram) -> bool {
    let Some(refusal) = &loaded.btf_refusal else {
        return false;
    };
    diagnostic!(
        "beebox: {file}: Linux refuses its BTF ({refusal}), so it is loaded without, as by libbpf"
    );
    true
}

/// Prints on standard error how a program is loaded.
fn note_loaded(file: &str, name: &str, program: &Program) {
    let maps = program.used_maps().into_iter();
    let maps = maps.filter_map(|id| program.map(id).map(|map| map.name.to_string()));
    let maps: Vec<String> = maps.collect();
    let maps = match maps.is_empty() {
        true => "no maps".to_owned(),
        false => format!("maps {}", maps.join(", ")),
    };
    diagnostic!(
        "beebox: {file}/{name}: loaded as {}: {}, load flags {:#x}, {maps}",
        program.kind().name(),
        count(program.insns().len(), "instruction"),
        program.flags().0,
    );
}

/// True if the kernel lacks something to load a program with, or programs of its type.
fn is_lacking(loaded: &StandaloneProgram, registry: &Registry) -> bool {
    match &loaded.program {
        Ok(program) => {
            let mut known = registry.programs.keys();
            !known.any(|(kind, _)| *kind == program.kind())
        }
        Err(error) => error.blame() == Blame::Target,
    }
}

/// Prints the notes about the maps of a program, each once for a file.
fn note_maps(file: &str, loaded: &StandaloneProgram, noted: &mut BTreeSet<String>) {
    for note in &loaded.notes {
        let note = note.to_string();
        if !noted.contains(&note) {
            diagnostic!("beebox: {file}: {note}");
            noted.insert(note);
        }
    }
}

fn verify_one(
    file: &str,
    loaded: &StandaloneProgram,
    job: &Job<'_>,
    kernel: &Kernel,
    registry: &Registry,
) -> Row {
    let mut row = Row::empty(file, &loaded.name);
    row.prog_type = loaded
        .kind
        .map_or(row::UNTYPED, |kind| kind.name())
        .to_owned();
    row.notes = loaded.notes.iter().map(ToString::to_string).collect();
    match &loaded.program {
        Err(error) => row.reason = format!("not loaded: {error}"),
        Ok(program) => {
            row.prog_type = program.kind().name().to_owned();
            if job.debugs {
                note_loaded(file, &loaded.name, program);
            }
            // As veristat has it: type 0 where programs state none.
            row.attach_type = AttachType::from_number(program.expected_attach_type())
                .map_or("N/A", |attach| attach.name())
                .to_owned();
            row.prog_size = program.insns().len() as u64;
            let start = Instant::now();
            let mut log = job.logs.of(&row);
            let done = verify_program(program, kernel, registry, &job.options, &mut log);
            let duration = start.elapsed();
            row.duration = duration.as_micros() as u64;
            row.duration_us = row.duration;
            match done {
                Ok(mut done) => {
                    let cost = done.cost.take();
                    row.cost = cost.map(|cost| ProgramCost::new(program, &loaded.name, &cost));
                    let facts = done.facts.take();
                    row.facts = facts.map(|facts| FactTable::new(program, &facts));
                    fill(&mut row, loaded.check_release(done, kernel));
                    log.finish(&mut row);
                    if job.explains && row.verdict == ResultVerdict::Failure {
                        row.explanation = explain(program, kernel, registry, &job.options);
                    }
                }
                Err(bug) => row.reason = bug,
            }
        }
    }
    row
}

/// Verifies a program. A panic is a broken invariant of the verifier: it is one
/// program's result, and the others are still verified.
fn verify_program(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    log: &mut dyn LogOutput,
) -> Result<Verification, String> {
    let verify = || verify::verify_to(program, kernel, registry, options, log);
    catch_unwind(AssertUnwindSafe(verify)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        format!("bug: {}", text.unwrap_or_default())
    })
}

/// The explanation of a refusal.
fn explain(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
) -> Option<Explained> {
    let explain = || verify::explain(program, kernel, registry, options);
    let explanation = catch_unwind(AssertUnwindSafe(explain)).ok()??;
    Some(Explained {
        text: report::explain::text(&explanation),
        data: report::explain::json(&explanation),
    })
}

/// Writes the log of every instruction of every path.
fn write_log(program: &Program, kernel: &Kernel, registry: &Registry, log: &mut dyn LogOutput) {
    let options = Options {
        log_level: 2,
        ..Options::default()
    };
    // What a panic wrote is the log.
    let _ = verify_program(program, kernel, registry, &options, log);
}

fn fill(row: &mut Row, done: Verification) {
    let counts = done.statistics;
    row.total_insns = counts.insns_processed.into();
    row.total_states = counts.total_states.into();
    row.peak_states = counts.peak_states.into();
    row.max_states_per_insn = counts.max_states_per_insn.into();
    row.max_mark_read_len = counts.longest_mark_read_walk.into();
    row.stack_depth = done.stack_depth.iter().map(|&depth| u64::from(depth)).sum();
    row.max_stack_depth = done.stack_depth.iter().copied().max().unwrap_or(0).into();
    let depths: Vec<String> = done.stack_depth.iter().map(u32::to_string).collect();
    row.stack = depths.join("+");
    row.refused_map = done.refused_map.as_ref().map(MapRow::new);
    (row.verdict, row.reason) = match done.verdict {
        verify::Verdict::Accepted => (ResultVerdict::Success, String::new()),
        verify::Verdict::Refused(refusal) => {
            row.errno = Some(refusal.errno.0);
            (ResultVerdict::Failure, refusal.reason().into_owned())
        }
        verify::Verdict::Unsupported(what) => (ResultVerdict::Unsupported, what),
        verify::Verdict::Bug(what) => (ResultVerdict::Unsupported, format!("bug: {what}")),
    };
}
