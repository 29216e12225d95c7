//! Packets of a stream, which the calling thread reads and hands to workers.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};

use ::kernel::maps::RunGuard;
use capture::Event;

use super::results::{Merger, Results, frame_of};
use super::{WAITING, Work, segment_end};
use crate::captures::Input;
use crate::run::summary::Stopwatch;
use crate::run::{CaptureStop, RunnableProgram};

/// The packets of a segment.
#[derive(Default)]
struct Batch {
    packets: Vec<Copied>,
    bytes: Vec<u8>,
    /// Why no packet follows.
    stop: Option<CaptureStop>,
}

/// A packet of a batch.
struct Copied {
    time: u64,
    /// End of its bytes in those of the batch.
    end: usize,
}

/// A worker as the calling thread sees it.
struct Worker {
    batches: SyncSender<Batch>,
    results: Receiver<Results>,
}

/// Runs the packets of a capture, and merges the results.
pub(super) fn run(
    mut input: Input,
    jobs: u32,
    mut start: impl FnMut(Box<dyn Work>, u32) -> Receiver<Results>,
    merger: &mut Merger<'_>,
) -> Result<(), CaptureStop> {
    let workers = (0..jobs).map(|cpu| {
        let (batches, handed) = mpsc::sync_channel(WAITING);
        let results = start(Box::new(Batches(handed)), cpu);
        Worker { batches, results }
    });
    let workers: Vec<_> = workers.collect();
    let mut waiting: VecDeque<&Worker> = VecDeque::new();
    let mut next = workers.iter().cycle();
    let mut number = 0;
    let mut is_last = false;
    while !is_last {
        let mut batch = Batch::default();
        is_last = batch.read(&mut input, segment_end(number));
        number += 1;
        if waiting.len() == WAITING * workers.len() {
            take(&mut waiting, merger)?;
        }
        if let Some(worker) = next.next() {
            // A worker that ended early has dropped its results too; taking them says so.
            let _ = worker.batches.send(batch);
            waiting.push_back(worker);
        }
    }
    while !waiting.is_empty() {
        take(&mut waiting, merger)?;
    }
    Ok(())
}

/// Merges the results of the batch that waits longest.
fn take(waiting: &mut VecDeque<&Worker>, merger: &mut Merger<'_>) -> Result<(), CaptureStop> {
    let worker = waiting.pop_front();
    // Without results the worker panicked, and the end of the scope passes that on.
    let results = worker.and_then(|worker| worker.results.recv().ok());
    results.map_or(Ok(()), |results| merger.add(results))
}

impl Batch {
    /// Adds the packets whose records begin before `end`; true if no others follow.
    fn read(&mut self, input: &mut Input, end: u64) -> bool {
        while input.offset() < end {
            let added = match input.next_event() {
                Ok(None) => return true,
                Ok(Some(Event::Block(_))) => Ok(()),
                Ok(Some(Event::Packet(record))) => {
                    let frame = frame_of(&record);
                    frame.map(|(frame, time)| self.push(frame, time))
                }
                Err(error) => Err(CaptureStop::Capture(error)),
            };
            if let Err(stop) = added {
                self.stop = Some(stop);
                return true;
            }
        }
        false
    }

    fn push(&mut self, frame: &[u8], time: u64) {
        self.bytes.extend_from_slice(frame);
        self.packets.push(Copied {
            time,
            end: self.bytes.len(),
        });
    }

    /// Runs a program on its packets.
    fn run(self, program: &mut RunnableProgram<'_>, time: Stopwatch) -> Results {
        let mut results = Results::new(time);
        let mut guard = RunGuard::new();
        let mut start = 0;
        for packet in &self.packets {
            let frame = &self.bytes[start..packet.end];
            start = packet.end;
            results.run(program, frame, packet.time, &mut guard);
            if results.is_stopped() {
                return results;
            }
        }
        if let Some(stop) = self.stop {
            results.stop(stop);
        }
        results
    }
}

/// A worker of the batches that it is handed.
struct Batches(Receiver<Batch>);

impl Work for Batches {
    fn run(self: Box<Self>, program: &mut RunnableProgram<'_>, done: &SyncSender<Results>) {
        let mut time = Stopwatch::default();
        for batch in self.0 {
            let results = batch.run(program, time);
            time = results.next_time();
            if done.send(results).is_err() {
                return;
            }
        }
    }
}
