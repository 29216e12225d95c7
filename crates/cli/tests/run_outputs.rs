//! What `beebox run FILE.o` says of its outputs: what it cuts, fills, leaves out and falls back to.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const OUTPUTS: &str = "crates/cli/tests/data/outputs.bpf.o";
const KFUNCS: &str = "crates/beebox/tests/run/kfuncs.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";
const FIREWALL: &str = "examples/packets/firewall.bpf.o";

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("run")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

/// Standard output of a run that answers yes.
fn text(words: &[&str]) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&text(&[words, &["-j"]].concat())).expect("JSON")
}

/// Exit code and standard error.
fn complaint(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("a code"), said)
}

#[oracle::test]
fn a_program_runs_beside_struct_ops() {
    let answer = json(&[OUTPUTS, "--prog", "look", "--packet", "zero:60"]);
    assert_eq!(answer["verdict"], "XDP_DROP");
    let (code, said) = complaint(&[OUTPUTS, "--prog", "undo", "--ctx", "00"]);
    assert_eq!(code, 2);
    assert!(said.contains("struct_ops"), "{said}");
}

#[oracle::test]
fn printed_texts_that_are_left_out_are_counted_first() {
    let words = [OUTPUTS, "--prog", "print", "--pcap", SAMPLE];
    let shown = text(&words);
    let mut lines = shown.lines().skip_while(|line| !line.starts_with("printk"));
    let head = "printk: 89400 texts, of which the first 65536 follow; --format json has all";
    assert_eq!(lines.next(), Some(head));
    assert_eq!(lines.next(), Some("printk, packet 1: 0"));
    assert_eq!(lines.count(), 65535);
    let all = json(&words);
    let texts = all["printk"].as_array().unwrap();
    assert_eq!(texts.len(), 89400);
    assert_eq!(texts[89399]["packet"], 298);
    assert_eq!(texts[89399]["text"], "299");
    assert!(all["printk_lost"].is_null());
    // One run keeps no more than the library does.
    let one = [
        OUTPUTS, "--prog", "print", "--packet", "zero:60", "--repeat", "300",
    ];
    let shown = text(&one);
    let head = "printk: 90000 texts, of which the first 65536 follow\n";
    assert!(shown.contains(head), "{}", &shown[..200]);
    let all = json(&one);
    assert_eq!(all["printk"].as_array().unwrap().len(), 65536);
    assert_eq!(all["printk_lost"], 24464);
}

#[oracle::test]
fn records_without_a_type_are_rows_of_bytes_and_more_than_64_are_counted() {
    let words = [OUTPUTS, "--prog", "record", "--pcap", SAMPLE];
    let shown = text(&words);
    let head = "298 records, of which the first 64 follow; --format json has all\n\
                record of events, packet 1: 20 bytes\n  \
                00000000  74 77 65 6e 74 79 20 62 79 74 65 73 20 6f 66 20  twenty bytes of \n  \
                00000010  74 65 78 74                                      text\n\
                record of events, packet 2: 20 bytes\n";
    assert!(shown.contains(head), "{shown}");
    assert_eq!(shown.matches("record of events").count(), 64);
    let all = json(&words);
    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len(), 298);
    assert_eq!(records[297]["packet"], 298);
    let bytes = "74 77 65 6e 74 79 20 62 79 74 65 73 20 6f 66 20 74 65 78 74";
    assert_eq!(records[297]["value"], bytes);
    let several = [&words[..], &["--jobs", "3", "--share-maps"]].concat();
    // Which of the packets that run at the same time wrote a record is open.
    let values = |all: &Value| -> Vec<Value> {
        let records = all["records"].as_array().unwrap();
        records
            .iter()
            .map(|record| record["value"].clone())
            .collect()
    };
    assert!(values(&json(&several)) == values(&all));
}

