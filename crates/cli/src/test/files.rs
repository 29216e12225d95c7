//! The files of tests: which there are, and their tests.

use std::fs;
use std::path::{Path, PathBuf};

use beebox::expect::ExpectFile;
use beebox::network::System;

use super::Args;
use crate::answer::Failure;
use crate::input::read_file;
use crate::run::{expect, read_network};

/// A file of tests.
pub(crate) struct TestFile {
    pub(crate) path: PathBuf,
    pub(crate) object: PathBuf,
    /// The network that its programs see.
    pub(crate) system: Option<System>,
    /// Its tests share their maps.
    pub(crate) shares_maps: bool,
    /// Names and statements; those that are not chosen are left out, but where maps are shared.
    pub(crate) tests: Vec<NamedTest>,
}

/// A test.
pub(crate) struct NamedTest {
    pub(crate) name: String,
    pub(crate) file: ExpectFile,
    /// It is chosen by `--match`.
    pub(crate) is_chosen: bool,
}

/// Which tests are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'w> {
    /// Files and directories.
    pub(crate) paths: &'w [PathBuf],
    /// Texts, one of which is in the name or the file of a test; none for all tests.
    pub(crate) matching: &'w [String],
    /// The object of files that name none.
    pub(crate) object: Option<&'w Path>,
}

/// Reads the files that the arguments name.
pub(super) fn find(args: &Args) -> Result<Vec<TestFile>, Failure> {
    find_wanted(Wanted {
        paths: &args.paths,
        matching: &args.matching,
        object: args.object.as_deref(),
    })
}

/// Reads files of tests.
pub(crate) fn find_wanted(args: Wanted<'_>) -> Result<Vec<TestFile>, Failure> {
    let mut files = Vec::new();
    for path in args.paths {
        match path.is_dir() {
            true => {
                let mut found = Vec::new();
                collect(path, &mut found)?;
                found.sort();
                for path in found {
                    files.extend(read(args, &path, true)?);
                }
            }
            false => files.extend(read(args, path, false)?),
        }
    }
    if files.is_empty() {
        let paths: Vec<String> = args
            .paths
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        let what = format!("{}: there are no tests", paths.join(", "));
        let hint = match args.object {
            // `beebox mutate` has the object.
            Some(_) => "files *.expect with `test NAME`",
            None => "files *.expect with `object FILE` and `test NAME`, or --object FILE",
        };
        return Err(Failure::new(what).hint(hint));
    }
    let is_chosen = |file: &TestFile| file.tests.iter().any(|test| test.is_chosen);
    if !files.iter().any(is_chosen) {
        let texts = args.matching.join(", ");
        let what = format!("--match {texts}: no test has this in its name");
        return Err(Failure::new(what).hint("`beebox test PATH --list` names the tests"));
    }
    files.retain(is_chosen);
    Ok(files)
}

/// Collects the files *.expect of a directory.
fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error| Failure::of_file(directory, &error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // Links to directories may lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "expect")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// True if a line of a file names an object.
fn names_object(path: &Path) -> Result<bool, Failure> {
    let bytes = read_file(path)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .any(|line| line.trim_start().starts_with("object ")))
}

/// Reads a file; `None` for one of a directory that names no object.
fn read(args: Wanted<'_>, path: &Path, is_of_directory: bool) -> Result<Option<TestFile>, Failure> {
    // Others may be expectations of other commands.
    if is_of_directory && args.object.is_none() && !names_object(path)? {
        return Ok(None);
    }
    let file = expect::read(path)?;
    let given = file.object().map(Path::to_owned);
    let Some(object) = given.or_else(|| args.object.map(Path::to_owned)) else {
        let failure = Failure::new("it names no object").within(path.display());
        return Err(failure.hint("object FILE in front of the tests, or --object FILE"));
    };
    let chosen = |name: &str| {
        let place = path.display().to_string();
        let mut texts = args.matching.iter();
        args.matching.is_empty() || texts.any(|text| name.contains(text) || place.contains(text))
    };
    let shares_maps = file.shares_maps();
    let network = file.network().map(read_network).transpose();
    let system = network.map_err(|failure| failure.within(path.display()))?;
    let mut tests: Vec<NamedTest> = file
        .tests()
        .into_iter()
        .map(|(name, file)| NamedTest {
            is_chosen: chosen(&name),
            name,
            file,
        })
        .collect();
    if tests.is_empty() {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        let name = stem.to_string_lossy().into_owned();
        tests.push(NamedTest {
            is_chosen: chosen(&name),
            name,
            file,
        });
    }
    if !shares_maps {
        tests.retain(|test| test.is_chosen);
    }
    Ok(Some(TestFile {
        path: path.to_owned(),
        object,
        system,
        shares_maps,
        tests,
    }))
}
