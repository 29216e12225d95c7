//! Where the packets that match are written.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use beebox::captures::{Compression, Compressor, Output, Shape};

use super::inputs::NamedInput;
use super::stopwatch::{Stopwatch, Timed};
use crate::answer::Failure;

/// An output that is open.
pub(super) struct Target {
    shape: Shape,
    file: Compressor<BufWriter<Timed<File>>>,
}

impl Target {
    /// Creates the output for the packets of these captures, compressed if the name
    /// ends in `.gz` or `.zst`.
    pub(super) fn create(
        path: &Path,
        inputs: &[NamedInput],
        stopwatch: &Stopwatch,
    ) -> Result<Target, Failure> {
        let formats: Vec<_> = inputs.iter().map(|named| named.input.format()).collect();
        let file = if is_standard(Some(path)) {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                return Err(
                    Failure::new("standard output is a terminal: packets are not text")
                        .hint("write them to a file with -o, or into a pipe"),
                );
            }
            stdout.as_fd().try_clone_to_owned().map(File::from)
        } else {
            refuse_input(path, inputs)?;
            File::create(path)
        };
        let file = file.map_err(|error| failure(Some(path), &error))?;
        Ok(Target {
            shape: Shape::holding(&formats),
            file: Compressor::new(
                BufWriter::with_capacity(64 << 10, Timed::new(file, stopwatch)),
                Compression::of_name(path),
            ),
        })
    }

    /// Writes what remains.
    pub(super) fn finish(self) -> io::Result<()> {
        self.file.finish()
    }

    /// What the library writes to.
    pub(super) fn output(&mut self) -> Output<'_> {
        Output {
            shape: self.shape,
            file: &mut self.file,
        }
    }
}

/// Creating the output would empty an input.
fn refuse_input(path: &Path, inputs: &[NamedInput]) -> Result<(), Failure> {
    let Ok(existing) = fs::metadata(path) else {
        return Ok(());
    };
    let is_same = |named: &&NamedInput| {
        let input = named.metadata.as_ref();
        existing.is_file()
            && input
                .is_some_and(|input| (input.dev(), input.ino()) == (existing.dev(), existing.ino()))
    };
    match inputs.iter().find(is_same) {
        Some(input) => Err(Failure::new(format_args!(
            "{}: output is also an input (read as {})",
            path.display(),
            input.name
        ))),
        None => Ok(()),
    }
}

/// True for standard output.
pub(super) fn is_standard(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

/// What to say about an output that can't be written.
pub(super) fn failure(path: Option<&Path>, error: &io::Error) -> Failure {
    match path {
        Some(path) if !is_standard(Some(path)) => Failure::of_file(path, error),
        _ => Failure::new(format_args!("standard output: {error}")),
    }
}
