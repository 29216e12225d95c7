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

fn dis(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("dis")
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[oracle::test]
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

#[oracle::test]
fn privileges_of_the_caller_decide() {
    let filter = "call pc+1\nexit\nr0 = 0\nexit\n";
    let of_type = |kind: &str, privileges: &str| {
        let arguments = ["--type", kind, "--log", "1", "--privileges", privileges];
        verify_text("caller.s", filter, &arguments)
    };
    assert_eq!(of_type("xdp", "all").status.code(), Some(0));
    assert_eq!(of_type("xdp", "bpf,net_admin").status.code(), Some(0));
    let refused = of_type("xdp", "none");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("programs of this type are for callers with CAP_BPF"));
    let refused = of_type("socket_filter", "none");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("allowed for CAP_BPF and CAP_SYS_ADMIN"));
    let unknown = of_type("xdp", "root");
    assert_eq!(unknown.status.code(), Some(2));
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        message.contains("\"root\" names no privileges"),
        "{message}"
    );
}

#[oracle::test]
fn csv_has_veristats_columns_and_ours() {
    let output = verify(&[&[SHAPES, "--format", "csv"], &SLEEPABLE[..]].concat());
    let text = text(&output);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "file_name,prog_name,verdict,duration,total_insns,total_states,peak_states,\
             max_states_per_insn,max_mark_read_len,prog_size,prog_size_jited,prog_type,\
             attach_type,stack_depth,max_stack_depth,mem_peak,reason,duration_us"
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

#[oracle::test]
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

#[oracle::test]
fn results_are_filtered_compared_and_printed_again() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.csv");
    let rows = verify(&[SHAPES, "--format", "csv"]);
    fs::write(&old, &rows.stdout).unwrap();
    let old = old.to_str().unwrap();
    let same = verify(&[SHAPES, "--compare", old]);
    assert_eq!(text(&same), "1 program compared, 0 values differ\n");
    let other = verify(&[&[SHAPES, "--compare", old], &SLEEPABLE[..]].concat());
    assert!(text(&other).contains("success"), "{}", text(&other));
    let again = verify(&["-R", old, "--format", "csv"]);
    assert_eq!(again.stdout, rows.stdout);
    for (filter, count) in [
        ("*/filter", 1),
        ("!nosuch", 1),
        ("insns>=100000", 0),
        ("shapes*", 1),
    ] {
        let kept = verify(&[SHAPES, "-f", filter]);
        assert!(
            text(&kept).contains(&format!("{count} accepted")),
            "{filter}"
        );
    }
    // Names that leave no program are a mistake, also beside a condition on values.
    for filters in [
        &["-f", "nosuch"][..],
        &["-f", "nosuch/*", "-f", "insns>1"],
        &["-f", "!filter"],
        &["-f", "!shapes*"],
        &["--prog", "filter", "-f", "!filter"],
    ] {
        for jobs in ["1", "2"] {
            let files = [SHAPES, SHAPES, "-J", jobs];
            let none = verify(&[&files[..], filters].concat());
            let said = String::from_utf8_lossy(&none.stderr).into_owned();
            assert_eq!(none.status.code(), Some(2), "{said}");
            assert!(none.stdout.is_empty());
            for part in [
                "selects no program",
                filters[1],
                "one of shapes.bpf.o/filter",
            ] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
    let absent = verify(&[SHAPES, "--prog", "nosuch"]);
    assert_eq!(absent.status.code(), Some(2));
    let said = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(said.contains("no program is called \"nosuch\""), "{said}");
    assert!(said.contains("one of shapes.bpf.o/filter"), "{said}");
    let wrong = verify(&[SHAPES, "-e", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[oracle::test]
fn several_objects_at_a_time_give_the_same() {
    let files = [SHAPES, "examples/traffic/traffic.bpf.o", SHAPES];
    let columns = [
        "-e",
        "file,prog,verdict,insns,states,reason",
        "--format",
        "csv",
    ];
    let alone = verify(&[&files[..], &columns[..]].concat());
    let parallel = verify(&[&files[..], &columns[..], &["-J", "3"]].concat());
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

#[oracle::test]
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
    // Other answers, selected by the first directive instead of the name.
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

/// What a verification says of a program: name, type and counts.
fn counts(path: &str) -> Vec<String> {
    let columns = "prog,verdict,insns,states,peak_states,prog_size,prog_type,stack_depth";
    let output = verify(&[path, "--format", "csv", "-e", columns]);
    let text = text(&output);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[oracle::test]
fn cases_verify_as_the_objects_that_they_are_written_of() {
    let objects = [
        SHAPES,
        "crates/cli/tests/data/bindings.bpf.o",
        "crates/cli/tests/data/kinds.bpf.o",
        "examples/packets/firewall.bpf.o",
        "examples/verify/record.bpf.o",
        "examples/traffic/traffic.bpf.o",
    ];
    let directory = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for object in objects {
        for expected in counts(object) {
            let name = expected.split(',').next().unwrap();
            let case = dis(&[object, "--prog", name, "--format", "case"]);
            assert!(case.status.success(), "{object} {name}: {}", error(&case));
            let path = directory.path().join(format!("{name}.case"));
            fs::write(&path, &case.stdout).unwrap();
            let path = path.to_str().unwrap();
            assert_eq!(
                counts(path),
                std::slice::from_ref(&expected),
                "{object} {name}"
            );
            // A case is listed, and written as it is.
            assert_eq!(text(&dis(&[path, "--format", "case"])), text(&case));
            assert!(text(&dis(&[path])).contains("exit"), "{object} {name}");
            compared += 1;
        }
    }
    assert!(compared >= objects.len());
}

#[oracle::test]
fn cases_with_maps_that_the_kernel_lacks_or_with_wrong_btf_are_named() {
    let case = ".type xdp\n.map \"m\" type=rhash key=4 value=8 entries=1\n.end\n\
                .subprog \"p\"\nr1 = map_idx(0) ll\nr0 = 0\nexit\n";
    let output = verify_text("rhash.case", case, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let expected = "map \"m\": the kernel has no maps of type rhash";
    assert!(error(&output).contains(expected), "{}", error(&output));
}

#[oracle::test]
fn objects_without_programs_are_named() {
    let output = verify(&["crates/bench/workloads/w0-empty.o"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "no programs: functions in .text are subprograms";
    assert!(error(&output).contains(expected), "{}", error(&output));
}

#[oracle::test]
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

#[oracle::test]
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
        ("a.case", "exit\n", "a.case: program type is missing"),
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

#[oracle::test]
fn what_is_assumed_of_the_kernel_is_named() {
    assert_eq!(error(&verify(&[SHAPES])), "");
    let output = verify(&[SHAPES, "--btf", SHAPES]);
    let assumed = ", assumed as in Linux 6.18: version, modules, configuration, ";
    assert!(error(&output).contains(assumed), "{}", error(&output));
    assert_eq!(error(&output).lines().count(), 1);
}

#[oracle::test]
fn costs_by_line_and_by_function_sum_to_the_counts() {
    let file = "examples/traffic/traffic.bpf.o";
    let output = verify(&[file, "--cost", "--format", "json"]);
    let mut seen = 0;
    for line in text(&output).lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for count in ["total_insns", "total_states"] {
            for part in ["lines", "functions"] {
                let parts = row["cost"][part].as_array().unwrap();
                let counts: Vec<u64> = parts.iter().map(|p| p[count].as_u64().unwrap()).collect();
                assert_eq!(
                    counts.iter().sum::<u64>(),
                    row[count].as_u64().unwrap(),
                    "{count} of {part}: {line}"
                );
                assert!(count == "total_states" || counts.is_sorted_by(|a, b| a >= b));
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

const EXPLAINED: &str = "crates/testkit/cases/explain";

#[oracle::test]
fn folded_stacks_sum_to_the_instructions_and_name_calls() {
    let file = format!("{EXPLAINED}/c/stack-deep.bpf.o");
    let folded = text(&verify(&[&file, "--cost=folded"]));
    let mut sum = 0;
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        assert!(stack.starts_with("stack_deep;"), "{line}");
        sum += count.parse::<u64>().expect("a number");
    }
    let output = verify(&[&file, "--cost", "--format", "json"]);
    let row: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(row["total_insns"].as_u64(), Some(sum));
    let called = "stack_deep;stack_deep (stack-deep.bpf.c:20);last (stack-deep.bpf.c:";
    assert!(folded.contains(called), "{folded}");
    let chains = row["cost"]["chains"].as_array().unwrap();
    let counts = chains
        .iter()
        .map(|chain| chain["total_insns"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), sum);
    let deepest: Vec<_> = row["cost"]["deepest_stack"].as_array().unwrap().to_vec();
    let named = deepest
        .iter()
        .map(|link| (link["function"].as_str().unwrap(), &link["stack_bytes"]));
    let named: Vec<_> = named
        .map(|(name, bytes)| (name, bytes.as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("stack_deep", 320), ("last", 240)]);
    let shown = text(&verify(&[&file, "--cost"]));
    let deepest = "deepest stack: 560 bytes, stack_deep 320 → last 240\n";
    assert!(shown.contains(deepest), "{shown}");
    assert!(shown.contains("stack_deep → last\n"), "{shown}");
}

/// A copy of the firewall whose section is called as libbpf before 1.0 permitted. The
/// names have the same length.
fn untyped_firewall() -> tempfile::NamedTempFile {
    let mut object = std::fs::read(root().join("examples/packets/firewall.bpf.o")).unwrap();
    let name = b"xdp\0";
    for at in 0..object.len() - name.len() {
        if object[at..].starts_with(name) {
            object[at..at + name.len()].copy_from_slice(b"fw0\0");
        }
    }
    let mut file = tempfile::Builder::new()
        .suffix(".bpf.o")
        .tempfile()
        .unwrap();
    std::io::Write::write_all(&mut file, &object).unwrap();
    file
}

#[oracle::test]
fn a_type_is_set_where_the_section_name_implies_none() {
    let file = untyped_firewall();
    let path = file.path().to_str().unwrap();
    let output = verify(&[path]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--type xdp"), "{said}");
    let csv = text(&verify(&[
        path,
        "--type",
        "xdp",
        "-e",
        "prog,verdict,prog_type",
        "--format",
        "csv",
    ]));
    assert_eq!(csv.lines().nth(1), Some("firewall,success,xdp"), "{csv}");
}

#[oracle::test]
fn refusals_are_explained_as_text_and_as_data() {
    let file = format!("{EXPLAINED}/c/null-check.bpf.o");
    let shown = text(&verify(&[&file, "--explain"]));
    let expected = std::fs::read_to_string(root().join(format!("{EXPLAINED}/c/null-check.txt")));
    assert!(shown.contains(&expected.unwrap()), "{shown}");
    let output = verify(&[&file, "--explain", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let row: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    let explanation = &row["explanation"];
    assert_eq!(explanation["cause"], "maybe-null");
    assert_eq!(explanation["class"], "maybe-null");
    assert_eq!(explanation["place"]["source"]["line"], 18);
    assert_eq!(explanation["provenance"][0]["place"]["source"]["line"], 17);
    let accepted = verify(&[
        "examples/traffic/traffic.bpf.o",
        "--explain",
        "--format",
        "json",
    ]);
    assert!(!text(&accepted).contains("explanation"));
    let output = verify(&[&file, "--explain", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(2));
}

#[oracle::test]
fn programs_and_files_that_are_absent_are_named() {
    let output = verify(&[SHAPES, "--prog", "nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("no program is called \"nosuch\""));
    assert_eq!(text(&output), "");
    let output = verify(&["nosuch.o"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output), "");
}

#[oracle::test]
fn types_for_relocations_come_from_a_file_of_their_own() {
    const OBJECTS: &str = "crates/beebox/tests/loader";
    let alone = format!("{OBJECTS}/alone.o");
    let moved = format!("{OBJECTS}/moved.o");
    let offset = |more: &[&str]| {
        let arguments = [&[&*alone, "--prog", "tagged", "--log", "2"], more].concat();
        let log = text(&verify(&arguments));
        log.contains("0: (b7) r0 = 24 ")
    };
    assert!(!offset(&[]));
    assert!(offset(&["--core-btf", &moved]));
    assert!(offset(&["--test-tags"]));
}

#[oracle::test]
fn features_of_the_kernel_are_set_by_name() {
    let output = verify(&[SHAPES, "--feature", "syscall-wrapper=off"]);
    assert_eq!(output.status.code(), Some(0));
    let output = verify(&[SHAPES, "--feature", "syscall_wrapper=off"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("syscall-wrapper"), "{output:?}");
    let output = verify(&[SHAPES, "--feature", "cookies=no"]);
    assert!(
        error(&output).contains("write cookies=on or cookies=off"),
        "{output:?}"
    );
}

#[oracle::test]
fn btf_that_linux_refuses_is_named() {
    let output = verify(&["crates/beebox/tests/loader/unnamed.o"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        error(&output).contains("unnamed.o: Linux refuses its BTF (error 22: "),
        "{output:?}"
    );
}

#[oracle::test]
fn files_of_results_are_compared_as_by_veristat() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let path = directory.path().join(name);
        fs::write(
            &path,
            format!("file_name,prog_name,verdict,total_insns\n{rows}"),
        )
        .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = file("old.csv", "a.o,x,success,100\na.o,y,success,10\n");
    let new = file("new.csv", "a.o,x,success,90\na.o,y,failure,15\n");
    let compared = verify(&[
        "-C",
        &old,
        &new,
        "-e",
        "prog,verdict,insns",
        "--format",
        "csv",
    ]);
    assert_eq!(
        text(&compared),
        "prog_name,verdict_base,verdict_comp,verdict_diff,total_insns_base,total_insns_comp,\
         total_insns_diff\n\
         x,success,success,MATCH,100,90,-10 (-10.00%)\n\
         y,success,failure,MISMATCH,10,15,+5 (+50.00%)\n"
    );
    // Without names all of veristat's columns.
    let whole = text(&verify(&["-C", &old, &new, "--format", "csv"]));
    let mut headings = whole.lines().next().unwrap_or_default().split(',');
    assert_eq!(headings.clone().count(), 2 + 14 * 3, "{whole}");
    assert_eq!(headings.next_back(), Some("mem_peak_diff"));
    let changed = verify(&[
        "-C",
        &old,
        &new,
        "-f",
        "verdict_diff=mismatch",
        "-s",
        "|insns_pct|",
    ]);
    assert!(text(&changed).contains("a.o   y "), "{}", text(&changed));
    assert!(!text(&changed).contains("a.o   x "), "{}", text(&changed));
    let one = verify(&["-C", &old]);
    assert_eq!(one.status.code(), Some(2));
    assert!(error(&one).contains("two files"), "{}", error(&one));
}

#[oracle::test]
fn names_select_among_recorded_results() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, insns: u32| {
        let path = directory.path().join(name);
        let row = |file: &str, prog: &str| format!("{file},{prog},success,{insns}\n");
        let rows = [row("dir/a.o", "x"), row("dir/a.o", "y"), row("b.o", "x")].concat();
        fs::write(
            &path,
            format!("file_name,prog_name,verdict,total_insns\n{rows}"),
        )
        .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (file("old.csv", 1), file("new.csv", 2));
    for (filters, kept) in [
        (&["-f", "x"][..], &["dir/a.o,x", "b.o,x"][..]),
        (&["-f", "a.o/"], &["dir/a.o,x", "dir/a.o,y"]),
        (&["-f", "!a.o/x"], &["dir/a.o,y", "b.o,x"]),
        (&["-f", "/y", "-f", "b*/x"], &["dir/a.o,y", "b.o,x"]),
        (&["-f", "x", "-f", "insns>=3"], &[]),
    ] {
        for words in [&["-R", &old][..], &["-C", &old, &new]] {
            let columns = ["-e", "file,prog", "--format", "csv"];
            let output = verify(&[words, filters, &columns].concat());
            let shown = text(&output);
            let rows: Vec<&str> = shown.lines().skip(1).collect();
            let mut expected = kept.to_vec();
            if words[0] == "-C" {
                expected.sort_unstable();
            }
            assert_eq!(rows, expected, "{words:?} {filters:?}");
        }
    }
    for words in [&["-R", &old][..], &["-C", &old, &new]] {
        let output = verify(&[words, &["-f", "nosuch"]].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let expected = "-f \"nosuch\": selects no program";
        assert!(error(&output).contains(expected), "{}", error(&output));
    }
    // What the filters leave out does not differ.
    let rows = verify(&[SHAPES, "--format", "csv"]);
    let all = text(&rows);
    let row = all.lines().nth(1).unwrap();
    fs::write(
        &old,
        format!("{all}{}\n", row.replace(",filter,", ",other,")),
    )
    .unwrap();
    for choice in [["-f", "filter"], ["--prog", "filter"]] {
        let words = [&[SHAPES, "--compare", &old][..], &choice].concat();
        let compared = text(&verify(&words));
        assert_eq!(
            compared, "1 program compared, 0 values differ\n",
            "{choice:?}"
        );
    }
}

#[oracle::test]
fn frequent_source_lines_are_listed() {
    let output = verify(&[SHAPES, "-S", "2"]);
    let text = text(&output);
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(lines[0], "Top source lines (filter):");
    assert!(lines[1].contains("(shapes.bpf.c:"), "{text}");
    assert!(!text.contains("0: R1=ctx()"), "{text}");
}

#[oracle::test]
fn globals_are_set_by_path_and_wrong_ones_are_named() {
    const OBJECT: &str = "crates/cli/tests/data/globals.bpf.o";
    let verdict = |globals: &[&str]| {
        let mut arguments = vec![OBJECT, "-e", "verdict"];
        for global in globals {
            arguments.extend(["-G", global]);
        }
        verify(&arguments)
    };
    // The program reads beyond a map value unless all three are as here.
    let right = ["limit = 7", "config.ports[FAST].low = 0x10", "mode=FAST"];
    assert_eq!(verdict(&right).status.code(), Some(0));
    assert_eq!(verdict(&right[..2]).status.code(), Some(1));
    for (global, fact) in [
        ("absent = 1", "the object has no such variable"),
        ("limit = 300", "300 does not fit: it holds 0 to 255"),
        ("config.high = 1", "no member is called \"high\""),
        ("config.ports[2].low = 1", "no element 2: the array has 2"),
        ("config = 1", "only numbers and enumerations are set"),
        ("mode = SLOWER", "no enumerator is called \"SLOWER\""),
        ("limit = FAST", "it is a number, not an enumeration"),
        ("limit", "is no assignment"),
        (
            "limit = 10.0.0.1",
            "\"10.0.0.1\" is neither a number nor the name of an enumerator",
        ),
    ] {
        let output = verdict(&[global]);
        assert_eq!(output.status.code(), Some(2), "{global}");
        assert!(
            error(&output).contains(fact),
            "{global}: {}",
            error(&output)
        );
    }
}

#[oracle::test]
fn wrong_inputs_name_object_place_fact_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let object = fs::read(root().join(SHAPES)).unwrap();
    let cut = file("cut.o", &object[..object.len() / 2]);
    let note = file("note.txt", b"not a program");
    let results = file(
        "old.csv",
        b"file_name,prog_name,verdict,total_insns\na.o,x,success,many\n",
    );
    for (arguments, fact, remedy) in [
        (
            vec![SHAPES, "--kernel", "5.4"],
            "--kernel 5.4: no kernel 5.4 is known, only ",
            "--kernel FILE with the BTF of Linux 5.4",
        ),
        (
            vec![SHAPES, "--kernel", "6.18.99"],
            "no kernel 6.18.99 is known, only ",
            "--kernel FILE with the BTF of Linux 6.18.99",
        ),
        (
            vec![SHAPES, "--kernel", "latest"],
            "--kernel \"latest\": no kernel and no file of this name",
            "6.18 or 6.18-minimal, the built-in Linux 6.18.44; running; a file with BTF",
        ),
        (
            vec![SHAPES, "--kernel", "6"],
            "--kernel \"6\": no kernel and no file",
            "6.18 or 6.18-minimal, the built-in",
        ),
        (
            vec![SHAPES, "--kernel", ""],
            "--kernel \"\": no kernel and no file",
            "6.18 or 6.18-minimal, the built-in",
        ),
        (
            vec![SHAPES, "--define", "NODE_ID=1"],
            "NODE_ID: no undefined symbol, kconfig value or variable of the kernel is called so",
            "",
        ),
        (vec![SHAPES, "--kernel-version", "6.18.x"], "6.18.x", ""),
        (vec![&*cut], "cut.o: ", ""),
        (vec![&*note], "note.txt: ", "--type TYPE"),
        (
            vec!["-R", &*results],
            "old.csv: line 2: \"many\" in column total_insns is no number",
            "",
        ),
        (
            vec![SHAPES, "-f", "insn>1"],
            "filter \"insn>1\": no value is called \"insn\"",
            "insns>=1000",
        ),
        (
            vec![SHAPES, "-s", "size"],
            "no column is called \"size\"",
            "prog_size",
        ),
        (
            vec![SHAPES, "--prog", "filtr"],
            "no program is called \"filtr\"",
            "one of shapes.bpf.o/filter",
        ),
    ] {
        let output = verify(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = error(&output);
        assert!(said.contains(fact), "{arguments:?}: {said}");
        assert!(said.contains(remedy), "{arguments:?}: {said}");
    }
}

/// Programs whose maps Linux does not create.
const MAPS: &str = "crates/cli/tests/data/maps.bpf.o";

#[oracle::test]
fn a_map_that_is_not_created_refuses_the_programs_that_use_it() {
    let reasons = [
        (
            "lookup_route",
            "map 'routes' is not created: an LPM trie needs BPF_F_NO_PREALLOC (EINVAL)",
        ),
        (
            "lookup_count",
            "map 'counts' is not created: keys of arrays have 4 bytes, not 8 (EINVAL)",
        ),
        (
            "push",
            "map 'backlog' is not created: the map takes 64 GiB when it is created, the machine \
             has 16 GiB (ENOMEM)",
        ),
        (
            "lock_flow",
            "map 'flows' has to have BTF in order to use bpf_spin_lock",
        ),
    ];
    for (program, reason) in reasons {
        let output = verify(&[
            MAPS,
            "--prog",
            program,
            "--format",
            "csv",
            "-e",
            "verdict,reason",
        ]);
        assert_eq!(output.status.code(), Some(1), "{program}");
        let quoted = match reason.contains(',') {
            true => format!("failure,\"{reason}\"\n"),
            false => format!("failure,{reason}\n"),
        };
        assert!(text(&output).ends_with(&quoted), "{}", text(&output));
    }
    let output = verify(&[MAPS, "--prog", "pass", "--prog", "take_stack"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    let notes = [
        "map 'stacks' leaves value_size to its loader, here 1016 bytes",
        "map 'stacks' leaves max_entries to its loader, here 1 entry",
        "map 'routes' is not created: an LPM trie needs BPF_F_NO_PREALLOC (EINVAL); a \
         program that does not use it is verified",
    ];
    for note in notes {
        assert_eq!(said.matches(note).count(), 1, "{note}: {said}");
    }
}

#[oracle::test]
fn a_map_that_is_not_created_is_explained_and_is_data() {
    let explained = verify(&[MAPS, "--prog", "lookup_route", "--explain"]);
    let words = text(&explained);
    for expected in [
        "an LPM trie needs BPF_F_NO_PREALLOC",
        "help: add `__uint(map_flags, BPF_F_NO_PREALLOC);` to `routes`",
    ] {
        assert!(words.contains(expected), "{words}");
    }
    let output = verify(&[MAPS, "--prog", "lookup_route", "--explain", "--json"]);
    let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let map = &row["refused_map"];
    assert_eq!(map["name"], "routes");
    assert_eq!(map["kind"], "lpm_trie");
    assert_eq!(map["errno"], 22);
    assert_eq!(map["violated_rule"], "an LPM trie needs BPF_F_NO_PREALLOC");
    assert_eq!(row["explanation"]["cause"], "map-creation");
    assert_eq!(row["explanation"]["errno"], 22);
    let output = verify(&[MAPS, "--prog", "lock_flow", "--json"]);
    let row: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let without_btf = "map 'flows' is created without BTF: values of LRU hash maps have no \
                       bpf_spin_lock (EOPNOTSUPP)";
    let notes = row["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note == without_btf), "{notes:?}");
}

#[oracle::test]
fn maps_that_the_caller_cannot_create_refuse_the_program() {
    let case = "\
.type socket_filter
.map \"m\" type=lru_hash key=4 value=8 entries=16
.end
.subprog \"main\"
    r1 = map_idx(0) ll
    r0 = 0
    exit
";
    let path = std::env::temp_dir().join(format!("beebox-{}-lru.case", std::process::id()));
    fs::write(&path, case).unwrap();
    let file = path.to_str().unwrap();
    let all = verify(&[file]);
    let none = verify(&[file, "--privileges", "none"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(all.status.code(), Some(0), "{}", text(&all));
    assert_eq!(none.status.code(), Some(1));
    let reason = "map 'm' is not created: an LRU hash map needs CAP_BPF (EPERM)";
    assert!(text(&none).contains(reason), "{}", text(&none));
}

#[oracle::test]
fn a_replacement_of_a_function_has_no_verdict_without_its_target() {
    let output = verify(&[MAPS, "--prog", "replace"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("unsupported"), "{}", text(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("target"), "{said}");
}

#[oracle::test]
fn letters_of_veristat_mean_what_they_mean_there() {
    let csv = verify(&[SHAPES, "-o", "csv", "-e", "file,prog,verdict"]);
    assert_eq!(
        text(&csv),
        "file_name,prog_name,verdict\nshapes.bpf.o,filter,success\n"
    );
    let columns = ["-e", "file,prog,verdict,insns"];
    let table = verify(&[&[SHAPES, "-o", "table"], &columns[..]].concat());
    assert_eq!(
        text(&table),
        text(&verify(&[&[SHAPES], &columns[..]].concat()))
    );
    // Statistics, also of accepted programs; -d says on standard error how they are loaded.
    let is_log = |output: &Output| {
        let log = text(output);
        log.starts_with("shapes.bpf.o/filter: success\n") && log.contains("\nprocessed ")
    };
    let verbose = verify(&["-v", SHAPES]);
    assert!(is_log(&verbose), "{}", text(&verbose));
    assert_eq!(error(&verbose), "");
    let every = verify(&["-vl2", SHAPES]);
    assert!(text(&every).contains("0: R1=ctx() R10=fp0"));
    assert!(is_log(&every), "{}", text(&every));
    let debug = verify(&["-d", SHAPES]);
    assert!(is_log(&debug), "{}", text(&debug));
    let loaded = "beebox: shapes.bpf.o/filter: loaded as socket_filter: ";
    assert!(error(&debug).starts_with(loaded), "{}", error(&debug));
    let older = ["--kernel-version", "5.15", SHAPES];
    let is_noted = |output: Output| error(&output).contains("assumed as in Linux 6.18");
    assert!(is_noted(verify(&older)));
    assert!(!is_noted(verify(&[&["-q"], &older[..]].concat())));
    assert_eq!(verify(&["-q", "-v", SHAPES]).status.code(), Some(2));
}
