//! Runs on the packets of a capture in several threads.
//!
//! A capture is divided into segments at fixed offsets ([`segment_end`]); a packet belongs to
//! the segment in which its record begins. Worker `n % jobs`, which is that CPU of the
//! programs, runs the packets of segment `n`, and results are merged in the order of the
//! packets. So a run repeats bit for bit for programs whose maps are per-CPU arrays, whether
//! the capture is a file or a stream. The keys of per-CPU hashes are those of all CPUs.
//!
//! Workers read a file themselves (`segments`); the packets of other captures are read by the
//! calling thread and handed out (`batches`). Either way a few segments of each worker wait at
//! most.

mod batch;
mod batches;
mod results;
mod segments;

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use spec::SplitMix;
use spec::maps::MapFlags;

use super::random::RunRandom;
use super::{CaptureSummary, LoadedObject, ObjectMap, PacketRun, RunCaptureError, RunnableProgram};
use crate::internal::captures::Input;
use results::{Merger, Results};

/// Bytes of the first segments, which share a short capture among the workers, and of the
/// last ones, which make handing over rare.
const FIRST_SEGMENT: u64 = 32 << 10;
const LAST_SEGMENT: u64 = 1 << 20;

/// Segments of a length, before those of twice the length.
const SAME_LENGTH: u64 = 16;

/// Segments of a worker whose results wait, at most.
const WAITING: usize = 4;

/// Offset in the capture at which a segment ends.
fn segment_end(number: u64) -> u64 {
    let (mut end, mut left, mut len) = (0, number + 1, FIRST_SEGMENT);
    while left > SAME_LENGTH && len < LAST_SEGMENT {
        end += SAME_LENGTH * len;
        left -= SAME_LENGTH;
        len *= 2;
    }
    end + left * len
}

impl LoadedObject {
    /// Names of the maps that runs on different CPUs share and may write: all but those with
    /// values for each CPU (of hashes they share the keys), those that programs cannot write,
    /// arrays of programs and of perf buffers, and maps of devices, CPUs and AF_XDP sockets.
    pub fn shared_maps(&self) -> Vec<&str> {
        let shared = self.maps().filter(|map| is_shared(map));
        shared.map(|map| map.def.name.as_str()).collect()
    }

    /// Runs a program on each packet of a capture in `jobs` threads, which are the CPUs from 0
    /// on, as many as the object was loaded for at most. `set_up` is called for the program
    /// of each CPU, `observe` after each run, in the order of packets. `None` if no such
    /// program is loaded.
    ///
    /// Runs that share maps ([`LoadedObject::shared_maps`]) see each other's writes in any
    /// order. When a run does not end with a value, runs on later packets may have begun.
    pub fn run_capture_parallel(
        &self,
        program: &str,
        input: Input,
        jobs: u32,
        set_up: &(dyn Fn(&mut RunnableProgram<'_>) + Sync),
        observe: &mut dyn FnMut(PacketRun<'_>),
    ) -> Option<Result<CaptureSummary, RunCaptureError>> {
        let place = self.program_place(program)?;
        let mut merger = Merger::new(self.program_kind(place), observe);
        let jobs = jobs.clamp(1, self.host.cpus);
        let seeds: Vec<u64> = (0..jobs).map(|_| self.random.next_seed()).collect();
        let shared = &self.shared;
        let ended = thread::scope(|scope| {
            let start = |work: Box<dyn Work>, cpu: u32| -> Receiver<Results> {
                let (done, results) = mpsc::sync_channel(WAITING);
                let random = RunRandom::Own(SplitMix::new(seeds[cpu as usize]));
                scope.spawn(move || {
                    let mut runnable = shared.program(place, cpu, random);
                    set_up(&mut runnable);
                    work.run(&mut runnable, &done);
                });
                results
            };
            match input.place() {
                Some(place) => segments::run(place, jobs, start, &mut merger),
                None => batches::run(input, jobs, start, &mut merger),
            }
        });
        Some(ended.map(|()| merger.finish()))
    }
}

/// Work of one thread.
trait Work: Send {
    /// Runs the program on the packets of the worker's segments, and sends the results of
    /// each, until the capture ends or they are not taken.
    fn run(self: Box<Self>, program: &mut RunnableProgram<'_>, done: &SyncSender<Results>);
}

fn is_shared(map: &ObjectMap) -> bool {
    let is_read_only = map.def.params.flags.has(MapFlags::RDONLY_PROG);
    !is_read_only && !map.map.kind().is_apart()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other() {
        let len = |number| segment_end(number) - segment_end(number - 1);
        assert_eq!(segment_end(0), FIRST_SEGMENT);
        assert_eq!([len(15), len(16)], [FIRST_SEGMENT, 2 * FIRST_SEGMENT]);
        assert!((80..1000).all(|number| len(number) == LAST_SEGMENT));
        assert_eq!(len(79), LAST_SEGMENT / 2);
    }
}
