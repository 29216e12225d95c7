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
    let home = cache()?.join("kernels");
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
    let text = String::from_utf8_lossy(&done.stdout);
    let error = String::from_utf8_lossy(&done.stderr);
    let Some(version) = text.lines().next().and_then(version_in) else {
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
    let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
    let programs = text.lines().count();
    let verdicts = count("\"differs\":[\"verdict\"]");
    let same = count("\"differs\":[]");
    let unsupported = count("\"verifier_verdict\":\"unsupported\"");
    println!(
        "Linux {version}: {programs} programs, {unsupported} that Beebox does not judge, {verdicts} with \
         another verdict, {} with other counts or another last line ({:.0} s)",
        programs - same - verdicts,
        began.elapsed().as_secs_f64()
    );
    for line in text.lines().filter(|line| !line.contains("\"differs\":[]")) {
        println!("  {line}");
    }
    Ok(verdicts)
}

/// The version in a record.
fn version_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("\"version\":\"")?;
    Some(rest.split_once('"')?.0)
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

fn cache() -> Outcome<PathBuf> {
    if let Some(cache) = env::var_os("BEEBOX_CACHE") {
        return Ok(cache.into());
    }
    let in_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cache"));
    let users = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let users = users
        .or_else(in_home)
        .ok_or("there is no cache: set BEEBOX_CACHE")?;
    Ok(users.join("beebox"))
}

/// Notes what is not asked.
fn skip(what: &str, why: &str) {
    oracle::does_not_apply(&format!("booted kernel {what}"), why);
}
