//! `beebox run FILE.o` with programs of every type that Linux test-runs: contexts, perf
//! buffers, program arrays that the host fills, and what does not fit.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const KINDS: &str = "crates/cli/tests/data/kinds.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["run", KINDS])
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

fn record(words: &[&str]) -> Value {
    let output = run(&[words, &["-j"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Standard error of an invocation that could not answer.
fn complaint(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of these contents, which lasts as long as the directory.
fn file(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[oracle::test]
fn every_type_runs_and_names_its_verdict() {
    for (program, verdict, retval) in [
        ("drop", "XDP_DROP", 1),
        ("dissect", "BPF_OK", 0),
        ("accept", "NF_ACCEPT", 1),
        ("tunnel_in", "BPF_OK", 0),
        ("tunnel_out", "BPF_DROP", 2),
        ("tunnel_xmit", "BPF_LWT_REROUTE", 128),
        ("marked", "TC_ACT_OK", 0),
        ("act", "TC_ACT_OK", 0),
        ("keep", "keep", 46),
        ("pass", "pass", 1),
    ] {
        let one = record(&["--prog", program, "--packet", "zero:60"]);
        assert_eq!(one["verdict"], verdict, "{program}");
        assert_eq!(one["retval"], retval, "{program}");
        let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
        for key in [
            "prog",
            "engine",
            "data_out",
            "ctx_out",
            "duration_ns",
            "printk",
        ] {
            assert!(keys.iter().any(|it| *it == key), "{program}: {keys:?}");
        }
    }
}

#[oracle::test]
fn programs_without_packets_get_a_context() {
    let context = "0100000002000000ffffffffffffffff";
    let one = record(&["--prog", "add", "--ctx", context]);
    assert_eq!(one["retval"], 1);
    assert_eq!(one["ctx_out"], "01000000020000000300000000000000");
    let words = ["--prog", "add", "--ctx", context, "--repeat", "3"];
    assert_eq!(record(&words)["ctx_out"], one["ctx_out"]);
    let arguments = "01000000000000000700000000000000";
    let one = record(&["--prog", "second_argument", "--ctx", arguments]);
    assert_eq!((&one["retval"], &one["verdict"]), (&7.into(), &"7".into()));
    // struct bpf_sk_lookup: family at 8, protocol at 12, local_port at 60.
    let mut lookup = [0u8; 72];
    (lookup[8], lookup[12], lookup[60]) = (2, 6, 80);
    let lookup: String = lookup.iter().map(|byte| format!("{byte:02x}")).collect();
    let one = record(&["--prog", "port_80", "--ctx", &lookup]);
    assert_eq!(one["verdict"], "SK_PASS");
    // struct __sk_buff: mark at 8.
    let marked = "00000000 00000000 05000000";
    let words = ["--prog", "marked", "--packet", "zero:60", "--ctx", marked];
    let one = record(&words);
    assert_eq!(one["verdict"], "TC_ACT_SHOT");
    assert_eq!(one["ctx_out"].as_str().unwrap()[16..24], *"06000000");
}

#[oracle::test]
fn records_of_perf_buffers_are_shown_by_their_type() {
    let one = record(&["--prog", "write_event", "--packet", "zero:60"]);
    let expected = json!([{ "map": "events", "value": { "length": 60, "number": 1 } }]);
    assert_eq!(one["records"], expected);
    let all = record(&["--prog", "write_event", "--pcap", SAMPLE]);
    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len(), 298);
    assert_eq!(records[297]["value"]["number"], 298);
    assert_eq!(records[297]["packet"], 298);
}

#[oracle::test]
fn program_arrays_are_filled_by_the_name_of_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let next = file(
        &directory,
        "next.json",
        r#"{"next": [{"key": 1, "value": "drop"}]}"#,
    );
    let words = ["--prog", "jump", "--packet", "zero:60"];
    assert_eq!(record(&words)["verdict"], "XDP_PASS");
    let filled = record(&[&words[..], &["--maps", &next, "--dump-maps"]].concat());
    assert_eq!(filled["verdict"], "XDP_DROP");
    assert_eq!(
        filled["maps"]["next"],
        json!([{ "key": 1, "value": "drop" }])
    );
    // What is printed can be read again.
    let again = file(&directory, "again.json", &filled.to_string());
    let again = record(&[&words[..], &["--maps", &again]].concat());
    assert_eq!(again["verdict"], "XDP_DROP");
    for (entry, part) in [
        (r#"{"key": 1, "value": "dorp"}"#, "no program \"dorp\""),
        (r#"{"key": 2, "value": "drop"}"#, "the array has 2 elements"),
        (r#"{"key": 1, "value": "act"}"#, "does not take program act"),
        (r#"{"key": 1, "value": 7}"#, "no name of a program"),
        (r#"{"value": "drop"}"#, "no index of a program array"),
    ] {
        let maps = format!(r#"{{"next": [{entry}]}}"#);
        let maps = file(&directory, "wrong.json", &maps);
        let said = complaint(&[&words[..], &["--maps", &maps]].concat());
        assert!(said.contains(part) && said.contains("entry 0"), "{said}");
    }
}

#[oracle::test]
fn expectations_hold_contexts_and_records() {
    let directory = tempfile::tempdir().unwrap();
    let good = "run add none ctx=0100000002000000ffffffffffffffff\n\
                retval 1\n\
                ctx[8] 0300000000000000\n\
                run write_event zero:60\n\
                record events = {\"length\": 60}\n\
                record events none\n\
                run write_event zero:61 x2\n\
                record events = {\"number\": 2}\n\
                record events = {\"length\": 61, \"number\": 3}\n\
                record events none\n";
    let met = file(&directory, "met.expect", good);
    let output = run(&["--expect", &met]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, "7 expectations met, 3 runs; 2 leave members out\n");
    let wrong = good
        .replace("ctx[8] 03", "ctx[8] 04")
        .replace("61, \"number\": 3", "61, \"number\": 4");
    let wrong = file(
        &directory,
        "wrong.expect",
        &format!("{wrong}ctx unchanged\n"),
    );
    let output = run(&["--expect", &wrong]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "byte 8: expected 04, got 03",
        "expected {\"length\":61,\"number\":4}, got {\"length\":61,\"number\":3}",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let unknown = file(
        &directory,
        "unknown.expect",
        "run drop zero:60\nrecord evens none\n",
    );
    assert!(complaint(&["--expect", &unknown]).contains("no program uses a map \"evens\""));
}

#[oracle::test]
fn threads_give_the_verdicts_of_one() {
    let words = ["--prog", "keep", "--pcap", SAMPLE];
    let one = record(&words);
    for jobs in ["2", "7"] {
        let several = record(&[&words[..], &["--jobs", jobs]].concat());
        assert_eq!(several["verdicts"], one["verdicts"]);
        assert_eq!(several["packets"], 298);
    }
    // Records come in the order of packets, from the perf buffers of all CPUs.
    let words = ["--prog", "write_event", "--pcap", SAMPLE];
    let shared = ["--jobs", "3", "--share-maps"];
    let several = record(&[&words[..], &shared].concat());
    let records = several["records"].as_array().unwrap();
    let packets = records
        .iter()
        .map(|record| record["packet"].as_u64().unwrap());
    assert!(packets.eq(1..=298));
    let lengths = |record: &Value| {
        record["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["value"]["length"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(&several), lengths(&record(&words)));
    for (words, part) in [
        (
            &["--prog", "write_event", "--pcap", SAMPLE, "--jobs", "2"][..],
            "which are not per CPU: kinds.bss",
        ),
        (
            &["--prog", "keep", "--pcap", SAMPLE, "--jobs", "0"],
            "0 is not in 1..=256",
        ),
        (
            &["--prog", "keep", "--packet", "zero:60", "--jobs", "2"],
            "--pcap",
        ),
        (
            &[
                "--prog", "keep", "--pcap", SAMPLE, "--jobs", "2", "-w", "x.pcap",
            ],
            "cannot be used with",
        ),
        (
            &["--prog", "accept", "--pcap", SAMPLE, "--jobs", "2"],
            "packet 1: programs of type netfilter",
        ),
        (
            &["--prog", "keep", "--pcap", "nosuch.pcap", "--jobs", "2"],
            "No such file",
        ),
    ] {
        let said = complaint(words);
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[oracle::test]
fn captures_come_from_standard_input() {
    let of = |input: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sample = std::fs::read(directory.join(SAMPLE)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_beebox"))
            .args(["run", KINDS, "--prog", "keep", "-j", "--pcap", input])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It is closed early where the capture is a file.
        let _ = child.stdin.take().unwrap().write_all(&sample);
        let output = child.wait_with_output().unwrap();
        let mut answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        answer.as_object_mut().unwrap().remove("duration_ns");
        answer
    };
    assert_eq!(of("-"), of(SAMPLE));
}

#[oracle::test]
fn values_of_local_storage_are_shown_and_set() {
    let words = ["--prog", "count_runs", "--ctx", "zero:8", "--dump-maps"];
    let one = record(&words);
    assert_eq!(one["retval"], 1);
    assert_eq!(one["maps"]["runs"], json!([{"owner": "task", "value": 1}]));
    let directory = tempfile::tempdir().unwrap();
    let maps = directory.path().join("maps.json");
    let maps = maps.to_str().unwrap();
    std::fs::write(maps, one.to_string()).unwrap();
    let again = record(&[&words[..], &["--maps", maps, "--repeat", "2"]].concat());
    assert_eq!(again["retval"], 3);
    for (text, part) in [
        (
            r#"{"runs": [{"owner": "nobody", "value": 1}]}"#,
            "owner: \"nobody\"",
        ),
        (r#"{"runs": [{"owner": "task"}]}"#, "it has no value"),
    ] {
        std::fs::write(maps, text).unwrap();
        let said = complaint(&[&words[..], &["--maps", maps]].concat());
        assert!(said.contains(part) && said.contains("try:"), "{said}");
    }
}

#[oracle::test]
fn input_that_a_type_does_not_take_is_refused_with_the_reason() {
    for (words, parts) in [
        (
            &["--prog", "add", "--packet", "zero:60"][..],
            &["gets no packet", "--ctx"][..],
        ),
        (&["--prog", "drop"], &["no packet is given", "--packet"]),
        (
            &["--prog", "port_80"],
            &["context of 0 bytes", "struct bpf_sk_lookup"],
        ),
        (
            &["--prog", "second_argument", "--ctx", "zero:104"],
            &["EINVAL", "12 arguments"],
        ),
        (
            &["--prog", "add", "--ctx", "zero:65536"],
            &["EINVAL", "65535 bytes"],
        ),
        (
            &["--prog", "marked", "--packet", "zero:60", "--ctx", "01"],
            &["context of 1 bytes", "mark, priority"],
        ),
        (
            &["--prog", "accept", "--pcap", SAMPLE],
            &["do not run on captures"],
        ),
        (
            &["--prog", "add", "--ctx", "xyz"],
            &["no such file", "hexadecimal"],
        ),
        (
            &["--prog", "drop", "--pcap", SAMPLE, "--ctx", "00"],
            &["cannot be used with"],
        ),
        (&["--packet", "zero:60"], &["several programs", "--prog"]),
    ] {
        let said = complaint(words);
        for part in parts {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
}

/// Finds of hooks are captures from the network header on.
#[oracle::test]
fn finds_of_netfilter_programs_are_captures() {
    let directory = tempfile::tempdir().expect("a directory");
    let finds = directory.path().display().to_string();
    let object = "crates/cli/tests/data/hook.bpf.o";
    let never = "NF_DROP if ip and tcp dst port 23";
    let beebox = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_beebox"))
            .args(words)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .output()
            .expect("beebox starts")
    };
    let output = beebox(&[
        "fuzz", object, "--never", never, "--runs", "400000", "-o", &finds,
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let files = std::fs::read_dir(&finds).expect("the finds").flatten();
    let capture = files
        .map(|file| file.path())
        .find(|path| path.extension() == Some("pcap".as_ref()));
    let capture = std::fs::read(capture.expect("a capture")).expect("its bytes");
    // LINKTYPE_IPV4, and a packet that begins with its version.
    assert_eq!((&capture[20..24], capture[40]), (&[228, 0, 0, 0][..], 0x45));
    let output = beebox(&["test", &finds, "--no-why"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// Packets are words, too; what a program does not see of one is not changed, though Linux returns zeros for it.
#[oracle::test]
fn packets_of_words_keep_their_link_header() {
    let packet = "proto udp from 192.0.2.1 port 7 to 198.51.100.1 port 9 text \"abc\"";
    let output = run(&["--prog", "tunnel_out", "--packet", packet]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("packet (45 bytes): unchanged"), "{text}");
    let output = run(&["--prog", "tunnel_out", "--packet", packet, "--why"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("udp 192.0.2.1:7") && !text.contains("changed"),
        "{text}"
    );
    let output = run(&[
        "--prog",
        "tunnel_out",
        "--packet",
        "proto udp from 1.1.1.1 port 7 too 2.2.2.2",
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("column 31: proto, from, to"), "{said}");
}
