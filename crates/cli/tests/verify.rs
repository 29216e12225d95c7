//! `beebox verify`: verdicts, exit codes, formats, filters and comparison.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A socket filter that the kernel accepts.
const SHAPES: &str = "crates/cli/tests/data/shapes.bpf.o";
/// BPF_F_SLEEPABLE, which socket filters may not have.
const SLEEPABLE: [&str; 2] = ["--flags", "0x10"];
const REASON: &str =
    "Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and struct_ops programs can be sleepable";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn verify(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("verify")
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn accepted_programs_end_with_0_and_refused_ones_with_1() {
    let output = verify(&[SHAPES]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).ends_with("1 accepted, 0 refused, 0 unsupported\n"));
    let output = verify(&[&[SHAPES], &SLEEPABLE[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(REASON));
    let output = verify(&["no-such-file.o"]);
    assert_eq!(output.status.code(), Some(2));
    // The other files are verified all the same.
    let output = verify(&["no-such-file.o", SHAPES]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("1 accepted"));
}

#[test]
fn csv_has_veristats_columns_and_ours() {
    let output = verify(&[&[SHAPES, "--format", "csv"], &SLEEPABLE[..]].concat());
    let text = text(&output);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "file_name,prog_name,verdict,duration,total_insns,total_states,peak_states,\
             max_states_per_insn,max_mark_read_len,prog_size,prog_size_jited,stack_depth,\
             max_stack_depth,prog_type,attach_type,mem_peak,reason,duration_us"
        )
    );
    let row = lines.next().unwrap();
    assert!(row.starts_with("shapes.bpf.o,filter,failure,"), "{row}");
    assert!(row.contains(&format!("\"{REASON}\"")), "{row}");
    let output = verify(&[
        SHAPES,
        "--format",
        "veristat",
        "-e",
        "file,prog,verdict,reason",
    ]);
    assert_eq!(
        self::text(&output),
        "file_name,prog_name,verdict\nshapes.bpf.o,filter,success\n"
    );
}

#[test]
fn the_log_is_the_kernels() {
    let log = text(&verify(&[SHAPES, "--log", "2"]));
    assert!(log.contains("\n0: R1=ctx() R10=fp0\n"), "{log}");
    assert!(log.contains("\nprocessed "), "{log}");
    assert!(log.contains("(limit 1000000) max_states_per_insn"), "{log}");
    let log = text(&verify(&[&[SHAPES, "--log", "1"], &SLEEPABLE[..]].concat()));
    assert!(
        log.contains(&format!("{REASON}\nprocessed 0 insns")),
        "{log}"
    );
}

