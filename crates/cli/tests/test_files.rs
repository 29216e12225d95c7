//! `beebox test`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code, standard output and standard error.
fn test(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("test")
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code().expect("a code"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A directory with the firewall and a file of tests.
fn directory(tests: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (from, to) in [
        ("packets/firewall.bpf.o", "firewall.bpf.o"),
        ("packets/rewrite.bpf.o", "rewrite.bpf.o"),
        ("why/edge.bpf.o", "edge.bpf.o"),
        ("sample.pcap", "sample.pcap"),
    ] {
        fs::copy(examples.join(from), directory.path().join(to)).expect("a copy");
    }
    fs::write(directory.path().join("a.expect"), tests).expect("a file");
    directory
}

/// Runs a file of tests.
fn run(tests: &str, words: &[&str]) -> (i32, String, String) {
    let directory = directory(tests);
    let path = directory.path().display().to_string();
    test(&[&[&path[..]], words].concat())
}

const SSH: &str =
    "run firewall proto tcp from 198.51.100.7 port 4 to 203.0.113.1 port 22 flags syn\n";

#[oracle::test]
fn directories_have_other_expectations_too() {
    let (code, out, said) = test(&["examples"]);
    assert_eq!(code, 0, "{out}{said}");
    assert!(out.ends_with("31 tests passed\n"), "{out}");
}

#[oracle::test]
fn tests_have_maps_of_their_own_unless_they_share_them() {
    for (head, second) in [("", 1), ("maps shared\n", 2)] {
        let tests = format!(
            "object firewall.bpf.o\n{head}test one\n{SSH}global refused = 1\n\
             test two\n{SSH}global refused = {second}\n"
        );
        let (code, out, said) = run(&tests, &[]);
        assert_eq!(code, 0, "{out}{said}");
        assert!(out.ends_with("2 tests passed\n"), "{out}");
    }
}

#[oracle::test]
fn a_test_that_fails_tells_the_run_that_differs() {
    let tests = format!(
        "object firewall.bpf.o\ntest ssh is open\nrun firewall zero:60\nverdict XDP_PASS\n{SSH}\
         verdict XDP_PASS\ntest fine\nrun firewall zero:60\nverdict XDP_PASS\n"
    );
    let (code, out, _) = run(&tests, &[]);
    assert_eq!(code, 1);
    for part in [
        "a.expect: ssh is open\n",
        "a.expect:6: verdict XDP_PASS\n",
        "expected XDP_PASS, got XDP_DROP (1)",
        "tcp 198.51.100.7:4 > 203.0.113.1:22",
        "refused: 0 → 1",
        "a.expect: fine\n",
        "1 of 2 tests failed\n",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, out, _) = run(&tests, &["--no-why"]);
    assert!(!out.contains("refused: 0"), "{out}");
    let (code, out, _) = run(&tests, &["--format", "junit"]);
    assert_eq!(code, 1);
    for part in [
        "<testsuites tests=\"2\" failures=\"1\">",
        "name=\"ssh is open\" time=\"",
        "<failure message=\"run 2 (firewall): expected XDP_PASS, got XDP_DROP (1)\">",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, out, _) = run(&tests, &["--match", "fine"]);
    assert_eq!((code, out.lines().last()), (0, Some("1 test passed")));
}

#[oracle::test]
fn helpers_fail_where_a_test_says_so() {
    let tests = "object edge.bpf.o\n\
        test the ring buffer is full\n\
        fault bpf_ringbuf_output refusals = EAGAIN\n\
        run edge packet 60 of sample.pcap\n\
        record refusals none\n\
        test without a fault\n\
        run edge packet 60 of sample.pcap\n\
        record refusals = {}\n\
        test the second update fails\n\
        fault map_update_elem ports at 2 = ENOSPC\n\
        run edge packet 60 of sample.pcap\n\
        run edge packet 60 of sample.pcap\n\
        delete ports 33137\n\
        run edge packet 60 of sample.pcap\n\
        map ports entries 0\n";
    let set = ["--set", "largest_segment=1400"];
    let (code, out, said) = run(tests, &set);
    assert_eq!(code, 0, "{out}{said}");
}

#[oracle::test]
fn a_refused_object_fails_its_tests() {
    let directory = directory("");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (from, to) = (examples.join("packets/firewall.bpf.o"), directory.path());
    fs::copy(from, to.join("record.bpf.o")).expect("a copy");
    let tests = "object record.bpf.o\ntest a\nrun firewall zero:60\nverdict XDP_PASS\n";
    fs::write(to.join("a.expect"), tests).expect("a file");
    let path = to.display().to_string();
    let (code, out, said) = test(&[&path, "--machine-memory", "1"]);
    assert_eq!(code, 1, "{said}");
    assert!(out.contains("is not created"), "{out}");
}

#[oracle::test]
fn contexts_have_their_fields_by_name() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kinds.bpf.o");
    let directory = directory("");
    fs::copy(data, directory.path().join("kinds.bpf.o")).expect("a copy");
    let path = directory.path().join("a.expect");
    let run = |statement: &str, expected: &str| {
        let tests = format!("object kinds.bpf.o\ntest a\n{statement}\n{expected}\n");
        fs::write(&path, tests).expect("a file");
        test(&[&path.display().to_string(), "--no-why"])
    };
    let (code, out, said) = run("run add none ctx={\"a\": 3, \"b\": 4}", "ctx[8] 07");
    assert_eq!(code, 0, "{out}{said}");
    let (code, _, said) = run("run add none ctx={\"middle\": 3}", "ctx[8] 07");
    assert_eq!(code, 2);
    assert!(said.contains("middle"), "{said}");
    // Behind a run they are held to names, too.
    let packet = "run marked zero:60 ctx={\"mark\": 8}";
    let (code, out, said) = run(packet, "ctx { mark: 011, pkt_type: 0 }");
    assert_eq!(code, 0, "{out}{said}");
    let (code, out, said) = run(packet, "ctx { mark: 11 }");
    assert_eq!(code, 1, "{out}{said}");
    assert!(out.contains("mark: expected 11, got 9"), "{out}");
    let hook = "run accept proto udp from ::1 port 1 to ::2 port 2 ctx={\"hook\": 0, \"pf\": 10}";
    for (run_on, expected, part) in [
        (packet, "ctx { color: 1 }", "color"),
        (hook, "ctx { mark: 1 }", "leaves no context"),
        (packet, "call none", "runs in a model of the kernel"),
    ] {
        let (code, out, said) = run(run_on, expected);
        assert_eq!(code, 2, "{expected}: {out}{said}");
        assert!(said.contains(part), "{expected}: {said}");
    }
}

#[oracle::test]
fn statements_in_front_of_tests_are_about_those_with_the_map() {
    let tests = "object edge.bpf.o\nset ports 53 = {\"segments\": 1, \"bytes\": 1}\n\
                 test an edge\nrun edge zero:60\nmap ports entries 1\n";
    let (code, out, said) = run(tests, &[]);
    assert_eq!(code, 0, "{out}{said}");
    let (code, _, said) = run(&tests.replace("set ports", "set prots"), &[]);
    assert_eq!(code, 2);
    assert!(said.contains("no program uses a map \"prots\""), "{said}");
}

#[oracle::test]
fn faults_of_statements_show_their_forms() {
    let (code, _, said) = run(
        "object firewall.bpf.o\ntest a\nrun firewall zero:60\nmap open_ports none\n",
        &[],
    );
    assert_eq!(code, 2);
    assert!(said.contains("map MAP KEY absent"), "{said}");
    assert!(!said.contains("checksums valid"), "{said}");
    let (_, _, said) = run("object firewall.bpf.o\ntest a\nmpa open_ports 1 = 2\n", &[]);
    assert!(said.contains("checksums valid"), "{said}");
}

#[oracle::test]
fn programs_see_the_network_that_a_file_names() {
    let directory = directory("");
    let packets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packets");
    for name in ["router.bpf.o", "router.json"] {
        fs::copy(packets.join(name), directory.path().join(name)).expect("a copy");
    }
    let own = fs::read_to_string(packets.join("router.expect")).expect("the file");
    let path = directory.path().join("a.expect");
    for (head, code) in [("network router.json\n", 0), ("", 1)] {
        let tests = format!("object router.bpf.o\n{head}ifindex 2\ntest routes\n{own}");
        fs::write(&path, tests.replace("../sample.pcap", "sample.pcap")).expect("a file");
        let (got, out, said) = test(&[&path.display().to_string(), "--no-why"]);
        assert_eq!(got, code, "{out}{said}");
    }
}

#[oracle::test]
fn instructions_are_limited_by_verdict() {
    for (limit, code) in [
        ("instructions <= 95", 0),
        ("instructions <= 10", 1),
        ("instructions XDP_DROP <= 10", 1),
        ("instructions XDP_ABORTED <= 1", 0),
    ] {
        let tests =
            format!("object firewall.bpf.o\ntest a\ncapture firewall sample.pcap\n{limit}\n");
        let (got, out, said) = run(&tests, &["--no-why"]);
        assert_eq!(got, code, "{limit}: {out}{said}");
    }
}

#[oracle::test]
fn packets_are_held_to_fields_and_checksums() {
    let run_on = "run edge proto tcp from 192.0.2.1 port 4 to 192.0.2.2 port 80 flags ack ttl 9";
    for (expected, code) in [
        ("field ip.ttl = 8", 0),
        ("field ip.ttl = 9", 1),
        ("field tcp.dst = 80", 0),
        ("field ip.colour = 3", 1),
        ("redirect none", 0),
        ("redirect {\"ifindex\": 3}", 1),
    ] {
        let tests = format!("object edge.bpf.o\ntest a\n{run_on}\n{expected}\n");
        let (got, out, said) = run(&tests, &["--no-why"]);
        assert_eq!(got, code, "{expected}: {out}{said}");
    }
}

#[oracle::test]
fn faults_name_the_line_and_what_is_expected() {
    for (line, part) in [
        (
            "run firewall proto tpc",
            "a.expect:3: column 20: a protocol",
        ),
        (
            "run firewall packet 999 of sample.pcap",
            "has no packet 999; it has 298",
        ),
        (
            "run firewall packet x of sample.pcap",
            "packet N of FILE is expected",
        ),
        ("time 5", "time needs a time as 5s"),
        (
            "fault bpf_no_such = ENOSPC",
            "there is no helper \"bpf_no_such\"",
        ),
        (
            "fault bpf_map_update_elem = EWHAT",
            "\"EWHAT\" is no result",
        ),
        ("fault bpf_map_update_elem nowhere = ENOSPC", "nowhere"),
        ("instructions 3", "instructions [VERDICT] <= NUMBER"),
        ("maps private", "maps shared is expected"),
        ("object other.bpf.o", "the file names its object above"),
        ("cpu 77", "there is no CPU 77"),
        ("run other zero:60", "has no program \"other\""),
    ] {
        let tests = format!("object firewall.bpf.o\ntest a\n{line}\nverdict XDP_PASS\n");
        let (code, out, said) = run(&tests, &[]);
        assert_eq!(code, 2, "{line}: {out}{said}");
        assert!(
            said.contains(part) && said.contains("a.expect:3"),
            "{line}: {said}"
        );
    }
    let (code, _, said) = run("run firewall zero:60\nverdict XDP_PASS\n", &[]);
    assert_eq!(code, 2);
    assert!(said.contains("there are no tests"), "{said}");
    let (code, _, said) = run(
        "object no.bpf.o\ntest a\nrun firewall zero:60\nverdict XDP_PASS\n",
        &[],
    );
    assert_eq!(code, 2);
    assert!(said.contains("no.bpf.o"), "{said}");
}
