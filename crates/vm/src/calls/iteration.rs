//! Helpers that call functions of the program.
//!
//! Such a helper does not call: it gives its engine an [`Iteration`]
//! ([`MemoryPort::begin`]), which says what to call next whenever a function has returned.
//! So no frame of a helper is below a function of the program: limits, traps and deadlines
//! end a run as they do elsewhere, and every engine makes the calls as it makes local calls.
//!
//! Native code iterates through two functions, [`begin_calls`] and [`next_call`], which return
//! the address of a [`CallBlock`]: lowering writes the loop around them.

use std::cell::{Cell, RefCell};
use std::mem;
use std::panic::{self, AssertUnwindSafe};

use crate::{Direct, MemoryPort, RunContext};

/// Next step of an iteration, after its start or the return of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationStep {
    /// A call of a function of the program, by what a reference to it is in the engine.
    Call {
        /// The function.
        function: u64,
        /// `r1` to `r5`.
        arguments: [u64; 5],
    },
    /// The end: the result of the helper.
    Return(u64),
}

/// Calls of functions of the program that a helper makes, one after the other.
pub trait Iteration<M: MemoryPort> {
    /// The step after a function has returned this; the first step with `None`.
    fn next(&mut self, memory: &mut M, returned: Option<u64>) -> Result<IterationStep, M::Fault>;
}

/// Position of a program that visits the entries of a map (`bpf_for_each_map_elem`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Position of the first entry that is not visited: an index of an array or of a bucket.
    pub position: u64,
    /// Entries before that position that are visited next, the last one first.
    pub waiting: Vec<u32>,
    /// The number of the cell that holds the key, if the map has no keys in memory
    /// ([`RunGuard::key_cell`](crate::RunGuard::key_cell)).
    pub key_cell: Option<usize>,
}

/// Next step of an iteration, for native code: the function to call with its arguments, or the
/// result. Lowered code reads its fields.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CallBlock {
    /// The function to call; 0: none, the iteration has ended.
    function: u64,
    arguments: [u64; 5],
    /// Result of the helper, at the end.
    result: u64,
}

impl CallBlock {
    /// Offset of the function, a number of 64 bits as all fields are.
    pub const FUNCTION: usize = mem::offset_of!(CallBlock, function);
    /// Offset of the first of five arguments.
    pub const ARGUMENTS: usize = mem::offset_of!(CallBlock, arguments);
    /// Offset of the result.
    pub const RESULT: usize = mem::offset_of!(CallBlock, result);

    fn of(step: IterationStep) -> CallBlock {
        match step {
            IterationStep::Call {
                function,
                arguments,
            } => CallBlock {
                function,
                arguments,
                result: 0,
            },
            IterationStep::Return(result) => CallBlock {
                result,
                ..CallBlock::default()
            },
        }
    }
}

type DirectIteration = Box<dyn Iteration<Direct>>;

/// The iterations of a run of native code.
#[derive(Default)]
pub(crate) struct Iterations {
    /// The one that the helper began which was called last.
    begun: RefCell<Option<DirectIteration>>,
    /// Those whose functions run, the innermost last.
    active: RefCell<Vec<DirectIteration>>,
    block: Cell<CallBlock>,
}

impl Iterations {
    pub(crate) fn begin(&self, iteration: DirectIteration) {
        *self.begun.borrow_mut() = Some(iteration);
    }

    /// Forgets those of a run that has ended.
    pub(crate) fn clear(&mut self) {
        *self.begun.get_mut() = None;
        self.active.get_mut().clear();
    }

    /// Takes the next step of an iteration, which stays active until it ends.
    fn step(&self, mut iteration: DirectIteration, memory: &mut Direct, returned: Option<u64>) {
        let Ok(step) = iteration.next(memory, returned);
        if let IterationStep::Call { .. } = step {
            self.active.borrow_mut().push(iteration);
        }
        self.block.set(CallBlock::of(step));
    }
}

/// Called by native code when a helper has returned that may have begun an iteration, with
/// its result: returns the address of the [`CallBlock`].
///
/// # Safety
/// As for [`Call`](crate::Call); the run is that of a verified program.
pub unsafe extern "C" fn begin_calls(
    result: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    take_step(cx, |iterations, memory| {
        let begun = iterations.begun.borrow_mut().take();
        match begun {
            Some(iteration) => iterations.step(iteration, memory, None),
            None => iterations
                .block
                .set(CallBlock::of(IterationStep::Return(result))),
        }
    })
}

/// Called by native code when a function of an iteration has returned, with what it
/// returned: returns the address of the [`CallBlock`].
///
/// # Safety
/// As for [`begin_calls`].
pub unsafe extern "C" fn next_call(
    returned: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    take_step(cx, |iterations, memory| {
        let active = iterations.active.borrow_mut().pop();
        if let Some(iteration) = active {
            iterations.step(iteration, memory, Some(returned));
        }
    })
}

/// Takes a step; a panic ends the iteration with 0 and goes on when the run has ended.
fn take_step(cx: &mut RunContext<'_>, step: impl FnOnce(&Iterations, &mut Direct)) -> u64 {
    let guard = cx.guard.expect("runs of verified programs have a guard");
    let iterations = guard.iterations();
    // SAFETY: guard and maps outlive the call, and what the iteration works on came from a
    // verified program.
    let mut memory = unsafe { Direct::new(cx) };
    let result = panic::catch_unwind(AssertUnwindSafe(|| step(iterations, &mut memory)));
    if let Err(payload) = result {
        cx.panic.get_or_insert(payload);
        iterations.block.set(CallBlock::default());
    }
    iterations.block.as_ptr().expose_provenance() as u64
}
