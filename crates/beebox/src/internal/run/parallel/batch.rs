//! The packets of a segment, before their runs.

use std::ops::Range;

use ::kernel::maps::RunGuard;
use capture::Record;

use super::results::Results;
use crate::internal::run::capture::frame_time;
use crate::internal::run::summary::Stopwatch;
use crate::internal::run::{RunCaptureError, RunnableProgram};

/// The packets of a segment, whose bytes are elsewhere.
#[derive(Default)]
pub(super) struct Batch {
    packets: Vec<Waiting>,
    /// Reason why no packet follows.
    stop: Option<RunCaptureError>,
}

/// A packet of a batch.
struct Waiting {
    /// Its time in nanoseconds.
    time: u64,
    /// Range of its bytes.
    bytes: Range<u32>,
}

impl Batch {
    /// Adds a packet with its place in the bytes of the batch.
    ///
    /// # Errors
    /// It is no Ethernet frame.
    #[inline]
    pub(super) fn add(
        &mut self,
        bytes: Range<usize>,
        record: &Record<'_>,
    ) -> Result<(), RunCaptureError> {
        self.packets.push(Waiting {
            time: frame_time(record)?,
            bytes: bytes.start as u32..bytes.end as u32,
        });
        Ok(())
    }

    /// Says why no packet follows; what merges the results numbers the packet.
    pub(super) fn stop(&mut self, stop: RunCaptureError) {
        self.stop = Some(stop);
    }

    /// Runs a program on its packets, and leaves none.
    pub(super) fn run(
        &mut self,
        bytes: &[u8],
        program: &mut RunnableProgram<'_>,
        time: Stopwatch,
    ) -> Results {
        let mut results = Results::new(self.packets.len(), time);
        let mut guard = RunGuard::new();
        for packet in self.packets.drain(..) {
            let frame = &bytes[packet.bytes.start as usize..packet.bytes.end as usize];
            results.run(program, frame, packet.time, &mut guard);
            if results.is_stopped() {
                return results;
            }
        }
        if let Some(stop) = self.stop.take() {
            results.stop(stop);
        }
        results
    }
}
