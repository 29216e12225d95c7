//! The loadable program: all inputs of `BPF_PROG_LOAD`, owned and self-contained, for a
//! verifier, an engine or a kernel.
//!
//! A [`Program`] is made by a [`ProgramBuilder`] and immutable afterwards. The
//! instructions alone define what the program refers to: an ld_imm64 with source
//! `BPF_PSEUDO_MAP_IDX` or `BPF_PSEUDO_MAP_IDX_VALUE` refers to an entry of
//! [`Program::maps`]; a kfunc call, or an ld_imm64 with source `BPF_PSEUDO_BTF_ID`, to a
//! BTF id of vmlinux or of an entry of [`Program::modules`]. Relocations are the
//! loader's: a program has none.
//!
//! This crate reads no object files and resolves no names.
//!
//! | file | contents |
//! |---|---|
//! | `program` | the program and its accessors |
//! | `builder` | construction and the invariants of programs |
//! | `map_def` | map definitions and their initial contents |
//! | `creation` | the kernel's rules of map creation |
//! | `image` | initial contents as sparse bytes |
//! | `externs` | extern symbols and their resolution |
//! | `case` | text form of programs, with recorded answers of kernels |
//!
//! # Modules
//!
//! `program.rs` and `builder.rs` are the checked, owned program, `map_def.rs` its maps with initial
//! contents, `externs.rs` its externs.
#![forbid(unsafe_code)]

mod builder;
pub mod case;
pub mod creation;
mod externs;
mod image;
mod map_def;
mod program;

pub use builder::{InvalidProgram, MAX_INSNS, MAX_TARGETS, ModuleUse, ProgramBuilder, ProgramText};
pub use externs::{
    CORE_POISON, ExternId, ExternResolution, ExternSymbol, ExternSymbolKind, KFUNC_POISON,
    MAP_POISON,
};
pub use image::Image;
pub use map_def::{
    InitialContents, KernelTypeId, MapDef, MapEntry, MapId, MapParams, PAGE_SIZE, ProgramId,
    ProgramRef,
};
pub use program::{
    AttachTarget, EXCEPTION_CALLBACK_TAG, FailedRelocation, FuncInfo, LineInfo, Program, Subprog,
};
