//! Programs on which kernels differ: `crates/testkit/cases/kernels` has the answers that booted kernels gave
//! (`cargo differential compare cases`), and each built-in kernel has to give its own. On those of
//! `kernels-open` a built-in kernel answers otherwise in counts, last line or error number, and docs/kernels.md
//! lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beebox::internal::program::case::{Case, KernelAnswer};

/// The cases of a directory, by file.
fn cases(directory: &str) -> Vec<(PathBuf, Case)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testkit/cases")
        .join(directory);
    let files = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let parsed = files.map(|path| {
        let case = Case::parse(&fs::read_to_string(&path).unwrap()).unwrap();
        (path, case)
    });
    parsed.collect()
}

/// Our answers for a kernel, by name of the program: verdict, and the lines that a case has.
fn ours(release: &str, cases: &[PathBuf]) -> BTreeMap<String, (bool, Vec<String>)> {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args([
            "verify", "--format", "json", "-v", "-l1", "--kernel", release,
        ])
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
        let is_accepted = word("verifier_verdict") == "success";
        let (reason, log) = (word("reason"), word("log"));
        let reason = reason.lines().last().unwrap_or_default().trim();
        // Behind an endless loop the log has two states.
        let mut of_loop = log.lines().rev().filter(|_| reason.starts_with("infinite loop"));
        let state = of_loop.find(|line| line.starts_with("old state:"));
        let reason = state.unwrap_or(reason).to_owned();
        let lines = [reason, counts].into_iter().filter(|line| !line.is_empty());
        (word("prog_name"), (is_accepted, lines.collect()))
    });
    rows.collect()
}

/// An answer that ours is not: name of the program, what is recorded, and our lines.
type Difference = (String, KernelAnswer, (bool, Vec<String>));

/// The recorded answers from which ours differ, and the number of releases.
fn differences(cases: &[(PathBuf, Case)]) -> (Vec<Difference>, usize) {
    let files: Vec<PathBuf> = cases.iter().map(|(path, _)| path.clone()).collect();
    let mut releases: BTreeMap<&str, Vec<(&str, &KernelAnswer)>> = BTreeMap::new();
    for (_, case) in cases {
        assert!(case.answers.len() > 1, "{}", case.program.name());
        for answer in &case.answers {
            let of = releases.entry(&answer.release).or_default();
            of.push((case.program.name(), answer));
        }
    }
    let count = releases.len();
    let mut differ = Vec::new();
    for (release, recorded) in releases {
        let ours = ours(release, &files);
        for (name, answer) in recorded {
            let (is_accepted, lines) = &ours[name];
            if (*is_accepted, lines) != (answer.errno.is_none(), &answer.log) {
                let ours = (*is_accepted, lines.clone());
                differ.push((name.to_owned(), answer.clone(), ours));
            }
        }
    }
    (differ, count)
}

#[oracle::test]
fn built_in_kernels_give_the_answers_of_the_booted_ones() {
    let (differ, releases) = differences(&cases("kernels"));
    assert!(releases >= 7, "{releases}");
    assert!(differ.is_empty(), "{differ:#?}");
}

#[oracle::test]
fn open_cases_differ_in_counts_and_words_alone() {
    let cases = cases("kernels-open");
    let (mut differ, _) = differences(&cases);
    // A refusal without words has none to differ from.
    differ.retain(|(_, recorded, ours)| {
        let is_wordless = |line: &String| line.starts_with("the kernel refuses it");
        ours.0 || !recorded.log.first().is_some_and(is_wordless)
    });
    let verdicts = differ.iter();
    let verdicts = verdicts.filter(|(_, recorded, ours)| recorded.errno.is_none() != ours.0);
    let verdicts: Vec<&Difference> = verdicts.collect();
    assert!(verdicts.is_empty(), "{verdicts:#?}");
    let mended = cases.iter().map(|(_, case)| case.program.name());
    let mended = mended.filter(|name| differ.iter().all(|(differing, ..)| differing != name));
    let mended: Vec<&str> = mended.collect();
    assert!(
        mended.is_empty(),
        "move these to the cases of kernels: {mended:?}"
    );
}
