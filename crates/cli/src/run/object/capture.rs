//! Runs on each packet of a capture, and the capture that is written.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use beebox::captures::{Format, Input};
use beebox::run::{CaptureStop, CaptureSummary, LoadedObject, RunnableProgram, Written};

use super::output::{Ran, Summary};
use super::progress::Progress;
use crate::answer::Failure;
use crate::capture_file::{self, unreadable};
use crate::output_path::OutputPath;

/// Runs a program on each packet of a capture.
pub(super) fn run(
    path: &Path,
    out: Option<OutputPath<'_>>,
    program: &mut RunnableProgram<'_>,
) -> Result<Ran, Failure> {
    let mut input = capture_file::open(path, true)?;
    let mut file = match out {
        None => None,
        Some(out) => Some((
            output_format(&mut input, path, out.path())?,
            OutputFile::create(out)?,
        )),
    };
    let written = file.as_mut().map(|(format, file)| Written {
        format: *format,
        file: &mut file.writer,
    });
    let mut summary = Summary::default();
    let mut progress = Progress::start();
    let stopped = program.run_capture(input, written, &mut |run, _| {
        summary.add(run);
        progress.show(run.packet);
    });
    drop(progress);
    if let (Some((_, file)), Some(out), Ok(_)) = (file, out, &stopped) {
        file.finish()?;
        summary.written_to = Some(out.path().display().to_string());
    }
    ended(path, out.map(OutputPath::path), stopped, summary)
}

/// Options of running a capture in threads.
#[derive(Clone, Copy)]
pub(super) struct Threads {
    pub(super) jobs: u32,
    /// True if they may share maps that are not per CPU.
    pub(super) share_maps: bool,
}

/// Runs a program on each packet of a capture, in threads.
pub(super) fn run_parallel(
    path: &Path,
    loaded: &mut LoadedObject,
    program: &str,
    threads: Threads,
    set_up: &(dyn Fn(&mut RunnableProgram<'_>) + Sync),
) -> Result<Ran, Failure> {
    let shared = loaded.shared_maps();
    if !shared.is_empty() && !threads.share_maps {
        let shared = shared.join(", ");
        return Err(Failure::new(format_args!(
            "--jobs {}: the threads would share these maps, which are not per CPU: {shared}",
            threads.jobs
        ))
        .hint("--share-maps, if the order of packets does not matter to the program"));
    }
    let input = capture_file::open(path, true)?;
    let mut summary = Summary::default();
    let mut progress = Progress::start();
    let stopped = loaded.run_capture_parallel(program, input, threads.jobs, set_up, &mut |run| {
        summary.add(run);
        progress.show(run.packet);
    });
    drop(progress);
    let stopped =
        stopped.ok_or_else(|| Failure::new(format_args!("program {program} is not loaded")))?;
    ended(path, None, stopped, summary)
}

/// The results of a capture, or why there are none.
fn ended(
    path: &Path,
    out: Option<&Path>,
    stopped: Result<CaptureSummary, CaptureStop>,
    summary: Summary,
) -> Result<Ran, Failure> {
    match stopped {
        Ok(counts) => Ok(Ran::Capture(summary.with_counts(counts))),
        Err(CaptureStop::Run { packet, error }) if error.is_stop() => Ok(Ran::Stopped {
            packet: Some(packet),
            error,
        }),
        Err(stop) => Err(capture_file::stopped(path, out, stop)),
    }
}

/// The format of a name that ends in `.pcap` or `.pcapng`, else that of the input.
pub(crate) fn output_format(input: &mut Input, path: &Path, out: &Path) -> Result<Format, Failure> {
    let suffix = out.extension().and_then(|suffix| suffix.to_str());
    match (suffix, input.format()) {
        (Some("pcapng"), _) => Ok(Format::Pcapng),
        (Some("pcap"), Format::Pcapng) => {
            let first = input.first_interface();
            let first = first.map_err(|error| unreadable(path, error))?;
            Format::pcap_of(first.as_slice()).map_err(Failure::new)
        }
        (_, format) => Ok(format),
    }
}

/// The file that packets are written to. It gets its name when it is complete: until then
/// it has another, and an unfinished one is removed.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// Its name until it is complete; `None` for what is no regular file.
    unfinished: Option<PathBuf>,
    pub(crate) writer: BufWriter<File>,
}

impl OutputFile {
    /// Creates the output.
    pub(crate) fn create(out: OutputPath<'_>) -> Result<OutputFile, Failure> {
        if out.is_standard() {
            let failure = Failure::new("-w -: standard output holds the results");
            return Err(failure.hint("the name of a file"));
        }
        let out = out.path();
        let is_special = fs::metadata(out).is_ok_and(|data| !data.is_file());
        let unfinished = out.file_name().filter(|_| !is_special).map(|name| {
            let mut name = name.to_owned();
            name.push(format!(".{}.part", std::process::id()));
            out.with_file_name(name)
        });
        let file = File::create(unfinished.as_deref().unwrap_or(out));
        let file = file.map_err(|error| Failure::of_file(out, &error))?;
        Ok(OutputFile {
            path: out.to_owned(),
            unfinished,
            writer: BufWriter::new(file),
        })
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.writer.flush();
        let finished = flushed.and_then(|()| match &self.unfinished {
            Some(unfinished) => fs::rename(unfinished, &self.path),
            None => Ok(()),
        });
        finished.map_err(|error| Failure::of_file(&self.path, &error))?;
        self.unfinished = None;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // It may be gone already; there is nothing else to do about it.
            let _ = fs::remove_file(unfinished);
        }
    }
}
