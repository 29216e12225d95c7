//! The native context: state of a run that native code accesses beside its arguments.

use std::mem;

use vm::{Deadline, RunContext};

/// State of a run that native code accesses beside its arguments, at the offsets below.
#[repr(C)]
#[derive(Debug)]
pub struct NativeContext {
    /// Pointer to a [`RunContext`].
    pub(super) run_context: *mut (),
    /// Address and length of the packet's bytes.
    pub(super) data: *const u8,
    pub(super) len: usize,
    /// Remaining backward jumps; negative once the limit is exceeded.
    pub(super) budget: i64,
    /// Fuel: loop iterations and calls until the next deadline check; negative once the
    /// deadline has passed.
    pub(super) fuel: i64,
    /// Stack pointer of the entry function, if the run may end in a callee.
    pub(super) stack: u64,
    /// Processor id.
    pub(super) processor: u32,
    /// Tail calls made.
    pub(super) tail_calls: u32,
    pub(super) deadline: Option<Deadline>,
}

impl NativeContext {
    pub(crate) const RUN_CONTEXT: usize = mem::offset_of!(NativeContext, run_context);
    /// Offset in the run context of the list of stack frames.
    pub(crate) const FRAMES: usize = mem::offset_of!(RunContext<'static>, frames);
    pub(crate) const DATA: usize = mem::offset_of!(NativeContext, data);
    pub(crate) const LEN: usize = mem::offset_of!(NativeContext, len);
    pub(crate) const BUDGET: usize = mem::offset_of!(NativeContext, budget);
    pub(crate) const FUEL: usize = mem::offset_of!(NativeContext, fuel);
    pub(crate) const STACK: usize = mem::offset_of!(NativeContext, stack);
    pub(crate) const TAIL_CALLS: usize = mem::offset_of!(NativeContext, tail_calls);
    pub(crate) const PROCESSOR: usize = mem::offset_of!(NativeContext, processor);
}

/// Called by native code when its fuel is used up: sets new fuel, or leaves it negative if
/// the deadline has passed. The run then ends without unwinding, because frames of native
/// code own nothing that must be dropped.
pub(crate) extern "C" fn check_deadline(context: &mut NativeContext) {
    let has_passed = context.deadline.as_mut().is_some_and(Deadline::has_passed);
    context.fuel = match has_passed {
        true => -1,
        false => fuel(context.deadline),
    };
}

/// Fuel until the next deadline check.
pub(super) fn fuel(deadline: Option<Deadline>) -> i64 {
    deadline.map_or(i64::MAX, |deadline| deadline.interval().into())
}
