//! The files that are verified: how they are read, and what is said of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::btf::Btf;
use beebox::internal::object::{is_object, short_names};
use beebox::internal::program::{LoadFlags, ProgramType};
use beebox::internal::verify::matrix::{self, Matrix, ProgramAnswers};
use beebox::internal::verify::results::{self, FileContents, FileFault, Job, Note, Results};

use super::single;
use crate::answer::{Failure, note};
use crate::input::name;
use crate::loading;
use crate::object_input::{ObjectFile, no_programs, refused_beside};
use crate::type_file::read_types;

/// Files of the command line.
pub(super) struct Files<'a> {
    paths: &'a [PathBuf],
    /// What they are called in results.
    names: Vec<String>,
    kernel: &'a Kernel,
    /// The program type of files that hold instructions alone.
    kind: Option<ProgramType>,
    flags: LoadFlags,
    /// Print notes on standard error.
    notes: bool,
    /// Print on standard error how programs are loaded.
    debugs: bool,
}

/// Verifies every selected program; rows have their programs if `keeps`.
pub(super) fn verify(
    paths: &[PathBuf],
    job: &Job<'_>,
    kernel: &Kernel,
    [notes, debugs, keeps]: [bool; 3],
) -> Result<Results<Failure>, Failure> {
    let files = files(paths, job, kernel, [notes, debugs]);
    let results = match keeps {
        true => results::verify_and_keep(&files, job, kernel),
        false => results::verify_files(&files, job, kernel),
    };
    results.ok_or_else(|| without_registry(kernel))
}

/// As [`verify`], without notes; rows have their programs.
pub(crate) fn verify_and_keep(
    paths: &[PathBuf],
    job: &Job<'_>,
    kernel: &Kernel,
) -> Result<Results<Failure>, Failure> {
    let files = files(paths, job, kernel, [false, false]);
    results::verify_and_keep(&files, job, kernel).ok_or_else(|| without_registry(kernel))
}

/// Verifies every selected program for several kernels, and finds what decides about those that are
/// shown.
pub(super) fn verify_for(
    paths: &[PathBuf],
    job: &Job<'_>,
    kernels: &[Kernel],
    is_shown: &(dyn Fn(&ProgramAnswers) -> bool + Sync),
) -> Result<Matrix<Failure>, Failure> {
    let newest = kernels.last().ok_or_else(|| Failure::new("no kernel"))?;
    let files = files(paths, job, newest, [false, false]);
    matrix::verify_files(&files, job, kernels, is_shown).ok_or_else(|| {
        let lacking = kernels.iter().find(|kernel| kernel.registry().is_none());
        without_registry(lacking.unwrap_or(newest))
    })
}

fn files<'a>(
    paths: &'a [PathBuf],
    job: &Job<'_>,
    kernel: &'a Kernel,
    [notes, debugs]: [bool; 2],
) -> Files<'a> {
    Files {
        paths,
        names: short_names(paths),
        kernel,
        kind: job.loading.kind,
        flags: job.flags,
        notes,
        debugs,
    }
}

fn without_registry(kernel: &Kernel) -> Failure {
    Failure::new("helpers and contexts of the kernel are unknown").within(kernel.name())
}

impl results::Files for Files<'_> {
    type Error = Failure;

    fn names(&self) -> &[String] {
        &self.names
    }

    fn given_name(&self, at: usize) -> String {
        name(&self.paths[at])
    }

    fn size(&self, at: usize) -> u64 {
        fs::metadata(&self.paths[at]).map_or(0, |about| about.len())
    }

    fn read(&self, at: usize) -> Result<FileContents, Failure> {
        let file = ObjectFile::read(&self.paths[at])?;
        let single = single::read(&file, self.kind, self.flags)?;
        Ok(single.unwrap_or_else(|| FileContents::Object(file.into_bytes())))
    }

    fn read_btf(&self, at: usize, name: &str) -> Option<Arc<Btf<'static>>> {
        let beside = self.paths[at].with_file_name(name);
        Some(Arc::new(read_types(&beside).ok()?.btf))
    }

    fn fault(&self, at: usize, fault: FileFault) -> Failure {
        let path: &Path = &self.paths[at];
        match fault {
            FileFault::Object(error, bytes) => {
                let failure = refused_beside(error, Some(self.kernel), path, self.paths);
                match is_object(&bytes) || single::is_source(path) {
                    true => failure,
                    false => single::unreadable_file(path, &bytes, failure),
                }
            }
            FileFault::Loading(error) => loading::failure(error).within(name(path)),
            FileFault::NoPrograms => no_programs().within(name(path)),
            FileFault::MapKind(_) => Failure::new(fault).within(name(path)),
        }
    }

    fn note(&self, at: usize, about: Note<'_>) {
        match about {
            Note::Loaded(program, _) if self.debugs => {
                note(format_args!("{}/{program}: {about}", self.names[at]));
            }
            Note::Loaded(..) => {}
            Note::NoBtf(_) | Note::Guess(_) | Note::Map(_) if self.notes => {
                note(format_args!("{}: {about}", self.given_name(at)));
            }
            Note::NoBtf(_) | Note::Guess(_) | Note::Map(_) => {}
        }
    }
}
