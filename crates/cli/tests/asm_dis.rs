//! `beebox asm` and `beebox dis` as a user meets them.

use std::process::Command;

use crate::support::beebox;

const ARP: &str = "\tldh [12]\n\tjne #0x806, drop\n\tret #-1\ndrop:\tret #0\n";

fn stdout(words: &[&str], input: impl AsRef<[u8]>) -> Vec<u8> {
    let output = beebox(words, input);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    assert!(error.is_empty(), "{words:?}: {error}");
    output.stdout
}

fn text(words: &[&str], input: impl AsRef<[u8]>) -> String {
    String::from_utf8(stdout(words, input)).expect("text")
}

/// Standard error of a command that can't answer.
fn failure(words: &[&str], input: impl AsRef<[u8]>) -> String {
    let output = beebox(words, input);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[oracle::test]
fn source_is_assembled_to_one_line() {
    let line = "4,40 0 0 12,21 0 1 2054,6 0 0 4294967295,6 0 0 0,\n";
    assert_eq!(text(&["asm"], ARP), line);
    assert_eq!(text(&["asm", "-"], ARP), line);
}

#[oracle::test]
fn every_format_leads_to_every_other() {
    let formats = [
        "raw", "raw-le", "raw-be", "d", "dd", "ddd", "oneline", "asm",
    ];
    for from in formats {
        let input = stdout(&["asm", "--format", from], ARP);
        for to in formats {
            let direct = stdout(&["asm", "--format", to], ARP);
            assert_eq!(
                stdout(&["asm", "--format", to], &input),
                direct,
                "{from} to {to}"
            );
            assert_eq!(
                stdout(&["dis", "--format", to], &input),
                direct,
                "{from} to {to}"
            );
            let named = ["dis", "--format", to, "--form", from];
            assert_eq!(stdout(&named, &input), direct, "{from} to {to}");
        }
    }
}

#[oracle::test]
fn a_file_is_raw_unless_another_format_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("arp.bpf");
    let name = path.to_str().unwrap();
    assert!(stdout(&["asm", "-o", name], ARP).is_empty());
    assert_eq!(
        std::fs::read(&path).unwrap(),
        stdout(&["asm", "--format", "raw"], ARP)
    );
    assert_eq!(
        text(&["dis", name], ""),
        "(000) ldh      [12]\n(001) jeq      #0x806           jt 2\tjf 3\n\
         (002) ret      #-1\n(003) ret      #0\n"
    );
}

#[oracle::test]
fn json_holds_fields_and_text() {
    let record: serde_json::Value =
        serde_json::from_slice(&stdout(&["dis", "--format", "json"], ARP)).unwrap();
    let expected = serde_json::json!({
        "index": 1, "code": 21, "jt": 0, "jf": 1, "k": 2054, "text": "jeq #0x806 jt 2 jf 3",
    });
    assert_eq!(record["insns"][1], expected);
    assert_eq!(record["insns"].as_array().unwrap().len(), 4);

    let words = ["dis", "--format", "json", "--converted"];
    let record: serde_json::Value = serde_json::from_slice(&stdout(&words, ARP)).unwrap();
    assert_eq!(record["insns"][1], expected);
    let converted = record["converted"].as_array().unwrap();
    assert!(converted[0]["origin"].is_null());
    assert_eq!(converted.last().unwrap()["text"], "exit");
    assert_eq!(converted.last().unwrap()["origin"], 3);
}

#[oracle::test]
fn classic_and_converted_code_stand_side_by_side() {
    let listing = text(&["dis", "--converted"], ARP);
    let rows: Vec<&str> = listing.lines().collect();
    assert_eq!(
        rows[0].split_whitespace().collect::<Vec<_>>(),
        ["classic", "converted"]
    );
    let column = rows[0].find("converted").unwrap();
    for row in &rows[1..] {
        let (_, right) = row.split_at(column);
        let (slot, insn) = right.split_once(": ").expect("a converted instruction");
        assert!(
            slot.trim().parse::<u32>().is_ok() && !insn.is_empty(),
            "{row}"
        );
    }
    for index in 0..4 {
        let number = format!("({index:03})");
        assert!(rows.iter().any(|row| row.starts_with(&number)), "{listing}");
    }
    // A value that no one reads costs no code.
    let listing = text(&["dis", "--converted"], "ld #1\nld #2\nret a");
    let dead = listing
        .lines()
        .find(|row| row.starts_with("(000)"))
        .unwrap();
    assert!(dead.ends_with(" -"), "{listing}");
}

