//! Interfaces to Linux's profiler, perf: symbols and source lines of native code.
//!
//! There are two interfaces:
//!
//! * [`SymbolMap`] appends a line for each program to `/tmp/perf-PID.map`, which `perf
//!   report` reads directly. It has names only and never removes one, so it suits programs
//!   that live as long as the process.
//! * [`JitDump`] writes `jit-PID.dump` with the code, its load time and its lines. After
//!   `perf record -k mono`, `perf inject --jit` makes an object file of each program, so
//!   that `perf annotate` works and addresses may be reused.
//!
//! The formats are those of `tools/perf/Documentation/jit-interface.txt` and
//! `jitdump-specification.txt` of the Linux tree.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod dump;
#[cfg(target_os = "linux")]
mod map;

#[cfg(not(target_os = "linux"))]
pub use absent::{JitDump, SymbolMap};
#[cfg(target_os = "linux")]
pub use dump::JitDump;
#[cfg(target_os = "linux")]
pub use map::SymbolMap;

/// Native code with its symbol and lines.
#[derive(Clone, Copy, Debug)]
pub struct CodeRegion<'a> {
    /// Symbol name.
    pub name: &'a str,
    /// Address of the first byte.
    pub address: u64,
    /// The machine code.
    pub bytes: &'a [u8],
    /// Source lines in ascending order of offset; may be empty.
    pub lines: &'a [Line<'a>],
}

/// A source line and the offset at which its code begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset in bytes from the start of the code.
    pub offset: usize,
    /// File of the line.
    pub file: &'a str,
    /// Line number, from 1.
    pub line: u32,
}

/// The name with control characters replaced, which would end it in either format.
#[cfg(target_os = "linux")]
fn plain(name: &str) -> String {
    let plain = |symbol: char| if symbol.is_control() { '?' } else { symbol };
    name.chars().map(plain).collect()
}
