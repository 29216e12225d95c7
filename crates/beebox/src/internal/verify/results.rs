//! Verification of all programs of several files, in parallel by file, with one row of results for
//! each program. Time and memory are those of the verifier; a panic of the verifier is the result
//! of one program.

mod log;
mod recorded;
mod row;
mod table;
mod top_lines;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use btf::core::essential_name;
use btf::{Btf, Kind};
use isa::ebpf::PseudoCall;
use object::{Blame, CORE_POISON, Error, Guess, Object};
use program::case::KernelAnswer;
use program::{ExternSymbol, MapDef, Program};
use report::count;
use report::veristat::{Filters, ResultVerdict};
use spec::loader::LoaderKind;
use spec::maps::MapKind;
use spec::programs::{AttachType, LoadFlags, ProgramType};
use spec::registry::Registry;
use verifier::{LogOutput, Options, Verdict, Verification};

use super::cost_table::ProgramCost;
use super::fact_table::FactTable;
use super::{ProgramLoader, StandaloneProgram};
use crate::Kernel;
use crate::internal::loading::{LoadingError, ObjectLoading};

pub use log::{Logs, with_heading};
pub use recorded::Agreement;
pub use row::{Explained, MapRow, Row, UNTYPED};
pub use table::{Counts, table};
pub use top_lines::{TopLine, write_top_lines};

/// Bytes of stack of a thread that verifies.
const THREAD_STACK: usize = 64 << 20;

/// What a file holds.
pub enum FileContents {
    /// An object.
    Object(Vec<u8>),
    /// One program, with the answers of kernels that are recorded with it.
    Program(Box<Program>, Vec<KernelAnswer>),
}

/// Why the programs of a file have no results.
#[derive(Debug)]
pub enum FileFault {
    /// These bytes cannot be opened as an object.
    Object(Error, Vec<u8>),
    /// What a loader sets cannot be set.
    Loading(LoadingError),
    /// The object has no programs.
    NoPrograms,
    /// The kernel has no maps of the kind of one that a program uses.
    MapKind(Arc<MapDef>),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileFault::Object(error, _) => error.fmt(f),
            FileFault::Loading(error) => error.fmt(f),
            FileFault::NoPrograms => f.write_str("no programs: functions in .text are subprograms"),
            FileFault::MapKind(map) => {
                let kind = map.kind().map_or("that is unknown", MapKind::name);
                let what = "the kernel has no maps of type";
                write!(f, "map {:?}: {what} {kind}", map.name)
            }
        }
    }
}

impl error::Error for FileFault {}

/// What is to be known about how programs are loaded.
pub enum Note<'n> {
    /// The kernel refuses the BTF of the programs of a file, so they are loaded without, as by libbpf.
    NoBtf(&'n str),
    /// The loader whose conventions count is guessed.
    Guess(&'n Guess),
    /// An assumption about a map.
    Map(&'n str),
    /// A program of a name as it is loaded.
    Loaded(&'n str, &'n Program),
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = match self {
            Note::NoBtf(refusal) => {
                let what = "so it is loaded without, as by libbpf";
                return write!(f, "Linux refuses its BTF ({refusal}), {what}");
            }
            Note::Guess(guess) => return guess.fmt(f),
            Note::Map(note) => return f.write_str(note),
            Note::Loaded(_, program) => program,
        };
        let maps = program.used_maps().into_iter();
        let maps = maps.filter_map(|id| program.map(id).map(|map| map.name.to_string()));
        let maps: Vec<String> = maps.collect();
        let maps = match maps.is_empty() {
            true => "no maps".to_owned(),
            false => format!("maps {}", maps.join(", ")),
        };
        write!(
            f,
            "loaded as {}: {}, load flags {:#x}, {maps}",
            program.kind().name(),
            count(program.insns().len(), "instruction"),
            program.flags().0,
        )
    }
}

/// The files whose programs are verified, by index.
pub trait Files: Sync {
    /// Error of a file.
    type Error: Send + Sync;

    /// What files are called in results.
    fn names(&self) -> &[String];

    /// Name of a file in messages.
    fn given_name(&self, at: usize) -> String {
        self.names()[at].clone()
    }

    /// Bytes of a file, by which the largest is verified first.
    fn size(&self, at: usize) -> u64 {
        let _ = at;
        0
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, at: usize) -> Result<FileContents, Self::Error>;

    /// BTF in a file beside one, for the tags of the kernel's selftests.
    fn read_btf(&self, at: usize, name: &str) -> Option<Arc<Btf<'static>>> {
        let _ = (at, name);
        None
    }

    /// The error of a file for a fault of what it holds.
    fn fault(&self, at: usize, fault: FileFault) -> Self::Error;

    /// Takes a note about a file.
    fn note(&self, at: usize, note: Note<'_>) {
        let _ = (at, note);
    }
}

