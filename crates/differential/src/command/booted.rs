//! `compare booted [NAME]…`: boots the kernels that `tools/kernels/vm` keeps, or those that are
//! named, hands them the objects of this repository by `beebox ask`, and counts what differs.
//!
//! A kernel is asked if its release is one whose answers are recorded (`tools/kernels/truth`): of
//! another point release nothing is known to hold. What is not asked is noted in the file that
//! `BEEBOX_SKIPPED` names, as tests do. A verdict that differs is a failure; counts and last lines
//! that do are counted.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    let mut differ = 0;
    for name in &wanted {
        if !kept.contains(name) {
            skip(name, "its image is not kept: tools/kernels/vm fetch");
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
    let error = String::from_utf8_lossy(&done.stderr);
    let records: Vec<Value> = serde_json::Deserializer::from_slice(&done.stdout)
        .into_iter()
        .collect::<Result<_, _>>()?;
    let version = records
        .first()
        .and_then(|it| it["kernel"]["version"].as_str());
    let Some(version) = version else {
        skip(name, error.lines().next().unwrap_or("it does not answer"));
        return Ok(0);
    };
    let recorded = recorded(root)?;
    if !recorded.iter().any(|known| known == version) {
        let known = recorded.join(", ");
        skip(
            name,
            &format!("its release is {version}, answers are recorded of {known}"),
        );
        return Ok(0);
    }
    // 2: the machine ended before it answered, or an object cannot be read.
    if done.status.code().is_none_or(|code| code > 1) {
        return Err(format!("Linux {version}: {error}").into());
    }
    let (asked, not_asked): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|record| record["kernel"]["verifier_verdict"].is_string());
    let differences = |record: &Value| record["differs"].as_array().map_or(0, Vec::len);
    let differ: Vec<_> = asked.iter().filter(|it| differences(it) > 0).collect();
    let verdicts = differ
        .iter()
        .filter(|it| it["differs"][0] == "verdict")
        .count();
    let unsupported = asked
        .iter()
        .filter(|it| it["ours"]["verifier_verdict"] == "unsupported");
    println!(
        "Linux {version}: {} programs, {} not asked, {} that Beebox does not judge, {verdicts} with \
         another verdict, {} with other counts or another last line ({:.0} s)",
        records.len(),
        not_asked.len(),
        unsupported.count(),
        differ.len() - verdicts,
        began.elapsed().as_secs_f64()
    );
    for record in differ {
        println!("  {record}");
    }
    Ok(verdicts)
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
