//! Runs over captures in threads: packets in order, and the counts of one thread, from a file
//! that is mapped and from a stream.

use std::io::Cursor;
use std::time::Duration;

use beebox::captures::Input;
use beebox::object::Object;
use beebox::run::{CaptureSummary, LoadOptions, LoadedObject};

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

/// The counts, without the time that runs took.
fn counts(summary: CaptureSummary) -> CaptureSummary {
    CaptureSummary {
        mean_duration: Duration::ZERO,
        ..summary
    }
}

#[test]
fn threads_count_what_one_counts() {
    let file = std::fs::read("../../examples/packets/firewall.bpf.o").expect("a committed object");
    let options = LoadOptions {
        cpus: 3,
        ..LoadOptions::default()
    };
    let kernel = kernel_data::linux_6_18();
    let object = Object::open(&file).expect("an object");
    let mut loaded = LoadedObject::load(&object, &kernel, &options).expect("it loads");
    let path = std::env::temp_dir().join(format!("beebox-jobs-{}.pcap", std::process::id()));
    std::fs::write(&path, capture()).expect("a file");
    let mapped = || Input::open_path(&path).expect("a capture");
    let stream = || Input::stream(Cursor::new(capture())).expect("a capture");
    let mut program = loaded.program("firewall").expect("the program");
    let one = program.run_capture(mapped(), None, &mut |_, _| {});
    let one = counts(one.expect("a whole capture"));
    assert_eq!(one.packets, u64::from(PACKETS));
    assert_eq!(one.verdicts.len(), 2);
    for jobs in [1, 2, 3] {
        for input in [mapped(), stream()] {
            let mut expected = (1..).zip((0..PACKETS).map(|number| 60 + number as usize % 200));
            let summary =
                loaded.run_capture_parallel("firewall", input, jobs, &|_| {}, &mut |run| {
                    assert_eq!(Some((run.packet, run.bytes)), expected.next());
                });
            let summary = summary.expect("the program").expect("a whole capture");
            assert_eq!(counts(summary), one, "{jobs} jobs");
            assert_eq!(expected.next(), None);
        }
    }
    std::fs::remove_file(&path).expect("the file");
}