/// What is verified, and how.
pub struct Job<'a> {
    /// Names of programs; all programs if there are none.
    pub programs: &'a [String],
    /// Files and programs that are left out.
    pub filters: &'a Filters,
    /// Load flags beside those that sections ask for.
    pub flags: LoadFlags,
    /// True if declaration tags of the kernel's selftests are obeyed.
    pub test_tags: bool,
    /// Options of the verifier.
    pub options: Options,
    /// True if refusals are explained.
    pub explains: bool,
    /// How objects are opened, and what is set before programs are loaded.
    pub loading: ObjectLoading,
    /// The program that freplace and tracing programs attach to.
    pub target: Option<Arc<Program>>,
    /// What becomes of logs.
    pub logs: Logs<'a>,
    /// Number of threads.
    pub threads: usize,
}

/// Results, in the order of the files and of their programs, and the errors of files.
pub struct Results<E> {
    /// A row for each program.
    pub rows: Vec<Row>,
    /// Programs that names and filters leave out, as `FILE/PROG`.
    pub left_out: Vec<String>,
    /// Names that a loader may define in one of the files.
    pub definable: BTreeSet<String>,
    /// True if a program has no verdict, or is refused, because the kernel lacks a part.
    pub kernel_lacks_feature: bool,
    /// Errors of files.
    pub failures: Vec<E>,
}

/// Results of the programs of a file.
#[derive(Default)]
pub(super) struct FileResults {
    pub(super) rows: Vec<Row>,
    pub(super) left_out: Vec<String>,
    pub(super) definable: BTreeSet<String>,
    kernel_lacks_feature: bool,
}

impl<E> Default for Results<E> {
    fn default() -> Results<E> {
        Results {
            rows: Vec::new(),
            left_out: Vec::new(),
            definable: BTreeSet::new(),
            kernel_lacks_feature: false,
            failures: Vec::new(),
        }
    }
}

impl<E> Results<E> {
    fn add(&mut self, of_file: Result<FileResults, E>) {
        match of_file {
            Ok(found) => {
                self.rows.extend(found.rows);
                self.left_out.extend(found.left_out);
                self.definable.extend(found.definable);
                self.kernel_lacks_feature |= found.kernel_lacks_feature;
            }
            Err(failure) => self.failures.push(failure),
        }
    }
}

/// Verifies every selected program; `None` for a kernel without a registry.
pub fn verify_files<F: Files>(
    files: &F,
    job: &Job<'_>,
    kernel: &Kernel,
) -> Option<Results<F::Error>> {
    verify(files, job, kernel, false)
}

/// As [`verify_files`]; rows have their programs ([`Row::program`]).
pub fn verify_and_keep<F: Files>(
    files: &F,
    job: &Job<'_>,
    kernel: &Kernel,
) -> Option<Results<F::Error>> {
    verify(files, job, kernel, true)
}

fn verify<F: Files>(
    files: &F,
    job: &Job<'_>,
    kernel: &Kernel,
    keeps_programs: bool,
) -> Option<Results<F::Error>> {
    let registry = kernel.registry()?;
    let mut all = Results::default();
    let verify_at = |at: usize| {
        let contents = files.read(at)?;
        verify_file(
            files,
            (at, &contents),
            job,
            kernel,
            registry,
            keeps_programs,
        )
    };
    for of_file in for_each_file(files, job.threads, &verify_at) {
        all.add(of_file);
    }
    Some(all)
}

