//! Test oracles: runs, skips or fails a test that compares with something outside the
//! source tree.
//!
//! An oracle is anything that a machine may lack: the running kernel, a library, a
//! program, the built selftests. A test obtains it by [`found`], or reports its absence
//! by [`skip`]. A test without its oracle, or without a part of it, is reported as ignored by
//! the [harness](main), with the reason, which is appended to the file named by
//! `BEEBOX_SKIPPED`, for the summary of a run. With `CI=true` and
//! `BEEBOX_ORACLE=required` an absent oracle fails the test instead.
//!
//! Comparisons on generated input take their seeds from [`seeds`], property tests theirs
//! from [`property_seed`]; the selftests are found through [`selftests`].
#![forbid(unsafe_code)]

mod harness;

pub use harness::{Test, main};
#[doc(hidden)]
pub use inventory;
pub use oracle_macros::test;

use std::env;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// True if an absent oracle is a failure: `CI` is `true` and `BEEBOX_ORACLE` is
/// `required`.
pub fn is_required() -> bool {
    let is = |name, value| env::var_os(name).is_some_and(|found| found == value);
    is("CI", "true") && is("BEEBOX_ORACLE", "required")
}

/// The oracle for the comparison `what`; `None` where it is absent, which is
/// reported by [`skip`].
///
/// # Panics
/// If the oracle is absent and [required](is_required).
pub fn found<T, E: Display>(what: &str, oracle: Result<T, E>) -> Option<T> {
    match oracle {
        Ok(oracle) => Some(oracle),
        Err(absent) => {
            skip(what, absent);
            None
        }
    }
}

/// Reports that the comparison `what` is skipped because of `why`.
///
/// # Panics
/// If oracles are [required](is_required).
pub fn skip(what: &str, why: impl Display) {
    let reason = format!("{what}: {why}");
    assert!(!is_required(), "required comparison skipped: {reason}");
    note(&reason);
}

/// Reports that the comparison `what` does not apply to this machine, also where oracles are
/// [required](is_required): nothing is absent that could be there.
pub fn does_not_apply(what: &str, why: impl Display) {
    note(&format!("{what}: {why}"));
}

/// Puts the reason into the report of the running test and into `BEEBOX_SKIPPED`.
fn note(reason: &str) {
    if !harness::note(reason) {
        // `eprintln!` would be captured and dropped by the harness if the test passes.
        let _ = io::stderr().write_all(format!("skipped: {reason}\n").as_bytes());
    }
    if let Some(path) = env::var_os("BEEBOX_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("skipped: {reason}\n").as_bytes()));
    }
}

/// Seeds of a comparison on generated input: `BEEBOX_ORACLE_PROGRAMS` of them
/// (`default` if unset), starting with `BEEBOX_ORACLE_SEED` (0 if unset).
///
/// # Panics
/// If one of the variables is set and not a number.
pub fn seeds(default: u64) -> Range<u64> {
    let start = number("BEEBOX_ORACLE_SEED").unwrap_or(0);
    start..start + number("BEEBOX_ORACLE_PROGRAMS").unwrap_or(default)
}

/// Seed of the cases of a property test: `PROPTEST_RNG_SEED` (1 if unset).
///
/// # Panics
/// If the variable is set and not a number.
pub fn property_seed() -> u64 {
    number("PROPTEST_RNG_SEED").unwrap_or(1)
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is {text:?}, which is not a number")))
}

/// Directory of what is built or downloaded once: `BEEBOX_CACHE`, or `beebox` in the user's cache.
pub fn cache() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(place) = set("BEEBOX_CACHE") {
        return place.into();
    }
    let in_home = || Path::new(&set("HOME").unwrap_or_default()).join(".cache");
    let users = set("XDG_CACHE_HOME").map_or_else(in_home, PathBuf::from);
    users.join("beebox")
}

/// Directory of the kernel's built selftests, one subdirectory for each release.
pub fn selftests() -> PathBuf {
    cache().join("selftests")
}

/// Path below [`selftests`]; the error names the path and the reason.
pub fn selftest_path(path: &str) -> Result<PathBuf, String> {
    let path = selftests().join(path);
    match fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Directory below [`selftests`] with a set of objects, as `7.2/obj-v3`; the error says that
/// the set is absent, or that its build has not ended, at which it writes `build.json`.
pub fn selftest_set(path: &str) -> Result<PathBuf, String> {
    let directory = selftest_path(path)?;
    match fs::metadata(directory.join("build.json")) {
        Ok(_) => Ok(directory),
        Err(error) => Err(format!(
            "{}: its build has not ended: build.json: {error}",
            directory.display()
        )),
    }
}

/// Command of an installed program, probed with `--version`; the error names the program
/// and the reason.
pub fn program(name: &str) -> Result<std::process::Command, String> {
    let probe = std::process::Command::new(name).arg("--version").output();
    match probe {
        Ok(_) => Ok(std::process::Command::new(name)),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
