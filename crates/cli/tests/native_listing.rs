//! `beebox dis --jit`: the listing is complete and in the right order.

use std::process::{Command, Output};

use serde_json::Value;

const ARP: &str = "\tldh [12]\n\tjne #0x806, drop\n\tret #-1\ndrop:\tret #0\n";
const LOOP: &str = "\
    r6 = 0
    r3 = 1000
again:
    r6 += r3
    r3 += -1
    if r3 != 0 goto again
    call 7
    r2 = 0x1122334455667788 ll
    r0 += r2
    r0 += r6
    exit
";

/// A directory with the test's files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn dis(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["dis", "--jit", "--processor", "plain"])
        .args(words)
        .output()
        .expect("beebox starts")
}

fn text(words: &[&str]) -> String {
    let output = dis(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&text(&words)).unwrap()
}

fn failure(words: &[&str]) -> String {
    let output = dis(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// Checks that the lines follow each other without a gap and that the sums are
/// those of what is listed.
fn check_sums(record: &Value) {
    let mut at = 0;
    let native = record["native"].as_array().unwrap();
    for line in native {
        assert_eq!(number(&line["offset"]), at, "{line}");
        at += line["hex"].as_str().unwrap().len() / 2;
    }
    assert_eq!(number(&record["bytes"]), at);
    let ebpf = record["ebpf"].as_array().unwrap();
    let mut of_slots = 0;
    for insn in ebpf {
        let of_lines: usize = native
            .iter()
            .filter(|line| line["slot"] == insn["index"])
            .map(|line| line["hex"].as_str().unwrap().len() / 2)
            .sum();
        assert_eq!(number(&insn["bytes"]), of_lines, "{insn}");
        of_slots += of_lines;
    }
    assert_eq!(number(&record["bytes_between"]), at - of_slots);
    let each = record["bytes_per_insn"].as_f64().unwrap();
    assert!((each * ebpf.len() as f64 - of_slots as f64).abs() < 0.01);
}

#[oracle::test]
fn every_byte_is_listed_beside_what_it_comes_from() {
    let files = Files::new();
    let arp = files.put("arp.asm", ARP);
    let looping = files.put("loop.s", LOOP);
    let filter = json(&[&arp]);
    check_sums(&filter);
    assert_eq!(filter["insns"].as_array().unwrap().len(), 4);
    let program = json(&["--ebpf", &looping]);
    check_sums(&program);
    assert!(program["insns"].is_null());
    let native = program["native"].as_array().unwrap();
    let of_text = |text: &str| {
        let ebpf = program["ebpf"].as_array().unwrap();
        let insn = ebpf.iter().find(|insn| insn["text"] == text).unwrap();
        let lines = native.iter().filter(|line| line["slot"] == insn["index"]);
        lines.cloned().collect::<Vec<Value>>()
    };
    let call = of_text("call 7");
    assert_eq!(call.last().unwrap()["callee"], "bpf_get_prandom_u32");
    assert_eq!(of_text("if r3 != 0 goto -3").last().unwrap()["target"], 2);
    assert!(
        of_text("r2 = 0x1122334455667788 ll")[0]["text"]
            .as_str()
            .unwrap()
            .ends_with(", 0x1122334455667788")
    );
}

#[oracle::test]
fn tables_stand_behind_the_code() {
    let files = Files::new();
    let mut chain = String::from("ldh [12]\n");
    for port in 0..40 {
        chain += &format!("jeq #{}, yes\n", 3 * port + 1000);
    }
    chain += "ret #0\nyes: ret #1\n";
    let record = json(&[&files.put("chain.asm", chain)]);
    check_sums(&record);
    let native = record["native"].as_array().unwrap();
    let is_data = |line: &Value| line["text"].as_str().unwrap().starts_with("db ");
    let first = native
        .iter()
        .position(is_data)
        .expect("the chain is a table");
    assert!(native[first..].iter().all(is_data));
    assert!(first > 5);
}

#[oracle::test]
fn the_listing_equals_the_json() {
    let files = Files::new();
    let looping = files.put("loop.s", LOOP);
    let listing = text(&["--ebpf", &looping]);
    let record = json(&["--ebpf", &looping]);
    for line in record["native"].as_array().unwrap() {
        let words = line["text"].as_str().unwrap();
        let row = format!("{:2x}: {words}", number(&line["offset"]));
        assert!(listing.contains(&row), "{row}\n{listing}");
    }
    for insn in record["ebpf"].as_array().unwrap() {
        let row = format!(
            "{:5}: {}",
            number(&insn["index"]),
            insn["text"].as_str().unwrap()
        );
        let count = listing.lines().filter(|line| line.contains(&row)).count();
        assert_eq!(count, 1, "{row}\n{listing}");
    }
    let sums = format!("10 eBPF instructions, {} bytes", record["bytes"]);
    assert!(listing.contains(&sums), "{listing}");
}

#[oracle::test]
fn classic_filters_stand_in_three_columns() {
    let files = Files::new();
    let arp = files.put("arp.asm", ARP);
    let listing = text(&[&arp]);
    let heading: Vec<&str> = listing.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["classic", "eBPF", "native"]);
    for line in ["(000) ldh      [12]", "(002) ret      #-1"] {
        assert!(listing.contains(line), "{listing}");
    }
    let seccomp = "ld [0]\njeq #1, no\nret #0x7fff0000\nno: ret #0x50000\n";
    let seccomp = files.put("seccomp.asm", seccomp);
    check_sums(&json(&[&seccomp, "--semantics", "seccomp"]));
    assert_ne!(
        text(&[&seccomp, "--semantics", "seccomp"]),
        text(&[&seccomp])
    );
}

#[oracle::test]
fn text_and_bytes_are_the_same_program() {
    let files = Files::new();
    let source = "r0 = 7\nexit\n";
    let bytes = [0xb7, 0, 0, 0, 7, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    let from_text = text(&["--ebpf", &files.put("a.s", source)]);
    assert_eq!(from_text, text(&["--ebpf", &files.put("a.bin", bytes)]));
    assert!(from_text.contains("mov eax, 7"), "{from_text}");
}

#[oracle::test]
fn what_is_no_program_is_refused_with_its_place() {
    let files = Files::new();
    let falls_off = files.put("a.s", "r0 = 0\n");
    assert!(failure(&["--ebpf", &falls_off]).contains("a.s: "));
    let unknown = files.put("b.s", "r0 = 0\nr0 ?= 1\nexit\n");
    let said = failure(&["--ebpf", &unknown]);
    assert!(said.contains("r0 ?= 1"), "{said}");
    let partial = files.put("c.bin", [0xb7, 0, 0]);
    assert!(failure(&["--ebpf", &partial]).contains("c.bin: "));
    let arp = files.put("arp.asm", ARP);
    assert!(failure(&[&arp, "--format", "dd"]).contains("is written as a listing or as JSON"));
    assert!(failure(&["--ebpf", "--form", "asm", &arp]).contains("--ebpf"));
}
