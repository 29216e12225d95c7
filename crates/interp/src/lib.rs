//! The interpreters: a threaded one for lowered programs, and [`checked`] for any
//! instructions.
//!
//! The threaded interpreter compiles a program to an array of operations (`op::Op`), each
//! with the function that performs it and its decoded operands. Such a function ends by
//! calling the next one in tail position, which the compiler turns into a jump: every
//! operation has its own indirect jump, which the processor predicts by its own history, and
//! the state of the run stays in registers. Where tail calls are not certain (build.rs) the
//! functions return the next operation to a loop.
//!
//! `r0` is passed in a machine register; the other registers are in the machine. Common
//! sequences are one operation (`fuse.rs`), chains of comparisons are table lookups, and two
//! operations of which the second uses the result of the first share a function that keeps
//! it in a register (`ops/pairs.rs`). Local calls are calls of the host.
//!
//! A budget limits the backward jumps of a run; the deadline is checked when a slice of it
//! is used up (`vm::Meter`).

pub mod checked;
mod code;
mod compile;
mod fuse;
mod fusion;
mod op;
mod ops;
#[cfg(test)]
mod tests;

pub use code::Code;
pub use compile::Unsupported;
pub use fusion::{Applied, Fusion, Fusions};
