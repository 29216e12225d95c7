//! Verification of all programs of several files, in parallel by file.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use beebox::object::Object;
use beebox::verify::{self, Options, Verification};
use beebox::verify::{LoadRules, Loaded, load_each};
use beebox::{Kernel, program};
use program::Program;
use spec::programs::ProgramType;
use spec::registry::Registry;

use super::cost::ProgramCost;
use super::row::{Row, Verdict};
use super::spec::Filters;
use super::{recorded, single};
use crate::answer::Failure;
use crate::object_input::ObjectFile;

/// Results of the programs of a file.
type FileResult = Result<Vec<Row>, Failure>;

/// Bytes of stack of a thread that verifies.
const THREAD_STACK: usize = 64 << 20;

/// What to verify, and how.
pub(super) struct Job<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) programs: &'a [String],
    pub(super) filters: &'a Filters,
    pub(super) rules: LoadRules,
    pub(super) options: Options,
    /// The program type of files that hold instructions alone.
    pub(super) kind: Option<ProgramType>,
    pub(super) globals: Vec<(String, i128)>,
    pub(super) threads: usize,
}

/// Results, in the order of the files and of their programs, and the files that
/// cannot be opened.
#[derive(Default)]
pub(super) struct Results {
    pub(super) rows: Vec<Row>,
    pub(super) failures: Vec<Failure>,
}

