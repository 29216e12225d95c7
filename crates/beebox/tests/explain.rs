//! Explanations of refused programs: text cases, and objects with source lines, each with
//! its explanation in a file of the same name that ends with `.txt`. The kernel refuses
//! each program with the same last line.
//!
//! `UPDATE_EXPECT` in the environment writes explanations, and the running kernel's answers
//! into the cases. Read what it writes: a test holds any text.

use expect_test::expect_file;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use beebox::Kernel;
use beebox::internal::kernel::files::running_with_registry;
use beebox::internal::program::Program;
use beebox::internal::program::case::{Case, KernelAnswer};
use beebox::internal::verify::explanation_text;
use beebox::internal::verify::{ProgramLoader, explain, verify};
use beebox::verify::{Explanation, Options, Verdict};
use kernel_client::verdict::{Refused, refusal_of_kernel};

/// A program that is to be refused, and the file that it comes from.
struct Refusable {
    file: PathBuf,
    program: Program,
    /// Answers recorded in a text case; `None` for an object.
    recorded: Option<Vec<KernelAnswer>>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/cases/explain")
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the cases");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn refusables(kernel: &Kernel) -> Vec<Refusable> {
    let mut all = Vec::new();
    for file in files(&directory(), "case") {
        let text = fs::read_to_string(&file).expect("a case");
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        all.push(Refusable {
            file,
            program: case.program,
            recorded: Some(case.answers),
        });
    }
    for file in files(&directory().join("c"), "o") {
        let bytes = fs::read(&file).expect("an object");
        let mut visit = |loaded: beebox::internal::verify::StandaloneProgram| {
            all.push(Refusable {
                file: file.clone(),
                program: loaded.program.expect("a program that links"),
                recorded: None,
            });
        };
        ProgramLoader::new(kernel)
            .load_each(&bytes, "explain", &mut visit)
            .expect("an object that opens");
    }
    all
}

impl Refusable {
    fn expected(&self) -> PathBuf {
        let name = self.file.file_name().expect("a file").to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        self.file.with_file_name(format!("{stem}.txt"))
    }

    fn explanation(&self, kernel: &Kernel) -> Explanation {
        let registry = kernel.registry().expect("the built-in kernel has one");
        let explanation = explain(&self.program, kernel, registry, &Options::default());
        explanation.unwrap_or_else(|| panic!("{} is not refused", self.file.display()))
    }
}

/// The text without its styles.
#[oracle::test]
fn explanations_are_those_beside_the_programs() {
    let kernel = kernel_data::linux_6_18_minimal();
    let all = refusables(&kernel);
    assert!(all.len() >= 160, "{} programs", all.len());
    let mut causes = BTreeSet::new();
    for refusable in &all {
        let explanation = refusable.explanation(&kernel);
        let text = explanation_text(&explanation);
        let json = report::explain::json(&explanation);
        causes.insert(json["cause"].as_str().expect("a name").to_owned());
        assert_eq!(json["reason"], explanation.refusal.message());
        expect_file![refusable.expected()].assert_eq(&text);
    }
    assert!(causes.len() >= 60, "{} causes", causes.len());
}

#[oracle::test]
fn an_explanation_has_the_refusal_of_the_verification() {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in kernel has one");
    for refusable in refusables(&kernel) {
        let done = verify(&refusable.program, &kernel, registry, &Options::default());
        let explanation = refusable.explanation(&kernel);
        assert_eq!(done.verdict, Verdict::Refused(explanation.refusal));
    }
}

/// The text of a case with the answer in front of the first subprogram.
fn with_answer(text: &str, answer: &Refused) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let release = release.split('-').next().expect("a version").trim();
    let block = match answer {
        None => format!(".kernel {release:?} accepted\n.end\n"),
        Some((errno, line)) => {
            format!(".kernel {release:?} refused {errno}\n    .log {line:?}\n.end\n")
        }
    };
    let mut written = String::new();
    let mut skips = false;
    for line in text.lines() {
        skips |= line.starts_with(".kernel ");
        if !skips {
            if line.starts_with(".subprog ") && !written.contains(".kernel ") {
                written += &block;
            }
            written += line;
            written.push('\n');
        }
        skips &= line != ".end";
    }
    written
}

#[oracle::test]
fn the_kernel_refuses_each_program_with_the_same_last_line() {
    // Builds of one release differ in the ids of their types.
    let kernel = match kernel_client::kernel_release() {
        Ok(_) => running_with_registry().expect("the running kernel"),
        Err(_) => kernel_data::linux_6_18_minimal(),
    };
    let writes = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut differ = Vec::new();
    for refusable in refusables(&kernel) {
        let name = refusable.file.display();
        let refusal = refusable.explanation(&kernel).refusal;
        let ours = Some((refusal.errno.0, refusal.message()));
        let answer = refusal_of_kernel(&refusable.program);
        if let Some(recorded) = &refusable.recorded {
            if writes {
                let answer = answer.as_ref().expect("a kernel to ask");
                let text = fs::read_to_string(&refusable.file).expect("a case");
                fs::write(&refusable.file, with_answer(&text, answer)).expect("a written case");
            } else {
                let recorded = recorded.iter().map(|answer| {
                    let line = answer.log.first().cloned().unwrap_or_default();
                    answer.errno.map(|errno| (errno, line))
                });
                let recorded: Vec<_> = recorded.collect();
                if recorded != [ours.clone()] {
                    differ.push(format!("{name}: recorded {recorded:?}, ours {ours:?}"));
                }
            }
        }
        if let Some(answer) = oracle::found("explained programs", answer)
            && answer != ours
        {
            differ.push(format!("{name}: the kernel {answer:?}, ours {ours:?}"));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