#[oracle::test]
fn conversion_follows_the_rules() {
    // A seccomp filter reads its context, a capture filter the packet.
    let source = "ld [0]\nret a";
    assert!(text(&["dis", "--converted"], source).contains("skb[0]"));
    let seccomp = text(&["dis", "--converted", "--semantics", "seccomp"], source);
    assert!(seccomp.contains("*(u32 *)(r6"), "{seccomp}");
    let refused = failure(
        &["dis", "--converted", "--semantics", "seccomp"],
        "ldb [0]\nret a",
    );
    assert!(
        refused.starts_with("beebox: instruction 0 breaks a rule: "),
        "{refused}"
    );
    assert!(refused.contains("(000) ldb      [0]"), "{refused}");
}

#[oracle::test]
fn unreadable_programs_are_shown_with_positions() {
    assert_eq!(
        failure(&["asm"], "ldh [12]\n\tjeq #1, drp\nret #0"),
        "beebox: standard input: line 2, column 10: label 'drp' is not defined\n     \
         2 |  jeq #1, drp\n       |          ^\n"
    );
    let long = format!("300,{}6 0 x 0,", "6 0 0 0,".repeat(299));
    let shown = failure(&["asm"], long);
    assert!(
        shown.contains("line 1, column 2401: expected jf, found 'x'"),
        "{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() < 100),
        "{shown}"
    );
    let lines: Vec<&str> = shown.lines().collect();
    let mark = lines[2].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[1].chars().nth(mark), Some('x'), "{shown}");
    assert!(shown.contains("--form"), "{shown}");
}

#[oracle::test]
fn unsupported_conversions_are_errors() {
    let cases: [(&[&str], &str, &str); 7] = [
        (
            &["dis", "/nowhere/filter.bpf"],
            "",
            "/nowhere/filter.bpf: No such file",
        ),
        (&["dis", "/"], "", "/: Is a directory"),
        (&["dis"], "", "the input is empty"),
        (&["dis"], "\x7fELF", "this is an ELF object"),
        (
            &["dis", "--form", "raw"],
            "1234",
            "the last instruction is truncated",
        ),
        (
            &["asm", "-o", "/nowhere/out.bpf"],
            ARP,
            "/nowhere/out.bpf: No such file",
        ),
        (
            &["dis", "--converted", "--format", "dd"],
            ARP,
            "is written as a listing or as JSON",
        ),
    ];
    for (words, input, message) in cases {
        let error = failure(words, input);
        assert!(
            error.starts_with("beebox: ") && error.contains(message),
            "{error}"
        );
    }
    for words in [
        &["dis", "--format", "exe"][..],
        &["dis", "--linktype", "RAW", "-"],
        &["dis", "-e", "ip", "-"],
        &["dis", "-e", "ip", "--linktype", "NONE"],
        &["dis", "-e", "ip", "--snaplen", "0"],
        &["dis", "--semantics", "seccomp"],
    ] {
        assert!(failure(words, "").starts_with("error: "), "{words:?}");
    }
}

#[oracle::test]
fn expressions_are_compiled_as_by_tcpdump() {
    let probe = beebox(&["dis", "-e", "ip"], "");
    if String::from_utf8_lossy(&probe.stderr).contains("can't be loaded") {
        oracle::skip("expressions beside tcpdump", "no libpcap");
        return;
    }
    assert_eq!(
        text(&["dis", "-e", "arp"], ""),
        "(000) ldh      [12]\n(001) jeq      #0x806           jt 2\tjf 3\n\
         (002) ret      #262144\n(003) ret      #0\n"
    );
    let raw = ["asm", "-e", "ip", "--linktype", "raw", "--snaplen", "96"];
    assert_eq!(
        text(&raw, ""),
        "5,48 0 0 0,84 0 0 240,21 0 1 64,6 0 0 96,6 0 0 0,\n"
    );
    assert_eq!(
        text(
            &["asm", "-e", "ip", "--linktype", "101", "--snaplen", "96"],
            ""
        ),
        text(&raw, "")
    );
    let refused = failure(&["dis", "-e", "ip and and"], "");
    assert!(
        refused.contains("libpcap refuses \"ip and and\": "),
        "{refused}"
    );
    let unknown = failure(&["dis", "-e", "ip", "--linktype", "9999"], "");
    assert!(unknown.contains("libpcap refuses"), "{unknown}");
}

