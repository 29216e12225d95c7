//! The call of a helper or kfunc, as each of their functions takes it.

use vm::{MemoryPort, RunContext};

/// A call of a helper or kfunc: `r1` to `r5`, the memory of the engine, and what the run is about.
pub(crate) struct Call<'a, 'b, M>(
    pub(crate) [u64; 5],
    pub(crate) &'a mut M,
    pub(crate) &'a mut RunContext<'b>,
);

/// What a helper or kfunc returns in `r0`, or the fault of its memory.
pub(crate) type Return<M> = Result<u64, <M as MemoryPort>::Fault>;

/// A function that takes a [`Call`] in the form of `vm::Helper`.
macro_rules! helper {
    ($function:expr) => {
        |arguments, memory, cx| $function($crate::call::Call(arguments, memory, cx))
    };
}
pub(crate) use helper;

/// Returns the negated error number from a helper or kfunc if a condition holds:
/// `fail_if!(flags != 0 => Errno::EINVAL)`.
macro_rules! fail_if {
    ($condition:expr => $errno:expr) => {
        if $condition {
            return Ok($errno.negated());
        }
    };
}
pub(crate) use fail_if;
