//! The firewall over a capture that is in the page cache, reading included: the engine by
//! itself, and the library's runs over captures, which tell of each packet; and the rate limiter,
//! whose maps are per CPU, in one thread and in two.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use beebox::captures::Input;
use beebox::internal::captures::CaptureError;
use beebox::internal::captures::Event;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject};
use lower::ContextKind;
use packet::{Metadata, Packet};
use spec::SplitMix;
use vm::{DirectContext, HEADROOM, PacketBuffer, RunContext, RunGuard, XDP};

use super::BEEBOX;
use super::firewall;
use super::native::{BATCH, Ours};
use super::subject::{Verifier, failed};
use crate::Failure;
use crate::report::{Report, Target, Unit};
use crate::scratch::Scratch;
use crate::traffic::Traffic;

pub(super) const KEY: &str = "capture";
const TITLE: &str = "firewall, capture";
const LIBRARY: &str = "firewall, capture, by the library";
const IN_JOBS: &str = "firewall, capture, by the library in two jobs";
const LIMIT: &str = "rate limiter, capture, by the library";
const LIMIT_IN_JOBS: &str = "rate limiter, capture, by the library in two jobs";
const JOBS: u32 = 2;

const LIMITER: &[u8] = include_bytes!("../../../../examples/packets/limit.bpf.o");

/// Addresses that packets come from, fewer than the rate limiter has room for.
const SENDERS: u32 = 48;

/// Offset of the address that an IPv4 packet comes from in its frame.
const FROM: usize = 26;

/// Packets of the capture, of 84 to 516 bytes, 300 in the mean.
const PACKETS: usize = 1 << 18;
const SHORTEST: u64 = 84;
const LONGEST: u64 = 516;

pub(super) fn measure(
    is_quick: bool,
    verifier: &Verifier,
    report: &mut Report,
) -> Result<(), Failure> {
    let packets = if is_quick { PACKETS / 16 } else { PACKETS };
    let directory =
        Scratch::new().map_err(|error| Failure::System("a place for a capture", error))?;
    let path = directory.path().join("packets.pcap");
    fs::write(&path, capture(packets, None))
        .map_err(|error| Failure::System("writing a capture", error))?;
    let program = firewall::program(verifier)?;
    let ours = Ours::new(TITLE, &program, verifier)?;
    ours.fill(firewall::blocked_map(&program)?, &firewall::blocked())?;
    let rounds = if is_quick { 3 } else { 9 };
    let rate = fastest(rounds, packets, || filter(&ours, &path))?;
    report.add_row(TITLE, BEEBOX, Unit::MillionRunsPerSecond, rate);
    report.add_figure(
        "capture_xdp_mpps",
        "million packets a second through the firewall, from a capture in the page cache with \
         300 bytes a packet",
        rate,
        Some(Target::AtLeast(5.0)),
    );
    let mut loaded = load(firewall::OBJECT, verifier)?;
    let blocked = loaded.map("blocked");
    let blocked = blocked.ok_or_else(|| failed("the firewall has no map `blocked`".into()))?;
    for (key, value) in firewall::blocked() {
        (blocked.update(&key, &value, 0)).map_err(|errno| failed(errno.to_string()))?;
    }
    let mut compare = |name: &str, loaded: &mut LoadedObject, rows: [&str; 2]| {
        let one = fastest(rounds, packets, || run(loaded, name, &path))?;
        report.add_row(rows[0], BEEBOX, Unit::MillionRunsPerSecond, one);
        let two = fastest(rounds, packets, || run_in_jobs(loaded, name, &path))?;
        report.add_row(rows[1], BEEBOX, Unit::MillionRunsPerSecond, two);
        Ok::<f64, Failure>(two / one)
    };
    compare("firewall", &mut loaded, [LIBRARY, IN_JOBS])?;
    fs::write(&path, capture(packets, Some(SENDERS)))
        .map_err(|error| Failure::System("writing a capture", error))?;
    let mut loaded = load(LIMITER, verifier)?;
    let gain = compare("limit", &mut loaded, [LIMIT, LIMIT_IN_JOBS])?;
    report.add_figure(
        "two_jobs_vs_one",
        "two threads' speed over one's, by the library: the rate limiter, whose maps are per CPU",
        gain,
        Some(Target::AtLeast(1.6)),
    );
    Ok(())
}

