//! The interpreters: a threaded one for lowered programs, and [`checked`] for any
//! instructions.
//!
//! The threaded interpreter compiles a program to an array of operations (`op::Op`), each
//! with a pointer to its handler and its decoded operands. A handler ends with a tail call
//! of the next one (threaded code): every operation has its own indirect jump, which the
//! branch predictor tracks separately, and the state of the run stays in registers. Where
//! tail calls are not certain (build.rs), handlers return the next operation to a dispatch
//! loop.
//!
//! `r0` is passed in a machine register; the other registers are in memory. Common
//! sequences are fused to one operation (`fuse.rs`), comparison chains become table
//! lookups, and two dependent operations share a handler that keeps the intermediate result
//! in a machine register (`ops/pairs.rs`). Local calls recurse on the host's stack.
//!
//! A budget limits the backward jumps of a run; the deadline is checked when a slice of it
//! is used up (`vm::Meter`).

pub mod checked;
mod compile;
mod fuse;
mod fusion;
mod op;
mod ops;
#[cfg(test)]
mod tests;
mod threaded;
mod verified;

pub use compile::Unsupported;
pub use fusion::{Applied, Fusion, Fusions};
pub use threaded::{FilterEntry, SyscallEntry, Threaded, ThreadedCode, ThreadedProgram};
pub use verified::VerifiedThreaded;
