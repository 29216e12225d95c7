//! Telling Linux's profiler about native code, in the form that the user chose.

use std::io;
use std::path::Path;

use beebox::perf::{Code, JitDump, SymbolMap};

use crate::answer::Failure;

/// What the profiler is told.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Form {
    /// Names, in /tmp/perf-PID.map
    Map,
    /// Names and code, in jit-PID.dump in the current directory
    Jitdump,
}

/// Where it is told.
pub(super) enum Profile {
    Map(SymbolMap),
    Dump(JitDump),
}

impl Profile {
    /// Opens what the profiler will read.
    pub(super) fn open(form: Form) -> Result<Profile, Failure> {
        let opened: io::Result<Profile> = match form {
            Form::Map => SymbolMap::open().map(Profile::Map),
            Form::Jitdump => JitDump::create(Path::new(".")).map(Profile::Dump),
        };
        opened.map_err(|error| Failure::new(format_args!("perf: {error}")))
    }

    /// Adds a filter's code.
    pub(super) fn add(&self, code: &Code<'_>) -> io::Result<()> {
        match self {
            Profile::Map(map) => map.add(code),
            Profile::Dump(dump) => dump.add(code),
        }
    }
}
