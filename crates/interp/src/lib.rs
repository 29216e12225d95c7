//! The threaded interpreter.
//!
//! A program is compiled to an array of operations (`op::Op`), each of which
//! carries the function that performs it and its operands, decoded. Such a
//! function ends by calling the next one in tail position, which an optimising
//! compiler makes a jump: there is no central loop, every operation has its own
//! indirect jump (so the processor predicts each from its own history), and what
//! all share stays in registers. Where tail calls are not to be had (see
//! build.rs) the same functions return the next operation to a plain loop.
//!
//! What was learnt by measuring:
//! - `r0` travels in a machine register; the others live in the machine. Filters
//!   do most of their work in `r0`.
//! - A branch that tests and falls through costs a third of a nanosecond; one
//!   that selects its target, ten times that.
//! - Most of the cost is the number of operations, so common sequences are one
//!   operation (`fuse`), and a chain of comparisons of one register
//!   with constants is a table look-up.
//! - The rest of the cost of compiled programs is values that go to memory and
//!   come back at once. Two operations of which the second uses the result of the
//!   first share a function that keeps it in a register (`ops/pairs.rs`): loops
//!   run a third faster for it.
//! - A local call is a call of the host, which predicts its way back.
//!
//! A budget bounds how many backward jumps a run takes: it is paid where such a
//! jump is taken, in the jump's own operation. A deadline is looked at when a slice
//! of it is used up (`vm::Meter`). [`checked`] is the other
//! interpreter, for programs that nobody vouches for.

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
