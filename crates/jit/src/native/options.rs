//! Options of compilations, and errors of compilations and runs.

use std::fmt;

use crate::memory::MemoryError;

/// Options of a compilation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The processor's extensions that the code may use.
    pub features: crate::Features,
    /// Keeps the code map for [`NativeCode::map`](crate::NativeCode::map).
    pub map: bool,
    /// The optimizations to use; all by default.
    pub optimizations: crate::Optimizations,
    /// Adds deadline checks, which runs until a deadline need: loops and local calls then
    /// consume fuel (docs/native-code.md has the cost).
    pub deadline: bool,
    /// Tail calls may enter the program ([`Native::tail_target`](crate::Native::tail_target)). Only with deadline checks
    /// does the code differ.
    pub tail_target: bool,
    /// Indirect jumps and calls go through a retpoline, which keeps the processor from
    /// predicting their targets; jump tables are not used. Tail calls and calls of helpers
    /// are slower then.
    pub retpoline: bool,
    /// Puts a slot of five bytes at the entry of the program and of each subprogram
    /// ([`NativeCode::entry_slots`](crate::NativeCode::entry_slots)).
    pub entry_slots: bool,
}

/// Bytes of a slot at an entry, those of a call or a jump ([`Options::entry_slots`]).
pub const ENTRY_SLOT: usize = 5;

/// Errors of a compilation.
#[derive(Debug)]
pub enum CompileError {
    /// There is no code generator for this processor and system; the interpreters run on all.
    Processor,
    /// It makes tail calls through a program array that programs of another engine use.
    TailCalls,
    /// Executable memory could not be allocated.
    Memory(MemoryError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Processor => write!(
                f,
                "native code: Beebox generates none for {} on {}",
                std::env::consts::ARCH,
                std::env::consts::OS
            ),
            CompileError::TailCalls => {
                f.write_str("native code: a program array belongs to programs of another engine")
            }
            CompileError::Memory(error) => write!(f, "native code: {error}"),
        }
    }
}

impl std::error::Error for CompileError {}
