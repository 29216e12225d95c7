//! Runs over captures in threads: packets in order, the counts and the faults of one thread, from
//! a file that is mapped and from a stream.

use std::io::Cursor;
use std::path::PathBuf;
use std::time::Duration;

use beebox::captures::Input;
use beebox::internal::object::Object;
use beebox::internal::run::{CaptureSummary, LoadOptions, LoadedObject, RunCaptureError};

const PACKETS: u32 = 20_000;

/// A pcap file of IPv4 frames, each third of which opens a TCP connection.
fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    for field in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        file.extend_from_slice(&field.to_le_bytes());
    }
    for number in 0..PACKETS {
        let len = 60 + number % 200;
        for field in [number / 1000, number % 1000, len, len] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        let mut frame = vec![0; len as usize];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[23] = 6;
        frame[26..30].copy_from_slice(&number.to_be_bytes());
        frame[47] = if number % 3 == 0 { 2 } else { 16 };
        file.extend_from_slice(&frame);
    }
    file
}

/// A pcap file with a frame of so many bytes between short ones.
fn capture_with_long_frame(len: u32) -> Vec<u8> {
    let mut file = capture();
    file.truncate(24);
    for len in [60, len, 60, len, 61] {
        for field in [0, 0, len, len] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        file.resize(file.len() + len as usize, 0);
    }
    file
}

/// The firewall, for three CPUs.
fn firewall() -> LoadedObject {
    let file = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/packets/firewall.bpf.o"
    ))
    .expect("a committed object");
    let options = LoadOptions {
        cpus: 3,
        ..LoadOptions::default()
    };
    let kernel = kernel_data::linux_6_18();
    let object = Object::open(&file).expect("an object");
    LoadedObject::load(&object, &kernel, &options).expect("it loads")
}

/// A capture in a file that is removed at the end.
struct CaptureFile(PathBuf);

impl CaptureFile {
    fn new(name: &str, bytes: &[u8]) -> CaptureFile {
        let name = format!("beebox-jobs-{name}-{}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("a file");
        CaptureFile(path)
    }

    fn input(&self) -> Input {
        Input::open_path(&self.0).expect("a capture")
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the firewall on all packets in so many threads; the lengths of the packets in order.
fn run(
    loaded: &mut LoadedObject,
    input: Input,
    jobs: u32,
) -> (Vec<usize>, Result<CaptureSummary, RunCaptureError>) {
    let mut lens = Vec::new();
    let summary = loaded.run_capture_parallel("firewall", input, jobs, &|_| {}, &mut |run| {
        lens.push(run.bytes);
        assert_eq!(run.packet, lens.len() as u64);
    });
    (lens, summary.expect("the program"))
}

/// The counts, without the time that runs took.
fn counts(summary: CaptureSummary) -> CaptureSummary {
    CaptureSummary {
        mean_duration: Duration::ZERO,
        ..summary
    }
}

#[oracle::test]
fn threads_count_what_one_counts() {
    let mut loaded = firewall();
    let file = CaptureFile::new("counts", &capture());
    let mut program = loaded.program("firewall").expect("the program");
    let one = program.run_capture(file.input(), None, &mut |_, _| {});
    let one = counts(one.expect("a whole capture"));
    assert_eq!(one.packets, u64::from(PACKETS));
    assert_eq!(one.verdicts.len(), 2);
    let expected: Vec<_> = (0..PACKETS as usize)
        .map(|number| 60 + number % 200)
        .collect();
    for jobs in [1, 2, 3] {
        let stream = Input::stream(Cursor::new(capture())).expect("a capture");
        for input in [file.input(), stream] {
            let (lens, summary) = run(&mut loaded, input, jobs);
            assert_eq!(
                counts(summary.expect("a whole capture")),
                one,
                "{jobs} jobs"
            );
            assert_eq!(lens, expected);
        }
    }
}

#[oracle::test]
fn packets_of_any_length_are_run() {
    let mut loaded = firewall();
    for long in [32_000, 40_000, 262_144] {
        let bytes = capture_with_long_frame(long);
        let file = CaptureFile::new("long", &bytes);
        for jobs in [1, 2, 3] {
            let stream = Input::stream(Cursor::new(bytes.clone())).expect("a capture");
            for input in [file.input(), stream] {
                let (lens, summary) = run(&mut loaded, input, jobs);
                summary.expect("a whole capture");
                assert_eq!(lens, [60, long as usize, 60, long as usize, 61]);
            }
        }
    }
}

#[oracle::test]
fn threads_stop_where_one_stops() {
    let mut loaded = firewall();
    // Cut inside a record, and damaged: a record that is longer than the file says it may be.
    let whole = capture();
    let cut = whole[..whole.len() - 70].to_vec();
    let mut damaged = whole[..2_000_004].to_vec();
    let mut at = 24;
    while at < 1_000_000 {
        let len = u32::from_le_bytes(damaged[at + 8..at + 12].try_into().expect("four bytes"));
        at += 16 + len as usize;
    }
    damaged[at + 8..at + 12].fill(0xff);
    for (name, bytes) in [
        ("cut", cut),
        ("damaged", damaged),
        ("empty", whole[..24].to_vec()),
    ] {
        let file = CaptureFile::new(name, &bytes);
        let mut program = loaded.program("firewall").expect("the program");
        let mut packets = 0;
        let one = program.run_capture(file.input(), None, &mut |_, _| packets += 1);
        let one = one.map(counts).map_err(|stop| stop.to_string());
        assert_eq!(one.is_ok(), name == "empty", "{name}");
        for jobs in [1, 2, 3] {
            let stream = Input::stream(Cursor::new(bytes.clone())).expect("a capture");
            for input in [file.input(), stream] {
                let (lens, summary) = run(&mut loaded, input, jobs);
                let summary = summary.map(counts).map_err(|stop| stop.to_string());
                assert_eq!(
                    (lens.len(), &summary),
                    (packets, &one),
                    "{name}, {jobs} jobs"
                );
            }
        }
    }
}
