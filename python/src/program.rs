//! Handles of programs, and their runs.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;

use beebox::{RunClock, TestRun};
use pyo3::prelude::*;

use crate::batch::{self, Batch};
use crate::bytes::{Payload, bytes_of};
use crate::capture::{self, CaptureArgs, CaptureRun};
use crate::errors::{Fault, raised};
use crate::instance::{Instance, Shared};
use crate::model::Model;
use crate::packets::Packets;
use crate::result::TestRunResult;

/// A program of an instance. Any number of threads may run it at the same time.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Program {
    pub(crate) program: beebox::Program,
    pub(crate) shared: Arc<Shared>,
}

impl Program {
    pub(crate) fn new(program: beebox::Program, shared: Arc<Shared>) -> Program {
        Program { program, shared }
    }
}

#[pymethods]
impl Program {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.program.name()
    }

    /// Its type, such as `"xdp"`.
    #[getter]
    fn program_type(&self) -> &'static str {
        self.program.kind().name()
    }

    /// The engine that runs it: native, interp or checked.
    #[getter]
    fn engine(&self) -> &'static str {
        self.program.engine().name()
    }

    /// Why the engine that was asked for does not run it, if another one does for that reason.
    #[getter]
    fn fallback_reason(&self) -> Option<String> {
        self.program.fallback_reason().map(|why| why.to_string())
    }

    /// The instance that it belongs to.
    #[getter]
    fn instance(&self) -> Instance {
        Instance(self.shared.clone())
    }

    /// Runs it as BPF_PROG_TEST_RUN does, with the fields of `bpf_attr.test`.
    ///
    /// `data_in` is a packet: bytes, a buffer, or what `bytes(…)` takes, such as a packet of scapy;
    /// `ctx_in` the bytes of a context. `clock` is None (0 for a packet without a time), `"real"`, or
    /// a fixed time in nanoseconds. `model` has the process and results of functions, for helpers that fail on
    /// purpose.
    ///
    /// Raises RunError for packets, contexts and options that Linux's test run does not take,
    /// LimitError and TrapError for runs that end without a value, UnsupportedError for options that
    /// only Linux has.
    #[pyo3(signature = (data_in = None, ctx_in = None, *, repeat = 1, flags = 0, cpu = 0,
        batch_size = 0, data_size_out = None, ctx_size_out = None, clock = None, model = None))]
    #[expect(clippy::too_many_arguments, reason = "the fields of bpf_attr.test")]
    fn test_run(
        &self,
        py: Python<'_>,
        data_in: Option<&Bound<'_, PyAny>>,
        ctx_in: Option<&Bound<'_, PyAny>>,
        repeat: u32,
        flags: u32,
        cpu: u32,
        batch_size: u32,
        data_size_out: Option<usize>,
        ctx_size_out: Option<usize>,
        clock: Option<&Bound<'_, PyAny>>,
        model: Option<&Bound<'_, Model>>,
    ) -> PyResult<TestRunResult> {
        let data = data_in.map(bytes_of).transpose()?;
        let ctx = ctx_in.map(bytes_of).transpose()?;
        let mut run = TestRun::default()
            .data_in(data.as_ref().map_or(&[], Payload::as_slice))
            .ctx_in(ctx.as_ref().map_or(&[], Payload::as_slice))
            .repeat(repeat)
            .flags(flags)
            .cpu(cpu)
            .batch_size(batch_size)
            .clock(read_clock(clock)?);
        run.data_size_out = data_size_out;
        run.ctx_size_out = ctx_size_out;
        let model = model.map(Bound::get);
        let result = py.detach(|| match model {
            None => self.program.test_run(&run),
            Some(model) => self.program.test_run_in(&mut model.lock(), &run),
        });
        let result = result.map_err(raised)?;
        Ok(TestRunResult {
            result,
            program: self.program.clone(),
            shared: self.shared.clone(),
            data_in: data.map(|data| data.object(py)),
        })
    }

    /// Runs it on many packets in memory that it keeps, the fastest loop; packets of any length.
    ///
    /// `packets` is an iterable of bytes, a two-dimensional array of bytes with a packet in each row,
    /// or one buffer with `offsets`: where packets begin, and the end of the last one (as Arrow has
    /// them). `threads` runs equal parts at the same time, on the CPUs from `cpu` on.
    /// `packets_out=True` keeps the packets as the runs left them. Records stay in their maps. Signals
    /// are handled ten times a second: Ctrl-C ends the runs.
    ///
    /// Raises RunError if programs of the type get no packets, LimitError and TrapError with the
    /// packet for the first run that ends without a value.
    #[pyo3(signature = (packets, *, offsets = None, cpu = 0, threads = 1,
        packets_out = false))]
    fn run_batch(
        &self,
        packets: &Bound<'_, PyAny>,
        offsets: Option<&Bound<'_, PyAny>>,
        cpu: u32,
        threads: u32,
        packets_out: bool,
    ) -> PyResult<Batch> {
        let threads = NonZero::new(threads)
            .ok_or_else(|| Fault::new("input", "no threads: one is needed at least"))?;
        let run =
            |packets: &[&[u8]]| batch::run(&self.program, packets, (cpu, threads), packets_out);
        let py = packets.py();
        let ran = Packets::read(packets, offsets)?.with(|packets| py.detach(|| run(packets)));
        ran?
    }

    /// Runs it on each packet of a capture (pcap or pcapng, compressed or not), at the packet's time.
    ///
    /// Packets that go on are written to `output` as it left them, a file that is complete or absent.
    /// `jobs` threads run at the same time, as many as the instance has CPUs at most.
    /// `retvals=True` keeps the return values; `each` is called with a `PacketSeen` after each run,
    /// in the order of packets, with the records that the run wrote if there is one job.
    ///
    /// Raises FileError and CaptureError for captures that cannot be read, and the errors of
    /// `run_batch`.
    #[pyo3(signature = (path, *, output = None, jobs = 1, retvals = false, each = None))]
    fn run_capture(
        &self,
        py: Python<'_>,
        path: PathBuf,
        output: Option<PathBuf>,
        jobs: u32,
        retvals: bool,
        each: Option<Py<PyAny>>,
    ) -> PyResult<CaptureRun> {
        let args = CaptureArgs {
            path,
            output,
            jobs,
            retvals,
            each,
        };
        capture::run(py, &self.program, &self.shared.types, &args)
    }

    fn __repr__(&self) -> String {
        let (name, kind) = (self.program.name(), self.program.kind().name());
        format!("<Program {name} ({kind})>")
    }
}

/// The clock of the time helpers.
pub(crate) fn read_clock(clock: Option<&Bound<'_, PyAny>>) -> PyResult<RunClock> {
    match clock {
        None => Ok(RunClock::Capture),
        Some(clock) => match clock.extract::<u64>() {
            Ok(nanoseconds) => Ok(RunClock::Fixed(nanoseconds)),
            Err(_) if clock.extract::<&str>().is_ok_and(|word| word == "real") => {
                Ok(RunClock::Real)
            }
            Err(_) => {
                let what = "clock: None, \"real\" or nanoseconds from 0 on fit";
                Err(Fault::of_type(format!("{what}, got {}", clock.repr()?)).into())
            }
        },
    }
}
