//! Runs on the packets of a capture in several threads.
//!
//! The calling thread reads packets and hands them out in batches, batch `n` to worker
//! `n % jobs`, which is CPU `n % jobs` of the programs. Results are merged in the order of the
//! packets. So a run repeats bit for bit for programs whose maps are per CPU. Packets that
//! wait are bounded by [`WAITING`] batches for each worker. Workers read packets of a mapped
//! file in place; those of other captures are copied into the batch, whose buffers come back
//! with the results and hold a later batch.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use ::kernel::maps::RunGuard;
use capture::{Event, LinkType, Record};
use spec::maps::{MapFlags, MapKind};
use spec::{Random, SplitMix};

use super::capture::nanoseconds_of;
use super::summary::{Counter, Stopwatch};
use super::{
    CaptureStop, CaptureSummary, LoadedObject, ObjectMap, PacketRun, PrintedText, Redirect,
    RunError, RunRecord, RunnableProgram,
};
use crate::captures::Input;

/// Packets of a batch.
const BATCH: usize = 256;

/// Batches that wait for a worker, or whose results wait, at most.
const WAITING: usize = 4;

/// Packets that are handed to a worker.
#[derive(Default)]
struct Batch {
    /// Number of the first packet.
    first: u64,
    packets: Vec<Handed>,
    /// The bytes of packets that are copied.
    copied: Vec<u8>,
    results: Results,
}

/// A packet of a batch.
struct Handed {
    time: u64,
    start: usize,
    len: usize,
    /// The bytes are in the batch, not in the mapped file.
    is_copied: bool,
}

/// The runs on the packets of a batch, up to one that did not end with a value.
#[derive(Default)]
struct Results {
    retvals: Vec<u32>,
    /// What some of them left beside a value.
    output: Vec<Output>,
    time: Stopwatch,
    /// Why a run did not end with a value.
    failed: Option<RunError>,
}

/// What a run left beside a value.
struct Output {
    /// Place of the packet in the batch.
    place: usize,
    redirect: Option<Redirect>,
    printed: PrintedText,
    records: Vec<RunRecord>,
}

impl Batch {
    /// Empties it for packets from this number on.
    fn start(&mut self, first: u64) {
        self.first = first;
        self.packets.clear();
        self.copied.clear();
        self.results.retvals.clear();
        self.results.output.clear();
        self.results.time = Stopwatch::default();
        self.results.failed = None;
    }

    /// Adds a packet of a capture, which may be a mapped file.
    fn push(&mut self, record: &Record<'_>, mapped: Option<&[u8]>) -> Result<(), CaptureStop> {
        let link_type = record.interface().link_type;
        if link_type != LinkType::ETHERNET {
            return Err(CaptureStop::LinkType {
                packet: self.first + self.packets.len() as u64,
                link_type,
            });
        }
        let data = record.data();
        let place = mapped.and_then(|mapped| place_in(mapped, data));
        let start = place.unwrap_or(self.copied.len());
        if place.is_none() {
            self.copied.extend_from_slice(data);
        }
        self.packets.push(Handed {
            time: nanoseconds_of(record),
            start,
            len: data.len(),
            is_copied: place.is_none(),
        });
        Ok(())
    }

    /// The bytes of a packet.
    fn bytes<'b>(&'b self, packet: &Handed, mapped: Option<&'b [u8]>) -> &'b [u8] {
        let from = match packet.is_copied {
            true => &self.copied,
            false => mapped.unwrap_or(&[]),
        };
        &from[packet.start..packet.start + packet.len]
    }
}

/// Where a part of some bytes begins in them; `None` if it is no part of them.
fn place_in(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= bytes.len()).then_some(start)
}

/// A worker as the calling thread sees it.
struct Worker {
    batches: Sender<Batch>,
    results: Receiver<Batch>,
}

