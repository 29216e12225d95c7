//! Runs on the packets of a capture in several threads.
//!
//! The calling thread reads packets and hands them out in batches, batch `n` to worker
//! `n % jobs`, which is CPU `n % jobs` of the programs. Results are merged in the order of the
//! packets. So a run repeats bit for bit for programs whose maps are per CPU. Packets that
//! wait are bounded by [`WAITING`] batches for each worker. The bytes of a batch are in one
//! buffer, which comes back with the results and holds a later batch.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use capture::{Event, LinkType, Record};
use spec::maps::{MapFlags, MapKind};
use spec::{Random, SplitMix};

use super::capture::nanoseconds_of;
use super::{CaptureStop, LoadedObject, ObjectMap, PacketRun, RunError, RunnableProgram};
use crate::captures::Input;

/// Packets of a batch.
const BATCH: usize = 256;

/// Batches that wait for a worker, or whose results wait, at most.
const WAITING: usize = 4;

/// Packets that are handed to a worker.
#[derive(Default)]
struct Batch {
    packets: Vec<Handed>,
    /// The bytes of all packets.
    bytes: Vec<u8>,
}

/// A packet of a batch.
struct Handed {
    number: u64,
    time: u64,
    /// Where its bytes end; they begin where those of the one before end.
    end: usize,
}

impl Batch {
    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
    }

    /// Adds a packet of a capture.
    fn push(&mut self, number: u64, record: &Record<'_>) -> Result<(), CaptureStop> {
        let link_type = record.interface().link_type;
        if link_type != LinkType::ETHERNET {
            return Err(CaptureStop::LinkType {
                packet: number,
                link_type,
            });
        }
        self.bytes.extend_from_slice(record.data());
        self.packets.push(Handed {
            number,
            time: nanoseconds_of(record),
            end: self.bytes.len(),
        });
        Ok(())
    }
}

/// What becomes of a batch.
struct Done {
    /// The runs, up to one that did not end with a value.
    runs: Vec<PacketRun>,
    /// The number of that packet, and why.
    failed: Option<(u64, RunError)>,
    /// The batch, for its buffers.
    batch: Batch,
}

/// A worker as the calling thread sees it.
struct Worker {
    batches: Sender<Batch>,
    results: Receiver<Done>,
}

impl LoadedObject {
    /// Names of the maps that runs on different CPUs share and may write: all but those with
    /// values for each CPU, those that programs cannot write, and arrays of programs and of
    /// perf buffers.
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
        &mut self,
        program: &str,
        input: Input,
        jobs: u32,
        set_up: &(dyn Fn(&mut RunnableProgram<'_>) + Sync),
        observe: &mut dyn FnMut(&PacketRun),
    ) -> Option<Result<(), CaptureStop>> {
        self.program(program)?;
        let jobs = jobs.clamp(1, self.host.cpus);
        let seeds: Vec<u64> = (0..jobs).map(|_| self.next_seed()).collect();
        let object = &*self;
        Some(thread::scope(|scope| {
            let workers = seeds.into_iter().zip(0..).map(|(seed, cpu)| {
                let (batches, handed) = mpsc::channel::<Batch>();
                let (done, results) = mpsc::channel();
                scope.spawn(move || {
                    let mut random = SplitMix::new(seed);
                    let Some(mut runnable) = object.program_on(program, cpu, &mut random) else {
                        return;
                    };
                    set_up(&mut runnable);
                    for batch in handed {
                        if done.send(run_batch(&mut runnable, batch)).is_err() {
                            return;
                        }
                    }
                });
                Worker { batches, results }
            });
            distribute(input, &workers.collect::<Vec<_>>(), observe)
        }))
    }

    fn next_seed(&mut self) -> u64 {
        let high = u64::from(self.random.next_u32());
        high << 32 | u64::from(self.random.next_u32())
    }
}

fn is_shared(map: &ObjectMap) -> bool {
    let is_read_only = map.def.params.flags.0 & MapFlags::RDONLY_PROG.0 != 0;
    let is_apart = matches!(
        map.map.kind(),
        MapKind::PercpuArray
            | MapKind::PercpuHash
            | MapKind::LruPercpuHash
            | MapKind::ProgArray
            | MapKind::PerfEventArray
    );
    !is_read_only && !is_apart
}

/// Runs a program on the packets of a batch.
fn run_batch(program: &mut RunnableProgram<'_>, batch: Batch) -> Done {
    let mut runs = Vec::with_capacity(batch.packets.len());
    let mut failed = None;
    let mut start = 0;
    for packet in &batch.packets {
        let bytes = &batch.bytes[start..packet.end];
        start = packet.end;
        match program.run_packet(packet.number, packet.time, bytes) {
            Ok((run, _)) => runs.push(run),
            Err(error) => {
                failed = Some((packet.number, error));
                break;
            }
        }
    }
    Done {
        runs,
        failed,
        batch,
    }
}

/// Reads a capture, hands its packets out and takes the results in order.
fn distribute(
    mut input: Input,
    workers: &[Worker],
    observe: &mut dyn FnMut(&PacketRun),
) -> Result<(), CaptureStop> {
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut unused: Vec<Batch> = Vec::new();
    let mut next = 0;
    let mut number = 0;
    let ended = loop {
        let mut batch = unused.pop().unwrap_or_default();
        let ended = read_batch(&mut input, &mut number, &mut batch);
        if !batch.packets.is_empty() {
            // A worker that ended early has dropped its results too; taking them says so.
            let _ = workers[next].batches.send(batch);
            waiting.push_back(next);
            next = (next + 1) % workers.len();
        }
        while waiting.len() > WAITING * workers.len() {
            unused.extend(take(workers, &mut waiting, observe)?);
        }
        if let Some(ended) = ended {
            break ended;
        }
    };
    while !waiting.is_empty() {
        take(workers, &mut waiting, observe)?;
    }
    ended
}

/// Reads the next packets into an empty batch; how the capture ended, if it did.
fn read_batch(
    input: &mut Input,
    number: &mut u64,
    batch: &mut Batch,
) -> Option<Result<(), CaptureStop>> {
    while batch.packets.len() < BATCH {
        match input.next_event() {
            Err(error) => return Some(Err(CaptureStop::Capture(error))),
            Ok(None) => return Some(Ok(())),
            Ok(Some(Event::Block(_))) => {}
            Ok(Some(Event::Packet(record))) => {
                *number += 1;
                if let Err(stop) = batch.push(*number, &record) {
                    return Some(Err(stop));
                }
            }
        }
    }
    None
}

/// Takes the results of the batch that waits longest; its buffers, to be used again.
fn take(
    workers: &[Worker],
    waiting: &mut VecDeque<usize>,
    observe: &mut dyn FnMut(&PacketRun),
) -> Result<Option<Batch>, CaptureStop> {
    let Some(worker) = waiting.pop_front() else {
        return Ok(None);
    };
    // Without a result the worker panicked, and the end of the scope passes that on.
    let Ok(done) = workers[worker].results.recv() else {
        return Ok(None);
    };
    done.runs.iter().for_each(observe);
    match done.failed {
        Some((packet, error)) => Err(CaptureStop::Run { packet, error }),
        None => {
            let mut batch = done.batch;
            batch.clear();
            Ok(Some(batch))
        }
    }
}
