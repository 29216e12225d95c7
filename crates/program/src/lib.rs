//! The loadable program: everything that `BPF_PROG_LOAD` says of a program, owned and
//! self-contained, for a verifier, an engine or a kernel.
//!
//! A [`Program`] is made by a [`ProgramBuilder`] and does not change afterwards. The
//! instructions are the only truth about what the program refers to: a 64-bit load with
//! source `BPF_PSEUDO_MAP_IDX` or `BPF_PSEUDO_MAP_IDX_VALUE` names an entry of
//! [`Program::maps`], a kfunc call or a load with source `BPF_PSEUDO_BTF_ID` names a
//! BTF id of vmlinux or of an entry of [`Program::modules`]. Which relocation wrote an
//! instruction is known to the loader alone.
//!
//! This crate knows no file format and resolves nothing.
//!
//! | file | contents |
//! |---|---|
//! | `program` | the program and its accessors |
//! | `builder` | construction, and the rules that every program obeys |
//! | `map_def` | map definitions and their initial contents |
//! | `image` | bytes of which only the set ones take memory |
//! | `externs` | extern symbols and what they resolved to |
//! | `case` | programs as text, with the answers of kernels |
#![forbid(unsafe_code)]

mod builder;
pub mod case;
mod externs;
mod image;
mod map_def;
mod program;

pub use builder::{InvalidProgram, MAX_INSNS, ProgramBuilder};
pub use externs::{ExternId, ExternResolution, ExternSymbol, ExternSymbolKind};
pub use image::Image;
pub use map_def::{
    Entry, InitialContents, KernelType, MapDef, MapId, MapParams, PAGE_SIZE, ProgramId, ProgramRef,
};
pub use program::{AttachTarget, FuncInfo, LineInfo, Program, Subprog};
