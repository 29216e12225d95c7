//! Workers that read the segments of a capture file themselves.
//!
//! Only the record before a segment gives the start of its first record. So each worker reads
//! its segment, waits for the worker of the segment before to tell where the first record
//! begins, finds the records, tells the worker of the next segment, and then runs the packets.
//! Finding records takes a small part of the time of running them, and the workers do it one
//! after the other.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use super::batch::Batch;
use super::results::{Merger, Results};
use super::{Work, segment_end};
use crate::internal::captures::{Part, Place};
use crate::internal::run::summary::Stopwatch;
use crate::internal::run::{RunCaptureError, RunnableProgram};

/// A worker of the segments `number`, `number + jobs` and so on.
struct Segments {
    number: u64,
    jobs: u64,
    file: Arc<File>,
    /// Start of its next segment; closed at the end of the capture.
    starts: Receiver<Place>,
    /// Start of the next worker's segment.
    ends: Sender<Place>,
}

/// Runs the packets of a capture from a place on, and merges the results.
pub(super) fn run(
    (file, first): (Arc<File>, Place),
    jobs: u32,
    mut start: impl FnMut(Box<dyn Work>, u32) -> Receiver<Results>,
    merger: &mut Merger<'_>,
) -> Result<(), RunCaptureError> {
    let channels = (0..jobs).map(|_| mpsc::channel());
    let (mut ends, starts): (Vec<_>, Vec<_>) = channels.unzip();
    // The first worker's receiver is at hand.
    let _ = ends[0].send(first);
    // Each tells the next one, and the last the first.
    ends.rotate_left(1);
    let mut workers = Vec::new();
    for (number, (starts, ends)) in (0..).zip(starts.into_iter().zip(ends)) {
        let work = Segments {
            number: number.into(),
            jobs: jobs.into(),
            file: Arc::clone(&file),
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
        let mut part = Part::new(self.file);
        let mut batch = Batch::default();
        let mut time = Stopwatch::default();
        for number in (self.number..).step_by(self.jobs as usize) {
            let end = segment_end(number);
            let loaded = part.load(number.checked_sub(1).map_or(0, segment_end), end);
            let Ok(mut place) = self.starts.recv() else {
                return;
            };
            let walked = loaded.map_err(RunCaptureError::Capture);
            let walked = walked
                .and_then(|()| part.walk(&mut place, end, |at, record| batch.add(at, record)));
            let goes_on = matches!(walked, Ok(true));
            if goes_on {
                // The next worker ends early only if results are not taken.
                let _ = self.ends.send(place);
            }
            if let Err(stop) = walked {
                batch.stop(stop);
            }
            let results = batch.run(part.bytes(), program, time);
            time = results.next_time();
            if done.send(results).is_err() || !goes_on {
                return;
            }
        }
    }
}
