//! `run --coverage`, `beebox coverage`, `run --profile`.

use std::path::Path;
use std::process::{Command, Output};

const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("beebox starts")
}

/// Exit code, standard output and standard error.
fn answer(words: &[&str]) -> (i32, String, String) {
    let output = beebox(words);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (
        output.status.code().expect("a code"),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Writes a tracefile of runs of the firewall on the sample capture; the summary.
fn cover(path: &Path, words: &[&str]) -> String {
    let coverage = format!("lcov={}", path.display());
    let run = ["run", FIREWALL, "--pcap", SAMPLE, "--coverage", &coverage];
    let (code, _, said) = answer(&[&run, words].concat());
    assert_eq!(code, 0, "{said}");
    said
}

/// Blocks begin with instructions that the compiler gave no line, behind code of a line that is not executed.
#[oracle::test]
fn instructions_without_a_line_are_of_no_other_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lines");
    let coverage = format!("lcov={}", path.display());
    let object = "crates/cli/tests/data/lineless.bpf.o";
    let packet = "000000000000000000000000000011000000000000";
    for engine in ["native", "interp", "checked"] {
        let run = ["run", object, "--packet", packet, "--engine", engine];
        let (code, out, said) = answer(&[&run[..], &["--coverage", &coverage]].concat());
        assert!(code == 0 && out.contains("XDP_TX"), "{out}{said}");
        assert_eq!(
            said,
            "coverage: 11 of 12 lines, 6 of 20 branches, 1 of 1 functions\n"
        );
        let lines = std::fs::read_to_string(&path).expect("a tracefile");
        assert!(
            lines.contains("DA:33,1\n") && lines.contains("DA:45,0\n"),
            "{lines}"
        );
    }
    let (_, out, _) = answer(&["run", object, "--packet", packet, "--why"]);
    assert!(
        out.contains("(*value)++;") && !out.contains("return 1;"),
        "{out}"
    );
    let (_, out, _) = answer(&["run", object, "--packet", packet, "--profile"]);
    assert!(!out.contains("bpf.c:45"), "{out}");
    let commands = ["b 45", "b 33", "c", "c"].map(|command| ["--execute", command]);
    let debug = ["debug", object, "--packet", packet];
    let (_, out, _) = answer(&[&debug[..], &commands.concat(), &["--execute", "q"]].concat());
    assert!(
        out.contains("Breakpoint 2\n") && !out.contains("Breakpoint 1\n"),
        "{out}"
    );
}

#[oracle::test]
fn runs_merge_to_what_each_executed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let said = cover(&file("all"), &[]);
    assert_eq!(
        said,
        "coverage: 32 of 34 lines, 16 of 20 branches, 1 of 1 functions\n"
    );
    for engine in ["checked", "interp"] {
        cover(&file(engine), &["--engine", engine]);
        let read = |name| std::fs::read_to_string(file(name)).expect("a tracefile");
        assert_eq!(read(engine), read("all"), "{engine}");
    }
    // Threads count what one does.
    for engine in ["native", "checked", "interp"] {
        let jobs = ["--engine", engine, "--jobs", "4", "--share-maps"];
        cover(&file(engine), &jobs);
        let read = |name| std::fs::read_to_string(file(name)).expect("a tracefile");
        assert_eq!(read(engine), read("all"), "{engine}");
    }
    // Other observers take nothing away.
    let dropped = format!("DROP={}", file("dropped.pcapng").display());
    cover(&file("observed"), &["-w", &dropped, "--comments"]);
    let read = |name| std::fs::read_to_string(file(name)).expect("a tracefile");
    assert_eq!(read("observed"), read("all"));
    // The sum of both halves of the capture is the whole.
    cover(&file("first"), &["--only", "1-140"]);
    cover(&file("second"), &["--only", "141-298"]);
    let names = ["first", "second", "sum"].map(|name| file(name).display().to_string());
    let output = format!("lcov={}", names[2]);
    let (code, ..) = answer(&["coverage", &names[0], &names[1], "-o", &output]);
    assert_eq!(code, 0);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(file(name)).expect("a tracefile");
        let lines = text.lines().filter(|line| line.starts_with("DA:"));
        lines
            .map(|line| line.split(',').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(lines("sum"), lines("all"));
    let sum = &names[2];
    assert_eq!(answer(&["coverage", sum, "--least", "90"]).0, 0);
    assert_eq!(answer(&["coverage", sum, "--least", "100"]).0, 1);
}

#[oracle::test]
fn what_a_constant_leaves_out_is_not_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("dead.info");
    let said = cover(&file, &["--set", "checks_ports=0"]);
    assert!(said.contains("no run can reach"), "{said}");
    let (code, text, _) = answer(&["coverage", &file.display().to_string()]);
    assert_eq!(code, 0);
    assert!(text.contains("lines that no run can reach: 129"), "{text}");
    assert!(text.contains("24 of 25"), "{text}");
}

