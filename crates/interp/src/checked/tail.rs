//! Tail calls: which program a run goes on with, and how often.
//!
//! `bpf_tail_call` takes the context, a program array and an index of 32 bits. If the slot
//! holds a program, and fewer than [`spec::limits::TAIL_CALLS`] tail calls were made in the run, the
//! function that calls ends and the program takes its place: it gets an empty frame, and
//! returns to where the function would have. Otherwise the call does nothing.

use std::sync::Arc;

pub(super) use spec::calls::TAIL_CALL;

use super::CheckedProgram;

/// Finds the programs that tail calls go on with.
pub trait TailTargets {
    /// The program at an index of a program array, which is the map of that index in the
    /// run's memory; `None` beyond the array and in an empty slot. Its instructions refer to
    /// maps by their index in the same memory.
    fn target(&self, array: u32, index: u32) -> Option<Arc<CheckedProgram>>;
}

impl<F: Fn(u32, u32) -> Option<Arc<CheckedProgram>>> TailTargets for F {
    fn target(&self, array: u32, index: u32) -> Option<Arc<CheckedProgram>> {
        self(array, index)
    }
}