#[oracle::test]
fn values_of_maps_are_whole_or_what_they_leave_out_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("maps.json");
    let with = |entries: &str| {
        std::fs::write(&path, format!(r#"{{"rules": [{entries}]}}"#)).unwrap();
        let maps = path.to_str().unwrap();
        complaint(&[
            OUTPUTS, "--prog", "look", "--packet", "zero:60", "--maps", maps,
        ])
    };
    let whole = r#"{"key": 1, "value": {"address": [10, 1, 2, 3], "limit": 5, "low": 1}}"#;
    assert_eq!(with(whole), (0, String::new()));
    let (code, said) =
        with(r#"{"key": 1, "value": {"address": [10, 1, 2], "limit": 5, "low": 1}}"#);
    assert_eq!(code, 2);
    assert!(
        said.contains("entry 0: value: address: [10,1,2] has 3 of 4 elements"),
        "{said}"
    );
    let (code, said) = with(
        r#"{"key": 1, "value": {"limit": 5, "parts": [1, 2, 3, 4]}},
           {"key": 2, "value": {"address": [1, 2, 3, 4]}}"#,
    );
    assert_eq!(code, 0);
    let note = "maps.json: map rules: note: left out, so 0: address, limit, low or parts";
    assert!(said.contains(note), "{said}");
    let (code, said) = with(r#"{"key": 1, "valeu": 1, "value": {}}"#);
    assert_eq!(code, 2);
    assert!(said.contains("entries have no member \"valeu\""), "{said}");
    // A long input is not repeated.
    let long = format!(
        r#"{{"key": 1, "value": {{"address": [{}1]}}}}"#,
        "1, ".repeat(1 << 20)
    );
    let (code, said) = with(&long);
    assert_eq!(code, 2);
    assert!(
        said.len() < 1000 && said.contains("more bytes) has more than 4 elements"),
        "{said}"
    );
}

#[oracle::test]
fn the_time_of_a_first_run_is_not_printed_as_the_programs() {
    let one = [OUTPUTS, "--prog", "look", "--packet", "zero:60"];
    let first = |shown: String| shown.lines().next().unwrap_or_default().to_owned();
    assert_eq!(first(text(&one)), "look (xdp, engine native): XDP_DROP (1)");
    assert_eq!(json(&one)["cold"], true);
    let many = [&one[..], &["--repeat", "10"]].concat();
    assert!(first(text(&many)).ends_with(" ns"));
    assert!(json(&many)["cold"].is_null());
    let capture = [OUTPUTS, "--prog", "look", "--pcap", SAMPLE];
    assert!(first(text(&capture)).ends_with(" ns a packet"));
}

#[oracle::test]
fn native_code_that_is_asked_for_and_not_to_be_had_is_an_error() {
    let kernel = ["--kernel", "6.18-minimal"];
    let words = [
        &[KFUNCS, "--prog", "text", "--packet", "zero:64"][..],
        &kernel,
    ]
    .concat();
    let shown = text(&words);
    assert!(
        shown.starts_with("not native code, which does not support yet: "),
        "{shown}"
    );
    for more in [
        &["--engine", "native"][..],
        &["--unverified", "--engine", "native"],
    ] {
        let (code, said) = complaint(&[&words[..], more].concat());
        assert_eq!(code, 2, "{more:?}: {said}");
        assert!(
            said.contains("engine") && said.contains("  try: "),
            "{said}"
        );
    }
    let (_, said) = complaint(&[&words[..], &["--engine", "native"]].concat());
    assert!(
        said.contains("bpf_strlen") && said.contains("--engine checked"),
        "{said}"
    );
}

#[oracle::test]
fn a_capture_is_no_packet() {
    let (code, said) = complaint(&[OUTPUTS, "--prog", "look", "--packet", SAMPLE]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("is a capture") && said.contains("--pcap"),
        "{said}"
    );
}

/// Captures end within a packet where tcpdump was killed.
#[oracle::test]
fn the_packets_before_the_place_where_a_capture_is_cut_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let whole = std::fs::read(root.join("examples/sample.pcap")).unwrap();
    let cut = directory.path().join("cut.pcap");
    std::fs::write(&cut, &whole[..3000]).unwrap();
    let out = directory.path().join("out.pcap");
    let out = out.to_str().unwrap();
    let words = [FIREWALL, "--pcap", cut.to_str().unwrap(), "-w", out];
    let output = run(&[&words[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["packets"], &answer["written"]),
        (&22.into(), &Value::Null),
        "{answer}"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    let said = "after packet 22, at byte 2556: the capture is truncated";
    assert!(told.contains(said), "{told}");
    assert!(!std::path::Path::new(out).exists());
    let output = run(&words);
    assert_eq!(output.status.code(), Some(2));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains(": 22 packets, "), "{shown}");
    // Nothing is before the first packet.
    std::fs::write(&cut, &whole[..30]).unwrap();
    let output = run(&words);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(2), &b""[..])
    );
}

#[oracle::test]
fn what_has_no_room_on_standard_output_is_refused_before_the_run() {
    let on_sample = [OUTPUTS, "--prog", "look", "--pcap", SAMPLE];
    for (words, part) in [
        (
            &["--verdicts", "-w", "-"][..],
            "standard output holds the results",
        ),
        (
            &["--profile", "folded=-"],
            "standard output holds the results",
        ),
        (
            &["--coverage", "lcov=-"],
            "standard output holds the results",
        ),
        (&["--profile", "-j"], "a profile to standard output is text"),
    ] {
        let output = run(&[&on_sample, words].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            output.stdout.is_empty() && said.contains(part),
            "{words:?}: {said}"
        );
    }
}
