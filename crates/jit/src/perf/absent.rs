//! The interfaces to perf on systems other than Linux: they cannot be opened.

use std::io;
use std::ops::Range;
use std::path::Path;

use isa::ebpf::Insn;

use super::CodeRegion;

/// The file for `perf inject --jit`, which only Linux has.
#[derive(Debug)]
pub enum JitDump {}

impl JitDump {
    /// The error that perf is Linux's.
    pub fn create(_: &Path) -> io::Result<JitDump> {
        Err(not_linux())
    }

    /// Adds native code.
    pub fn add(&self, _: &CodeRegion<'_>) -> io::Result<()> {
        match *self {}
    }

    /// Adds native code with its instructions as lines.
    pub fn add_program(
        &self,
        _: &CodeRegion<'_>,
        _: impl Iterator<Item = (Option<usize>, Range<usize>)>,
        _: &[Insn],
    ) -> io::Result<()> {
        match *self {}
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        match *self {}
    }
}

/// The perf map of this process, which only Linux has.
#[derive(Debug)]
pub enum SymbolMap {}

impl SymbolMap {
    /// The error that perf is Linux's.
    pub fn open() -> io::Result<SymbolMap> {
        Err(not_linux())
    }

    /// The error that perf is Linux's.
    pub fn open_at(_: &Path) -> io::Result<SymbolMap> {
        Err(not_linux())
    }

    /// Adds a program.
    pub fn add(&self, _: &CodeRegion<'_>) -> io::Result<()> {
        match *self {}
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        match *self {}
    }
}

fn not_linux() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "perf is a profiler of Linux")
}