impl Results {
    fn add(&mut self, of_file: Result<Vec<Row>, Failure>) {
        match of_file {
            Ok(rows) => self.rows.extend(rows),
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
    if job.threads == 1 || job.files.len() == 1 {
        for file in job.files {
            all.add(verify_file(job, file, kernel, registry));
        }
        return Ok(all);
    }
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<FileResult>> = job.files.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..job.threads.min(job.files.len()) {
            let work = || {
                let take = || next.fetch_add(1, Ordering::Relaxed);
                while let Some((file, result)) = {
                    let at = take();
                    job.files.get(at).zip(results.get(at))
                } {
                    result.get_or_init(|| verify_file(job, file, kernel, registry));
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

fn verify_file(
    job: &Job<'_>,
    path: &Path,
    kernel: &Kernel,
    registry: &Registry,
) -> Result<Vec<Row>, Failure> {
    let file = ObjectFile::read(path)?;
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let is_chosen = |prog: &str| {
        let is_named = job.programs.is_empty() || job.programs.iter().any(|name| name == prog);
        is_named && job.filters.keep(&name, prog)
    };
    if let Some(single) = single::read(&file, job.kind, job.rules.flags)? {
        let loaded = single.loaded(&name);
        if !is_chosen(&loaded.name) {
            return Ok(Vec::new());
        }
        let mut row = verify_one(&name, &loaded, job, kernel, registry);
        if let Ok(program) = &loaded.program {
            let log = || log_of(program, kernel, registry);
            row.recorded = recorded::compare(&single.answers, &row, kernel, &log);
        }
        return Ok(vec![row]);
    }
    let change = |object: &mut Object<'_>| set_globals(object, &job.globals);
    let mut rows = Vec::new();
    let mut verify = |loaded: Loaded| rows.push(verify_one(&name, &loaded, job, kernel, registry));
    load_each(
        file.bytes(),
        &name,
        kernel,
        job.rules,
        &is_chosen,
        &change,
        &mut verify,
    )
    .map_err(|error| {
        let failure = crate::object_input::refused(error, Some(kernel));
        match file.is_object() {
            true => failure,
            false => failure.hint(single::EXPECTED),
        }
    })?;
    Ok(rows)
}

fn verify_one(
    file: &str,
    loaded: &Loaded,
    job: &Job<'_>,
    kernel: &Kernel,
    registry: &Registry,
) -> Row {
    let mut row = Row::empty(file, &loaded.name);
    row.prog_type = loaded.kind.map_or("unspec", |kind| kind.name()).to_owned();
    match &loaded.program {
        Err(error) => row.reason = format!("not loaded: {error}"),
        Ok(program) => {
            row.prog_type = program.kind().name().to_owned();
            row.attach_type = program
                .attach_type()
                .map_or("N/A", |attach| attach.name())
                .to_owned();
            row.prog_size = program.insns().len() as u64;
            let start = Instant::now();
            let done = verify_program(program, kernel, registry, &job.options);
            let duration = start.elapsed();
            row.duration = duration.as_micros() as u64;
            row.duration_us = row.duration;
            match done {
                Ok(mut done) => {
                    let cost = done.cost.take();
                    row.cost = cost.map(|cost| ProgramCost::new(program, &cost));
                    fill(&mut row, done);
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
) -> Result<Verification, String> {
    let verify = || verify::verify(program, kernel, registry, options);
    catch_unwind(AssertUnwindSafe(verify)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        format!("bug: {}", text.unwrap_or_default())
    })
}

/// The log of every instruction of every path; empty if there is none.
fn log_of(program: &Program, kernel: &Kernel, registry: &Registry) -> String {
    let options = Options {
        log_level: 2,
        ..Options::default()
    };
    let done = verify_program(program, kernel, registry, &options);
    done.map(|done| done.log).unwrap_or_default()
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
    row.log = done.log;
    (row.verdict, row.reason) = match done.verdict {
        verify::Verdict::Accepted => (Verdict::Success, String::new()),
        verify::Verdict::Refused(refusal) => {
            row.errno = Some(refusal.errno);
            (Verdict::Failure, refusal.message)
        }
        verify::Verdict::Unsupported(what) => (Verdict::Unsupported, what),
        verify::Verdict::Bug(what) => (Verdict::Unsupported, format!("bug: {what}")),
    };
}

/// Reads assignments `NAME = VALUE`.
pub(super) fn globals(texts: &[String]) -> Result<Vec<(String, i128)>, Failure> {
    let read = |text: &String| {
        let (name, value) = text.split_once('=')?;
        let value = value.trim();
        let (digits, sign) = match value.strip_prefix('-') {
            Some(digits) => (digits, -1),
            None => (value, 1),
        };
        let number = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok()?,
            None => digits.parse().ok()?,
        };
        Some((name.trim().to_owned(), sign * number))
    };
    let all = texts.iter().map(|text| {
        read(text)
            .ok_or_else(|| Failure::new(format_args!("global {text:?}")).hint("NAME = NUMBER"))
    });
    all.collect()
}

/// Sets variables of the object's data sections. Names that it has not, or that are
/// no numbers, stay as they are.
fn set_globals(object: &mut Object<'_>, globals: &[(String, i128)]) {
    if globals.is_empty() {
        return;
    }
    let mut writes = Vec::new();
    if let Some(types) = object.types() {
        for section in types.datasecs() {
            let btf::Shape::Datasec(list) = section.shape() else {
                continue;
            };
            let section = section.name().to_string_lossy().into_owned();
            for placed in list.vars() {
                let name = types.at(placed.var).name().to_string_lossy();
                let set = globals.iter().find(|(global, _)| *global == name);
                if let Some((_, value)) = set
                    && placed.size <= 8
                {
                    writes.push((section.clone(), placed.offset, placed.size, *value));
                }
            }
        }
    }
    let ids: Vec<_> = object.maps().iter().map(|(id, _)| id).collect();
    for (section, offset, size, value) in writes {
        for &id in &ids {
            let Some(map) = object.maps_mut().get_mut(id) else {
                continue;
            };
            if !map.name().ends_with(&section) && map.name() != section {
                continue;
            }
            let Some(mut bytes) = map.image().map(|image| image.to_vec()) else {
                continue;
            };
            let (start, end) = (offset as usize, (offset + size) as usize);
            if let Some(place) = bytes.get_mut(start..end) {
                place.copy_from_slice(&value.to_le_bytes()[..size as usize]);
                // The size is that of the image that was read.
                let _ = map.set_image(&bytes);
            }
        }
    }
}
