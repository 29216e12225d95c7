//! `beebox filter` against `tcpdump -r`: for every expression of a list, on
//! captures of several link types, the same packets byte for byte, or both
//! refuse.
//!
//! Without tcpdump this says so and passes, except where the environment demands
//! it (CI=true and BEEBOX_ORACLE=required).

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use testkit::captures::{self, Link, Mix};

const EXPRESSIONS: &str = include_str!("data/expressions.txt");

/// Bytes of the generated capture of each link type: about 3,000 packets.
const CAPTURE: u64 = 400_000;

fn expressions() -> Vec<&'static str> {
    let lines = EXPRESSIONS.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| if line == "<empty>" { "" } else { line })
        .collect()
}

fn tcpdump_is_there() -> bool {
    oracle::found("captures filtered by tcpdump", oracle::program("tcpdump")).is_some()
}

fn tcpdump(capture: &Path, expression: &str) -> Output {
    let mut command = Command::new("tcpdump");
    command.arg("-r").arg(capture).args(["-w", "-", expression]);
    command.output().expect("tcpdump runs")
}

fn beebox(capture: &Path, expression: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    command
        .args(["filter", expression])
        .arg(capture)
        .args(["-w", "-"])
        .args(more);
    command.output().expect("beebox runs")
}

/// One comparison: what differs, and whether packets were kept.
fn compare(capture: &Path, expression: &str) -> Result<bool, String> {
    let theirs = tcpdump(capture, expression);
    let ours = beebox(capture, expression, &["-J", "1"]);
    let messages = || {
        format!(
            "{}: {expression:?}\n  tcpdump: {} {}\n  beebox: {} {}",
            capture.file_name().unwrap_or_default().display(),
            theirs.status,
            String::from_utf8_lossy(&theirs.stderr).trim(),
            ours.status,
            String::from_utf8_lossy(&ours.stderr).trim(),
        )
    };
    if !theirs.status.success() {
        // The message is libpcap's own, so it is the same.
        let said = String::from_utf8_lossy(&theirs.stderr).into_owned();
        let reason = said
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("tcpdump: "));
        let repeated = String::from_utf8_lossy(&ours.stderr).contains(reason.unwrap_or("?"));
        let is_refused = ours.status.code() == Some(2) && ours.stdout.is_empty() && repeated;
        return if is_refused {
            Ok(false)
        } else {
            Err(messages())
        };
    }
    let keeps_any = theirs.stdout.len() > 24;
    let code = if keeps_any { 0 } else { 1 };
    if ours.stdout != theirs.stdout || ours.status.code() != Some(code) {
        return Err(messages());
    }
    Ok(keeps_any)
}

#[oracle::test]
fn the_same_packets_as_tcpdump() {
    if !tcpdump_is_there() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory for captures");
    let mut paths: Vec<PathBuf> = Vec::new();
    for &link in Link::ALL {
        let path = directory.path().join(format!("{link:?}.pcap"));
        let file = File::create(&path).expect("a file in our own directory");
        captures::write(Mix::Every, link, CAPTURE, 2_026, file).expect("the disk has room");
        paths.push(path);
    }
    // Captures that are kept in the repository, of real programs.
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in fs::read_dir(examples)
        .expect("the repository has examples")
        .flatten()
    {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "pcap")
        {
            paths.push(entry.path());
        }
    }

    let expressions = expressions();
    assert!(expressions.len() >= 150);
    let work: Vec<_> = (0..expressions.len())
        .flat_map(|expression| (0..paths.len()).map(move |path| (expression, path)))
        .collect();
    let next = AtomicUsize::new(0);
    let (mut differences, mut matching) = (Vec::new(), vec![false; expressions.len()]);
    thread::scope(|scope| {
        let walk = || {
            let mut found = Vec::new();
            while let Some(&(expression, path)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.push((expression, compare(&paths[path], expressions[expression])));
            }
            found
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(walk)).collect();
        for thread in threads {
            for (expression, result) in thread.join().expect("a comparison does not panic") {
                match result {
                    Ok(keeps_any) => matching[expression] |= keeps_any,
                    Err(difference) => differences.push(difference),
                }
            }
        }
    });
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    // A list whose expressions match nothing would prove nothing.
    let matching = matching.iter().filter(|&&any| any).count();
    assert!(
        matching >= 150,
        "only {matching} expressions match any packet"
    );
    eprintln!(
        "{} comparisons, {matching} expressions that match",
        work.len()
    );
}

#[oracle::test]
fn compiled_filters_are_printed_as_by_tcpdump() {
    if !tcpdump_is_there() {
        return;
    }
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");
    let printed = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let words = [
        &["-r", sample, "tcp", "port", "22"][..],
        &["-r", sample, "-nn", "-e", "-q", "-#", "-tttt", "icmp"],
        &["-O", "-r", sample, "vlan and udp"],
        &["-r", sample],
        // Of Ethernet without a capture.
        &["-y", "EN10MB", "arp", "or", "ip6"],
    ];
    for words in words {
        for dump in ["-d", "-dd", "-ddd"] {
            let theirs = printed("tcpdump", &[&[dump][..], words].concat());
            let words = words.strip_prefix(&["-y", "EN10MB"]).unwrap_or(words);
            let own = [&["filter", dump][..], words].concat();
            assert_eq!(
                printed(env!("CARGO_BIN_EXE_beebox"), &own),
                theirs,
                "{own:?}"
            );
        }
    }
    let beside = printed(
        env!("CARGO_BIN_EXE_beebox"),
        &["filter", "-d", "icmp", sample],
    );
    assert_eq!(beside, printed("tcpdump", &["-d", "-r", sample, "icmp"]));
}

#[oracle::test]
fn what_tcpdump_does_itself_is_refused_with_the_pipe() {
    for (words, pipe) in [
        (
            ["-i", "eth0"],
            "tcpdump -i eth0 -w - | beebox filter EXPR -",
        ),
        (
            ["-C", "10"],
            "beebox filter EXPR IN -w - | tcpdump -r - -C 10 -w OUT",
        ),
        (
            ["-G", "60"],
            "beebox filter EXPR IN -w - | tcpdump -r - -G 60 -w OUT",
        ),
        (
            ["-z", "gzip"],
            "beebox filter EXPR IN -w - | tcpdump -r - -z gzip -w OUT",
        ),
        (
            ["-Q", "in"],
            "tcpdump -i IFACE -Q in -w - | beebox filter EXPR -",
        ),
        (["-Z", "nobody"], "sudo -u nobody beebox filter EXPR IN"),
    ] {
        // With an expression, and alone.
        for operands in [&["tcp"][..], &[]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
            let command = command.arg("filter").args(words).args(operands);
            let output = command.output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.contains(words[0]) && said.contains(&format!("try: {pipe}\n")),
                "{said}"
            );
        }
    }
}