impl LoadedObject {
    /// Names of the maps that runs on different CPUs share and may write: all but those with
    /// values for each CPU, those that programs cannot write, arrays of programs and of perf
    /// buffers, and maps of devices, CPUs and AF_XDP sockets.
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
        observe: &mut dyn FnMut(PacketRun<'_>),
    ) -> Option<Result<CaptureSummary, CaptureStop>> {
        let mut counter = Counter::new(self.program(program)?.kind());
        let jobs = jobs.clamp(1, self.host.cpus);
        let seeds: Vec<u64> = (0..jobs).map(|_| self.next_seed()).collect();
        let object = &*self;
        let mapping = input.mapping();
        let mapped = mapping.as_deref().map(|mapping| &mapping[..]);
        let mut time = Stopwatch::default();
        let mut observe_batch = |batch: Batch| observe_all(batch, &mut counter, &mut time, observe);
        let ended = thread::scope(|scope| {
            let workers = seeds.into_iter().zip(0..).map(|(seed, cpu)| {
                let (batches, handed) = mpsc::channel::<Batch>();
                let (done, results) = mpsc::channel();
                scope.spawn(move || {
                    let mut random = SplitMix::new(seed);
                    let Some(mut runnable) = object.program_on(program, cpu, &mut random) else {
                        return;
                    };
                    set_up(&mut runnable);
                    for mut batch in handed {
                        batch.results = run_batch(&mut runnable, &mut batch, mapped);
                        if done.send(batch).is_err() {
                            return;
                        }
                    }
                });
                Worker { batches, results }
            });
            let workers: Vec<_> = workers.collect();
            distribute(input, mapped, &workers, &mut observe_batch)
        });
        Some(ended.map(|()| counter.finish(&time)))
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
            | MapKind::Devmap
            | MapKind::DevmapHash
            | MapKind::Cpumap
            | MapKind::Xskmap
    );
    !is_read_only && !is_apart
}

/// Runs a program on the packets of a batch.
fn run_batch(
    program: &mut RunnableProgram<'_>,
    batch: &mut Batch,
    mapped: Option<&[u8]>,
) -> Results {
    let mut results = std::mem::take(&mut batch.results);
    let mut guard = RunGuard::new();
    for (place, packet) in batch.packets.iter().enumerate() {
        let bytes = batch.bytes(packet, mapped);
        let run = || program.run_captured(bytes, packet.time, &mut guard);
        let retval = match results.time.run(run) {
            Ok(retval) => retval,
            Err(error) => {
                results.failed = Some(error);
                break;
            }
        };
        results.retvals.push(retval);
        let redirect = program.captured();
        let redirect = redirect.and_then(|input| input.redirect(retval));
        let records = program.records();
        let printed = &mut program.services.printed;
        if redirect.is_some() || !printed.is_empty() || !records.is_empty() {
            results.output.push(Output {
                place,
                redirect,
                printed: std::mem::take(printed),
                records,
            });
        }
    }
    results
}

/// Reads a capture, hands its packets out and takes the results in order.
fn distribute(
    mut input: Input,
    mapped: Option<&[u8]>,
    workers: &[Worker],
    observe: &mut dyn FnMut(Batch) -> Result<Batch, CaptureStop>,
) -> Result<(), CaptureStop> {
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut unused: Vec<Batch> = Vec::new();
    let mut next = 0;
    let mut packets = 0;
    let ended = loop {
        let mut batch = unused.pop().unwrap_or_default();
        batch.start(packets + 1);
        let ended = read_batch(&mut input, mapped, &mut batch);
        packets += batch.packets.len() as u64;
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
    mapped: Option<&[u8]>,
    batch: &mut Batch,
) -> Option<Result<(), CaptureStop>> {
    while batch.packets.len() < BATCH {
        match input.next_event() {
            Err(error) => return Some(Err(CaptureStop::Capture(error))),
            Ok(None) => return Some(Ok(())),
            Ok(Some(Event::Block(_))) => {}
            Ok(Some(Event::Packet(record))) => {
                if let Err(stop) = batch.push(&record, mapped) {
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
    observe: &mut dyn FnMut(Batch) -> Result<Batch, CaptureStop>,
) -> Result<Option<Batch>, CaptureStop> {
    let Some(worker) = waiting.pop_front() else {
        return Ok(None);
    };
    // Without a result the worker panicked, and the end of the scope passes that on.
    match workers[worker].results.recv() {
        Ok(batch) => observe(batch).map(Some),
        Err(_) => Ok(None),
    }
}

/// Counts the runs of a batch and shows them to the caller; the batch, for its buffers.
fn observe_all(
    mut batch: Batch,
    counter: &mut Counter,
    time: &mut Stopwatch,
    observe: &mut dyn FnMut(PacketRun<'_>),
) -> Result<Batch, CaptureStop> {
    let nothing = PrintedText::default();
    let results = &mut batch.results;
    time.add(results.time);
    let mut output = results.output.iter().peekable();
    for (place, (packet, &retval)) in batch.packets.iter().zip(&results.retvals).enumerate() {
        let own = output.next_if(|output| output.place == place);
        let redirect = own.and_then(|output| output.redirect);
        observe(PacketRun {
            packet: batch.first + place as u64,
            bytes: packet.len,
            retval,
            verdict: counter.count(retval, packet.len, redirect),
            redirect,
            printk: own.map_or(&nothing, |output| &output.printed),
            records: own.map_or(&[], |output| &output.records),
        });
    }
    let packet = batch.first + results.retvals.len() as u64;
    match results.failed.take() {
        Some(error) => Err(CaptureStop::Run { packet, error }),
        None => Ok(batch),
    }
}