/// What becomes of each file, in the order of the files, by several threads if there are several
/// files.
pub(super) fn for_each_file<F: Files, T: Send + Sync>(
    files: &F,
    threads: usize,
    work_at: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    let count = files.names().len();
    if threads == 1 || count == 1 {
        return (0..count).map(work_at).collect();
    }
    // What takes longest does not begin last, when other threads have nothing left to do.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|at| Reverse(files.size(*at)));
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let work = || {
                let take = || order.get(next.fetch_add(1, Ordering::Relaxed));
                while let Some(&at) = take() {
                    results[at].get_or_init(|| work_at(at));
                }
            };
            let thread = std::thread::Builder::new().stack_size(THREAD_STACK);
            // Without another thread, those that run do all of it.
            let _ = thread.spawn_scoped(scope, work);
        }
    });
    // Where no thread could be started, this one does it.
    let done = results.into_iter().enumerate();
    done.map(|(at, result)| result.into_inner().unwrap_or_else(|| work_at(at)))
        .collect()
}

/// Verifies the programs of a file that holds this; rows keep them as they were loaded if
/// `keeps_programs`.
pub(super) fn verify_file<F: Files>(
    files: &F,
    (at, contents): (usize, &FileContents),
    job: &Job<'_>,
    kernel: &Kernel,
    registry: &Registry,
    keeps_programs: bool,
) -> Result<FileResults, F::Error> {
    let name = files.names()[at].as_str();
    // Filters have last parts of paths, as veristat's.
    let base = name.rsplit(std::path::is_separator).next().unwrap_or(name);
    let left_out = RefCell::new(Vec::new());
    let is_chosen = |prog: &str| {
        let is_named = job.programs.is_empty() || job.programs.iter().any(|name| name == prog);
        let is_chosen = is_named && job.filters.keep(base, prog);
        if !is_chosen {
            left_out.borrow_mut().push(format!("{name}/{prog}"));
        }
        is_chosen
    };
    let bytes = match contents {
        FileContents::Object(bytes) => bytes,
        FileContents::Program(program, answers) => {
            if !is_chosen(&loaded_as(program, base)) {
                return Ok(FileResults {
                    left_out: left_out.take(),
                    ..FileResults::default()
                });
            }
            if let Some(map) = missing_map(program, registry) {
                return Err(files.fault(at, FileFault::MapKind(map)));
            }
            let loaded = StandaloneProgram {
                name: loaded_as(program, base),
                ..StandaloneProgram::from_program(Program::clone(program), kernel)
            };
            note_btf(files, at, &loaded);
            let mut row = verify_one(files, at, name, &loaded, job, kernel, registry);
            if let Ok(program) = &loaded.program {
                let log = |log: &mut dyn LogOutput| write_log(program, kernel, registry, log);
                row.recorded = recorded::compare(answers, &row, kernel, &log);
            }
            let kernel_lacks_feature = row.needs_absent || kernel_lacks_feature(&loaded, registry);
            row.loaded = keeps_programs.then(|| Arc::new(loaded));
            return Ok(FileResults {
                kernel_lacks_feature,
                rows: vec![row],
                ..FileResults::default()
            });
        }
    };
    let refused = RefCell::new(None);
    let is_guess_noted = Cell::new(false);
    let loader_kind = Cell::new(LoaderKind::Libbpf);
    let definable = RefCell::new(BTreeSet::new());
    let change = |object: &mut Object<'_>| {
        // An object without externs of the kernel is opened twice.
        if let Some(guess) = object.guess().filter(|_| !is_guess_noted.replace(true)) {
            files.note(at, Note::Guess(guess));
        }
        loader_kind.set(object.loader());
        definable.borrow_mut().extend(object.definable());
        if let Some(target) = &job.target {
            object.set_target(target);
        }
        let checked = job.loading.check_attached(object);
        let globals = |()| {
            job.loading
                .set_globals(object)
                .map_err(LoadingError::Variable)
        };
        if let Err(error) = checked.and_then(globals) {
            refused.replace(Some(error));
        }
    };
    let mut rows = Vec::new();
    let mut is_noted = false;
    let mut is_file_lacking = false;
    let mut noted = BTreeSet::new();
    let mut verify = |loaded: StandaloneProgram| {
        for note in &loaded.notes {
            let note = note.to_string();
            if !noted.contains(&note) {
                files.note(at, Note::Map(&note));
                noted.insert(note);
            }
        }
        if !is_noted {
            is_noted = note_btf(files, at, &loaded);
        }
        is_file_lacking |= kernel_lacks_feature(&loaded, registry);
        if refused.borrow().is_none() {
            let mut row = verify_one(files, at, name, &loaded, job, kernel, registry);
            row.loader = Some(loader_kind.get()).filter(|kind| *kind != LoaderKind::Libbpf);
            is_file_lacking |= row.needs_absent;
            for note in &row.notes {
                if noted.insert(note.clone()) {
                    files.note(at, Note::Map(note));
                }
            }
            row.loaded = keeps_programs.then(|| Arc::new(loaded));
            rows.push(row);
        }
    };
    let read_btf = |name: &str| files.read_btf(at, name);
    let mut loader = ProgramLoader::new(kernel)
        .with_flags(job.flags)
        .with_loading(&job.loading)
        .with_choice(&is_chosen)
        .with_change(&change);
    if job.test_tags {
        loader = loader.with_test_tags(&read_btf);
    }
    let loaded = loader.load_each(bytes, &files.given_name(at), &mut verify);
    if let Err(error) = loaded {
        return Err(files.fault(at, FileFault::Object(error, bytes.clone())));
    }
    if rows.is_empty() && left_out.borrow().is_empty() && refused.borrow().is_none() {
        return Err(files.fault(at, FileFault::NoPrograms));
    }
    match refused.take() {
        Some(error) => Err(files.fault(at, FileFault::Loading(error))),
        None => Ok(FileResults {
            rows,
            left_out: left_out.take(),
            definable: definable.take(),
            kernel_lacks_feature: is_file_lacking,
        }),
    }
}

