//! `beebox run --why`, `--verdicts`, `--only`, outputs by verdict and `--against`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const EDGE: &str = "examples/why/edge.bpf.o";
const WHY: &str = "crates/cli/tests/data/why.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("run")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (i32, String, String) {
    let output = run(words);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code().expect("a code"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Standard output of a run that answers yes.
fn shown(words: &[&str]) -> String {
    let (code, out, said) = answer(words);
    assert_eq!(code, 0, "{words:?}: {said}");
    out
}

fn json(words: &[&str]) -> Value {
    serde_json::from_str(&shown(&[words, &["-j"]].concat())).expect("JSON")
}

/// Events of a kind in the steps of a run.
fn events<'v>(steps: &'v Value, kind: &str) -> Vec<&'v Value> {
    let mut found = Vec::new();
    for step in steps.as_array().into_iter().flatten() {
        found.extend(events(&step["first_steps"], kind));
        found.extend(events(&step["last_steps"], kind));
        let own = step["events"].as_array().into_iter().flatten();
        found.extend(own.filter(|event| event["event"] == kind));
    }
    found
}

#[oracle::test]
fn verdicts_are_those_that_are_told_counted_and_written() {
    let rows = shown(&[FIREWALL, "--pcap", SAMPLE, "--verdicts", "--format", "csv"]);
    let rows: Vec<Vec<&str>> = rows
        .lines()
        .skip(1)
        .map(|row| row.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 298);
    let dropped: Vec<&Vec<&str>> = rows.iter().filter(|row| row[4] == "XDP_DROP").collect();
    assert_eq!(dropped.len(), 6);
    for row in &dropped {
        let why = json(&[FIREWALL, "--pcap", SAMPLE, "--why", row[0]]);
        assert_eq!(why["verdict"], "XDP_DROP", "{row:?}");
        assert_eq!(why["bytes"].to_string(), row[2]);
    }
    let checked = shown(&[
        FIREWALL,
        "--pcap",
        SAMPLE,
        "--verdicts",
        "--format",
        "csv",
        "--engine",
        "checked",
    ]);
    for row in checked.lines().skip(1).take(3) {
        let cells: Vec<&str> = row.split(',').collect();
        let why = json(&[FIREWALL, "--pcap", SAMPLE, "--why", cells[0]]);
        assert_eq!(why["executed"].to_string(), cells[7], "{row}");
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("dropped.pcapng");
    let option = format!("drop={}", out.display());
    shown(&[FIREWALL, "--pcap", SAMPLE, "-o", &option]);
    // Packets of the file alone meet a firewall without rules as before.
    let again = json(&[FIREWALL, "--pcap", out.to_str().unwrap()]);
    assert_eq!(again["packets"], 6);
}

#[oracle::test]
fn packets_are_chosen_by_number_and_filter() {
    let numbers = |words: &[&str]| -> Vec<String> {
        let words = [
            &[FIREWALL, "--pcap", SAMPLE, "--verdicts", "--format", "csv"],
            words,
        ]
        .concat();
        let rows = shown(&words);
        rows.lines()
            .skip(1)
            .map(|row| row.split(',').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(numbers(&["--only", "17,20-22"]), ["17", "20", "21", "22"]);
    assert_eq!(numbers(&["--only", "290-999", "-c", "2"]), ["290", "291"]);
    let (code, _, said) = answer(&[
        FIREWALL,
        "--pcap",
        SAMPLE,
        "--only",
        "udp port 53",
        "-c",
        "3",
        "--verdicts",
    ]);
    // A machine without libpcap says so.
    assert!(code == 0 || said.contains("libpcap"), "{said}");
}

#[oracle::test]
fn a_run_is_told_with_variables_calls_records_and_changes() {
    let why = json(&[
        EDGE,
        "--set",
        "largest_segment=1400",
        "--pcap",
        SAMPLE,
        "--why",
        "60",
    ]);
    assert_eq!(why["verdict"], "XDP_DROP");
    let has = |kind: &str, key: &str, value: &str| {
        let events = events(&why["steps"], kind);
        assert!(
            events.iter().any(|event| event[key] == value),
            "{kind} {value}: {events:#?}"
        );
    };
    has("variable", "name", "port");
    has("call", "callee", "bpf_ringbuf_output");
    has("printk", "text", "segment size 1460 refused");
    has("record", "map", "refusals");
    let passed = json(&[EDGE, "--pcap", SAMPLE, "--why", "60"]);
    assert_eq!(passed["packet_changes"][0]["name"], "ip.ttl");
    assert_eq!(passed["packet_changes"][0]["text_after"], "63");
}

#[oracle::test]
fn loops_are_folded_and_callbacks_named() {
    let rounds = json(&[WHY, "--prog", "rounds", "--packet", "zero:60", "--why"]);
    let steps = rounds["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["times"] == 20), "{steps:#?}");
    let callbacks = json(&[WHY, "--prog", "callbacks", "--packet", "zero:60", "--why"]);
    let entered = events(&callbacks["steps"], "enter");
    assert!(
        entered
            .iter()
            .any(|event| event["callback_of"] == "bpf_loop"),
        "{entered:#?}"
    );
}

#[oracle::test]
fn lines_fit_eighty_columns() {
    for packet in ["17", "60", "174"] {
        let text = shown(&[EDGE, "--pcap", SAMPLE, "--why", packet]);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(80), "{text}");
    }
}

#[oracle::test]
fn objects_that_differ_are_a_no() {
    let same = answer(&[EDGE, "--against", EDGE, "--pcap", SAMPLE]);
    assert_eq!((same.0, &*same.1), (0, "298 packets, 0 differ\n"));
    let (code, out, said) = answer(&[
        EDGE,
        "--against",
        WHY,
        "--prog",
        "edge",
        "--pcap",
        SAMPLE,
        "-j",
    ]);
    assert_eq!(code, 1, "{said}");
    let comparison: Value = serde_json::from_str(&out).unwrap();
    let groups = comparison["groups"].as_array().unwrap();
    let differing = groups
        .iter()
        .flat_map(|group| group["differing"].as_array().unwrap());
    let rows = |object, program| {
        let rows = shown(&[
            object,
            "--prog",
            program,
            "--pcap",
            SAMPLE,
            "--verdicts",
            "--format",
            "csv",
        ]);
        rows.lines()
            .skip(1)
            .map(|row| row.split(',').nth(4).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = rows(EDGE, "edge")
        .iter()
        .zip(&rows(WHY, "edge"))
        .filter(|(new, old)| new != old)
        .count();
    let of_verdicts = differing
        .filter(|it| it["old_verdict"] != it["new_verdict"])
        .count();
    assert_eq!(of_verdicts, expected);
}

#[oracle::test]
fn wrong_words_are_named() {
    for (words, expected) in [
        (
            &[FIREWALL, "--pcap", SAMPLE, "--why", "9999"][..],
            "it has no packet 9999",
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "--why"],
            "--why has no number of a packet",
        ),
        (
            &[FIREWALL, "--packet", "zero:60", "--why", "3"],
            "--why N is for packets of a capture",
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "-o", "foo=x"],
            "have no verdict foo",
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "--only", "0-3"],
            "is no packet from 1 on",
        ),
        (
            &[FIREWALL, "--packet", "zero:60", "--verdicts"],
            "--verdicts is for packets of a capture",
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "--format", "csv"],
            "--format csv shows verdicts",
        ),
        (
            &[
                FIREWALL,
                "--against",
                "examples/README.md",
                "--pcap",
                SAMPLE,
            ],
            "examples/README.md",
        ),
    ] {
        let (code, _, said) = answer(words);
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[oracle::test]
fn global_variables_are_compared_whatever_files_are_called() {
    let data = |name: &str| format!("crates/cli/tests/data/against_{name}.bpf.o");
    let [old, new, all] = ["old", "new", "all"].map(data);
    let against = |object: &str, pcap: &str| {
        let (code, out, said) = answer(&[object, "--against", &old, "--pcap", pcap, "-j"]);
        assert_eq!(code, 1, "{said}");
        serde_json::from_str::<Value>(&out).expect("JSON")
    };
    // `seen` is behind another variable in the new one, and the same.
    let compared = against(&new, SAMPLE);
    assert_eq!(compared["map_names"], serde_json::json!(["packets"]));
    assert_eq!(compared["new_only_names"], serde_json::json!(["doubled"]));
    assert_eq!(compared["differing_packets"], 1);
    let differing = &compared["groups"][0]["differing"][0];
    assert_eq!(differing["packet"], 100);
    assert_eq!(differing["map_names"], serde_json::json!(["packets"]));
    // Of many packets the first ones are listed, and all are counted.
    let directory = tempfile::tempdir().unwrap();
    let many = directory.path().join("many.pcap");
    let sample =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap"));
    let sample = sample.unwrap();
    let packets: Vec<u8> = sample[24..].repeat(8);
    std::fs::write(&many, [&sample[..24], &packets].concat()).unwrap();
    let many = many.to_str().unwrap();
    let compared = against(&all, many);
    assert_eq!(compared["packets"], 8 * 298);
    assert_eq!(compared["differing_packets"], 8 * 298);
    assert_eq!(
        compared["groups"][0]["differing"].as_array().unwrap().len(),
        1000
    );
    // Of a later packet the exact one is found, too.
    let words = [&new[..], "--against", &old, "--pcap", many, "-j"];
    let (_, out, _) = answer(&words);
    let compared: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(compared["groups"][0]["differing"][0]["packet"], 100);
}

#[oracle::test]
fn packets_of_verdicts_are_counted_and_each_has_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.pcap");
    let file = file.to_str().unwrap();
    for outputs in [
        [format!("DROP={file}"), format!("PASS={file}")],
        [format!("DROP={file}"), file.to_owned()],
    ] {
        let [one, other] = &outputs;
        let (code, _, said) = answer(&[FIREWALL, "--pcap", SAMPLE, "-w", one, "-w", other]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("another -o writes this file"), "{said}");
        assert!(!Path::new(file).exists());
    }
    let option = format!("DROP={file}");
    let text = shown(&[FIREWALL, "--pcap", SAMPLE, "-w", &option]);
    assert!(text.contains("6 packets of XDP_DROP written to "), "{text}");
    let none = shown(&[FIREWALL, "--pcap", SAMPLE, "--only", "400"]);
    assert!(
        none.contains("no packet of the capture is chosen"),
        "{none}"
    );
    // The program runs on the packets that are not chosen, too.
    let counts = |words: &[&str]| {
        let run = json(
            &[
                &[
                    "crates/cli/tests/data/against_old.bpf.o",
                    "--pcap",
                    SAMPLE,
                    "--dump-maps",
                ],
                words,
            ]
            .concat(),
        );
        let maps = run["maps"].to_string();
        (run["packets"].clone(), maps)
    };
    let (chosen, maps) = counts(&["--only", "5,10"]);
    assert_eq!(chosen, 2);
    assert_eq!(counts(&[]).1, maps);
}
