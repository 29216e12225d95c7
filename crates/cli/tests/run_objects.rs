//! `beebox run FILE.o` as a user meets it: exit codes, messages, captures written, maps.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const RULES: &str = "examples/packets/rules.json";
const SAMPLE: &str = "examples/sample.pcap";

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("run")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

fn json(words: &[&str]) -> Value {
    let output = run(&[words, &["-j"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Exit code and standard error.
fn complaint(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("a code"), said)
}

#[oracle::test]
fn a_capture_goes_through_the_firewall() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("kept.pcapng");
    let out = out.to_str().unwrap();
    let words = [FIREWALL, "--pcap", SAMPLE, "--maps", RULES, "--dump-maps"];
    let first = json(&[&words[..], &["-w", out]].concat());
    assert_eq!(first["packets"], 298);
    assert_eq!(first["written"], 217);
    assert_eq!(first["verdicts"][1]["verdict"], "XDP_DROP");
    assert_eq!(first["verdicts"][1]["packets"], 81);
    let rule = &first["maps"]["blocked"][0]["value"];
    assert_eq!((&rule["name"], &rule["hits"]), (&"lab".into(), &78.into()));
    // What is kept passes again, with the maps that were printed.
    let maps = directory.path().join("maps.json");
    std::fs::write(&maps, first.to_string()).unwrap();
    let again = json(&[
        FIREWALL,
        "--pcap",
        out,
        "--maps",
        maps.to_str().unwrap(),
        "--dump-maps",
    ]);
    assert_eq!(again["verdicts"].as_array().unwrap().len(), 1);
    assert_eq!(again["verdicts"][0]["packets"], 217);
    assert_eq!(again["maps"]["blocked"], first["maps"]["blocked"]);
    assert_eq!(again["maps"]["actions"][2]["values"][0]["value"], 2 * 217);
}

#[oracle::test]
fn a_rewritten_packet_is_printed_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (maps, out) = (file("maps.json"), file("out.pcap"));
    let targets =
        r#"{"targets": [{"key": "0x020200c0", "value": {"address": 16909060, "packets": 0}}]}"#;
    std::fs::write(&maps, targets).unwrap();
    let rewrite = "examples/packets/rewrite.bpf.o";
    let packet = "000000000000000000000000080045000028000100004006f6ccc0000201c0000202";
    let one = json(&[rewrite, "--packet", packet, "--maps", &maps]);
    assert_eq!(
        (&one["retval"], &one["verdict"]),
        (&0.into(), &"TC_ACT_OK".into())
    );
    let data = one["data_out"].as_str().unwrap();
    assert_eq!(data[data.len() - 8..], *"04030201");
    assert!(
        one["ctx_out"]
            .as_str()
            .unwrap()
            .starts_with("000000000000000001000000")
    );
    let all = json(&[
        rewrite,
        "--pcap",
        SAMPLE,
        "--maps",
        &maps,
        "-w",
        &out,
        "--dump-maps",
    ]);
    let rewritten = all["maps"]["targets"][0]["value"]["packets"]
        .as_u64()
        .unwrap();
    let written = std::fs::read(&out).unwrap();
    let sample = std::fs::metadata(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(SAMPLE),
    );
    assert_eq!(written.len() as u64, sample.unwrap().len());
    let new = written
        .windows(4)
        .filter(|bytes| *bytes == [4, 3, 2, 1])
        .count();
    assert!(
        rewritten > 0 && new as u64 >= rewritten,
        "{rewritten} {new}"
    );
}

#[oracle::test]
fn redirects_are_shown_by_their_targets() {
    let network = "examples/packets/router.json";
    let words = [
        "examples/packets/router.bpf.o",
        "--network",
        network,
        "--ifindex",
        "2",
    ];
    let capture = [&words[..], &["--pcap", SAMPLE]].concat();
    let one = json(&capture);
    let redirects = one["redirects"].as_array().unwrap();
    let packets = redirects.iter().map(|to| to["packets"].as_u64().unwrap());
    assert_eq!(packets.sum::<u64>(), 93);
    assert!(redirects.iter().any(|to| to["ifindex"] == 3));
    let several = json(&[&capture[..], &["--jobs", "2", "--share-maps"]].concat());
    assert_eq!(several["redirects"], one["redirects"]);

    let network = "examples/packets/queues.json";
    let maps = "examples/packets/queues.maps.json";
    // UDP to port 4433.
    let packet = "0200000000020200000001070800\
                  4500001c0000000040110000c0000207c000020204d2115100080000";
    let words = [
        "examples/packets/queues.bpf.o",
        "--network",
        network,
        "--maps",
        maps,
    ];
    let words = [
        &words[..],
        &["--packet", packet, "--dump-maps", "--ifindex"],
    ]
    .concat();
    for (ifindex, is_delivered) in [("2", true), ("3", false)] {
        let run = json(&[&words[..], &[ifindex]].concat());
        assert_eq!(run["verdict"], "XDP_REDIRECT");
        assert_eq!(run["redirect"]["socket"], 7);
        assert_eq!(run["redirect"]["delivered"], is_delivered);
        assert_eq!(run["maps"]["sockets"][1]["value"], 8);
    }
}

#[oracle::test]
fn wrong_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let pcap = ["--pcap", SAMPLE];
    let cases: &[(&[&str], &[&str])] = &[
        (
            &[RULES, "--packet", "00"],
            &[
                "this file is not a BPF object",
                "an object (*.bpf.o) as FILE",
            ],
        ),
        (&[FIREWALL], &["no packet is given", "--pcap IN"]),
        (
            &[FIREWALL, "--prog", "fire", "--packet", "00"],
            &["no program is called \"fire\"", "firewall"],
        ),
        (
            &[FIREWALL, "--packet", "zero:13"],
            &["13 bytes", "EINVAL", "14 to"],
        ),
        (
            &["examples/packets/rewrite.bpf.o", "--packet", "zero:3713"],
            &["EINVAL", "3712"],
        ),
        (
            &[FIREWALL, "--packet", "zero:60", "--ctx", "zero:0"],
            &["a context of 0 bytes", "EINVAL"],
        ),
        (
            &[
                FIREWALL,
                "--packet",
                "zero:60",
                "--ctx",
                "0000000000000000000000000000000000000000 01000000",
            ],
            &["a context of 24 bytes", "EINVAL"],
        ),
        (
            &[FIREWALL, "--pcap", RULES],
            &["neither pcap nor pcapng", "--packet"],
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "-w", SAMPLE],
            &["output is also an input"],
        ),
        (
            &[FIREWALL, "--pcap", SAMPLE, "--set", "nothing=1"],
            &["global nothing", "one of "],
        ),
        (
            &[FIREWALL, "--packet", "zero:60", "--engine", "classic"],
            &["'classic'", "native, interp, checked"],
        ),
        (
            &[FIREWALL, "--packet", "zero:60", "--clock", "fixed"],
            &["--time NS"],
        ),
        (
            &[
                FIREWALL, "--packet", "zero:60", "--clock", "real", "--time", "1",
            ],
            &["--clock fixed"],
        ),
        (
            &[
                "examples/traffic/traffic.bpf.o",
                "--prog",
                "nope",
                "--packet",
                "00",
            ],
            &["no program"],
        ),
    ];
    for (words, expected) in cases {
        let (code, said) = complaint(words);
        assert_eq!(code, 2, "{words:?}: {said}");
        for part in *expected {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
    for (text, expected) in [
        ("{", "invalid JSON"),
        ("[]", "no object with maps"),
        (r#"{"block": []}"#, "there are"),
        (
            r#"{"blocked": [{"key": {"length": 1}, "value": {}}]}"#,
            "members are prefix_length",
        ),
        (
            r#"{"blocked": [{"key": {"prefix_length": 33}, "value": {}}]}"#,
            "a prefix of 33 bits is longer than the 32 bits behind it",
        ),
        (
            r#"{"open_ports": [{"key": 65536, "value": 0}]}"#,
            "does not fit an unsigned number of 16",
        ),
        (r#"{"open_ports": [{"value": 0}]}"#, "it has no key"),
        (
            r#"{"open_ports": [{"key": 80, "value": 0}, {"key": 80, "value": 1}]}"#,
            "key: an entry before has the same",
        ),
        (
            r#"{"open_ports": [{"key": 80, "value": 0}], "open_ports": []}"#,
            "open_ports",
        ),
        (
            r#"{"blocked": [{"key": {"prefix_length": 8}, "value": {"hits": 9, "hits": 1}}]}"#,
            "hits",
        ),
        (
            r#"{"firewall.rodata": [{"value": {".rodata": [{"checks_ports": false}]}}]}"#,
            "constants of the program",
        ),
        (
            r#"{"firewall.bss": [{"value": {".bss": [{"nothing": 1}]}}]}"#,
            "no variable \"nothing\"",
        ),
    ] {
        let maps = file("maps.json", text);
        let (code, said) = complaint(&[&[FIREWALL, "--maps", &maps], &pcap[..]].concat());
        assert_eq!(code, 2, "{text}: {said}");
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[oracle::test]
fn sizes_that_an_object_leaves_to_its_loader_are_set() {
    let with = |size| {
        let words = [FIREWALL, "--packet", "00", "--max-entries", size];
        complaint(&words)
    };
    let (code, said) = with("open_ports=0");
    assert_eq!(code, 1);
    assert!(
        said.contains("map 'open_ports' is not created: a hash map needs max_entries (EINVAL)"),
        "{said}"
    );
    assert!(said.contains("try: --max-entries open_ports=N"), "{said}");
    let (code, said) = with("ports=1");
    assert_eq!(code, 2);
    assert!(said.contains("no map is called \"ports\""), "{said}");
    assert!(said.contains("open_ports"), "{said}");
    for wrong in ["open_ports", "open_ports=many", "open_ports=-1"] {
        assert_eq!(with(wrong).0, 2, "{wrong}");
    }
    let sized = ["--max-entries", "open_ports=2", "--dump-maps"];
    let ran = json(&[&[FIREWALL, "--pcap", SAMPLE][..], &sized].concat());
    assert_eq!(ran["packets"], 298);
}

#[oracle::test]
fn a_refused_program_runs_only_unverified_and_traps() {
    let port = "examples/verify/port.bpf.o";
    let options = format!(
        "{}08004f{}06{}",
        "00".repeat(12),
        "00".repeat(8),
        "00".repeat(30)
    );
    let (code, said) = complaint(&[port, "--packet", &options]);
    assert_eq!(code, 1);
    assert!(
        said.contains("refused: R2 offset is outside of the packet"),
        "{said}"
    );
    let output = run(&[port, "--packet", &options, "--unverified"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["trap", "beyond the end of `packet`", "port.bpf.c:48"] {
        assert!(text.contains(part), "{text}");
    }
}

#[oracle::test]
fn a_trap_after_a_tail_call_names_its_program_and_line() {
    let chain = "crates/cli/tests/data/chain.bpf.o";
    let words = [
        chain,
        "--prog",
        "entry",
        "--packet",
        "zero:60",
        "--unverified",
    ];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "entry (xdp, engine checked): trap",
        "second, entered by a tail call: instruction 1",
        "chain.bpf.c:41: return start[100];",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let one = json(&words);
    assert_eq!(one["entered"], "second");
    assert_eq!(one["source"]["line"], 41);
    // A packet that is long enough has the byte.
    let words = [
        chain,
        "--prog",
        "entry",
        "--packet",
        "zero:101",
        "--unverified",
    ];
    assert_eq!(json(&words)["retval"], 0);
    // The program by itself was entered by none.
    let own = json(&[
        chain,
        "--prog",
        "second",
        "--packet",
        "zero:60",
        "--unverified",
    ]);
    assert_eq!(own["trap"]["insn"], 1);
    assert!(own.get("entered").is_none(), "{own}");
}

const REPORT: &str = "crates/cli/tests/data/report.bpf.o";

#[oracle::test]
fn printed_text_and_the_engine_are_shown() {
    let words = [REPORT, "--prog", "report", "--packet", "zero:60"];
    let one = json(&[&words[..], &["--time", "77"]].concat());
    assert_eq!(one["engine"], "native");
    assert_eq!(one["printk"][0]["text"], "packet 1 of 60 bytes at 77\n");
    let all = json(&[REPORT, "--prog", "report", "--pcap", SAMPLE]);
    assert_eq!(all["printk"].as_array().unwrap().len(), 3);
    assert_eq!(all["printk"][2]["packet"], 3);
    // Text that an argument points to.
    let by_name = json(&[REPORT, "--prog", "by_name", "--packet", "zero:60"]);
    assert_eq!(by_name["printk"][0]["text"], "called by name");
    assert_eq!(by_name["engine"], "native");
    // Functions whose pointers are not verified run in the checked engine.
    let words = [
        "crates/beebox/tests/run/kfuncs.bpf.o",
        "--prog",
        "text",
        "--packet",
        "zero:64",
        "--kernel",
        "6.18-minimal",
    ];
    let checked = json(&words);
    assert_eq!(checked["engine"], "checked");
    let why = checked["fallback_reason"].as_str().unwrap();
    assert!(why.ends_with("a call of bpf_strlen"), "{why}");
    let text = run(&words).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.starts_with("not native code"), "{text}");
}

#[oracle::test]
fn options_set_clock_cpu_and_interface_of_a_run() {
    let last = |words: &[&str]| {
        let words = [&[REPORT, "--prog", "report", "--packet", "zero:60"], words].concat();
        let mut of_engines = ["native", "checked"].map(|engine| {
            let answer = json(&[&words[..], &["--dump-maps", "--engine", engine]].concat());
            assert_eq!(answer["engine"], engine);
            answer["maps"]["report.bss"][0]["value"][".bss"][1]["last"].clone()
        });
        if !words.contains(&"real") {
            assert_eq!(of_engines[0], of_engines[1]);
        }
        of_engines[0].take()
    };
    let plain = last(&[]);
    assert_eq!((&plain["cpu"], &plain["ifindex"]), (&0.into(), &1.into()));
    assert_eq!((&plain["time"], &plain["length"]), (&0.into(), &60.into()));
    assert_eq!(last(&[]), plain);
    assert_ne!(last(&["--seed", "1"])["random"], plain["random"]);
    let other = last(&["--cpu", "3", "--ifindex", "7", "--time", "99"]);
    assert_eq!((&other["cpu"], &other["ifindex"]), (&3.into(), &7.into()));
    assert_eq!(other["time"], 99);
    assert!(last(&["--clock", "real", "--timeout", "60"])["time"].as_u64() > Some(0));
}

#[oracle::test]
fn records_of_ring_buffers_are_shown_by_their_types() {
    let flows = ["examples/packets/flows.bpf.o", "--pcap", SAMPLE];
    let all = json(&flows);
    let records = all["records"].as_array().unwrap();
    assert!(records.len() > 10, "{}", records.len());
    assert_eq!(records[0]["map"], "events");
    let packets = records.iter().map(|record| record["packet"].as_u64());
    assert!(packets.is_sorted() && records[0]["packet"] != 0);
    for member in ["kind", "tcp_flags", "flow", "packets", "bytes", "time"] {
        assert!(!records[0]["value"][member].is_null(), "{member}");
    }
    let of_engine = json(&[&flows[..], &["--engine", "checked"]].concat());
    assert_eq!(of_engine["records"], all["records"]);
    let bytes = json(&[&flows[..], &["--records", "events=flow"]].concat());
    assert_ne!(bytes["records"][0]["value"], records[0]["value"]);
    let as_c_writes_it = json(&[&flows[..], &["--records", "events=struct event"]].concat());
    assert_eq!(as_c_writes_it["records"], all["records"]);
    let text = run(&flows).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("record of events, packet "), "{text}");
    for (given, part) in [
        ("events", "no MAP=TYPE"),
        ("events=nosuch", "no type nosuch"),
        ("event=event", "there are "),
        (
            "flows=event",
            "map flows is no ring buffer and no perf buffer",
        ),
    ] {
        let (code, said) = complaint(&[&flows[..], &["--records", given]].concat());
        assert!(code == 2 && said.contains(part), "{said}");
    }
}

#[oracle::test]
fn pages_of_an_arena_are_printed_and_put_back() {
    const ARENA: &str = "crates/beebox/tests/run/arena.bpf.o";
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let number = file("number", &18u64.to_le_bytes());
    let pushed = json(&[ARENA, "--prog", "push", "--ctx", &number, "--dump-maps"]);
    // The object begins with five; its list has the number that was pushed.
    assert_eq!(pushed["retval"], 6);
    let pages = pushed["maps"]["arena"].as_array().expect("pages");
    assert_eq!(pages.len(), 2, "variables and a node");
    let pages = serde_json::json!({ "arena": pages });
    let maps = file("maps.json", pages.to_string().as_bytes());
    assert_eq!(
        json(&[ARENA, "--prog", "sum", "--maps", &maps])["retval"],
        18
    );
    let again = json(&[ARENA, "--prog", "push", "--ctx", &number, "--maps", &maps]);
    assert_eq!(again["retval"], 7);
    let wrong = file("wrong.json", br#"{"arena": [{"address": 5}]}"#);
    let (code, said) = complaint(&[ARENA, "--prog", "sum", "--maps", &wrong]);
    assert_eq!(code, 2);
    assert!(said.contains(r#"try: {"MAP": [{"address""#), "{said}");
}

#[oracle::test]
fn the_time_limit_is_that_of_all_runs_together() {
    const MANY: &str = "4000000000";
    let often = ["--packet", "zero:60", "--repeat", MANY, "--timeout", "0.05"];
    let at_once = ["--packet", "zero:60", "--timeout", "0"];
    let capture = ["--pcap", SAMPLE, "--timeout", "0"];
    for engine in ["native", "checked"] {
        for words in [&often[..], &at_once, &capture] {
            let words = [&[FIREWALL, "--engine", engine][..], words].concat();
            let output = run(&words);
            assert_eq!(output.status.code(), Some(1), "{words:?}");
            let text = String::from_utf8_lossy(&output.stdout);
            let why = "\nthe time limit of --timeout has passed\n";
            assert!(text.contains(why), "{words:?}: {text}");
            assert_eq!(json(&words)["trap"]["kind"], "deadline", "{words:?}");
        }
    }
    let enough = [
        FIREWALL,
        "--packet",
        "zero:60",
        "--repeat",
        "5000",
        "--timeout",
        "60",
    ];
    assert_eq!(run(&enough).status.code(), Some(0));
}

#[oracle::test]
fn limits_of_time_and_memory_are_named_when_they_end_a_run() {
    const LIMITS: &str = "crates/beebox/tests/run/limits.bpf.o";
    let stopped = |words: &[&str], why: &str, kind: &str| {
        let words = [&[LIMITS, "--packet", "zero:64", "--prog"], words].concat();
        let output = run(&words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(why), "{words:?}: {text}");
        let trap = &json(&words)["trap"];
        assert_eq!(trap["kind"], kind, "{words:?}");
        let message = trap["message"].as_str().expect("a message");
        assert!(message.contains(why), "{message}");
    };
    let words = ["grow", "--ifindex", "2000", "--memory", "4M"];
    let why = "the maps need more than 4194304 bytes, the limit of their memory; --memory SIZE";
    stopped(&words, why, "memory");
    let words = ["endless"];
    let why = "the program did not end within 10s, the limit of a run; --timeout SECONDS";
    stopped(&words, why, "deadline");
    // Maps are created and filled within the limit, too.
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let entry = |bytes: usize| format!("[{}]", vec!["0"; bytes].join(","));
    let entries =
        (0..600).map(|key| format!(r#"{{"key":{key},"value":{{"bytes":{}}}}}"#, entry(4096)));
    let entries = entries.collect::<Vec<_>>().join(",");
    let maps = put("growing.json", &format!(r#"{{"growing":[{entries}]}}"#));
    let value = format!(r#"{{"bytes": {}}}"#, entry(4096));
    let expected = (0..600).map(|key| format!("set growing {key} = {value}\n"));
    let expected = expected.collect::<String>() + "run grow zero:64\nverdict XDP_PASS\n";
    let expected = put("growing.expect", &expected);
    let packet = ["--packet", "zero:64"];
    for (words, why) in [
        (
            &[&packet[..], &["--prog", "array"]].concat()[..],
            "map wide: the maps need more than 1073741824 bytes, the limit of their memory",
        ),
        (
            &[&packet[..], &["--prog", "array", "--memory", "1"]].concat(),
            "map wide: the maps need more than 1 byte, the limit of their memory",
        ),
        (
            &[
                &packet[..],
                &["--prog", "grow", "--memory", "1M", "--maps", &maps],
            ]
            .concat(),
            "the maps need more than 1048576 bytes, the limit of their memory",
        ),
        (
            &["--memory", "1M", "--expect", &expected],
            "the maps need more than 1048576 bytes, the limit of their memory",
        ),
    ] {
        let words = [&[LIMITS][..], words].concat();
        let (code, said) = complaint(&words);
        assert_eq!(code, 1, "{words:?}: {said}");
        assert!(said.contains(why), "{words:?}: {said}");
        assert!(said.contains("try: --memory SIZE, as 4G"), "{said}");
        let output = run(&[&words[..], &["-j"]].concat());
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["trap"]["kind"], "memory", "{answer}");
        let message = answer["trap"]["message"].as_str().expect("a message");
        assert!(message.contains(why), "{message}");
    }
    let larger = [
        LIMITS, "--packet", "zero:64", "--prog", "array", "--memory", "5G",
    ];
    assert_eq!(json(&larger)["retval"], 2);
}

#[oracle::test]
fn a_machine_has_the_cpus_that_are_asked_for() {
    const LIMITS: &str = "crates/beebox/tests/run/limits.bpf.o";
    let kept = |words: &[&str]| {
        let words = [&[LIMITS, "--packet", "zero:64", "--prog", "evict"], words].concat();
        json(&words)["retval"].as_u64()
    };
    // The built-in kernel has two.
    assert_eq!(kept(&[]), Some(195));
    assert_eq!(kept(&["--cpus", "1"]), Some(131));
    assert_eq!(kept(&["--cpus", "8", "--cpu", "7"]), Some(243));
    let (code, said) = complaint(&[
        LIMITS, "--packet", "zero:64", "--prog", "evict", "--cpus", "2", "--cpu", "2",
    ]);
    assert_eq!(code, 2);
    assert!(said.contains("try: --cpus 3 or more"), "{said}");
}

#[oracle::test]
fn a_full_disk_is_a_fault_of_the_output() {
    let (code, said) = complaint(&[FIREWALL, "--pcap", SAMPLE, "-w", "/dev/full"]);
    assert_eq!(code, 2);
    assert!(
        said.starts_with("beebox: /dev/full: No space left"),
        "{said}"
    );
}

#[oracle::test]
fn a_refusal_is_an_answer_in_json_too() {
    let words = ["examples/verify/record.bpf.o", "--packet", "zero:60", "-j"];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["verifier_verdict"], "failure");
    assert!(answer["prog"].is_string(), "{answer}");
    let reason = answer["reason"].as_str().expect("a reason");
    assert!(reason.contains("reference leak"), "{reason}");
}

#[oracle::test]
fn reads_of_stack_that_was_never_written_are_said_once() {
    const OBJECT: &str = "crates/beebox/tests/run/unwritten.bpf.o";
    let answer = |name, engine| {
        let words = [
            OBJECT, "--prog", name, "--packet", "zero:64", "--repeat", "9",
        ];
        let output = run(&[&words[..], &["--engine", engine, "-j"]].concat());
        assert!(output.status.success(), "{name}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (said, json["unwritten_stack_reads"].clone())
    };
    let (said, json) = answer("direct", "checked");
    let expected = "beebox: direct: not comparable with Linux: instruction 0 (./unwritten.bpf.c:58) \
                    reads stack memory that the program never wrote\n";
    assert_eq!(said, expected);
    let read = &json[0];
    assert_eq!(
        (&read["prog"], &read["insn"]),
        (&"direct".into(), &0.into())
    );
    assert_eq!(
        (&read["certain"], &read["source"]["line"]),
        (&true.into(), &58.into())
    );
    let (said, json) = answer("half", "native");
    assert!(
        said.contains("half: may not be comparable with Linux: instruction 2"),
        "{said}"
    );
    assert!(
        said.contains("--engine checked") && said.lines().count() == 2,
        "{said}"
    );
    assert_eq!(json[0]["certain"], false);
    for engine in ["checked", "native"] {
        assert_eq!(answer("written", engine), (String::new(), Value::Null));
    }
}
