//! The processor that code is generated for.

/// The code generator's target. On other processors and systems than x86-64 Linux its code is for
/// inspection only.
pub(crate) use crate::x64::X64 as Host;

use crate::codegen::{self, Target};

/// Code that was generated for it.
pub(crate) type Code<'a> = codegen::Code<'a, <Host as Target>::Assembler>;

/// True if this processor runs the code that is generated, and this system has pages for it.
pub const RUNS_HERE: bool = cfg!(all(target_arch = "x86_64", target_os = "linux"));
