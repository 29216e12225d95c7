//! `cargo differential compare cases`: the answers of every kernel that is described to cases, written into
//! them and compared with ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use beebox_differential::verifier::Agreement;
use kernel_client::verdict::Answer;
use program::Program;
use program::case::Case;

use super::kernels::kept;
use crate::command::Outcome;
use crate::command::verifier::kept_kernels;

/// The directory of the cases.
const CASES: &str = "crates/testkit/cases/kernels";

/// Asks the kernels of these names, or all, about the cases, and writes what they answer.
pub(crate) fn record(names: &[String]) -> Outcome {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(CASES);
    let files = fs::read_dir(&directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let case = Case::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        cases.push((path, text, case));
    }
    let programs: Vec<&Program> = cases.iter().map(|(.., case)| &case.program).collect();
    let names = match names.is_empty() {
        true => kept_kernels()?,
        false => names.to_vec(),
    };
    let mut answers: Vec<BTreeMap<usize, String>> = vec![BTreeMap::new(); cases.len()];
    let mut differ = 0;
    for (order, name) in names.iter().enumerate() {
        let kernel = kept(name)?;
        for (at, compared) in kernel.booted.compare(&programs)?.into_iter().enumerate() {
            let name = cases[at].2.program.name();
            let comparison = match compared {
                Ok(comparison) => comparison,
                Err(why) => {
                    println!("{name}, Linux {}: {why}", kernel.version);
                    continue;
                }
            };
            if comparison.agreement != Agreement::Equal {
                differ += 1;
                let ours = comparison
                    .ours
                    .map_or_else(|what| what, |ours| ours.to_string());
                println!(
                    "{name}, Linux {}: {}\n  ours: {ours}",
                    kernel.version, comparison.kernel
                );
            }
            answers[at].insert(order, block(&kernel.version, &comparison.kernel));
        }
    }
    for ((path, text, _), answers) in cases.iter().zip(answers) {
        fs::write(
            path,
            with_answers(text, &answers.into_values().collect::<String>()),
        )?;
    }
    match differ {
        0 => Ok(()),
        differ => Err(format!("{differ} answers differ").into()),
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

/// The text with the answers in front of the first subprogram.
fn with_answers(text: &str, answers: &str) -> String {
    let mut written = String::new();
    let (mut is_skipped, mut is_written) = (false, false);
    for line in text.lines() {
        is_skipped |= line.starts_with(".kernel ");
        if !is_skipped {
            if line.starts_with(".subprog ") && !is_written {
                written += answers;
                is_written = true;
            }
            written += line;
            written.push('\n');
        }
        is_skipped &= line != ".end";
    }
    written
}