/// The name of a program; one without a name is called like its file.
fn loaded_as(program: &Program, file: &str) -> String {
    match program.name() {
        "" => file.split('.').next().unwrap_or(file).to_owned(),
        name => name.to_owned(),
    }
}

/// A map of a kind that the kernel lacks, so that the program cannot be loaded.
fn missing_map(program: &Program, registry: &Registry) -> Option<Arc<MapDef>> {
    let mut maps = program
        .used_maps()
        .into_iter()
        .filter_map(|id| program.map(id));
    let is_missing =
        |map: &&Arc<MapDef>| map.kind().is_none_or(|kind| registry.map(kind).is_none());
    maps.find(is_missing).cloned()
}

/// Notes that the kernel refuses the BTF of a program; true if it does.
fn note_btf<F: Files>(files: &F, at: usize, loaded: &StandaloneProgram) -> bool {
    let Some(refusal) = &loaded.btf_refusal else {
        return false;
    };
    files.note(at, Note::NoBtf(&refusal.to_string()));
    true
}

/// True if the kernel lacks something to load a program with, or programs of its type.
fn kernel_lacks_feature(loaded: &StandaloneProgram, registry: &Registry) -> bool {
    match &loaded.program {
        Ok(program) => {
            let mut known = registry.programs.keys();
            !known.any(|(kind, _)| *kind == program.kind())
        }
        Err(error) => error.blame() == Blame::Target,
    }
}

/// The number of the helper for whose call a program is refused.
fn refused_helper(program: &Program, verdict: &Verdict) -> Option<i32> {
    let Verdict::Refused(refusal) = verdict else {
        return None;
    };
    let insn = program.insns().get(refusal.insn? as usize)?;
    (insn.pseudo_call() == Some(PseudoCall::Helper)).then_some(insn.imm)
}

