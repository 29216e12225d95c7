//! `compare booted [NAME]…`: boots the kernels that `tools/kernels/vm` keeps, or those that are
//! named, hands them the objects of this repository by `beebox ask`, and counts what differs.
//!
//! A kernel is asked if its release is one whose answers are recorded (`tools/kernels/truth`): of
//! another point release nothing is known to hold. What is not asked is noted in the file that
//! `BEEBOX_SKIPPED` names, as tests do. A verdict that differs is a failure; counts and last lines
//! that do are counted.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::Outcome;

/// Objects that need more memory than the machine has, or another object.
const LEFT_OUT: &[&str] = &["limits.bpf.o", "main.bpf.o", "wide.bpf.o", "count.bpf.o"];
/// Directories with objects.
const OBJECTS: &[&str] = &["examples", "crates/cli/tests/data"];
/// Seconds until a machine is stopped.
const LIMIT: &str = "300";

/// Asks the kernels of these names, or all that are kept.
pub(super) fn compare(names: &[String]) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = oracle::cache().join("kernels");
    let mut kept: Vec<String> = fs::read_dir(&home)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("vmlinuz").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    kept.sort();
    let wanted = match names.is_empty() {
        true => kept.clone(),
        false => names.to_vec(),
    };
    if wanted.is_empty() {
        skip("kernels", "none is kept: tools/kernels/vm fetch NAME");
    }
    let mut objects = Vec::new();
    for directory in OBJECTS {
        collect(&root.join(directory), &mut objects)?;
    }
    objects.sort();
    if oracle::program("qemu-system-x86_64").is_err() {
        skip("kernels", "there is no qemu-system-x86_64");
        return Ok(());
    }
    let recorded = recorded(&root)?;
    let mut differ = 0;
    for name in &wanted {
        if !kept.contains(name) {
            skip(name, "its image is not kept: tools/kernels/vm fetch");
            continue;
        }
        let is_of_series =
            |version: &String| format!("{version}.").starts_with(&format!("{name}."));
        if !recorded.iter().any(is_of_series) {
            let recorded = recorded.join(", ");
            skip(name, &format!("answers are recorded of {recorded}"));
            continue;
        }
        differ += ask(&root, name, &objects)?;
    }
    match differ {
        0 => Ok(()),
        differ => Err(format!("{differ} verdicts differ").into()),
    }
}

/// Asks one kernel; the number of verdicts that differ.
fn ask(root: &Path, name: &str, objects: &[PathBuf]) -> Outcome<usize> {
    let began = Instant::now();
    let done = Command::new(command(root)?)
        .args([
            "ask",
            "--kernel",
            name,
            "--format",
            "json",
            "--timeout",
            LIMIT,
        ])
        .args(objects)
        .stderr(Stdio::piped())
        .output()?;
    judge(&done, root, name, began)
}

fn judge(done: &Output, root: &Path, name: &str, began: Instant) -> Outcome<usize> {
    let error = String::from_utf8_lossy(&done.stderr);
    let answers = Answers::read(done)?;
    // 2: the kernel was not booted, ended before it answered, or an object cannot be read.
    let Some(version) = answers
        .version
        .as_ref()
        .filter(|_| done.status.code().is_some_and(|code| code < 2))
    else {
        return Err(format!("{name}: {error}").into());
    };
    let recorded = recorded(root)?;
    if !recorded.contains(version) {
        let known = recorded.join(", ");
        skip(
            name,
            &format!("its release is {version}, answers are recorded of {known}"),
        );
        return Ok(0);
    }
    println!(
        "Linux {version}: {answers} ({:.0} s)",
        began.elapsed().as_secs_f64()
    );
    for record in answers.differ() {
        println!("  {record}");
    }
    Ok(answers.other_verdicts())
}

/// What `beebox ask --format json` wrote.
struct Answers {
    records: Vec<Value>,
    /// The kernel's release.
    version: Option<String>,
}