/// The link type reaches libpcap as a capture file would bring it.
#[oracle::test]
fn link_types_mean_what_they_mean_to_tcpdump() {
    let tcpdump = oracle::program("tcpdump");
    if oracle::found("link types beside tcpdump", tcpdump).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("link.pcap");
    let names = [
        "NULL",
        "EN10MB",
        "PPP",
        "RAW",
        "LOOP",
        "LINUX_SLL",
        "IEEE802_11_RADIO",
        "LINUX_SLL2",
    ];
    let numbers = [0u32, 1, 9, 101, 108, 113, 127, 276];
    for (name, number) in names.into_iter().zip(numbers) {
        let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header.extend_from_slice(&262_144u32.to_le_bytes());
        header.extend_from_slice(&number.to_le_bytes());
        std::fs::write(&path, header).unwrap();
        for expression in [
            "ip",
            "ip6",
            "tcp port 22",
            "host 10.0.0.1 and udp",
            "len > 100",
        ] {
            let mut tcpdump = Command::new("tcpdump");
            tcpdump.arg("-r").arg(&path).args(["-ddd", expression]);
            let expected = tcpdump.output().expect("tcpdump runs");
            assert!(expected.status.success(), "{name}: {expression}");
            let words = [
                "dis",
                "-e",
                expression,
                "--linktype",
                name,
                "--format",
                "ddd",
            ];
            assert_eq!(stdout(&words, ""), expected.stdout, "{name}: {expression}");
        }
    }
}

/// A program that has a jump, a call, two slots for one instruction and a narrow
/// atomic.
const EBPF: &str = "
    r6 = r1
    r1 = 0x1122334455667788 ll
    r0 = *(u32 *)(r6 + 4)
    if w0 s> 3 goto out
    call 7
    lock *(u32 *)(r10 - 4) += r0
out:
    exit
";

#[oracle::test]
fn ebpf_is_assembled_and_listed() {
    let hex = text(&["asm", "--ebpf"], EBPF);
    assert_eq!(hex.lines().count(), 8);
    assert!(hex.contains("\n18 01 00 00 88 77 66 55\n00 00 00 00 44 33 22 11\n"));
    let listing = text(&["dis", "--ebpf"], EBPF);
    assert!(
        listing.contains("    4: if w0 s> 3 goto +2 <7>\n"),
        "{listing}"
    );
    assert!(
        listing.contains("    5: call 7 <bpf_get_prandom_u32>\n"),
        "{listing}"
    );
    let log = text(&["dis", "--ebpf", "--format", "log"], EBPF);
    assert!(log.contains("\n4: (66) if w0 s> 0x3 goto pc+2\n"), "{log}");
    let array = text(&["asm", "--ebpf", "--format", "dd"], EBPF);
    assert!(array.contains("\n{ 0xc3, 10, 0, -4, 0 },\n"), "{array}");
    let json = text(&["dis", "--ebpf", "--format", "json"], EBPF);
    let record: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(record["insns"][2]["index"], 3);
    assert_eq!(record["insns"][6]["hex"], "95 00 00 00 00 00 00 00");
}

#[oracle::test]
fn every_form_of_ebpf_leads_to_every_other() {
    let forms = ["raw", "raw-le", "hex", "d", "asm", "dd", "log", "json"];
    for from in forms {
        let input = stdout(&["asm", "--ebpf", "--format", from], EBPF);
        for to in forms {
            let direct = stdout(&["dis", "--ebpf", "--format", to], EBPF);
            let again = stdout(&["dis", "--ebpf", "--format", to], &input);
            assert_eq!(again, direct, "{from} to {to}");
        }
    }
}

#[oracle::test]
fn errors_in_ebpf_text_have_positions() {
    let said = failure(&["asm", "--ebpf"], "r0 = 0\nr0 ?= 1\nexit\n");
    assert!(said.contains("line 2, column 4"), "{said}");
    assert!(said.contains("r0 ?= 1"), "{said}");
    let said = failure(&["dis", "--ebpf"], [0x95, 0, 0]);
    assert!(said.contains("3 bytes are not a whole number"), "{said}");
    let said = failure(&["dis", "--ebpf", "--format", "ddd"], EBPF);
    assert!(said.contains("is for classic programs"), "{said}");
    let said = failure(&["dis", "--format", "log"], ARP);
    assert!(said.contains("--ebpf"), "{said}");
}
