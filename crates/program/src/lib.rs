//! A program as loaded and linked: what a kernel, a verifier or an engine gets.
//!
//! Instructions are kept as the slots that they are in memory, bit for bit, because
//! the bits are what is compared, hashed and loaded; [`Program::insns`] decodes
//! them. What a slot refers to outside its program is symbolic: maps are named by
//! their number in the object (the kernel's own encoding for that, map index), and
//! whoever loads the program says what the numbers stand for
//! ([`Program::for_kernel`]). Beside the slots, [`Program::references`] says by slot
//! what each reference is.
//!
//! This crate knows no file format and resolves nothing.
#![forbid(unsafe_code)]

mod program;
mod reference;

pub use program::{AttachPoint, FunctionStart, Line, Program, Subprogram};
pub use reference::{
    CORE_POISON, ExternId, KFUNC_POISON, MAP_POISON, MapId, PseudoCall, PseudoLoad, Reference,
    Referent, is_wide_load,
};
