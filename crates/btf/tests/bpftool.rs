//! Both dumps compared with bpftool's, byte for byte: of the running kernel's BTF and of
//! every object in a directory.
//!
//! bpftool's output changes between releases; this is release 7.8, built with the
//! selftests. `BEEBOX_BPFTOOL` is another path of it, `BEEBOX_OBJECTS` the directory, of
//! raw BTF or other files that bpftool reads.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use beebox_btf::{Btf, COptions, dump_c, dump_raw};

/// Release of bpftool whose output is reproduced.
const RELEASE: &str = "v7.8";

fn bpftool() -> Result<PathBuf, String> {
    let path = match env::var_os("BEEBOX_BPFTOOL") {
        Some(path) => PathBuf::from(path),
        None => oracle::selftest_path("7.2/tools/bpftool")?,
    };
    let output = Command::new(&path).arg("version").output();
    let output = output.map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match text.contains(RELEASE) {
        true => Ok(path),
        false => Err(format!("{} is not {RELEASE}", path.display())),
    }
}

fn dump(bpftool: &Path, file: &Path, format: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(bpftool)
        .args(["btf", "dump", "file"])
        .arg(file)
        .arg("format")
        .args(format)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[oracle::test]
fn dumps_are_those_of_bpftool() {
    let Some(bpftool) = oracle::found("dumps by bpftool", bpftool()) else {
        return;
    };
    let mut files = vec![PathBuf::from("/sys/kernel/btf/vmlinux")];
    if let Some(directory) = env::var_os("BEEBOX_OBJECTS") {
        let entries = fs::read_dir(directory).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let mut compared = 0;
    for file in files {
        let Ok(bytes) = fs::read(&file) else { continue };
        let Ok(btf) = Btf::parse(bytes) else { continue };
        let Some(raw) = dump(&bpftool, &file, &["raw"]) else {
            continue;
        };
        assert!(raw == dump_raw(&btf), "{}: raw", file.display());
        for sorted in [true, false] {
            let format: &[&str] = if sorted { &["c"] } else { &["c", "unsorted"] };
            let roots = Vec::new();
            let ours = dump_c(&btf, &COptions { sorted, roots }).unwrap();
            let theirs = dump(&bpftool, &file, format).unwrap();
            assert!(theirs == ours, "{}: {format:?}", file.display());
        }
        compared += 1;
    }
    eprintln!("{compared} files, each in three forms");
    assert!(compared > 0, "nothing was compared");
}
