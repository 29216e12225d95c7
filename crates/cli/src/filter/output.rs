//! Output of the matching packets.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal};
use std::path::Path;

use beebox::captures::Format;
use beebox::internal::captures::Output;
use beebox::internal::captures::{
    Compressor, FileFormat, OtherLinkType, OutputCompression, OutputFormatError,
};
use sys::interruptible::Interruption;

use super::inputs::{NamedInput, unreadable};
use super::stopwatch::{Stopwatch, Timed};
use crate::answer::Failure;
use crate::output_file::Unfinished;
use crate::output_path::OutputPath;

/// The formats of captures, as options name them.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FormatArg {
    /// One link type; no comments, no interface names
    Pcap,
    /// Several interfaces, options, other blocks
    Pcapng,
}

impl From<FormatArg> for FileFormat {
    fn from(given: FormatArg) -> FileFormat {
        match given {
            FormatArg::Pcap => FileFormat::Pcap,
            FormatArg::Pcapng => FileFormat::Pcapng,
        }
    }
}

/// The format of a file name's suffix, ignoring a further `.gz` or `.zst`.
fn format_of_name(path: &Path) -> Option<FileFormat> {
    match OutputCompression::from_name(path) {
        Ok(OutputCompression::None) => FileFormat::from_name(path),
        _ => FileFormat::from_name(Path::new(path.file_stem()?)),
    }
}

/// An output that is open.
pub(super) struct Target {
    format: Format,
    file: Compressor<BufWriter<Timed<File>>>,
    /// `None` for standard output.
    unfinished: Option<Unfinished>,
}

impl Target {
    /// Creates the output for the packets of these captures, in a format or in that of
    /// its name, compressed if the name ends in `.gz` or `.zst`. Where it gets its name when it is
    /// complete, signals end the reading of captures that go on.
    pub(super) fn create(
        out: OutputPath<'_>,
        format: Option<FormatArg>,
        inputs: &mut [NamedInput],
        stopwatch: &Stopwatch,
        interruption: &Interruption,
    ) -> Result<Target, Failure> {
        let path = out.path();
        let compression = OutputCompression::from_name(path).map_err(|error| {
            Failure::new(format_args!("{}: {error}", path.display()))
                .hint("an output name that ends in .gz or .zst")
        })?;
        let format = output_format(
            format.map(FileFormat::from).or(format_of_name(path)),
            inputs,
        )?;
        let (file, unfinished) = if out.is_standard() {
            if io::stdout().is_terminal() {
                return Err(
                    Failure::new("standard output is a terminal: packets are not text")
                        .hint("write them to a file with -o, or into a pipe"),
                );
            }
            let file = sys::files::standard_output();
            (file.map_err(|error| failure(Some(path), &error))?, None)
        } else {
            let (file, unfinished) = Unfinished::create(path)?;
            if unfinished.is_written_aside() {
                interruption.arm();
            }
            (file, Some(unfinished))
        };
        Ok(Target {
            format,
            file: Compressor::new(
                BufWriter::with_capacity(64 << 10, Timed::new(file, stopwatch)),
                compression,
            ),
            unfinished,
        })
    }

    /// Writes what remains, and gives the file its name.
    pub(super) fn finish(self, path: Option<&Path>) -> Result<(), Failure> {
        let finished = self.file.finish();
        finished.map_err(|error| failure(path, &error))?;
        self.unfinished.map_or(Ok(()), Unfinished::finish)
    }

    /// Writer for the library.
    pub(super) fn output(&mut self) -> Output<'_> {
        Output {
            format: self.format,
            file: &mut self.file,
        }
    }
}

/// The format of the output for these captures.
fn output_format(format: Option<FileFormat>, inputs: &mut [NamedInput]) -> Result<Format, Failure> {
    let mut captures: Vec<_> = inputs.iter_mut().map(|named| &mut named.input).collect();
    FileFormat::for_inputs(format, &mut captures).map_err(|error| match error {
        OutputFormatError::Input { index, error } => unreadable(&inputs[index].name, &error),
        OutputFormatError::LinkTypes(mismatch) => other_link_type(mismatch),
    })
}

/// Error of packets with several link types for one pcap file.
pub(super) fn other_link_type(mismatch: OtherLinkType) -> Failure {
    Failure::new(mismatch).hint("--capture-format pcapng, or an output name that ends in .pcapng")
}

/// True for standard output.
pub(super) fn is_standard(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

/// Error of an output that cannot be written.
pub(super) fn failure(path: Option<&Path>, error: &io::Error) -> Failure {
    match path {
        Some(path) if !is_standard(Some(path)) => Failure::of_file(path, error),
        _ => Failure::new(format_args!("standard output: {error}")),
    }
}
