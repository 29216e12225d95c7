//! Runs on captures.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use beebox::captures::Input;
use beebox::internal::captures::CaptureError;
use beebox::internal::captures::{FileFormat, OutputFormatError};
use beebox::internal::run::redirect_text;
use beebox::{
    CaptureSummary, Map, PacketOutput, PacketRun, Program, ProgramType, RunRecord, Verdict,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::array_of;
use crate::errors::Fault;
use crate::records::Record;
use crate::types::Types;

/// How a program runs on a capture.
pub(crate) struct CaptureArgs {
    pub(crate) path: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) jobs: u32,
    pub(crate) retvals: bool,
    pub(crate) each: Option<Py<PyAny>>,
}

/// Runs a program on each packet of a capture.
pub(crate) fn run(
    py: Python<'_>,
    program: &Program,
    types: &Types,
    args: &CaptureArgs,
) -> PyResult<CaptureRun> {
    if args.jobs > 1 && args.output.is_some() {
        let what = "an output is written in one thread: jobs=1";
        return Err(Fault::new("input", what).into());
    }
    if let Some(output) = args
        .output
        .as_ref()
        .filter(|output| is_same(output, &args.path))
    {
        let what = format_args!("{}: the output is also the input", output.display());
        return Err(Fault::new("input", what).into());
    }
    // Each run is told with the records that it wrote; those of threads stay in their maps.
    let buffers = program.instance().maps();
    let buffers = buffers.filter(|map| map.kind().has_records() && args.jobs <= 1);
    let buffers: Vec<Map> = buffers.filter(|_| args.each.is_some()).collect();
    let mut retvals = Vec::new();
    let mut failed = None;
    let mut observe = |run: PacketRun<'_>| {
        if args.retvals {
            retvals.push(run.retval);
        }
        let Some(each) = args.each.as_ref().filter(|_| failed.is_none()) else {
            return;
        };
        let records = buffers.iter().flat_map(|map| map.take_records(0));
        let records: Vec<RunRecord> = records.collect();
        let told = Python::attach(|py| tell(py, each, (program.kind(), types), run, &records));
        failed = told.err();
    };
    let summary = py.detach(|| {
        let input = open(&args.path)?;
        let ran = match &args.output {
            None if args.jobs > 1 => program.run_capture_parallel(input, args.jobs, &mut observe),
            None => program.run_capture(input, None, &mut |run, _| observe(run)),
            Some(out) => return run_and_write(program, (input, &args.path), out, &mut observe),
        };
        ran.map_err(|error| Fault::from(error).within(args.path.display()))
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(CaptureRun {
            summary: summary?,
            retvals: args.retvals.then_some(retvals),
        }),
    }
}

/// True for two paths of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().ok();
    place(one).is_some_and(|found| Some(found) == place(other))
}

/// Opens a capture.
pub(crate) fn open(path: &Path) -> Result<Input, Fault> {
    Input::try_open_path(path).map_err(|error| unreadable(path, &error))
}

/// The fault of a capture that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &CaptureError) -> Fault {
    match error {
        // It names the file.
        CaptureError::Io { source, .. } => Fault::new("file", source),
        CaptureError::Fault(_) => {
            Fault::new("capture", format_args!("{}: {error}", path.display()))
        }
    }
}

fn run_and_write(
    program: &Program,
    (mut input, path): (Input, &Path),
    out: &Path,
    observe: &mut dyn FnMut(PacketRun<'_>),
) -> Result<CaptureSummary, Fault> {
    let format = FileFormat::for_inputs(FileFormat::from_name(out), &mut [&mut input]);
    let format = format.map_err(|error| match error {
        OutputFormatError::Input { error, .. } => unreadable(path, &error),
        OutputFormatError::LinkTypes(error) => Fault::new("capture", error),
    })?;
    whole_file(out, |file| {
        let output = PacketOutput { format, file };
        let ran = program.run_capture(input, Some(output), &mut |run, _| observe(run));
        ran.map_err(|error| Fault::from(error).within(path.display()))
    })
}

/// Writes a file that is complete or absent: under another name until it is.
pub(crate) fn whole_file<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let failed = |error| Fault::new("file", format_args!("{}: {error}", path.display()));
    let written = File::create(&part).map_err(failed);
    let written = written.and_then(|mut file| write(&mut file));
    let written = written.and_then(|made| fs::rename(&part, path).map_err(failed).map(|()| made));
    if written.is_err() {
        // What is there is part of a capture.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Calls a function of the caller with a run.
fn tell(
    py: Python<'_>,
    each: &Py<PyAny>,
    (kind, types): (ProgramType, &Types),
    run: PacketRun<'_>,
    records: &[RunRecord],
) -> PyResult<()> {
    let record = |record: &RunRecord| Py::new(py, Record::new(py, record, None, types)?);
    let verdict = Verdict::new(kind, run.retval);
    let seen = PacketSeen {
        packet: run.packet,
        length: run.bytes,
        retval: run.retval,
        verdict: verdict.name().into_owned(),
        redirect: run.redirect.map(redirect_text),
        printk: run.printk.texts.clone(),
        records: records.iter().map(record).collect::<PyResult<_>>()?,
    };
    each.call1(py, (seen,))?;
    py.check_signals()
}

/// The run on one packet of a capture.
#[pyclass(frozen, get_all, module = "beebox")]
pub(crate) struct PacketSeen {
    /// Number of the packet, from 1.
    packet: u64,
    /// Its captured bytes.
    length: usize,
    /// The low 32 bits of `r0`.
    retval: u32,
    /// The name of the verdict.
    verdict: String,
    /// Where it was redirected, in words.
    redirect: Option<String>,
    /// Texts that the run printed.
    printk: Vec<String>,
    /// Records that it wrote.
    records: Vec<Py<Record>>,
}

/// The result of `Program.run_capture`.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct CaptureRun {
    summary: CaptureSummary,
    retvals: Option<Vec<u32>>,
}

#[pymethods]
impl CaptureRun {
    /// Number of packets.
    #[getter]
    fn packets(&self) -> u64 {
        self.summary.packets
    }

    /// Number of packets that go on.
    #[getter]
    fn kept(&self) -> u64 {
        self.summary.kept
    }

    /// Numbers of packets by the name of their verdict, in the order of their first packet.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for count in &self.summary.verdicts {
            counts.set_item(&count.name, count.packets)?;
        }
        Ok(counts)
    }

    /// Captured bytes of the packets by the name of their verdict.
    #[getter]
    fn bytes(&self) -> BTreeMap<String, u64> {
        let counts = self.summary.verdicts.iter();
        counts
            .map(|count| (count.name.clone(), count.bytes))
            .collect()
    }

    /// Numbers of packets that were redirected, by where.
    #[getter]
    fn redirects(&self) -> BTreeMap<String, u64> {
        let redirects = self.summary.redirects.iter();
        redirects
            .map(|(redirect, count)| (redirect_text(*redirect), *count))
            .collect()
    }

    /// Mean time of a run in nanoseconds; 0 if none was timed.
    #[getter]
    fn mean_duration(&self) -> u64 {
        self.summary.mean_duration.as_nanos() as u64
    }

    /// The return values in the order of packets, if `retvals=True`; else None.
    #[getter]
    fn retvals<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let retvals = self.retvals.as_ref();
        retvals.map(|retvals| array_of(py, retvals)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let counts = self.counts(py)?;
        Ok(format!(
            "<CaptureRun of {}: {}>",
            self.summary.packets,
            counts.repr()?
        ))
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "capture_html")
    }
}