/// True if a program is refused for the call that stands in place of a kernel function or type
/// that the kernel lacks.
fn needs_absent(program: &Program, verdict: &Verdict, kernel: &Kernel) -> bool {
    refused_helper(program, verdict).is_some_and(|number| {
        let symbol = program.absent_extern(number);
        number == CORE_POISON || symbol.is_some_and(|symbol| !has_function(kernel, symbol))
    })
}

/// True if the kernel has a function of an extern's name.
fn has_function(kernel: &Kernel, symbol: &ExternSymbol) -> bool {
    let name = essential_name(symbol.name.as_bytes());
    (kernel.btf()).is_some_and(|btf| btf.find_all(Kind::Func, name).next().is_some())
}

/// The kernel function that the kernel lacks, or has with another prototype, and for whose call a
/// program is refused, with what to give.
fn absent_kfunc(program: &Program, verdict: &Verdict, kernel: &Kernel) -> Option<String> {
    let symbol = program.absent_extern(refused_helper(program, verdict)?)?;
    let name = &symbol.name;
    Some(match has_function(kernel, symbol) {
        true => format!(
            "kernel function {name} has another prototype in this kernel (another kernel's: \
             --kernel PATH)"
        ),
        false => format!(
            "the kernel has no kernel function {name} (a module's: --module-btf FILE; another \
             kernel's: --kernel PATH)"
        ),
    })
}

fn verify_one<F: Files>(
    files: &F,
    at: usize,
    file: &str,
    loaded: &StandaloneProgram,
    job: &Job<'_>,
    kernel: &Kernel,
    registry: &Registry,
) -> Row {
    let mut row = Row::empty(file, &loaded.name);
    row.prog_type = loaded.kind.map_or(UNTYPED, |kind| kind.name()).to_owned();
    row.uses_target = loaded.kind == Some(ProgramType::Ext);
    row.notes = loaded.notes.iter().map(ToString::to_string).collect();
    match &loaded.program {
        Err(error) => row.reason = format!("not loaded: {error}"),
        Ok(program) => {
            row.prog_type = program.kind().name().to_owned();
            files.note(at, Note::Loaded(&loaded.name, program));
            let expected = AttachType::from_number(program.expected_attach_type());
            let name = |attach: AttachType| attach.name().to_owned();
            let is_stated = program.attach_type().is_some() || program.expected_attach_type() != 0;
            row.stated_attach_type = expected.filter(|_| is_stated).map(name);
            row.attach_type = expected.map_or_else(|| "N/A".to_owned(), name);
            let target = program.attach_target();
            row.uses_target |= target.is_some_and(|target| target.program.is_some());
            row.prog_size = program.insns().len() as u64;
            let start = Instant::now();
            let mut log = job.logs.of(&row);
            let done = verify_program(program, kernel, registry, &job.options, &mut log);
            let duration = start.elapsed();
            row.duration = duration.as_micros() as u64;
            row.duration_us = row.duration;
            match done {
                Ok(mut done) => {
                    row.needs_absent = needs_absent(program, &done.verdict, kernel);
                    row.notes
                        .extend(absent_kfunc(program, &done.verdict, kernel));
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
pub(super) fn verify_program(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
    log: &mut dyn LogOutput,
) -> Result<Verification, String> {
    let verify = || verifier::verify_to(program, kernel, registry, options, log);
    catch_unwind(AssertUnwindSafe(verify)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        format!("bug: {}", text.unwrap_or_default())
    })
}

/// The explanation of a refusal.
pub(super) fn explain(
    program: &Program,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
) -> Option<Explained> {
    let explain = || verifier::explain(program, kernel, registry, options);
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
        Verdict::Accepted => (ResultVerdict::Success, String::new()),
        Verdict::Refused(refusal) => {
            row.errno = Some(refusal.errno.0);
            let reason = refusal.reason();
            row.refusal = Some(refusal);
            (ResultVerdict::Failure, reason)
        }
        Verdict::Unsupported(what) => (ResultVerdict::Unsupported, what),
        Verdict::Bug(what) => (ResultVerdict::Unsupported, format!("bug: {what}")),
    };
}
