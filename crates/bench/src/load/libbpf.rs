//! Location of libbpf.
//!
//! `BEEBOX_LIBBPF` may name a shared object. Otherwise the libbpf of the kernel's
//! selftests is taken where these were built (in `BEEBOX_CACHE`, or
//! `~/.cache/beebox`): its sources are compiled once, together with a
//! stand-in for the kernel, into a shared object beside them. Without selftests the
//! system's libbpf is measured, as far as it needs no kernel.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sys::libbpf::{Libbpf, SYSTEM};

use crate::report::Report;

const STAND_IN: &str = include_str!("../../libbpf/stand_in.c");

/// File name of the shared object, beside the tools of the selftests.
const BUILT: &str = "libbpf-beside-beebox.so";

/// libbpf, with a note of what it is; `None`, and a note why, where there is none.
pub(super) fn find(report: &mut Report) -> Option<Libbpf> {
    let mut reasons = Vec::new();
    for (origin, file) in candidates(&mut reasons) {
        match Libbpf::load(&file) {
            Ok(libbpf) => {
                let mut note = format!("libbpf is {}, {origin}", libbpf.version());
                note += match libbpf.has_stand_in() {
                    true => "; behind it stands no kernel: its bpf(2) calls are answered at once.",
                    false => "; it would ask the kernel, so linking was not compared.",
                };
                report.notes.push(note);
                return Some(libbpf);
            }
            Err(absent) => reasons.push(absent.to_string()),
        }
    }
    report.notes.push(format!(
        "skipped: nothing was compared with libbpf ({})",
        reasons.join("; ")
    ));
    None
}

/// The files to try, best first, with what to call them.
fn candidates(reasons: &mut Vec<String>) -> Vec<(&'static str, PathBuf)> {
    if let Some(file) = env::var_os("BEEBOX_LIBBPF") {
        return vec![("as BEEBOX_LIBBPF says", file.into())];
    }
    let mut files = Vec::new();
    match built() {
        Ok(file) => files.push(("of the kernel's selftests", file)),
        Err(why) => reasons.push(why),
    }
    files.push(("of this system", SYSTEM.into()));
    files
}

/// Builds the shared object, unless it exists.
pub(super) fn built() -> Result<PathBuf, String> {
    let release = oracle::selftests().join(newest());
    let tools = release.join("linux/tools");
    let file = release.join("tools").join(BUILT);
    if file.exists() {
        return Ok(file);
    }
    let sources = tools.join("lib/bpf");
    let sources =
        sources_in(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    compile(&tools, &sources, &file).map_err(|why| format!("compiling libbpf: {why}"))?;
    Ok(file)
}

/// The newest release that was built.
fn newest() -> String {
    let said = fs::read_to_string(oracle::selftests().join("newest"));
    said.map_or_else(|_| "7.2".into(), |said| said.trim().to_owned())
}

fn sources_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

/// Compiles as libbpf's own Makefile does. The file gets its name when it is whole.
fn compile(tools: &Path, sources: &[PathBuf], file: &Path) -> Result<(), String> {
    let partial = file.with_extension(std::process::id().to_string());
    let stand_in = partial.with_extension("c");
    let words = |error: io::Error| error.to_string();
    fs::write(&stand_in, STAND_IN).map_err(words)?;
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-fPIC", "-shared", "-fvisibility=hidden"]);
    compiler.args([
        "-D_GNU_SOURCE",
        "-D_FILE_OFFSET_BITS=64",
        "-Wl,--wrap=syscall",
    ]);
    for include in ["lib/bpf", "include", "include/uapi"] {
        compiler.arg("-I").arg(tools.join(include));
    }
    compiler.args(sources).arg(&stand_in);
    compiler.args(["-lelf", "-lz"].map(OsString::from));
    compiler.arg("-o").arg(&partial);
    let output = compiler.output();
    fs::remove_file(&stand_in).map_err(words)?;
    let output = output.map_err(words)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    fs::rename(&partial, file).map_err(words)
}
