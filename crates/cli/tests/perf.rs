//! `beebox filter --perf`: the profiler finds the filter's name and code where it
//! looks.

#![cfg(target_arch = "x86_64")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Filters the sample with these words, and returns the map that was left.
fn map_of(words: &[&str]) -> Option<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut child = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["filter", "--count", "-F", "port-22.ddd", "sample.pcap"])
        .args(words)
        .current_dir(examples)
        .stdout(Stdio::null())
        .spawn()
        .expect("beebox starts");
    let map = PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
    assert!(child.wait().unwrap().success(), "{words:?}");
    let text = fs::read_to_string(&map).ok()?;
    fs::remove_file(&map).unwrap();
    Some(text)
}

#[oracle::test]
fn a_filter_is_named_only_on_request() {
    assert_eq!(map_of(&["--engine", "native"]), None);
    // Interpreted filters have no code of their own.
    assert_eq!(
        map_of(&["--engine", "interp", "--perf"]).as_deref(),
        Some("")
    );
    let map = map_of(&["--engine", "native", "--perf"]).expect("a map");
    let (address, rest) = map.split_once(' ').expect("an address");
    let (len, name) = rest.split_once(' ').unwrap();
    assert!(u64::from_str_radix(address, 16).unwrap() > 0);
    assert!(u64::from_str_radix(len, 16).unwrap() > 0);
    assert_eq!(name, "filter port-22.ddd\n");
}

#[oracle::test]
fn the_dump_holds_the_code() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args([
            "filter",
            "--count",
            "--engine",
            "native",
            "--perf=jitdump",
            "-F",
        ])
        .args(["port-22.ddd", "sample.pcap"].map(|name| examples.join(name)))
        .current_dir(&directory)
        .stdout(Stdio::null())
        .spawn()
        .expect("beebox starts");
    let dump = directory.path().join(format!("jit-{}.dump", child.id()));
    assert!(child.wait().unwrap().success());
    let bytes = fs::read(dump).expect("a dump");
    assert_eq!(bytes[..4], 0x4a69_5444_u32.to_ne_bytes());
    let name = b"port-22.ddd\0";
    assert!(bytes.windows(name.len()).any(|part| part == name));
}
