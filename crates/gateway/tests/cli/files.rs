//! Standard input in place of a file.

use std::fs;
use std::process::Output;

use super::{CAPTURE, GATEWAY, RULES, run, stderr_of, text};
use command_tests::root;

/// Runs the command with the rules as standard input.
fn with_rules(words: &[&str]) -> Output {
    let input = fs::File::open(root().join(RULES)).unwrap();
    GATEWAY.command().args(words).stdin(input).output().unwrap()
}

#[oracle::test]
fn rules_come_from_standard_input() {
    const PACKET: &str = "proto udp from 10.0.0.1 port 4000 to 192.0.2.1 port 53";
    for words in [
        &["diff", RULES, RULES][..],
        &["explain", RULES, "--packet", PACKET],
        &["run", RULES, "--pcap", CAPTURE],
    ] {
        let named = run(words);
        let mut words = words.to_vec();
        words[1] = "-";
        let read = with_rules(&words);
        assert_eq!(stderr_of(&read), "", "{words:?}");
        assert_eq!(read.status.code(), named.status.code(), "{words:?}");
        assert_eq!(text(&read), text(&named), "{words:?}");
    }
    let read = with_rules(&["compile", "-", "--no-analysis"]);
    assert_eq!(read.status.code(), Some(0), "{}", stderr_of(&read));
    for words in [
        &["diff", "-", "-"][..],
        &["run", "-", "--pcap", "-"],
        &["explain", "-", "--packet", "-"],
    ] {
        let read = with_rules(words);
        assert_eq!(read.status.code(), Some(2), "{words:?}");
        let expected = "beebox-gateway: standard input can be read only once\n";
        assert_eq!(stderr_of(&read), expected);
    }
}
