//! Several threads on one file, with the result of one thread.
//!
//! The file is split into segments of equal size. A worker takes the next segment,
//! guesses where its first record starts, and scans the records that start inside. The
//! merger takes the results in order. It knows where the segment before ended and the
//! framing there (in pcapng: the section's interfaces). A result that started elsewhere or
//! assumed another framing is discarded, and the merger scans the segment again from the
//! right offset. The guess affects speed only.
//!
//! Workers run ahead of the merger by a few segments only, which bounds the
//! memory that kept packets take.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use capture::{Framing, Reader, first_record};

use super::input::{Source, WholeFile};
use super::scan::{Drain, Scan};
use super::{FilterCaptureError, PacketCounts};

/// Segments that each worker may be ahead of the merger.
const AHEAD: u64 = 2;

/// Bytes that are searched for the first record of a segment.
const SEARCH: usize = 256 << 10;

/// The result of a segment.
struct Scanned {
    /// Offset of its guessed first record; `None` if none was found.
    first: Option<u64>,
    /// The framing assumed there.
    before: Framing,
    /// Offset of the end of its last record.
    next: u64,
    /// The framing there.
    after: Framing,
    tally: PacketCounts,
    kept: Vec<u8>,
    result: Result<(), FilterCaptureError>,
}

/// State shared by workers and merger.
struct Plan {
    state: Mutex<State>,
    moved: Condvar,
    /// Bytes of a segment.
    size: u64,
    /// Number of segments.
    segments: u64,
}

struct State {
    /// The next segment to scan.
    next: u64,
    /// Number of merged segments.
    merged: u64,
    /// True if no more segments are needed.
    stopped: bool,
    /// The framing at the end of the merged part: the best guess for later segments.
    framing: Framing,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// Scans the rest of the file that `reader` reads.
pub(super) fn run(
    file: WholeFile,
    mut reader: Reader<Source>,
    scan: &mut Scan<'_>,
    (jobs, size): (usize, u64),
    limit: u64,
    drain: &mut Drain<'_>,
) -> (PacketCounts, Result<(), FilterCaptureError>) {
    // The first segment has what the others need: pcapng describes its interfaces
    // there.
    let (mut tally, result) = scan.run(&mut reader, size, limit, Some(drain));
    if result.is_err() || tally.matched == limit || reader.offset() < size {
        return (tally, result);
    }
    let plan = Plan {
        state: Mutex::new(State {
            next: 1,
            merged: 1,
            stopped: false,
            framing: reader.framing().clone(),
            spare: Vec::new(),
        }),
        moved: Condvar::new(),
        size,
        segments: file.len.div_ceil(size),
    };
    let (sender, receiver) = mpsc::channel();
    let result = thread::scope(|scope| {
        for _ in 0..jobs {
            let (plan, file, sender) = (&plan, file.clone(), sender.clone());
            let scan = scan.another();
            scope.spawn(move || work(plan, &file, scan, jobs as u64, &sender));
        }
        drop(sender);
        let start = (reader.offset(), reader.framing().clone());
        let mut merger = Merger {
            plan: &plan,
            file,
            reader: Some(reader),
            scan,
            limit,
            early: BTreeMap::new(),
            receiver,
        };
        let result = merger.merge(start, &mut tally, drain);
        plan.lock().stopped = true;
        plan.moved.notify_all();
        result
    });
    (tally, result)
}

impl Plan {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// End of a segment; the last one has none, because a file may grow.
    fn end(&self, segment: u64) -> u64 {
        if segment + 1 == self.segments {
            return u64::MAX;
        }
        (segment + 1) * self.size
    }

