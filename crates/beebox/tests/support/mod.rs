//! Shared parts of the tests of runs.

pub(crate) mod three;

use std::path::{Path, PathBuf};

use beebox::captures::{Event, Input};

/// A file by its path from the crate.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The packets of the sample capture.
pub(crate) fn packets() -> Vec<Vec<u8>> {
    let mut input = Input::open_path(file("../../examples/sample.pcap")).expect("the sample");
    let mut packets = Vec::new();
    while let Some(event) = input.next_event().expect("the sample") {
        if let Event::Packet(record) = event {
            packets.push(record.data().to_vec());
        }
    }
    assert!(packets.len() > 250);
    packets
}
