//! Workers that read the segments of a mapped capture themselves.
//!
//! Where a segment's first record begins, only the record before it tells. So each worker
//! finds the records of its segment, tells the worker of the next one where it begins, and
//! then runs the packets: finding records takes a small part of the time of running them, and
//! the workers do it one after the other. Before its turn, a worker loads its segment into
//! its cache, so that the way from record to record does not wait for memory.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use ::kernel::maps::RunGuard;
use capture::Event;

use super::results::{Merger, Results, frame_of};
use super::{Work, segment_end};
use crate::captures::{Input, Place};
use crate::run::summary::Stopwatch;
use crate::run::{CaptureStop, RunnableProgram};

/// A worker of the segments `number`, `number + jobs` and so on.
struct Segments {
    number: u64,
    jobs: u64,
    /// The capture from its first record on.
    capture: Place,
    /// Where its next segment begins; closed at the end of the capture.
    starts: Receiver<Place>,
    /// Where the next worker's begins.
    ends: Sender<Place>,
}

/// Runs the packets of a capture from a place on, and merges the results.
pub(super) fn run(
    capture: Place,
    jobs: u32,
    mut start: impl FnMut(Box<dyn Work>, u32) -> Receiver<Results>,
    merger: &mut Merger<'_>,
) -> Result<(), CaptureStop> {
    let channels = (0..jobs).map(|_| mpsc::channel());
    let (mut ends, starts): (Vec<_>, Vec<_>) = channels.unzip();
    // The first worker's receiver is at hand.
    let _ = ends[0].send(capture.clone());
    // Each tells the next one, and the last the first.
    ends.rotate_left(1);
    let mut workers = Vec::new();
    for (number, (starts, ends)) in (0..).zip(starts.into_iter().zip(ends)) {
        let work = Segments {
            number: number.into(),
            jobs: jobs.into(),
            capture: capture.clone(),
            starts,
            ends,
        };
        workers.push(start(Box::new(work), number));
    }
    for results in workers.iter().cycle() {
        // Without results the capture has ended, or the worker panicked, which the end of the
        // scope passes on.
        let Ok(results) = results.recv() else { break };
        merger.add(results)?;
    }
    Ok(())
}

impl Work for Segments {
    fn run(self: Box<Self>, program: &mut RunnableProgram<'_>, done: &SyncSender<Results>) {
        let mut number = self.number;
        let mut time = Stopwatch::default();
        loop {
            let end = segment_end(number);
            self.capture
                .load(number.checked_sub(1).map_or(0, segment_end), end);
            let Ok(place) = self.starts.recv() else {
                return;
            };
            let next = place.clone().after(end);
            let is_last = next.is_none();
            if let Some(next) = next {
                // The next worker ends early only if results are not taken.
                let _ = self.ends.send(next);
            }
            let mut results = Results::new(time);
            run_segment(program, place.input(), end, &mut results);
            time = results.next_time();
            if done.send(results).is_err() || is_last {
                return;
            }
            number += self.jobs;
        }
    }
}

/// Runs a program on the packets whose records begin before `end`.
fn run_segment(
    program: &mut RunnableProgram<'_>,
    mut input: Input,
    end: u64,
    results: &mut Results,
) {
    let mut guard = RunGuard::new();
    while input.offset() < end && !results.is_stopped() {
        match input.next_event() {
            Ok(None) => break,
            Ok(Some(Event::Block(_))) => {}
            Ok(Some(Event::Packet(record))) => match frame_of(&record) {
                Ok((frame, time)) => results.run(program, frame, time, &mut guard),
                Err(stop) => results.stop(stop),
            },
            Err(error) => results.stop(CaptureStop::Capture(error)),
        }
    }
}
