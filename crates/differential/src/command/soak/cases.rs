//! `cargo differential compare cases`: the answers of every kernel that is described to cases, written into
//! them and compared with ours.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use beebox_differential::page::write_part;
use beebox_differential::verifier::{Agreement, VerdictComparison};
use kernel_client::verdict::Answer;
use program::Program;
use program::case::Case;

use super::kernels::{Kept, kept};
use crate::command::Outcome;
use crate::command::verifier::kept_kernels;

/// The directory of the cases on which all answers are equal.
const CASES: &str = "crates/testkit/cases/kernels";
/// That of cases on which some differ. What is reduced from the kernel's selftests stays outside the tree,
/// in [`kept_open`].
const OPEN: &str = "crates/testkit/cases/kernels-open";

/// Cases on which answers differ, in the cache.
fn kept_open() -> PathBuf {
    oracle::selftests().with_file_name("kernels-open")
}

/// Cases of a directory, and the answers to them.
struct Asked {
    cases: Vec<(PathBuf, String, Case)>,
    /// Of each case by kernel.
    answers: Vec<BTreeMap<usize, (String, VerdictComparison)>>,
}

/// Asks the kernels of these names, or all, about the cases, and writes what they answer; without names
/// also the list of what differs in docs/kernels.md.
pub(crate) fn record(names: &[String]) -> Outcome {
    let is_whole = names.is_empty();
    let names = match is_whole {
        true => kept_kernels()?,
        false => names.to_vec(),
    };
    let mut kernels = Vec::new();
    for name in &names {
        kernels.push(kept(name)?);
    }
    let mut differ = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (_, case, version, comparison) in ask(&[root.join(CASES)], &kernels)?.differing() {
        differ += 1;
        let ours = comparison
            .ours
            .as_ref()
            .map_or_else(Clone::clone, ToString::to_string);
        println!(
            "{}, Linux {version}: {}\n  ours: {ours}",
            case.program.name(),
            comparison.kernel
        );
    }
    let open = ask(&[root.join(OPEN), kept_open()], &kernels)?;
    if is_whole {
        write_part("docs/kernels.md", "open", &open.table())?;
    }
    match differ {
        0 => Ok(()),
        differ => Err(format!("{differ} answers differ").into()),
    }
}

/// Asks kernels about the cases of directories, and writes their answers into them.
fn ask(directories: &[PathBuf], kernels: &[Kept]) -> Outcome<Asked> {
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in directories.iter().filter(|directory| directory.exists()) {
        let entries = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(entries);
    }
    files.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let case = Case::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        cases.push((path, text, case));
    }
    let programs: Vec<&Program> = cases.iter().map(|(.., case)| &case.program).collect();
    let mut answers = vec![BTreeMap::new(); cases.len()];
    for (order, kernel) in kernels.iter().enumerate() {
        for (at, compared) in kernel.booted.compare(&programs)?.into_iter().enumerate() {
            match compared {
                Ok(comparison) => {
                    answers[at].insert(order, (kernel.version.clone(), comparison));
                }
                Err(why) => {
                    let name = cases[at].2.program.name();
                    println!("{name}, Linux {}: {why}", kernel.version);
                }
            }
        }
    }
    for ((path, text, _), answers) in cases.iter().zip(&answers) {
        let blocks = answers
            .values()
            .map(|(version, it)| block(version, &it.kernel));
        fs::write(path, with_answers(text, &blocks.collect::<String>()))?;
    }
    Ok(Asked { cases, answers })
}

/// True if both refuse with one error number, and the kernel without words.
fn is_wordless(comparison: &VerdictComparison) -> bool {
    let theirs = &comparison.kernel;
    let ours = comparison.ours.as_ref();
    theirs.reason.starts_with("the kernel refuses it")
        && ours.is_ok_and(|ours| ours.errno == theirs.errno)
}

impl Asked {
    /// What differs: comment and case, release, answers.
    fn differing(&self) -> impl Iterator<Item = (&str, &Case, &str, &VerdictComparison)> {
        let all = self.cases.iter().zip(&self.answers);
        let all = all.flat_map(|((_, text, case), answers)| {
            let comment = text.lines().next().unwrap_or_default();
            let comment = comment.trim_start_matches("# ");
            let answers = answers.values();
            answers.map(move |(version, comparison)| (comment, case, version.as_str(), comparison))
        });
        all.filter(|(.., it)| it.agreement != Agreement::Equal && !is_wordless(it))
    }

    /// A table of what differs.
    fn table(&self) -> String {
        let mut table = String::from(
            "| case | from | Linux | what differs | there | here |\n|---|---|---|---|---|---|\n",
        );
        for (comment, case, version, comparison) in self.differing() {
            let told = |answer: &Answer| match (answer.is_accepted(), answer.counts) {
                (_, Some(counts)) if comparison.agreement == Agreement::Counts => {
                    let (insns, states, peak) = (counts.insns, counts.total, counts.peak);
                    format!("{insns} instructions, {states} states, {peak} at once")
                }
                (true, _) => "accepted".to_owned(),
                (false, _) => {
                    let reason = answer.reason.replace('|', "\\|").replace('`', "'");
                    format!("`{reason}` ({})", answer.errno)
                }
            };
            let ours = comparison.ours.as_ref();
            let ours = ours.map_or_else(|why| format!("unsupported: {why}"), told);
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {} | {comment} | {version} | {} | {} | {ours} |",
                case.program.name(),
                match comparison.agreement {
                    Agreement::Equal => "nothing",
                    Agreement::Unsupported => "unsupported",
                    Agreement::FalseAccept => "accepted wrongly",
                    Agreement::FalseReject => "refused wrongly",
                    Agreement::Counts => "counts",
                    Agreement::Reason => "last line or error number",
                },
                told(&comparison.kernel)
            );
        }
        table
    }
}

/// An answer in a case.
fn block(version: &str, answer: &Answer) -> String {
    let mut block = match answer.is_accepted() {
        true => format!(".kernel {version:?} accepted\n"),
        false => format!(".kernel {version:?} refused {}\n", answer.errno),
    };
    let reason = Some(&answer.reason).filter(|reason| !reason.is_empty());
    for line in reason
        .cloned()
        .into_iter()
        .chain(answer.counts.map(|of| of.to_string()))
    {
        // Writing to a string cannot fail.
        let _ = writeln!(block, "    .log {line:?}");
    }
    block + ".end\n"
}

/// The text with the answers in place of those that it has, else in front of the first subprogram.
fn with_answers(text: &str, answers: &str) -> String {
    let place = if text.contains("\n.kernel ") {
        ".kernel "
    } else {
        ".subprog "
    };
    let mut written = String::new();
    let (mut is_skipped, mut is_written) = (false, false);
    for line in text.lines() {
        if line.starts_with(place) && !is_written {
            written += answers;
            is_written = true;
        }
        is_skipped |= line.starts_with(".kernel ");
        if !is_skipped {
            written += line;
            written.push('\n');
        }
        is_skipped &= line != ".end";
    }
    written
}
