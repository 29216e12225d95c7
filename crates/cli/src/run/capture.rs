//! Runs on each packet of a capture, and the capture that is written.

use std::path::Path;

use beebox::internal::captures::{Format, Input, Record};
use beebox::internal::run::{
    CaptureOptions, CaptureSummary, Choose, LoadedObject, PacketChoice, PacketOutput, PacketRows,
    RunCaptureError, RunEnd, RunOutputs, RunnableProgram, VerdictOutput, WrittenFiles,
};

use super::progress::Progress;
use crate::answer::Failure;
use crate::capture_file::{self, output_format};
use crate::output_file::OutputFile;
use crate::output_path::OutputPath;

/// Which packets of a capture a program runs on, and what is written of them.
pub(super) struct Options<'a> {
    pub(super) path: &'a Path,
    pub(super) out: Option<OutputPath<'a>>,
    /// Verdicts and files of their packets.
    pub(super) by_verdict: Vec<(String, OutputPath<'a>)>,
    pub(super) only: Option<PacketChoice>,
    pub(super) most: Option<u64>,
    /// True if packets that are written get comments.
    pub(super) comments: bool,
}

/// Runs a program on packets of a capture. Where the capture cannot be read to its end, the failure
/// stands beside the results of the packets before.
pub(super) fn run(
    options: Options<'_>,
    program: &mut RunnableProgram<'_>,
    outputs: &mut RunOutputs,
    mut rows: Option<&mut PacketRows>,
) -> Result<(RunEnd, Option<Failure>), Failure> {
    let Options { path, out, .. } = options;
    let chooses = options.only.is_some();
    let mut input = capture_file::open(path, true)?;
    let mut file = match out {
        None => None,
        Some(out) => Some((
            format_of(&mut input, path, out.path(), options.comments)?,
            OutputFile::create(out.of_packets()?)?,
        )),
    };
    let written = file.as_mut().map(|(format, file)| PacketOutput {
        format: *format,
        file: &mut file.writer,
    });
    let mut files = Vec::new();
    let mut verdict_files = Vec::new();
    for (verdict, path_out) in options.by_verdict {
        verdict_files.push((verdict.clone(), path_out.path().display().to_string()));
        let format = format_of(&mut input, path, path_out.path(), options.comments)?;
        files.push((verdict, format, OutputFile::create(path_out.of_packets()?)?));
    }
    let by_verdict = files
        .iter_mut()
        .map(|(verdict, format, file)| VerdictOutput {
            verdict: verdict.clone(),
            output: PacketOutput {
                format: *format,
                file: &mut file.writer,
            },
        });
    let mut only = options.only;
    let mut choose = only
        .as_mut()
        .map(|only| |packet, record: &Record<'_>| only.has(packet, record));
    let mut before = CaptureSummary::default();
    let capture = CaptureOptions {
        before: Some(&mut before),
        output: written,
        by_verdict: by_verdict.collect(),
        choose: choose.as_mut().map(|choose| choose as &mut Choose<'_>),
        most: options.most,
        comments: options.comments,
    };
    let mut progress = Progress::start();
    let stopped = program.run_capture_with(input, capture, &mut |run, record| {
        if let Some(rows) = &mut rows {
            rows.add(&run, record);
        }
        outputs.add(run);
        progress.show(run.packet);
    });
    drop(progress);
    if stopped.is_ok() {
        files
            .into_iter()
            .try_for_each(|(_, _, file)| file.finish())?;
    }
    let out = out.map(OutputPath::path);
    let mut written_to = None;
    if let (Some((_, file)), Some(out), Ok(_)) = (file, out, &stopped) {
        file.finish()?;
        written_to = Some(out.display().to_string());
    }
    let written = WrittenFiles {
        passing: written_to,
        by_verdict: verdict_files,
        chooses,
    };
    match stopped {
        Err(stop @ RunCaptureError::Capture(_)) if before.packets > 0 => {
            let end = RunEnd::Capture {
                counts: before,
                written: WrittenFiles {
                    chooses,
                    ..WrittenFiles::default()
                },
            };
            Ok((end, Some(capture_file::stopped(path, out, stop))))
        }
        stopped => Ok((ended(path, out, stopped, written)?, None)),
    }
}

/// The format of an output, which has comments if they are written.
fn format_of(
    input: &mut Input,
    path: &Path,
    out: &Path,
    has_comments: bool,
) -> Result<Format, Failure> {
    let format = output_format(input, path, out)?;
    match has_comments && format != Format::Pcapng {
        true => {
            let failure = Failure::new("a capture in pcap has no comments").within(out.display());
            Err(failure.hint("-o OUT.pcapng with --comments"))
        }
        false => Ok(format),
    }
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
    outputs: &mut RunOutputs,
) -> Result<RunEnd, Failure> {
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
    let mut progress = Progress::start();
    let stopped = loaded.run_capture_parallel(program, input, threads.jobs, set_up, &mut |run| {
        outputs.add(run);
        progress.show(run.packet);
    });
    drop(progress);
    let stopped =
        stopped.ok_or_else(|| Failure::new(format_args!("program {program} is not loaded")))?;
    ended(path, None, stopped, WrittenFiles::default())
}

/// The results of a capture, or why there are none.
fn ended(
    path: &Path,
    out: Option<&Path>,
    stopped: Result<CaptureSummary, RunCaptureError>,
    written: WrittenFiles,
) -> Result<RunEnd, Failure> {
    match stopped {
        Ok(counts) => Ok(RunEnd::Capture { counts, written }),
        Err(RunCaptureError::Run { packet, error }) if error.is_stop() => Ok(RunEnd::Stopped {
            packet: Some(packet),
            error,
        }),
        Err(stop) => Err(capture_file::stopped(path, out, stop)),
    }
}
