//! Runs the engines' fuzz targets under AddressSanitizer, which sees accesses
//! beside what the interpreter and the code around native code should touch.
//!
//! It needs nightly Rust; where there is none it says that it was skipped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

/// The targets that run engines.
const TARGETS: &[&str] = &["engines", "ebpf-raw", "ebpf-engines"];

/// Tries the seeds of every target and mutations of them for so many seconds
/// each.
pub(crate) fn fuzz(seconds: u64) -> Outcome {
    let Some(host) = nightly_host() else {
        println!(
            "SKIPPED AddressSanitizer: there is no nightly Rust (rustup toolchain add nightly)"
        );
        return Ok(());
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // With a target named, build scripts and macros of the host stay as they are.
    let status = Command::new("cargo")
        .current_dir(&root)
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", "detect_leaks=1")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env("RUSTUP_TOOLCHAIN", "nightly")
        .args(["run", "--package", "beebox-fuzz", "--target", &host])
        .args(["--target-dir", "target/asan", "--"])
        .args(TARGETS)
        .args(["--seconds", &seconds.to_string()])
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the fuzzer ended with {status}").into())
    }
}

/// The triple of the machine, if nightly Rust is there.
fn nightly_host() -> Option<String> {
    let said = Command::new("rustc")
        .env("RUSTUP_TOOLCHAIN", "nightly")
        .arg("-vV")
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8(said.stdout).ok()?;
    if !said.lines().next()?.contains("nightly") {
        return None;
    }
    let host = said.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(host.to_owned())
}
