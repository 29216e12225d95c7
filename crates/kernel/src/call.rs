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
