//! Runs on the packets of a capture in several threads.
//!
//! The calling thread reads packets and hands them out in batches, batch `n` to worker
//! `n % jobs`, which is CPU `n % jobs` of the programs. Results are merged in the order of the
//! packets. So a run repeats bit for bit for programs whose maps are per CPU. Packets that
//! wait are bounded by [`WAITING`] batches for each worker.

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

/// A packet that is handed to a worker.
struct Handed {
    number: u64,
    time: u64,
    bytes: Vec<u8>,
}

/// The runs of a batch, up to one that did not end with a value, which is the packet of that
/// number.
type Done = (Vec<PacketRun>, Option<(u64, RunError)>);

/// A worker as the calling thread sees it.
struct Worker {
    batches: Sender<Vec<Handed>>,
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
                let (batches, handed) = mpsc::channel::<Vec<Handed>>();
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
fn run_batch(program: &mut RunnableProgram<'_>, batch: Vec<Handed>) -> Done {
    let mut runs = Vec::with_capacity(batch.len());
    for packet in batch {
        match program.run_packet(packet.number, packet.time, &packet.bytes) {
            Ok((run, _)) => runs.push(run),
            Err(error) => return (runs, Some((packet.number, error))),
        }
    }
    (runs, None)
}

/// Reads a capture, hands its packets out and takes the results in order.
fn distribute(
    mut input: Input,
    workers: &[Worker],
    observe: &mut dyn FnMut(&PacketRun),
) -> Result<(), CaptureStop> {
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    let mut number = 0;
    let ended = loop {
        let (batch, ended) = read_batch(&mut input, &mut number);
        if !batch.is_empty() {
            // A worker that ended early has dropped its results too; taking them says so.
            let _ = workers[next].batches.send(batch);
            waiting.push_back(next);
            next = (next + 1) % workers.len();
        }
        while waiting.len() > WAITING * workers.len() {
            take(workers, &mut waiting, observe)?;
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

/// The next packets; how the capture ended, if it did.
fn read_batch(
    input: &mut Input,
    number: &mut u64,
) -> (Vec<Handed>, Option<Result<(), CaptureStop>>) {
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH {
        match input.next_event() {
            Err(error) => return (batch, Some(Err(CaptureStop::Capture(error)))),
            Ok(None) => return (batch, Some(Ok(()))),
            Ok(Some(Event::Block(_))) => {}
            Ok(Some(Event::Packet(record))) => {
                *number += 1;
                match handed(*number, &record) {
                    Ok(packet) => batch.push(packet),
                    Err(stop) => return (batch, Some(Err(stop))),
                }
            }
        }
    }
    (batch, None)
}

fn handed(number: u64, record: &Record<'_>) -> Result<Handed, CaptureStop> {
    let link_type = record.interface().link_type;
    match link_type {
        LinkType::ETHERNET => Ok(Handed {
            number,
            time: nanoseconds_of(record),
            bytes: record.data().to_vec(),
        }),
        link_type => Err(CaptureStop::LinkType {
            packet: number,
            link_type,
        }),
    }
}

/// Takes the results of the batch that waits longest.
fn take(
    workers: &[Worker],
    waiting: &mut VecDeque<usize>,
    observe: &mut dyn FnMut(&PacketRun),
) -> Result<(), CaptureStop> {
    let Some(worker) = waiting.pop_front() else {
        return Ok(());
    };
    // Without a result the worker panicked, and the end of the scope passes that on.
    let Ok((runs, failed)) = workers[worker].results.recv() else {
        return Ok(());
    };
    runs.iter().for_each(observe);
    match failed {
        Some((packet, error)) => Err(CaptureStop::Run { packet, error }),
        None => Ok(()),
    }
}
