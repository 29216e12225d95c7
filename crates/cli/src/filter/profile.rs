//! Symbols of native code for perf(1): perf map or jitdump, as --perf selects.

use std::io;
use std::path::Path;

use beebox::internal::perf::{CodeRegion, JitDump, SymbolMap};

use crate::answer::Failure;

/// Output for the profiler (perf).
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Form {
    /// Names, in /tmp/perf-PID.map
    Map,
    /// Names and code, in jit-PID.dump in the current directory
    Jitdump,
}

/// Kind of the output.
pub(super) enum ProfilerOutput {
    Map(SymbolMap),
    Dump(JitDump),
}

impl ProfilerOutput {
    /// Opens what the profiler will read.
    pub(super) fn open(form: Form) -> Result<ProfilerOutput, Failure> {
        let opened: io::Result<ProfilerOutput> = match form {
            Form::Map => SymbolMap::open().map(ProfilerOutput::Map),
            Form::Jitdump => JitDump::create(Path::new(".")).map(ProfilerOutput::Dump),
        };
        opened.map_err(|error| Failure::new(format_args!("perf: {error}")))
    }

    /// Adds a filter's code.
    pub(super) fn add(&self, code: &CodeRegion<'_>) -> io::Result<()> {
        match self {
            ProfilerOutput::Map(map) => map.add(code),
            ProfilerOutput::Dump(dump) => dump.add(code),
        }
    }
}
