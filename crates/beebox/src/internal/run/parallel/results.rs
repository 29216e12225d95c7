//! Results of the runs on a segment, and their merging in the order of the packets.

use ::kernel::maps::RunGuard;
use spec::programs::ProgramType;

use crate::internal::run::summary::{Counter, Stopwatch};
use crate::internal::run::{
    CaptureSummary, PacketRun, PrintedText, Redirect, RunCaptureError, RunRecord, RunnableProgram,
};

/// The runs on the packets of a segment, up to one that did not end with a value.
#[derive(Default)]
pub(super) struct Results {
    runs: Vec<Run>,
    /// Outputs of some of them beside a value.
    outputs: Vec<Output>,
    time: Stopwatch,
    /// Reason of the end; the merger numbers the packet.
    stop: Option<RunCaptureError>,
}

/// The run on a packet.
struct Run {
    retval: u32,
    /// Length of the packet in bytes.
    len: u32,
}

/// Output of a run beside its value.
struct Output {
    /// Place of the packet in the segment.
    place: usize,
    redirect: Option<Redirect>,
    printed: PrintedText,
    records: Vec<RunRecord>,
}

impl Results {
    /// None yet, with room for those on so many packets, which a worker times by this
    /// stopwatch.
    pub(super) fn new(packets: usize, time: Stopwatch) -> Results {
        Results {
            runs: Vec::with_capacity(packets),
            time,
            ..Results::default()
        }
    }

    /// The stopwatch for the worker's next segment.
    pub(super) fn next_time(&self) -> Stopwatch {
        self.time.continued()
    }

    /// Ends the results of the segment.
    pub(super) fn stop(&mut self, stop: RunCaptureError) {
        self.stop = Some(stop);
    }

    /// True if no more packets are to be run.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Runs the program on the next packet of the segment, captured at a time.
    #[inline]
    pub(super) fn run(
        &mut self,
        program: &mut RunnableProgram<'_>,
        frame: &[u8],
        time: u64,
        guard: &mut RunGuard,
    ) {
        let retval = match self.time.run(|| program.run_captured(frame, time, guard)) {
            Ok(retval) => retval,
            Err(error) => {
                return self.stop(RunCaptureError::Run { packet: 0, error });
            }
        };
        let place = self.runs.len();
        self.runs.push(Run {
            retval,
            len: frame.len() as u32,
        });
        let redirect = program.captured();
        let redirect = redirect.and_then(|input| input.redirect(retval));
        let records = program.records();
        let printed = &mut program.services.printed;
        if redirect.is_some() || !printed.is_empty() || !records.is_empty() {
            self.outputs.push(Output {
                place,
                redirect,
                printed: std::mem::take(printed),
                records,
            });
        }
    }
}

/// Merges the results of segments.
pub(super) struct Merger<'m> {
    counter: Counter,
    time: Stopwatch,
    /// Packets of the segments before.
    packets: u64,
    observe: &'m mut dyn FnMut(PacketRun<'_>),
}

impl<'m> Merger<'m> {
    pub(super) fn new(kind: ProgramType, observe: &'m mut dyn FnMut(PacketRun<'_>)) -> Merger<'m> {
        Merger {
            counter: Counter::new(kind),
            time: Stopwatch::default(),
            packets: 0,
            observe,
        }
    }

    /// Counts the runs on the next segment and shows them to the caller.
    pub(super) fn add(&mut self, results: Results) -> Result<(), RunCaptureError> {
        let nothing = PrintedText::default();
        self.time.add(results.time);
        let mut outputs = results.outputs.iter().peekable();
        for (place, run) in results.runs.iter().enumerate() {
            let own = outputs.next_if(|output| output.place == place);
            let redirect = own.and_then(|output| output.redirect);
            let (retval, bytes) = (run.retval, run.len as usize);
            self.packets += 1;
            (self.observe)(PacketRun {
                packet: self.packets,
                bytes,
                retval,
                verdict: self.counter.count(retval, bytes, redirect),
                redirect,
                printk: own.map_or(&nothing, |output| &output.printed),
                records: own.map_or(&[], |output| &output.records),
                executed: None,
            });
        }
        results
            .stop
            .map_or(Ok(()), |stop| Err(stop.after(self.packets)))
    }

    /// The counts of all runs.
    pub(super) fn finish(self) -> CaptureSummary {
        self.counter.finish(&self.time)
    }
}
