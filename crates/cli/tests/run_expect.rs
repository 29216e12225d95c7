//! `beebox run --expect`: what is met, how differences are shown, and files that cannot be
//! used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const REPORT: &str = "crates/cli/tests/data/report.bpf.o";
const EXPECTED: &str = "examples/packets/firewall.expect";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit code, standard output, standard error.
fn run(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("run")
        .args(words)
        .current_dir(repository())
        .output()
        .expect("beebox starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("a code");
    (code, text(output.stdout), text(output.stderr))
}

/// Runs with a file of these expectations.
fn expect(text: &str, words: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.expect");
    fs::write(&path, text).unwrap();
    let (code, out, said) = run(&[words, &["--expect", path.to_str().unwrap()]].concat());
    let shorten = |text: String| text.replace(&*directory.path().to_string_lossy(), "");
    (code, shorten(out), shorten(said))
}

#[oracle::test]
fn the_example_is_met() {
    let (code, out, said) = run(&[FIREWALL, "--expect", EXPECTED]);
    assert_eq!(
        (code, &*out, &*said),
        (0, "9 expectations met, 3 runs; 2 leave members out\n", "")
    );
    let checked = run(&[FIREWALL, "--expect", EXPECTED, "--engine", "checked"]);
    assert_eq!(checked.0, 0, "{}", checked.1);
}

#[oracle::test]
fn a_difference_is_shown_with_its_place() {
    let text = "\
# A comment.
run report zero:60
verdict XDP_DROP
retval 2
printk packet 1 of 60 bytes at 0
printk packet 2
data[58] 0001
global packets = 2
global last = {\"length\": 60, \"cpu\": 1}
run report zero:60 x2
data unchanged
verdict XDP_PASS
";
    let (code, out, said) = expect(text, &[REPORT]);
    assert_eq!(
        (code, &*out, &*said),
        (
            1,
            "\
/a.expect:3: verdict XDP_DROP
  run 1 (report): expected XDP_DROP, got XDP_PASS (2)
/a.expect:6: printk packet 2
  run 1 (report): expected \"packet 2\", got nothing
/a.expect:7: data[58] 0001
  run 1 (report): byte 59: expected 01, got 00
  expected:
  0000003a  00 01                                            ..
  got:
  0000003a  00 00                                            ..
/a.expect:8: global packets = 2
  run 1 (report): expected 2, got 1 (differs from byte 0 on)
/a.expect:9: global last = {\"length\": 60, \"cpu\": 1}
  run 1 (report): expected {\"cpu\":1,\"length\":60}, got \
{\"time\":0,\"cpu\":0,\"ifindex\":1,\"random\":3793791033,\"length\":60} \
(differs from byte 8 on)
5 of 9 expectations not met, 2 runs; 1 leaves members out
",
            ""
        )
    );
}

#[oracle::test]
fn the_run_of_the_command_line_is_held() {
    let (code, out, _) = expect("verdict XDP_PASS\n", &[FIREWALL, "--packet", "zero:60"]);
    assert_eq!((code, &*out), (0, "1 expectation met, 1 run\n"));
    let words = [FIREWALL, "--pcap", "examples/sample.pcap"];
    let (code, out, _) = expect("verdict XDP_PASS\nverdict XDP_DROP 7\n", &words);
    assert_eq!(code, 1);
    for part in [
        "for all packets, got 6 XDP_DROP",
        "expected 7 packets, got 6",
    ] {
        assert!(out.contains(part), "{out}");
    }
    let text = "set open_ports 80 = 5\nset open_ports 81 = 6\nverdict XDP_PASS\n\
                map open_ports 80 = 5\nmap open_ports 82 absent\nmap open_ports entries 2\n";
    let (code, out, _) = expect(text, &[FIREWALL, "--packet", "zero:60"]);
    assert_eq!((code, &*out), (0, "4 expectations met, 1 run\n"));
}

#[oracle::test]
fn members_that_are_left_out_are_said() {
    let text = "set blocked {\"prefix_length\": 24} = {\"name\": \"lab\"}\n\
                set open_ports 80 = 5\n\
                map blocked {\"prefix_length\": 24} = {\"hits\": 0}\n\
                map blocked {\"prefix_length\": 24, \"address\": [0, 0, 0, 0]} = \
                {\"name\": \"lab\", \"hits\": 0}\n\
                map open_ports 80 = 5\n";
    let (code, out, said) = expect(text, &[FIREWALL, "--packet", "zero:60"]);
    assert_eq!(
        (code, &*out),
        (0, "3 expectations met, 1 run; 1 leaves members out\n")
    );
    let expected = "/a.expect:1: map blocked: note: left out, so 0: key address, hits\n\
                    /a.expect:3: map blocked: note: left out, so 0: key address\n";
    assert_eq!(said, expected);
    let words = [FIREWALL, "--packet", "zero:60", "--format"];
    let (_, out, _) = expect(text, &[&words[..], &["json"]].concat());
    let answer: Value = serde_json::from_str(&out).unwrap();
    let left_out = serde_json::json!([{ "line": 3, "member_names": ["name"] }]);
    assert_eq!(answer["left_out"], left_out);
    let (_, out, _) = expect(text, &[&words[..], &["junit"]].concat());
    assert!(
        out.contains("<system-out>left out: name</system-out>"),
        "{out}"
    );
    // Of records and variables too.
    let text = "run report zero:60\nglobal last = {\"length\": 60}\nglobal packets = 1\n";
    let (_, out, _) = expect(text, &[REPORT]);
    assert_eq!(out, "2 expectations met, 1 run; 1 leaves members out\n");
}

#[oracle::test]
fn json_and_junit_name_what_differs() {
    let text = "run report zero:60\nverdict XDP_DROP\nprintk \"packet 1 of 60 bytes at 0\\n\"\n";
    let (code, out, _) = expect(text, &[REPORT, "--format", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &answer["expectations"]), (1, &2.into()));
    assert_eq!(answer["differences"][0]["line"], 2);
    assert_eq!(answer["differences"][0]["prog"], "report");
    let (code, out, _) = expect(text, &[REPORT, "--format", "junit"]);
    assert_eq!(code, 1);
    for part in [
        "<testsuite name=\"/a.expect\" tests=\"2\" failures=\"1\" errors=\"0\">",
        "<testcase classname=\"run 1 (report)\" name=\"line 2: verdict XDP_DROP\">",
        "<failure message=\"expected XDP_DROP, got XDP_PASS (2)\">",
        "name=\"line 3: printk &quot;packet 1 of 60 bytes at 0\\n&quot;\"/>",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[oracle::test]
fn a_trap_is_a_difference() {
    let port = "examples/verify/port.bpf.o";
    let options = format!(
        "{}08004f{}06{}",
        "00".repeat(12),
        "00".repeat(8),
        "00".repeat(30)
    );
    let text = format!("run port {options}\nverdict XDP_PASS\n");
    let (code, out, _) = expect(&text, &[port, "--unverified"]);
    assert_eq!(code, 1);
    for part in [
        "it ends with a trap",
        "beyond the end of `packet`",
        "no run that ended",
    ] {
        assert!(out.contains(part), "{out}");
    }
}

#[oracle::test]
fn files_that_cannot_be_used_are_named() {
    for (text, parts) in [
        (
            "verdct XDP_PASS\n",
            &["a.expect:1: there is no statement", "verdict NAME"][..],
        ),
        ("# only a comment\n", &["it expects nothing"]),
        (
            "run report zero:60\nset report.bss 0 = \"x\"\n",
            &["a.expect:2", "global NAME = VALUE"],
        ),
        (
            "run report zero:60\nmap nomap 1 = 2\n",
            &["a.expect:2", "\"nomap\"", "report.bss"],
        ),
        (
            "run report zero:60\nglobal nothing = 1\n",
            &["a.expect:2", "packets"],
        ),
        (
            "run report zero:60\nglobal limit = \"x\"\n",
            &["a.expect:2", "number"],
        ),
        (
            "run nosuch zero:60\nverdict XDP_PASS\n",
            &["a.expect:1", "\"nosuch\"", "by_name"],
        ),
        (
            "run report zero:3\nverdict XDP_PASS\n",
            &["a.expect:1", "EINVAL", "14 to"],
        ),
        (
            "run report zero:60\nverdict XDP_PASS x\n",
            &["a.expect:2", "have no verdict \"XDP_PASS x\""],
        ),
        (
            "run report zero:60\nverdict XDP_PAS\n",
            &[
                "a.expect:2",
                "type xdp have no verdict \"XDP_PAS\"",
                "XDP_PASS",
            ],
        ),
        (
            "run report zero:60\nverdict XDP_PASS 1\n",
            &["a.expect:2", "a count is of packets of a capture"],
        ),
        (
            "capture report SAMPLE\ndata unchanged\n",
            &["a.expect:2", "of a run on one packet"],
        ),
        (
            "run report zero:60\nrecord report.bss = 1\n",
            &[
                "a.expect:2",
                "map report.bss is of kind array",
                "ring buffers",
            ],
        ),
        (
            "capture report none.pcap\nverdict XDP_PASS\n",
            &["a.expect:1", "none.pcap"],
        ),
        (
            "capture report .\nverdict XDP_PASS\n",
            &["a.expect:1", "directory"],
        ),
        (
            "run report 0\nverdict XDP_PASS\n",
            &["a.expect:1", "two digits"],
        ),
    ] {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
        let text = text.replace("SAMPLE", sample.to_str().unwrap());
        let (code, out, said) = expect(&text, &[REPORT]);
        assert_eq!((code, &*out), (2, ""), "{text}: {said}");
        for part in parts {
            assert!(said.contains(part), "{text}: {said}");
        }
    }
    let words = [FIREWALL, "--expect", EXPECTED, "--packet", "zero:60"];
    assert!(run(&words).2.contains("lists its own runs"));
    assert!(
        run(&[FIREWALL, "--expect", "examples"])
            .2
            .contains("Is a directory")
    );
    assert!(run(&[FIREWALL, "--expect", FIREWALL]).2.contains("no text"));
    let junit = run(&[FIREWALL, "--packet", "zero:60", "--format", "junit"]);
    assert!(
        junit.0 == 2 && junit.2.contains("--expect FILE"),
        "{}",
        junit.2
    );
}

#[oracle::test]
fn an_unfinished_output_is_not_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let sample = fs::read(repository().join("examples/sample.pcap")).unwrap();
    fs::write(file("cut.pcap"), &sample[..1000]).unwrap();
    fs::write(file("none.pcap"), &sample[..24]).unwrap();
    let with = |input: &str, out: &str| {
        let (input, out) = (file(input), file(out));
        run(&[
            FIREWALL,
            "--pcap",
            input.to_str().unwrap(),
            "-w",
            out.to_str().unwrap(),
        ])
    };
    let (code, _, said) = with("cut.pcap", "out.pcap");
    assert!(code == 2 && said.contains("truncated"), "{said}");
    let (code, out, _) = with("none.pcap", "empty.pcap");
    assert!(
        code == 0 && out.contains("the capture has no packets"),
        "{out}"
    );
    let mut names: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["cut.pcap", "empty.pcap", "none.pcap"]);
    let (code, _, said) = run(&[FIREWALL, "--packet", "zero:60", "-w", "out.pcap"]);
    assert!(code == 2 && said.contains("--pcap IN"), "{said}");
}
