//! Messages, and what they propose.

use super::{CAPTURE, RULES, failure_of, file, run, text};

#[oracle::test]
fn options_that_state_too_little_or_do_nothing_are_named() {
    for (words, what, remedy) in [
        (
            &["run", RULES, "--pcap", "Cargo.toml"][..],
            "Cargo.toml: neither pcap nor pcapng",
            "captures are pcap or pcapng files, plain or in .gz, .zst, .xz, .lz4 or .bz2",
        ),
        (
            &["attach", "lo", RULES, "--max-rules", "1"],
            "--max-rules is too small: examples/gateway/office.rules has 7 rules",
            "--max-rules 7 or more",
        ),
        (
            &[
                "run",
                RULES,
                "--pcap",
                CAPTURE,
                "--per-packet",
                "--top",
                "3",
            ],
            "--top does nothing with --per-packet",
            "no --top, or no --per-packet",
        ),
    ] {
        let told = failure_of(words);
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].starts_with("beebox-gateway: "), "{told}");
        assert!(told.contains(what), "{told}");
        assert_eq!(lines.last(), Some(&&*format!("  try: {remedy}")), "{told}");
    }
    let told = failure_of(&["attach", "lo", RULES, "--max-table-size", "3"]);
    assert!(told.starts_with("error: invalid value '3'"), "{told}");
}

#[oracle::test]
fn an_answer_names_what_it_assumes_of_the_kernel() {
    let words = ["run", RULES, "--pcap", CAPTURE, "--kernel-version", "5.15"];
    let expected =
        "beebox-gateway: verified for Linux 5.15, assumed as in Linux 6.18: BTF, modules, ";
    let noted = super::stderr_of(&run(&words));
    assert_eq!(noted.matches(expected).count(), 1, "{noted}");
}

#[oracle::test]
fn rules_that_decide_nothing_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let rules = file(directory.path(), "l.rules", "pass from 1.2.3.4 to ::1\n");
    let rules = rules.as_str();
    let output = run(&["compile", rules]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    let why = "\nrule 1 decides about no packet: its source is IPv4, its destination IPv6\n";
    assert!(said.ends_with(why), "{said}");
    assert!(said.starts_with("1 rule, compiled"), "{said}");
    assert!(!said.contains("the rules before it"), "{said}");
    let json = text(&run(&["compile", rules, "-j"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mixed = &json["mixed_families"][0];
    assert_eq!(
        (&mixed["rule"], &mixed["source_family"]),
        (&1.into(), &"IPv4".into())
    );
    let wrong = &*file(directory.path(), "wrong.rules", "default foo\n");
    let wrong = failure_of(&["compile", wrong]);
    assert!(
        wrong.contains("expected pass, drop, redirect, count or sample\n"),
        "{wrong}"
    );
    let wrong = &*file(directory.path(), "wrong.rules", "foo\n");
    let wrong = failure_of(&["compile", wrong]);
    assert!(
        wrong.contains("expected default, other, malformed, pass,"),
        "{wrong}"
    );
    let empty = &*file(directory.path(), "empty.rules", "# nothing\n");
    let output = run(&["compile", empty]);
    assert_eq!(output.status.code(), Some(0));
    let warning =
        format!("beebox-gateway: warning: {empty}: no rules, so that every packet passes\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), warning);
}

#[oracle::test]
fn an_empty_file_of_rules_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "empty", "\n");
    for (from, hint) in [("iptables-save", "iptables-save"), ("nft-json", "nft -j")] {
        let error = failure_of(&["import", "--from", from, &path]);
        let is_told = error.contains("the file is empty") && error.contains(hint);
        assert!(is_told, "{error}");
    }
}
