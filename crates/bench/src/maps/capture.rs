//! The firewall over a capture that is in the page cache, reading included: the engine by
//! itself, and the library's runs over captures, which tell of each packet.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use beebox::captures::{CaptureError, Event, Input};
use beebox::object::Object;
use beebox::run::{LoadOptions, LoadedObject};
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
const JOBS: u32 = 2;
const IN_JOBS: &str = "firewall, capture, by the library in two jobs";

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
    fs::write(&path, capture(packets))
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
    let object = Object::open(firewall::OBJECT).map_err(|error| failed(error.to_string()))?;
    let options = LoadOptions {
        cpus: JOBS,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(&object, &verifier.kernel, &options);
    let mut loaded = loaded.map_err(|error| failed(error.to_string()))?;
    let blocked = loaded.map("blocked");
    let blocked = blocked.ok_or_else(|| failed("the firewall has no map `blocked`".into()))?;
    for (key, value) in firewall::blocked() {
        (blocked.update(&key, &value, 0)).map_err(|errno| failed(errno.to_string()))?;
    }
    let rate = fastest(rounds, packets, || filter_by_library(&mut loaded, &path))?;
    report.add_row(LIBRARY, BEEBOX, Unit::MillionRunsPerSecond, rate);
    let rate = fastest(rounds, packets, || filter_in_jobs(&mut loaded, &path))?;
    report.add_row(IN_JOBS, BEEBOX, Unit::MillionRunsPerSecond, rate);
    Ok(())
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

/// Runs the firewall on all packets through the library; how many there are.
fn filter_by_library(loaded: &mut LoadedObject, path: &Path) -> Result<usize, Failure> {
    let input = Input::open_path(path).map_err(|error| failed(error.to_string()))?;
    let program = loaded.program("firewall");
    let mut program = program.ok_or_else(|| failed("no program `firewall`".into()))?;
    let mut count = 0;
    let stopped = program.run_capture(input, None, &mut |_, _| count += 1);
    stopped.map_err(|stop| failed(stop.to_string()))?;
    Ok(count)
}

/// Runs the firewall on all packets through the library, in several threads; how many there
/// are.
fn filter_in_jobs(loaded: &mut LoadedObject, path: &Path) -> Result<usize, Failure> {
    let input = Input::open_path(path).map_err(|error| failed(error.to_string()))?;
    let mut count = 0;
    let stopped =
        loaded.run_capture_parallel("firewall", input, JOBS, &|_| {}, &mut |_| count += 1);
    let stopped = stopped.ok_or_else(|| failed("no program `firewall`".into()))?;
    stopped.map_err(|stop| failed(stop.to_string()))?;
    Ok(count)
}

/// Runs the firewall on all packets; how many there are.
fn filter(ours: &Ours, path: &Path) -> Result<usize, Failure> {
    let unreadable = |error: CaptureError| failed(error.to_string());
    let mut input = Input::open_path(path).map_err(unreadable)?;
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

/// A pcap file of Ethernet frames.
fn capture(packets: usize) -> Vec<u8> {
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
        file.extend_from_slice(head);
        file.resize(file.len() + len - head.len(), 0);
    }
    file
}
