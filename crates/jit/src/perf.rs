//! What Linux's profiler wants to know of native code: which program has which
//! addresses, and which line of what each instruction comes from.
//!
//! There are two ways to tell it, and a host that wants neither pays nothing:
//!
//! * [`SymbolMap`] appends a line for each program to `/tmp/perf-PID.map`, which
//!   `perf report` reads as it is. It knows names only, and a name stays when the
//!   program is gone, so it suits programs that live as long as the process.
//! * [`JitDump`] writes `jit-PID.dump`, with the code itself, the time at which it
//!   came, and lines. `perf record -k mono`, then `perf inject --jit` makes an
//!   object file of each program, so that `perf annotate` works and addresses may
//!   be used again.
//!
//! The formats are those of `tools/perf/Documentation/jit-interface.txt` and
//! `jitdump-specification.txt` of the Linux tree.

mod dump;
mod map;

pub use dump::JitDump;
pub use map::SymbolMap;

use crate::Native;

/// Native code, as the profiler shall know it.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Where it runs.
    pub address: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where its lines begin, in ascending order; empty where nothing is known.
    pub lines: &'a [Line<'a>],
}

impl<'a> Code<'a> {
    /// A program's code, by name only.
    pub fn of(name: &'a str, native: &'a Native) -> Code<'a> {
        Code {
            name,
            address: native.address(),
            bytes: native.image(),
            lines: &[],
        }
    }
}

/// From this byte of the code on, it comes from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Bytes from the start of the code.
    pub offset: usize,
    /// The file that the line is in.
    pub file: &'a str,
    /// Its number, from 1.
    pub line: u32,
}

/// The name without what would end it in either format.
fn plain(name: &str) -> String {
    let plain = |symbol: char| if symbol.is_control() { '?' } else { symbol };
    name.chars().map(plain).collect()
}
