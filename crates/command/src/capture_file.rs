//! Files of captures that the command line names.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;

use beebox::captures::Input;
use beebox::internal::captures::CaptureError;
use beebox::internal::captures::{Fault, FileFormat, Format, OutputFormatError, Problem};
use beebox::internal::run::RunCaptureError;

use crate::answer::Failure;
use crate::input::name;

/// Opens a file; `-` is standard input.
pub fn open_file(path: &Path) -> Result<File, Failure> {
    let file = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            return Err(Failure::new("standard input is a terminal, not a capture"));
        }
        sys::files::standard_input()
    } else {
        File::open(path)
    };
    file.map_err(|error| Failure::of_file(path, &error))
}

/// Opens the capture that programs run on; `-` is standard input. `has_packet` is true for
/// commands with the option --packet.
pub fn open(path: &Path, has_packet: bool) -> Result<Input, Failure> {
    Input::try_open(open_file(path)?).map_err(|error| unopened(path, error, has_packet))
}

/// The failure for a capture that programs run on and that cannot be opened. `has_packet` is true
/// for commands with the option --packet.
pub fn unopened(path: &Path, error: CaptureError, has_packet: bool) -> Failure {
    match &error {
        CaptureError::Fault(Fault {
            problem: Problem::UnknownFormat { .. },
            ..
        }) if has_packet => unreadable(path, error)
            .hint("captures are pcap or pcapng files; --packet takes the bytes of one packet"),
        _ => unreadable(path, error),
    }
}

/// Why runs on a capture stopped, which may be for their output.
pub fn stopped(path: &Path, output: Option<&Path>, stop: RunCaptureError) -> Failure {
    match (stop, output) {
        (RunCaptureError::Capture(error), _) => unreadable(path, error),
        (RunCaptureError::Output(error), Some(output)) => Failure::of_file(output, &error),
        (stop, _) => Failure::new(stop).within(name(path)),
    }
}

/// The failure for a capture that cannot be read.
pub fn unreadable(path: &Path, error: CaptureError) -> Failure {
    let name = name(path);
    match &error {
        CaptureError::Io { source, .. } => Failure::of_file(path, source),
        CaptureError::Fault(Fault {
            problem: Problem::UnknownFormat { .. },
            ..
        }) => Failure::new(format_args!("{name}: {error}"))
            .hint("captures are pcap or pcapng files, plain or in .gz, .zst, .xz, .lz4 or .bz2"),
        CaptureError::Fault(_) => Failure::new(format_args!("{name}: {error}")),
    }
}

/// The format of a name that ends in `.pcap` or `.pcapng`, else that of the input.
pub fn output_format(input: &mut Input, path: &Path, out: &Path) -> Result<Format, Failure> {
    let format = FileFormat::for_inputs(FileFormat::from_name(out), &mut [input]);
    format.map_err(|error| match error {
        OutputFormatError::Input { error, .. } => unreadable(path, error),
        OutputFormatError::LinkTypes(error) => Failure::new(error),
    })
}
