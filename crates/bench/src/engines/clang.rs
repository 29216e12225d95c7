//! The native figure: the source of a workload, compiled for this processor when
//! the benchmark runs, so that building needs no compiler of C.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sys::library::Entry;

use super::unchecked;
use super::workload::{HEADER, Workload};
use crate::Failure;
use crate::scratch::Scratch;

/// Under which names clang is installed, best first: the release that made the
/// committed objects.
const NAMES: &[&str] = &["clang-19", "clang"];

/// A compiler, and a place for what it makes.
pub(super) struct Clang {
    name: &'static str,
    /// Version string.
    pub(super) version: String,
    scratch: Scratch,
}

/// A workload as native code.
pub(super) struct Native {
    /// Entry point.
    pub(super) entry: Entry,
    /// True if clang reports vectorised loops.
    pub(super) vectorised: bool,
    /// The shared object.
    pub(super) file: PathBuf,
}

impl Clang {
    /// The system's clang; `None` if there is none.
    pub(super) fn find() -> Result<Option<Clang>, Failure> {
        let found = NAMES.iter().find_map(|&name| {
            let output = Command::new(name).arg("--version").output().ok()?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let version = said.lines().next()?.to_owned();
            output.status.success().then_some((name, version))
        });
        let Some((name, version)) = found else {
            return Ok(None);
        };
        let place = |error| Failure::System("a place for native code", error);
        let scratch = Scratch::new().map_err(place)?;
        fs::write(scratch.path().join(HEADER.0), HEADER.1).map_err(place)?;
        Ok(Some(Clang {
            name,
            version,
            scratch,
        }))
    }

    /// Compiles a workload and loads it.
    pub(super) fn compile(&self, workload: &Workload) -> Result<Native, Failure> {
        let source = self.scratch.path().join(format!("{}.c", workload.file));
        let file = source.with_extension("so");
        let failed = |said: String| Failure::Process {
            purpose: "compiling a workload for this processor",
            said,
        };
        fs::write(&source, workload.source)
            .map_err(|error| Failure::System("writing a workload", error))?;
        let output = self
            .command(&source, &file)
            .output()
            .map_err(|error| Failure::System("starting clang", error))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(failed(said.into_owned()));
        }
        let entry = unchecked::load(&file).map_err(|error| failed(error.to_string()))?;
        Ok(Native {
            entry,
            vectorised: said.contains("[-Rpass="),
            file,
        })
    }

    fn command(&self, source: &Path, file: &Path) -> Command {
        let mut command = Command::new(self.name);
        command.args(["-O2", "-shared", "-fPIC"]);
        // It remarks on every loop and every line that it vectorises.
        command.arg("-Rpass=loop-vectorize|slp-vectorizer");
        command.args([OsStr::new("-o"), file.as_os_str(), source.as_os_str()]);
        command
    }
}
