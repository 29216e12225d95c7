//! Objects on the command line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::object::{Blame, Error, Object, OpenOptions};

use crate::answer::Failure;
use crate::kernel_input::built_in_hint;
use crate::program_input::{name, read_at_most};

/// Bytes of the largest object that is read.
const LARGEST: u64 = 1 << 30;

/// A file that should be an object.
pub(crate) struct ObjectFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl ObjectFile {
    /// True if the file is an ELF file, or an archive of ELF files.
    pub(crate) fn is_at(path: &Path) -> Result<bool, Failure> {
        let failed = |error| Failure::of_file(path, &error);
        let mut start = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(8).read_to_end(&mut start).map_err(failed)?;
        Ok(starts_as_object(&start))
    }

    /// True if it is an ELF file, or an archive of such.
    pub(crate) fn is_object(&self) -> bool {
        starts_as_object(&self.bytes)
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

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn open(&self) -> Result<Object<'_>, Failure> {
        let name = name(&self.path);
        let options = OpenOptions {
            name: Some(&name),
            ..OpenOptions::default()
        };
        Object::open_with(&self.bytes, &options).map_err(|error| refused(error, None))
    }
}

fn starts_as_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"!<arch>\n")
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
        Blame::Beebox => failure.hint("Linux's loader takes it; this is a gap of beebox"),
        Blame::Target => match kernel.and_then(built_in_hint) {
            Some(hint) => failure.hint(hint),
            None => failure.hint("--kernel running or --kernel FILE links for another kernel"),
        },
        Blame::File | Blame::User => failure,
    }
}
