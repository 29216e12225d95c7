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