/// genhtml and xmllint take what is written.
#[oracle::test]
fn other_tools_read_what_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("all.info");
    cover(&file, &[]);
    let Some(mut genhtml) = oracle::found("genhtml", oracle::program("genhtml")) else {
        return;
    };
    let pages = directory.path().join("pages");
    let output = genhtml
        .args(["--branch-coverage", "--output-directory"])
        .args([&pages, &file])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("genhtml starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("(32 of 34 lines)"), "{said}");
    assert!(said.contains("(16 of 20 branches)"), "{said}");
}

#[oracle::test]
fn wrong_options_say_what_is_expected() {
    let lcov = ["--coverage", "lcov=x"];
    for (words, part) in [
        (
            &["--coverage", "gcov=x"][..],
            "lcov=FILE, cobertura=FILE or html=DIR",
        ),
        (&["--coverage", "lcov="], "it has no path"),
        (&["--profile", "perf=x"], "folded=FILE"),
        (&[&lcov[..], &["--why", "1"]].concat(), "--why"),
        (&[&lcov[..], &["--profile"]].concat(), "--profile"),
    ] {
        let (code, _, said) = answer(&[&["run", FIREWALL, "--pcap", SAMPLE], words].concat());
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
    let (code, _, said) = answer(&["coverage", "README.md"]);
    assert_eq!(code, 2);
    assert!(said.contains("README.md:1: it is no tracefile"), "{said}");
}

#[oracle::test]
fn profiles_count_what_the_checked_engine_executed() {
    let directory = tempfile::tempdir().expect("a directory");
    let folded = directory.path().join("folded");
    let option = format!("folded={}", folded.display());
    let run = ["run", FIREWALL, "--pcap", SAMPLE];
    let (code, text, said) = answer(&[&run[..], &["--profile", "--profile", &option]].concat());
    assert_eq!(code, 0, "{said}");
    let words = ["--verdicts", "--format", "csv", "--engine", "checked"];
    let (_, rows, _) = answer(&[&run[..], &words].concat());
    let executed = rows.lines().skip(1).map(|row| {
        let last = row.rsplit(',').next().expect("a cell");
        last.parse::<u64>().expect("a number")
    });
    let executed: Vec<u64> = executed.collect();
    let all: u64 = executed.iter().sum();
    assert!(
        text.starts_with(&format!("298 runs, {all} instructions:")),
        "{text}"
    );
    let most = executed.iter().max().expect("runs");
    assert!(
        text.lines()
            .next()
            .expect("a line")
            .ends_with(&format!(" to {most}"))
    );
    let folded = std::fs::read_to_string(folded).expect("stacks");
    let counts = folded.lines().map(|line| {
        let count = line.rsplit(' ').next().expect("a count");
        count.parse::<u64>().expect("a number")
    });
    assert_eq!(counts.sum::<u64>(), all);
}

#[oracle::test]
fn a_profile_has_the_time_of_lines_and_helpers() {
    let run = ["run", FIREWALL, "--pcap", SAMPLE, "--profile", "time"];
    let (code, text, said) = answer(&run);
    assert_eq!(code, 0, "{said}");
    assert!(text.starts_with("298 runs, "), "{text}");
    let rows = |wanted: &str| {
        let rows = text.lines().filter(|line| line.contains(wanted));
        let time = rows.filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        time.sum::<f64>()
    };
    // The line of a call has the time of its helper.
    let (line, helper) = (
        rows("map_lookup_elem(&actions"),
        rows("  bpf_map_lookup_elem"),
    );
    assert!(line > 0.0 && helper > 0.0, "{text}");
    let instructions = |text: &str| text.lines().next().map(str::to_owned);
    let plain = answer(&["run", FIREWALL, "--pcap", SAMPLE, "--profile"]).1;
    assert_ne!(instructions(&plain), instructions(&text));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("profile");
    let pprof = format!("pprof={}", file.display());
    assert_eq!(answer(&[&run[..], &["--profile", &pprof]].concat()).0, 0);
    let bytes = std::fs::read(&file).expect("a profile");
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(has("nanoseconds"));
}