/// An object, for two CPUs.
fn load(object: &[u8], verifier: &Verifier) -> Result<LoadedObject, Failure> {
    let object = Object::open(object).map_err(|error| failed(error.to_string()))?;
    let options = LoadOptions {
        cpus: JOBS,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(&object, &verifier.kernel, &options);
    loaded.map_err(|error| failed(error.to_string()))
}

/// Million packets a second in the fastest of some rounds, each over so many packets.
fn fastest(
    rounds: u32,
    packets: usize,
    mut round: impl FnMut() -> Result<usize, Failure>,
) -> Result<f64, Failure> {
    let mut fastest = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let count = round()?;
        fastest = fastest.min(start.elapsed());
        if count != packets {
            return Err(failed(format!("{count} of {packets} packets were read")));
        }
    }
    Ok(packets as f64 / fastest.as_secs_f64() / 1e6)
}

/// Runs a program on all packets through the library; how many there are.
fn run(loaded: &mut LoadedObject, name: &str, path: &Path) -> Result<usize, Failure> {
    let input = Input::open_path(path).map_err(|error| failed(error.to_string()))?;
    let program = loaded.program(name);
    let mut program = program.ok_or_else(|| failed(format!("no program `{name}`")))?;
    let mut count = 0;
    let stopped = program.run_capture(input, None, &mut |_, _| count += 1);
    stopped.map_err(|stop| failed(stop.to_string()))?;
    Ok(count)
}

/// Runs a program on all packets through the library, in several threads; how many there are.
fn run_in_jobs(loaded: &mut LoadedObject, name: &str, path: &Path) -> Result<usize, Failure> {
    let input = Input::open_path(path).map_err(|error| failed(error.to_string()))?;
    let mut count = 0;
    let stopped = loaded.run_capture_parallel(name, input, JOBS, &|_| {}, &mut |_| count += 1);
    let stopped = stopped.ok_or_else(|| failed(format!("no program `{name}`")))?;
    stopped.map_err(|stop| failed(stop.to_string()))?;
    Ok(count)
}

/// Runs the firewall on all packets; how many there are.
fn filter(ours: &Ours, path: &Path) -> Result<usize, Failure> {
    let unreadable = |error: CaptureError| failed(error.to_string());
    let mut input = Input::try_open_path(path).map_err(unreadable)?;
    let program = &ours.native;
    let mut context = DirectContext::new(ContextKind::Xdp, &[]);
    let (mut random, mut clock) = (SplitMix::new(1), || 0);
    let no_packet = Packet::whole(&[], &Metadata::UNKNOWN);
    let mut packet = PacketBuffer::new(XDP, &[], HEADROOM, 0);
    let mut guard = RunGuard::new();
    let mut count = 0;
    while let Some(event) = input.next_event().map_err(unreadable)? {
        let Event::Packet(record) = event else {
            continue;
        };
        if count % BATCH as usize == 0 {
            drop(guard);
            guard = RunGuard::new();
        }
        count += 1;
        // Programs may write to the packet.
        packet.refill(record.data(), HEADROOM, 0);
        let cx = RunContext::new(&no_packet, &mut random, Some(&mut clock));
        let run = program.run(&mut packet, &mut context, &guard, cx);
        run.map_err(|error| failed(error.to_string()))?;
    }
    Ok(count)
}

/// A pcap file of Ethernet frames; those of IPv4 come from so many addresses, otherwise each from
/// another.
fn capture(packets: usize, senders: Option<u32>) -> Vec<u8> {
    let traffic = Traffic::mixed(packets);
    let mut random = SplitMix::new(300);
    let mut file = Vec::with_capacity(packets * 320);
    let number = |file: &mut Vec<u8>, number: u32| file.extend_from_slice(&number.to_le_bytes());
    for field in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        number(&mut file, field);
    }
    for (frame, time) in traffic.frames().iter().zip(0u32..) {
        let len = (SHORTEST + random.next_u64() % (LONGEST - SHORTEST + 1)) as usize;
        for field in [time / 1_000_000, time % 1_000_000, len as u32, len as u32] {
            number(&mut file, field);
        }
        let head = &frame.data[..frame.data.len().min(len)];
        let start = file.len();
        file.extend_from_slice(head);
        file.resize(start + len, 0);
        if let Some(senders) = senders {
            file[start + FROM..start + FROM + 4].copy_from_slice(&(time % senders).to_be_bytes());
        }
    }
    file
}
