//! Outputs: complete or absent, never an input, safe for a terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::{CAPTURE, GATEWAY, RULES, failure_of, file, stderr_of};
use command_tests::root;

#[oracle::test]
fn no_command_writes_over_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let rules = file(directory.path(), "a.rules", "drop proto tcp\n");
    let saved = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
    let saved = file(directory.path(), "a.save", saved);
    let capture = directory.path().join("a.pcap").display().to_string();
    fs::copy(root().join(CAPTURE), &capture).unwrap();
    for (input, words) in [
        (&rules, &["compile", &rules, "-o", &rules][..]),
        (&rules, &["run", &rules, "--pcap", &capture, "-w", &rules]),
        (
            &capture,
            &["run", &rules, "--pcap", &capture, "-w", &capture],
        ),
        (
            &saved,
            &["import", "--from", "iptables-save", &saved, "-o", &saved],
        ),
    ] {
        let before = fs::read(input).unwrap();
        let told = failure_of(words);
        let expected = format!("output is also an input (read as {input})\n");
        assert!(told.contains(&expected), "{words:?}: {told}");
        assert_eq!(fs::read(input).unwrap(), before, "{words:?}");
    }
}

#[oracle::test]
fn outputs_that_do_not_fit_leave_the_old_file() {
    let full = failure_of(&["run", RULES, "--pcap", CAPTURE, "-w", "/dev/full"]);
    let expected = "beebox-gateway: /dev/full: No space left";
    assert!(full.starts_with(expected), "{full}");
    for words in [
        &["run", RULES, "--pcap", CAPTURE, "-w"][..],
        &["compile", RULES, "-o"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = file(directory.path(), "out.pcap", "old");
        // Files have up to 1,024 bytes.
        let output = Command::new("bash")
            .current_dir(root())
            .args(["-c", "ulimit -f 1; exec \"$@\"", "bash", GATEWAY.path])
            .args(words)
            .arg(&out)
            .output()
            .unwrap();
        let told = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains("out.pcap: File too large"), "{told}");
        assert_eq!(fs::read(&out).unwrap(), b"old", "{words:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[oracle::test]
fn control_characters_of_rules_are_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let rules = "drop proto tcp to 192.0.2.1 # \u{1b}[31m\u{9b}2J\u{7}\nnonsense \u{1b}[2J\n";
    let rules = file(directory.path(), "a.rules", rules);
    for words in [
        &["compile", &rules][..],
        &["run", &rules, "--pcap", CAPTURE],
    ] {
        let told = failure_of(words);
        let raw = told
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(raw, None, "{words:?}: {told}");
        assert!(told.contains("\\u001b"), "{told}");
    }
}

/// The lines of the first packets are there while the capture, a pipe, is not at its end.
#[oracle::test]
fn lines_of_packets_are_printed_as_they_come() {
    const PACKETS: usize = 20_000;
    for format in ["text", "json"] {
        let mut child = GATEWAY
            .command()
            .args([
                "run",
                RULES,
                "--pcap",
                "-",
                "--per-packet",
                "--format",
                format,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut capture = Vec::from(0xa1b2_c3d4_u32.to_le_bytes());
        capture.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
        for _ in 0..PACKETS {
            capture.extend([0; 8]);
            capture.extend([14, 0, 0, 0, 14, 0, 0, 0]);
            capture.extend([0; 14]);
        }
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut text = String::new();
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                input.write_all(&capture).unwrap();
                // The input ends when lines were read.
                let _ = receiver.recv();
            });
            let mut first = [0; 1 << 10];
            output.read_exact(&mut first).unwrap();
            text.push_str(std::str::from_utf8(&first).unwrap());
            drop(sender);
            output.read_to_string(&mut text).unwrap();
        });
        assert!(child.wait().unwrap().success());
        let header = usize::from(format == "text");
        assert_eq!(text.lines().count(), PACKETS + header, "{format}");
    }
}