impl Answers {
    fn read(done: &Output) -> Outcome<Answers> {
        let records: Vec<Value> = serde_json::Deserializer::from_slice(&done.stdout)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let first = records.first();
        let version = first.and_then(|it| it["kernel"]["version"].as_str());
        Ok(Answers {
            version: version.map(str::to_owned),
            records,
        })
    }

    fn asked(&self) -> impl Iterator<Item = &Value> {
        let is_asked = |it: &&Value| it["kernel"]["verifier_verdict"].is_string();
        self.records.iter().filter(is_asked)
    }

    fn differ(&self) -> impl Iterator<Item = &Value> {
        let is_other = |it: &&Value| it["differs"].as_array().is_some_and(|it| !it.is_empty());
        self.asked().filter(is_other)
    }

    fn other_verdicts(&self) -> usize {
        let differ = self.differ();
        let has_other = |it: &&Value| {
            let differs = it["differs"].as_array();
            differs.is_some_and(|differs| differs.iter().any(|what| what == "verdict"))
        };
        differ.filter(has_other).count()
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_unjudged = |it: &&Value| it["ours"]["verifier_verdict"] == "unsupported";
        let verdicts = self.other_verdicts();
        write!(
            f,
            "{} programs, {} not asked, {} that Beebox does not judge, {verdicts} with another \
             verdict, {} with other counts or another last line",
            self.records.len(),
            self.records.len() - self.asked().count(),
            self.asked().filter(is_unjudged).count(),
            self.differ().count() - verdicts,
        )
    }
}

/// The releases whose answers are recorded.
fn recorded(root: &Path) -> Outcome<Vec<String>> {
    let mut releases = Vec::new();
    for entry in fs::read_dir(root.join("tools/kernels/truth"))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let release = name.split_once("-on-").map(|(_, rest)| rest);
        let release = release.and_then(|rest| rest.strip_suffix(".csv.gz"));
        releases.extend(release.map(str::to_owned));
    }
    releases.sort();
    releases.dedup();
    Ok(releases)
}

/// The command, beside this program or built.
fn command(root: &Path) -> Outcome<PathBuf> {
    let beside = env::current_exe()?.with_file_name("beebox");
    if beside.is_file() {
        return Ok(beside);
    }
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--package", "beebox-cli"])
        .current_dir(root)
        .status()?;
    match built.success() {
        true => Ok(beside),
        false => Err("the command does not build".into()),
    }
}

fn collect(directory: &Path, objects: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        if path.is_dir() {
            collect(&path, objects)?;
        } else if name.ends_with(".bpf.o") && !LEFT_OUT.contains(&&*name) {
            objects.push(path);
        }
    }
    Ok(())
}

/// Notes what is not asked.
fn skip(what: &str, why: &str) {
    oracle::does_not_apply(&format!("booted kernel {what}"), why);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    /// What comes of a `beebox ask` that wrote this record and ended with this code.
    fn judged(differs: &str, code: i32) -> Outcome<usize> {
        let record = format!(
            r#"{{"kernel":{{"version":"6.18.15","verifier_verdict":"success"}},"differs":[{differs}]}}"#
        );
        let done = Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: record.into_bytes(),
            stderr: b"the machine ended".to_vec(),
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        judge(&done, &root, "6.18", Instant::now())
    }

    #[test]
    fn a_machine_that_ends_before_its_answers_is_a_failure() {
        assert_eq!(judged("", 0).unwrap(), 0);
        assert_eq!(judged(r#""verdict""#, 1).unwrap(), 1);
        assert_eq!(judged(r#""reason","verdict""#, 1).unwrap(), 1);
        assert_eq!(judged(r#""insns""#, 1).unwrap(), 0);
        let error = judged("", 2).unwrap_err().to_string();
        assert!(error.contains("6.18: the machine ended"), "{error}");
    }
}
