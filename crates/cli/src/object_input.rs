//! Objects on the command line.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::object::{
    Blame, Error, Object, UnlinkedObject, defines, is_object, is_undecided, undefined_symbol,
};
use beebox::internal::program::ProgramType;

use crate::answer::Failure;
use crate::input::{name, read_at_most};
use crate::kernel_input::built_in_hint;
use crate::nearest::nearest;

/// Bytes of the largest object that is read.
const LARGEST: u64 = 256 << 20;

/// A file that should be an object.
pub(crate) struct ObjectFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl ObjectFile {
    /// True if the file is an ELF file, or an archive of ELF files.
    pub(crate) fn is_at(path: &Path) -> Result<bool, Failure> {
        let failed = |error| Failure::of_file(path, &error);
        // What is read of a pipe or device is gone.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Ok(false);
        }
        let mut start = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(8).read_to_end(&mut start).map_err(failed)?;
        Ok(is_object(&start))
    }

    /// True if it is an ELF file, or an archive of such.
    pub(crate) fn is_object(&self) -> bool {
        is_object(&self.bytes)
    }

    pub(crate) fn read(path: &Path) -> Result<ObjectFile, Failure> {
        let bytes = read_at_most(path, LARGEST)?;
        Ok(ObjectFile {
            path: path.to_owned(),
            bytes,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the file without its directory.
    pub(crate) fn base_name(&self) -> String {
        let path = self.path();
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The object as the compiler wrote it, if the loader refuses it only for its byte
    /// order, its legacy map definitions, static programs, or how its maps are declared.
    pub(crate) fn unlinked(&self, loading: &ObjectLoading) -> Option<UnlinkedObject<'_>> {
        loading.unlinked(&self.bytes)
    }

    /// Opens the object, by the conventions of the loader that it is written for.
    pub(crate) fn open(&self) -> Result<Object<'_>, Failure> {
        self.open_by(&ObjectLoading::default(), &[])
    }

    /// Opens the object. The error of an extern that one of the other objects defines
    /// names that object.
    pub(crate) fn open_by(
        &self,
        loading: &ObjectLoading,
        others: &[PathBuf],
    ) -> Result<Object<'_>, Failure> {
        let opened = loading.open(&self.bytes, &name(&self.path));
        opened.map_err(|error| refused_beside(error, None, &self.path, others))
    }
}

/// Prints on standard error which other object defines what a listed object only declares.
pub(crate) fn note_definer(object: &UnlinkedObject<'_>, path: &Path, others: &[PathBuf]) {
    let hint = object
        .refusal()
        .and_then(|error| link_hint(error, path, others));
    if let Some(hint) = hint {
        diagnostic!("beebox: {}: {hint}", name(path));
    }
}

/// The failure for an object without programs.
pub(crate) fn no_programs() -> Failure {
    Failure::new("no programs: functions in .text are subprograms")
        .hint("a section for the program, as SEC(\"xdp\")")
}

/// A refusal of the object at a path. Of an extern that the kernel does not define, it
/// names the other object that does.
pub(crate) fn refused_beside(
    error: Error,
    kernel: Option<&Kernel>,
    path: &Path,
    others: &[PathBuf],
) -> Failure {
    match link_hint(&error, path, others) {
        Some(hint) => refused(error, kernel).hint(hint),
        None => refused(error, kernel),
    }
}

/// Hint for an extern that the kernel does not define: linking with the object that
/// does.
fn link_hint(error: &Error, path: &Path, others: &[PathBuf]) -> Option<String> {
    let symbol = undefined_symbol(error)?;
    let mut others = others.iter().filter(|other| *other != path);
    let definer = others
        .find(|other| ObjectFile::read(other).is_ok_and(|other| defines(&other.bytes, symbol)));
    Some(match definer {
        Some(definer) => format!(
            "{} defines {symbol}: beebox link -o linked.o {} {}",
            name(definer),
            name(path),
            name(definer)
        ),
        None => format!(
            "beebox link -o linked.o {} OTHER.o, if another object defines {symbol}",
            name(path)
        ),
    })
}

/// Hint for a section name that implies no program type.
pub(crate) const SET_TYPE: &str = "--type TYPE, as --type xdp, sets what section names do not say";

/// The type of programs of `--type`.
pub(crate) fn program_type(name: &str) -> Result<ProgramType, String> {
    ProgramType::from_name(name).ok_or_else(|| {
        let names = ProgramType::ALL.iter().map(|kind| kind.name());
        match ProgramType::of_section(name) {
            Some(kind) => {
                let tip = format!("programs of section {name:?} have type '{}'", kind.name());
                expected(names, Some(tip))
            }
            None => expected_value(name, names),
        }
    })
}

/// The error of a value of an option that is none of some names, with the one that was probably
/// meant.
pub(crate) fn expected_value<'n>(
    value: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> String {
    let near = nearest(value, names.clone());
    let tip = near.map(|name| format!("a similar value exists: '{name}'"));
    expected(names, tip)
}

/// The error of a value of an option, as clap writes that of its own values.
fn expected<'n>(names: impl Iterator<Item = &'n str>, tip: Option<String>) -> String {
    let tip = tip.map_or_else(String::new, |tip| format!("\n\n  tip: {tip}"));
    let names: Vec<&str> = names.collect();
    format!("expected one of {}{tip}", names.join(", "))
}

/// A refusal for people, with the source line that it is about. What the kernel lacks
/// depends on the kernel that was linked for.
pub(crate) fn refused(error: Error, kernel: Option<&Kernel>) -> Failure {
    let failure = Failure::new(&error);
    let failure = match &error.place().line {
        Some(line) if !line.text.trim().is_empty() => {
            failure.excerpt(format_args!("{:>6} | {}", line.line, line.text.trim_end()))
        }
        _ => failure,
    };
    match error.blame() {
        Blame::Beebox if is_undecided(&error) => failure,
        Blame::Beebox => {
            failure.hint("libbpf accepts it: report it, beebox does not support it yet")
        }
        Blame::Target => match kernel.and_then(built_in_hint) {
            Some(hint) => failure.hint(hint),
            None => failure.hint("--kernel running or --kernel FILE links for another kernel"),
        },
        Blame::File | Blame::User => failure,
    }
}
