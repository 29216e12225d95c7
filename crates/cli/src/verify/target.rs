//! The program that other programs replace or trace a function of (`--target FILE:PROGRAM`).

use std::path::Path;
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::program::{Program, ProgramType};
use beebox::internal::verify::ProgramLoader;

use crate::answer::Failure;
use crate::object_input::{ObjectFile, refused};

/// Reads the program. Of an object with one program its name may be left out.
pub(super) fn read(
    text: &str,
    kernel: &Kernel,
    loading: &ObjectLoading,
) -> Result<Arc<Program>, Failure> {
    let (path, name) = match text.rsplit_once(':') {
        Some((path, name)) if !name.contains(['/', '.']) => (path, Some(name)),
        _ => (text, None),
    };
    if path.is_empty() || name.is_some_and(str::is_empty) {
        let what = "a file and the name of a program are expected";
        return Err(Failure::new(what)
            .within(format_args!("--target {text:?}"))
            .hint("--target FILE:PROGRAM, or --target FILE for an object with one program"));
    }
    let path = Path::new(path);
    let file = ObjectFile::read(path)?;
    let is_chosen = |program: &str| name.is_none_or(|name| name == program);
    let mut found = Vec::new();
    let loader = ProgramLoader::new(kernel).with_choice(&is_chosen);
    let loader = loader.with_loading(loading);
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy())
        .unwrap_or_default();
    loader
        .load_each(&file.into_bytes(), &stem, &mut |loaded| found.push(loaded))
        .map_err(|error| refused(error, Some(kernel)).within(path.display()))?;
    let names: Vec<&str> = found.iter().map(|loaded| loaded.name.as_str()).collect();
    match (names.len(), name) {
        (1, _) => {}
        (0, Some(name)) => {
            return Err(Failure::new(format_args!("it has no program {name}"))
                .within(path.display())
                .hint(format_args!(
                    "beebox show {} lists its programs",
                    path.display()
                )));
        }
        (0, None) => return Err(Failure::new("no programs").within(path.display())),
        (_, _) => {
            return Err(Failure::new("several programs, and none is named")
                .within(path.display())
                .hint(format_args!(
                    "--target {}:PROGRAM, one of {}",
                    path.display(),
                    names.join(", ")
                )));
        }
    }
    let loaded = found.remove(0);
    if loaded.kind == Some(ProgramType::Ext) {
        let what = format_args!(
            "program {} is a replacement (freplace), which cannot be a target: Linux replaces no \
             function of one, and tracing one is not supported",
            loaded.name
        );
        return Err(Failure::new(what)
            .within(path.display())
            .hint("--target with the program whose function it replaces"));
    }
    let program = loaded.program;
    program
        .map(Arc::new)
        .map_err(|error| refused(error, Some(kernel)).within(path.display()))
}