#[test]
fn results_are_filtered_compared_and_printed_again() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.csv");
    let rows = verify(&[SHAPES, "--format", "csv"]);
    fs::write(&old, &rows.stdout).unwrap();
    let old = old.to_str().unwrap();
    let same = verify(&[SHAPES, "--compare", old]);
    assert_eq!(text(&same), "1 programs compared, 0 values differ\n");
    let other = verify(&[&[SHAPES, "--compare", old], &SLEEPABLE[..]].concat());
    assert!(text(&other).contains("success"), "{}", text(&other));
    let again = verify(&["-R", old, "--format", "csv"]);
    assert_eq!(again.stdout, rows.stdout);
    for (filter, count) in [
        ("*/filter", 1),
        ("!filter", 0),
        ("insns>=100000", 0),
        ("shapes*", 1),
    ] {
        let kept = verify(&[SHAPES, "-f", filter]);
        assert!(
            text(&kept).contains(&format!("{count} accepted")),
            "{filter}"
        );
    }
    let wrong = verify(&[SHAPES, "-e", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn several_objects_at_a_time_give_the_same() {
    let files = [SHAPES, "examples/traffic/traffic.bpf.o", SHAPES];
    let columns = [
        "-e",
        "file,prog,verdict,insns,states,reason",
        "--format",
        "csv",
    ];
    let alone = verify(&[&files[..], &columns[..]].concat());
    let parallel = verify(&[&files[..], &columns[..], &["-j", "3"]].concat());
    assert_eq!(alone.stdout, parallel.stdout);
    assert_eq!(alone.status.code(), parallel.status.code());
}

/// A case of ours that a kernel refused.
const CASE: &str = "examples/verify/missing-null-check.case";

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a file and verifies it.
fn verify_text(name: &str, text: &str, arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    verify(&[&[path.to_str().unwrap()], arguments].concat())
}

#[test]
fn cases_are_verified_and_compared_with_their_answers() {
    let case = fs::read_to_string(root().join(CASE)).unwrap();
    let output = verify(&[CASE]);
    assert_eq!(output.status.code(), Some(1));
    let agrees = "missing-null-check.case: agrees with the recorded answer of 6.18.44\n";
    assert!(text(&output).contains(agrees), "{}", text(&output));
    assert_eq!(error(&output), "");
    // A line of the log that the reason does not have.
    let line = "    .log \"4: (85) call bpf_map_lookup_elem#1\"\n.end\n.subprog";
    let other_line = verify_text("a.case", &case.replace(".end\n.subprog", line), &[]);
    assert_eq!(other_line.status.code(), Some(2), "{}", text(&other_line));
    let line = line.replace(
        "\"4: (85) call bpf_map_lookup_elem#1\"",
        "\"0: R1=ctx() R10=fp0\"",
    );
    let log_line = verify_text("a.case", &case.replace(".end\n.subprog", &line), &[]);
    assert_eq!(log_line.status.code(), Some(1), "{}", error(&log_line));
    // Other answers, told by the first directive instead of the name.
    for answer in ["accepted", "refused 22"] {
        let changed = case.replace("refused 13", answer);
        let output = verify_text("a.txt", &changed, &[]);
        assert_eq!(output.status.code(), Some(2));
        let differs = "beebox: a.txt: differs from the recorded answer of 6.18.44: ";
        assert!(error(&output).starts_with(differs), "{}", error(&output));
    }
    // An answer of another series, and a question that the answer is not about.
    let older = verify_text("a.case", &case.replace("6.18.44", "5.15.0"), &[]);
    assert_eq!(older.status.code(), Some(1));
    assert!(text(&older).contains("not compared with the recorded answer of 5.15.0"));
    let flags = verify(&[CASE, "-t"]);
    assert!(!text(&flags).contains("recorded"), "{}", text(&flags));
    let json = verify(&[CASE, "--format", "json"]);
    let recorded = r#""recorded":[{"release":"6.18.44","agrees":"yes"}]"#;
    let plain = text(&json).split_whitespace().collect::<String>();
    assert!(plain.contains(recorded), "{plain}");
}

#[test]
fn instructions_alone_are_verified_as_a_type() {
    let accepted = verify_text("a.s", "r0 = 2\nexit\n", &["--type", "xdp"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", error(&accepted));
    assert!(text(&accepted).contains("1 accepted, 0 refused"));
    let hex = "b7 00 00 00 02 00 00 00 95 00 00 00 00 00 00 00\n";
    let accepted = verify_text("a.hex", hex, &["--type", "xdp"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", error(&accepted));
    let refused = verify_text("a.s", "exit\n", &["--type", "xdp"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("R0 !read_ok"));
    let reserved = verify_text("a.hex", &hex.replace("95 00", "95 01"), &["--type", "xdp"]);
    assert!(
        text(&reserved).contains("BPF_EXIT uses reserved fields"),
        "{}",
        text(&reserved)
    );
    let wrong = verify(&["--type", "nonsense", SHAPES]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("socket_filter"));
}

#[test]
fn errors_name_file_line_and_expectation() {
    for (name, content, expected) in [
        (
            "a.case",
            ".program count\n",
            "a.case: line 1: expected a name in quotes",
        ),
        (
            "a.case",
            "# x\n.type nonsense\n",
            "a.case: line 2: expected a program type",
        ),
        (
            "a.case",
            ".type xdp\n    r0 = r77\n",
            "a.case: line 2, column ",
        ),
        ("a.case", "exit\n", "a.case: no program type is stated"),
        ("a.s", "exit\n", "an object, a text case"),
    ] {
        let output = verify_text(name, content, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(error(&output).contains(expected), "{}", error(&output));
    }
    let output = verify_text("a.s", "exit\nr0 = r77\n", &["--type", "xdp"]);
    assert!(
        error(&output).contains("a.s: line 2, column "),
        "{}",
        error(&output)
    );
}

#[test]
fn what_is_assumed_of_the_kernel_is_named() {
    assert_eq!(error(&verify(&[SHAPES])), "");
    let output = verify(&[SHAPES, "--btf", SHAPES]);
    let assumed = ", assumed as in Linux 6.18: version, modules, configuration, ";
    assert!(error(&output).contains(assumed), "{}", error(&output));
    assert_eq!(error(&output).lines().count(), 1);
}

#[test]
fn costs_by_line_and_by_function_sum_to_the_counts() {
    let file = "examples/traffic/traffic.bpf.o";
    let output = verify(&[file, "--cost", "--format", "json"]);
    let mut seen = 0;
    for line in text(&output).lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for count in ["insns", "states"] {
            for part in ["lines", "functions"] {
                let parts = row["cost"][part].as_array().unwrap();
                let counts: Vec<u64> = parts.iter().map(|p| p[count].as_u64().unwrap()).collect();
                assert_eq!(
                    counts.iter().sum::<u64>(),
                    row[format!("total_{count}")].as_u64().unwrap(),
                    "{count} of {part}: {line}"
                );
                assert!(count == "states" || counts.is_sorted_by(|a, b| a >= b));
            }
        }
        assert!(row["cost"]["lines"][0]["line"].as_u64().unwrap() > 0);
        seen += 1;
    }
    assert_eq!(seen, 2);
    let shown = text(&verify(&[file, "--cost", "--prog", "exec"]));
    assert!(shown.contains("source line\n"), "{shown}");
    assert!(shown.contains("traffic.bpf.c:"), "{shown}");
    let output = verify(&[file, "--cost", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn programs_and_files_that_are_absent_are_named() {
    let output = verify(&[SHAPES, "--prog", "nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("no program is called \"nosuch\""));
    assert_eq!(text(&output), "");
    let output = verify(&["nosuch.o"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output), "");
}
