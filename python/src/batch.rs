//! Runs on many packets.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use beebox::internal::run::redirect_text;
use beebox::{Error, Program, ProgramType, Redirect, Verdict};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::Fault;

/// What the runs on the packets of a part gave.
#[derive(Default)]
struct Ran {
    retvals: Vec<u32>,
    redirects: BTreeMap<Redirect, u64>,
    packets: Vec<Vec<u8>>,
    /// The error of the packet behind those.
    stopped: Option<Error>,
}

/// Packets from one look at whether the runs go on to the next.
const UNCHECKED: usize = 4096;

/// Time between two looks at signals, for which the thread waits until it has the interpreter.
const SIGNALS: Duration = Duration::from_millis(100);

/// Runs a program on packets in so many threads, each a part on a CPU of its own. The caller has
/// left the interpreter to other threads.
///
/// # Errors
/// The exception of a signal, `KeyboardInterrupt` among them; the error of a run.
pub(crate) fn run(
    program: &Program,
    packets: &[&[u8]],
    (cpu, threads): (u32, NonZero<u32>),
    keeps_packets: bool,
) -> PyResult<Batch> {
    let all = cpu.saturating_add(threads.get());
    let cpus = program.instance().loaded().cpus();
    if all > cpus {
        let what = format!("CPUs {cpu} to {}: the instance has {cpus}", all - 1);
        return Err(Fault::new("input", format!("{what} (load(cpus=…))")).into());
    }
    let each = packets.len().div_ceil(threads.get() as usize).max(1);
    let parts = packets.chunks(each).zip(cpu..);
    let (mut signals, goes_on) = (Signals::new(), AtomicBool::new(true));
    let ran: Vec<Ran> = match threads.get() {
        1 => parts
            .map(|(part, cpu)| run_part(program, part, (cpu, keeps_packets), || signals.are_none()))
            .collect(),
        _ => thread::scope(|scope| {
            let (done, ended) = mpsc::channel::<()>();
            let goes_on = &goes_on;
            let work = |(part, cpu)| {
                let done = done.clone();
                scope.spawn(move || {
                    // Ends the wait below when the last one is dropped.
                    let _done = done;
                    run_part(program, part, (cpu, keeps_packets), || {
                        goes_on.load(Ordering::Relaxed)
                    })
                })
            };
            let threads: Vec<_> = parts.map(work).collect();
            drop(done);
            while ended.recv_timeout(SIGNALS) == Err(RecvTimeoutError::Timeout) {
                goes_on.store(signals.are_none(), Ordering::Relaxed);
            }
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|ran| ran.expect("runs do not panic")).collect()
        }),
    };
    if let Some(error) = signals.raised {
        return Err(error);
    }
    let mut batch = Batch::new(program.kind());
    for part in ran {
        match batch.retvals.is_empty() {
            true => batch.retvals = part.retvals,
            false => batch.retvals.extend(part.retvals),
        }
        batch.packets.extend(part.packets);
        for (redirect, count) in part.redirects {
            *batch.redirects.entry(redirect).or_default() += count;
        }
        if let Some(error) = part.stopped {
            let at = batch.retvals.len();
            return Err(Fault::from(error)
                .within(format_args!("packet {at}"))
                .into());
        }
    }
    batch.keeps_packets = keeps_packets;
    Ok(batch)
}

/// What Python's handlers of signals raise.
struct Signals {
    looked: Instant,
    raised: Option<PyErr>,
}

impl Signals {
    fn new() -> Signals {
        Signals {
            looked: Instant::now(),
            raised: None,
        }
    }

    /// Has Python handle the signals that came, from time to time; true if nothing was raised.
    fn are_none(&mut self) -> bool {
        if self.raised.is_none() && self.looked.elapsed() >= SIGNALS {
            self.raised = Python::attach(|py| py.check_signals()).err();
            self.looked = Instant::now();
        }
        self.raised.is_none()
    }
}

fn run_part(
    program: &Program,
    packets: &[&[u8]],
    (cpu, keeps_packets): (u32, bool),
    mut goes_on: impl FnMut() -> bool,
) -> Ran {
    let mut ran = Ran {
        retvals: Vec::with_capacity(packets.len()),
        ..Ran::default()
    };
    let mut runner = program.runner_on(cpu);
    for packets in packets.chunks(UNCHECKED) {
        let done = runner.run_each(packets, |result, runner| {
            ran.retvals.push(result.retval);
            if let Some(redirect) = result.redirect {
                *ran.redirects.entry(redirect).or_default() += 1;
            }
            if keeps_packets {
                ran.packets.push(runner.packet().into_owned());
            }
        });
        ran.stopped = done.err();
        if ran.stopped.is_some() || !goes_on() {
            break;
        }
    }
    ran
}

/// The results of `Program.run_batch`, in the order of the packets.
#[pyclass(frozen, sequence, module = "beebox")]
pub(crate) struct Batch {
    kind: ProgramType,
    retvals: Vec<u32>,
    redirects: BTreeMap<Redirect, u64>,
    packets: Vec<Vec<u8>>,
    keeps_packets: bool,
}

impl Batch {
    fn new(kind: ProgramType) -> Batch {
        Batch {
            kind,
            retvals: Vec::new(),
            redirects: BTreeMap::new(),
            packets: Vec::new(),
            keeps_packets: false,
        }
    }
}

#[pymethods]
impl Batch {
    /// The return values, as an `array.array` of type "I": `numpy.asarray` takes it in place.
    #[getter]
    fn retvals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, &self.retvals)
    }

    /// The names of the verdicts.
    #[getter]
    fn verdicts(&self, py: Python<'_>) -> Vec<String> {
        let name = |retval: &u32| Verdict::new(self.kind, *retval).name().into_owned();
        py.detach(|| self.retvals.iter().map(name).collect())
    }

    /// Numbers of packets by the name of their verdict.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_value = py.detach(|| {
            let mut by_value = BTreeMap::<u32, u64>::new();
            for retval in &self.retvals {
                *by_value.entry(*retval).or_default() += 1;
            }
            by_value
        });
        let counts = PyDict::new(py);
        for (retval, count) in by_value {
            let name = Verdict::new(self.kind, retval).name();
            let before: u64 = match counts.get_item(&*name)? {
                Some(before) => before.extract()?,
                None => 0,
            };
            counts.set_item(&*name, before + count)?;
        }
        Ok(counts)
    }

    /// Numbers of packets that were redirected, by where.
    #[getter]
    fn redirects(&self) -> BTreeMap<String, u64> {
        let redirects = self.redirects.iter();
        redirects
            .map(|(redirect, count)| (redirect_text(*redirect), *count))
            .collect()
    }

    /// The packets as the runs left them, if `packets_out=True`; else None.
    #[getter]
    fn packets_out<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        let packets = self.packets.iter();
        let packets = packets.map(|packet| PyBytes::new(py, packet)).collect();
        self.keeps_packets.then_some(packets)
    }

    fn __len__(&self) -> usize {
        self.retvals.len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let counts = self.counts(py)?;
        Ok(format!(
            "<Batch of {}: {}>",
            self.retvals.len(),
            counts.repr()?
        ))
    }

    fn _repr_html_(slf: Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        crate::html(slf.as_any(), "batch_html")
    }
}

/// Numbers as an `array.array`.
pub(crate) fn array_of<'py>(py: Python<'py>, numbers: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect();
    let array = py.import("array")?.getattr("array")?;
    array.call1(("I", PyBytes::new(py, &bytes)))
}
