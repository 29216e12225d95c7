//! Shared parts of the tests of runs.

#[cfg(target_os = "linux")]
pub(crate) mod three;

use std::path::{Path, PathBuf};

use beebox::Engine;
use beebox::captures::Input;
use beebox::internal::captures::Event;

/// True where Beebox generates native code that runs.
pub(crate) const HAS_NATIVE_CODE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));

/// The threaded interpreter, which runs verified programs on little-endian machines.
pub(crate) const INTERP: Engine = match cfg!(target_endian = "little") {
    true => Engine::Interp,
    false => Engine::Checked,
};

/// The engine for which native code is requested.
pub(crate) const NATIVE: Engine = match HAS_NATIVE_CODE {
    true => Engine::Native,
    false => INTERP,
};

/// All engines; where one of them does not run, another is there twice, and [`native_code`]
/// reports it.
pub(crate) const ENGINES: [Engine; 3] = [NATIVE, INTERP, Engine::Checked];

/// True where native code runs; elsewhere what needs it is reported as skipped.
pub(crate) fn native_code(what: &str) -> bool {
    let is_there = match HAS_NATIVE_CODE {
        true => Ok(()),
        false => Err("no native code for this processor and system"),
    };
    oracle::found(what, is_there).is_some()
}

#[oracle::test]
fn native_code_is_compared_with_the_checked_engine() {
    native_code("native code beside the checked engine in the tests of runs");
}

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
