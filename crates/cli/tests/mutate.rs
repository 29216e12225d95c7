//! `beebox mutate`: programs of a model are changed as others, and lines that no test executes are those of coverage.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("a code");
    (code, text(output.stdout), text(output.stderr))
}

/// Tools of tracing, cgroups and the scheduler, which run in a model of the kernel.
#[oracle::test]
fn programs_of_a_model_are_changed() {
    for tool in [
        "execsnoop",
        "egress",
        "filepolicy",
        "runqlat",
        "tasks",
        "fifo",
    ] {
        let object = format!("examples/tools/{tool}.bpf.o");
        let test = format!("examples/tools/{tool}.expect");
        let words = ["mutate", &object, "--test", &test, "-c", "25", "-j"];
        let (code, report, said) = answer(&words);
        assert!(code < 2, "{tool}: {said}");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let of = |name: &str| report[name].as_u64().expect("a number");
        assert_eq!(of("verified") + of("refused"), 25, "{tool}");
        assert!(of("noticed") > 0, "{tool}: {report}");
    }
}

#[oracle::test]
fn lines_that_no_test_executes_are_those_of_coverage() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let object = root.join("examples/packets/firewall.bpf.o");
    let object = object
        .canonicalize()
        .expect("an object")
        .display()
        .to_string();
    let text = format!(
        "object {object}\ntest one\nrun firewall proto udp from 192.0.2.1 port 5 to 198.51.100.2 port 53\nverdict XDP_PASS\n"
    );
    fs::write(file("one.expect"), text).expect("a test");
    let (test, coverage) = (file("one.expect"), format!("lcov={}", file("lcov")));
    let (code, _, said) = answer(&["test", &test, "--coverage", &coverage]);
    assert_eq!(code, 0, "{said}");
    let lcov = fs::read_to_string(file("lcov")).expect("a tracefile");
    let counts: BTreeMap<u32, u64> = lcov
        .lines()
        .filter_map(|line| line.strip_prefix("DA:")?.split_once(','))
        .map(|(line, count)| (line.parse().unwrap(), count.parse().unwrap()))
        .collect();
    let (code, missed, said) = answer(&["mutate", &object, "--test", &test]);
    assert_eq!(code, 1, "{said}");
    let mut told = [0, 0];
    for line in missed.lines().filter(|line| !line.starts_with(' ')) {
        let Some((_, place)) = line.split_once(".c:") else {
            continue;
        };
        let is_executed = !place.contains("which no test executes");
        let number = place.split(',').next().expect("a number");
        let count = counts[&number.parse().expect("a line")];
        assert_eq!(is_executed, count > 0, "{line}: {count}");
        told[usize::from(is_executed)] += 1;
    }
    assert!(told.iter().all(|lines| *lines > 3), "{told:?}\n{missed}");
    // Of lines that are executed, what is not is marked.
    assert!(missed.contains(" (not executed)"), "{missed}");
}
