//! `beebox run --show`: forms of fields of maps, records and variables.

use std::fs;

use serde_json::{Value, json};

use crate::support::BEEBOX;

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const REPORT: &str = "crates/cli/tests/data/report.bpf.o";
const KINDS: &str = "crates/cli/tests/data/kinds.bpf.o";

/// Exit code, standard output and standard error of a run on a packet of 60 bytes.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = BEEBOX.command();
    command.args(["run", "--packet", "zero:60"]).args(words);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn json_of(words: &[&str]) -> Value {
    let (code, text, said) = run(&[words, &["-j"]].concat());
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&text).unwrap()
}

#[oracle::test]
fn records_have_the_form_that_is_chosen() {
    let words = [KINDS, "--prog", "write_event", "--show"];
    let of = |form: &str| json_of(&[&words[..], &[form]].concat())["records"][0]["value"].clone();
    assert_eq!(
        of("events.value.length=hex"),
        json!({ "length": "3c 00 00 00", "number": 1 })
    );
    assert_eq!(of("events.value=u64"), json!((1u64 << 32) + 60));
    // Expectations read and print the same form.
    let directory = tempfile::tempdir().unwrap();
    let expect = directory.path().join("a.expect");
    for (number, code) in [("0.0.0.1", 1), ("1.0.0.0", 0)] {
        let record = format!("record events = {{\"length\": 60, \"number\": \"{number}\"}}\n");
        fs::write(&expect, record).unwrap();
        let more = [
            "events.value.number=ipv4",
            "--expect",
            expect.to_str().unwrap(),
        ];
        let (found, text, said) = run(&[&words[..], &more].concat());
        assert_eq!(found, Some(code), "{text}{said}");
        assert!(
            code == 0 || text.contains("got {\"length\":60,\"number\":\"1.0.0.0\"}"),
            "{text}"
        );
    }
}

#[oracle::test]
fn variables_have_the_form_that_is_chosen() {
    let words = [REPORT, "--prog", "report", "--dump-maps", "--show"];
    let last = |form: &str| {
        let maps = json_of(&[&words[..], &[form]].concat())["maps"]["report.bss"].clone();
        maps[0]["value"][".bss"][1]["last"].clone()
    };
    assert_eq!(last("last.length=ipv4")["length"], "60.0.0.0");
    assert_eq!(
        last("report.bss.value.last.length=ipv4")["length"],
        "60.0.0.0"
    );
    assert!(last("last=hex").as_str().unwrap().ends_with(" 3c 00 00 00"));
    let directory = tempfile::tempdir().unwrap();
    let expect = directory.path().join("a.expect");
    fs::write(&expect, "global last = {\"length\": \"60.0.0.0\"}\n").unwrap();
    let checks = [
        REPORT,
        "--prog",
        "report",
        "--expect",
        expect.to_str().unwrap(),
    ];
    let form = ["--show", "last.length=ipv4"];
    assert_eq!(run(&[&checks[..], &form].concat()).0, Some(0));
    assert_eq!(run(&checks).0, Some(2));
}

#[oracle::test]
fn wrong_places_and_forms_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let maps = directory.path().join("maps.json");
    let entry = "{\"blocked\": [{\"key\": {\"prefix_length\": 8, \"address\": \"10.0.0\"}, \
                 \"value\": {\"name\": \"a\", \"hits\": 0}}]}";
    fs::write(&maps, entry).unwrap();
    let maps = maps.to_str().unwrap();
    let of_firewall = |words: &[&'static str]| [&[FIREWALL][..], words].concat();
    for (words, expected) in [
        (
            of_firewall(&[
                "--show",
                "blocked.key.address=ipv4",
                "--show",
                "blocked.key.address=hex",
            ]),
            "--show: map blocked: address: two forms, ipv4 and hex",
        ),
        (
            [
                &of_firewall(&["--show", "blocked.key.address=ipv4", "--maps"])[..],
                &[maps],
            ]
            .concat(),
            ", by --show blocked.key.address=ipv4\n",
        ),
        (
            vec![
                REPORT,
                "--prog",
                "report",
                "--show",
                "last=hex",
                "--show",
                "report.bss.value.last=ipv6",
            ],
            "last: two forms, hex and ipv6",
        ),
        (
            vec![REPORT, "--prog", "report", "--show", "lost.length=hex"],
            "lost.length is no MAP.key, MAP.value or variable; there are ",
        ),
        (
            vec![
                KINDS,
                "--prog",
                "write_event",
                "--show",
                "events.value.size=hex",
            ],
            "map events: size: there is no such field",
        ),
        (
            vec![KINDS, "--prog", "write_event", "--show", "events.key=hex"],
            "map events: records have no keys",
        ),
        (
            vec![
                KINDS,
                "--prog",
                "write_event",
                "--show",
                "events.value.length=mac",
            ],
            "length: it has 4 bytes, mac takes 6",
        ),
    ] {
        let (code, _, said) = run(&words);
        assert_eq!(code, Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    // Without a choice the hint names none.
    let (_, _, said) = run(&[FIREWALL, "--maps", maps]);
    assert!(said.contains("try: ") && !said.contains("--show"), "{said}");
}

#[oracle::test]
fn numbers_of_a_list_are_on_one_line() {
    let words = [
        FIREWALL,
        "--maps",
        "examples/packets/rules.json",
        "--dump-maps",
    ];
    for format in ["text", "json"] {
        let (_, text, _) = run(&[&words[..], &["--format", format]].concat());
        assert!(text.contains("\"address\": [192, 0, 2, 2]\n"), "{text}");
    }
}
