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
//!
//! # Modules
//!
//! `checked/` runs any instructions: `engine.rs` is the interpreter loop, `frequent.rs` its fast
//! rows, `engine/call_stack.rs` calls and returns, `memory.rs` and `maps.rs` the virtual address
//! space, `engine/watch.rs` with `memory/watch.rs` notice reads of stack that was not written,
//! `engine/arena.rs` pointers into arenas, `calls.rs` the helpers, `tail.rs` tail calls, `model.rs`
//! what a run opened and holds, `trap.rs` the traps. The rest is the threaded interpreter; threaded
//! code is built only where tail calls are certain (`build.rs`): `compile.rs` compiles lowered
//! programs to operations, `compile/single.rs` instructions that are one operation each;
//! `threaded.rs` runs them, with the entries of each kind of program, `verified.rs` verified ones,
//! in the memory of native code; `fusion.rs` lists the fusions, `fuse.rs` recognises sequences,
//! `ops/` has the handlers, `ops/linked.rs` and `ops/pairs.rs` those of linked operations.

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
