//! Programs on which kernels differ: `crates/testkit/cases/kernels` has the answers that booted kernels gave
//! (`cargo differential compare cases`), and each built-in kernel has to give its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beebox::internal::program::case::{Case, KernelAnswer};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/cases/kernels");
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Our answers for a kernel, by name of the program: verdict, and the lines that a case has.
fn ours(release: &str, cases: &[PathBuf]) -> BTreeMap<String, (bool, Vec<String>)> {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["verify", "--format", "json", "--kernel", release])
        .args(cases)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap();
        let counts = format!(
            "processed {} insns (limit 1000000) max_states_per_insn {} total_states {} peak_states {} mark_read 0",
            number("total_insns"),
            number("max_states_per_insn"),
            number("total_states"),
            number("peak_states"),
        );
        let reason = word("reason").lines().last().unwrap_or_default().trim().to_owned();
        let is_accepted = word("verifier_verdict") == "success";
        let lines = [reason, counts].into_iter().filter(|line| !line.is_empty());
        (word("prog_name"), (is_accepted, lines.collect()))
    });
    rows.collect()
}

#[oracle::test]
fn built_in_kernels_give_the_answers_of_the_booted_ones() {
    let files = cases();
    let parse = |path: &PathBuf| Case::parse(&fs::read_to_string(path).unwrap()).unwrap();
    let cases: Vec<Case> = files.iter().map(parse).collect();
    let mut releases: BTreeMap<&str, Vec<(&str, &KernelAnswer)>> = BTreeMap::new();
    for case in &cases {
        assert!(case.answers.len() > 1, "{}", case.program.name());
        for answer in &case.answers {
            let of = releases.entry(&answer.release).or_default();
            of.push((case.program.name(), answer));
        }
    }
    assert!(releases.len() >= 7, "{:?}", releases.keys());
    let mut differ = Vec::new();
    for (release, recorded) in releases {
        let ours = ours(release, &files);
        for (name, answer) in recorded {
            let (is_accepted, lines) = &ours[name];
            if (*is_accepted, lines) != (answer.errno.is_none(), &answer.log) {
                differ.push(format!(
                    "{name} on {release}: recorded {answer:?}, ours {lines:?}"
                ));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
