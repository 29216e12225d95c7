//! Packets of a stream, which the calling thread reads and hands to workers.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};

use capture::Event;

use super::batch::Batch;
use super::results::{Merger, Results};
use super::{WAITING, Work, segment_end};
use crate::internal::captures::Input;
use crate::internal::run::summary::Stopwatch;
use crate::internal::run::{RunCaptureError, RunnableProgram};

/// The packets of a segment with their bytes.
#[derive(Default)]
struct Copied {
    batch: Batch,
    bytes: Vec<u8>,
}

/// A worker as the calling thread sees it.
struct Worker {
    batches: SyncSender<Copied>,
    results: Receiver<Results>,
}

/// Runs the packets of a capture, and merges the results.
pub(super) fn run(
    mut input: Input,
    jobs: u32,
    mut start: impl FnMut(Box<dyn Work>, u32) -> Receiver<Results>,
    merger: &mut Merger<'_>,
) -> Result<(), RunCaptureError> {
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
        let mut copied = Copied::default();
        is_last = copied.read(&mut input, segment_end(number));
        number += 1;
        if waiting.len() == WAITING * workers.len() {
            take(&mut waiting, merger)?;
        }
        if let Some(worker) = next.next() {
            // A worker that ended early has dropped its results too; taking them says so.
            let _ = worker.batches.send(copied);
            waiting.push_back(worker);
        }
    }
    while !waiting.is_empty() {
        take(&mut waiting, merger)?;
    }
    Ok(())
}

/// Merges the results of the batch that waits longest.
fn take(waiting: &mut VecDeque<&Worker>, merger: &mut Merger<'_>) -> Result<(), RunCaptureError> {
    let worker = waiting.pop_front();
    // Without results the worker panicked, and the end of the scope passes that on.
    let results = worker.and_then(|worker| worker.results.recv().ok());
    results.map_or(Ok(()), |results| merger.add(results))
}

impl Copied {
    /// Adds the packets whose records begin before `end`; true if no others follow.
    fn read(&mut self, input: &mut Input, end: u64) -> bool {
        while input.offset() < end {
            let added = match input.next_event() {
                Ok(None) => return true,
                Ok(Some(Event::Block(_))) => Ok(()),
                Ok(Some(Event::Packet(record))) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(record.data());
                    self.batch.add(start..self.bytes.len(), &record)
                }
                Err(error) => Err(RunCaptureError::Capture(error)),
            };
            if let Err(stop) = added {
                self.batch.stop(stop);
                return true;
            }
        }
        false
    }
}

/// A worker of the batches that it is handed.
struct Batches(Receiver<Copied>);

impl Work for Batches {
    fn run(self: Box<Self>, program: &mut RunnableProgram<'_>, done: &SyncSender<Results>) {
        let mut time = Stopwatch::default();
        for mut copied in self.0 {
            let results = copied.batch.run(&copied.bytes, program, time);
            time = results.next_time();
            if done.send(results).is_err() {
                return;
            }
        }
    }
}