    /// The next segment to scan, with the framing assumed at its start and a buffer;
    /// `None` if none is left.
    fn take(&self, jobs: u64) -> Option<(u64, Framing, Vec<u8>)> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.next == self.segments {
                return None;
            }
            if state.next < state.merged + AHEAD * jobs {
                let segment = state.next;
                state.next += 1;
                let buffer = state.spare.pop().unwrap_or_default();
                return Some((segment, state.framing.clone(), buffer));
            }
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The loop of a worker.
fn work(
    plan: &Plan,
    file: &WholeFile,
    mut scan: Scan<'_>,
    jobs: u64,
    results: &Sender<(u64, Scanned)>,
) {
    let mut reader = None;
    while let Some((segment, framing, buffer)) = plan.take(jobs) {
        scan.kept = buffer;
        let start = segment * plan.size;
        let part = (start, plan.end(segment));
        let reader = file.reader_at(&mut reader, part, framing.clone());
        let scanned = guess(reader, framing, plan.end(segment), &mut scan);
        if results.send((segment, scanned)).is_err() {
            return;
        }
    }
}

/// Scans a segment from its guessed first record.
fn guess(reader: &mut Reader<Source>, before: Framing, end: u64, scan: &mut Scan<'_>) -> Scanned {
    // An error here comes again, at the right place, when the merger reads.
    let found = reader
        .peek(SEARCH)
        .ok()
        .and_then(|bytes| first_record(&before, &bytes[..bytes.len().min(SEARCH)]));
    let (mut first, mut tally, mut result) = (None, PacketCounts::default(), Ok(()));
    if let Some(at) = found {
        reader.skip(at);
        first = Some(reader.offset());
        (tally, result) = scan.run(reader, end, u64::MAX, None);
    }
    Scanned {
        first,
        before,
        next: reader.offset(),
        after: reader.framing().clone(),
        tally,
        kept: std::mem::take(&mut scan.kept),
        result,
    }
}

/// Combines the results in order.
struct Merger<'m, 'p> {
    plan: &'m Plan,
    file: WholeFile,
    /// The reader for second scans.
    reader: Option<Reader<Source>>,
    scan: &'m mut Scan<'p>,
    limit: u64,
    /// Results that arrived early.
    early: BTreeMap<u64, Scanned>,
    receiver: Receiver<(u64, Scanned)>,
}

impl Merger<'_, '_> {
    /// Continues from the end of the first segment, with the framing there.
    fn merge(
        &mut self,
        start: (u64, Framing),
        tally: &mut PacketCounts,
        drain: &mut Drain<'_>,
    ) -> Result<(), FilterCaptureError> {
        let (mut offset, mut framing) = start;
        drain
            .write(&mut self.scan.kept)
            .map_err(FilterCaptureError::Output)?;
        for segment in 1..self.plan.segments {
            let scanned = self.result_of(segment);
            let end = self.plan.end(segment);
            let is_right = scanned.first == Some(offset)
                && scanned.before == framing
                && scanned.tally.matched < self.limit - tally.matched;
            let mut kept = scanned.kept;
            // A record may be longer than a segment.
            if offset >= end {
            } else if is_right {
                drain.write(&mut kept).map_err(FilterCaptureError::Output)?;
                let before = tally.packets;
                *tally += scanned.tally;
                scanned.result.map_err(|stop| stop.after(before))?;
                (offset, framing) = (scanned.next, scanned.after);
            } else {
                (offset, framing) = self.scan_again(offset, framing, end, tally, drain)?;
            }
            drain.report(offset);
            let mut state = self.plan.lock();
            kept.clear();
            state.spare.push(kept);
            state.merged = segment + 1;
            state.framing.clone_from(&framing);
            drop(state);
            self.plan.moved.notify_all();
            if tally.matched == self.limit {
                break;
            }
        }
        Ok(())
    }

    /// Waits for the result of a segment.
    fn result_of(&mut self, segment: u64) -> Scanned {
        loop {
            if let Some(scanned) = self.early.remove(&segment) {
                return scanned;
            }
            let (number, scanned) = self.receiver.recv().expect("workers send every segment");
            self.early.insert(number, scanned);
        }
    }

    /// Scans a segment from the right offset.
    fn scan_again(
        &mut self,
        offset: u64,
        framing: Framing,
        end: u64,
        tally: &mut PacketCounts,
        drain: &mut Drain<'_>,
    ) -> Result<(u64, Framing), FilterCaptureError> {
        let reader = self
            .file
            .reader_at(&mut self.reader, (offset, end), framing);
        let limit = self.limit - tally.matched;
        let (again, result) = self.scan.run(reader, end, limit, Some(drain));
        let reached = (reader.offset(), reader.framing().clone());
        let before = tally.packets;
        *tally += again;
        result.map_err(|stop| stop.after(before))?;
        drain
            .write(&mut self.scan.kept)
            .map_err(FilterCaptureError::Output)?;
        Ok(reached)
    }
}
