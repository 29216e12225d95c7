//! Operations of threaded code, and the state that is passed between their handlers.
//!
//! An operation is a type ([`Operation`]); [`step`] is its handler. A handler receives a
//! [`Run`] as six arguments, so that it stays in registers, and every continuation
//! ([`Run::next`], [`Run::jump`]) is a tail call.

use std::mem::MaybeUninit;

use vm::{FRAME_BYTES, FrameLayout, MAY_GOTO_LOOPS, Machine, Meter, RunContext};

/// Return value of a handler: the result or, in the loop form, the next operation, null at
/// the end.
#[cfg(threaded)]
pub(crate) type Flow = u64;
#[cfg(not(threaded))]
pub(crate) type Flow = *const Op;

/// A handler: performs one operation and continues. The arguments are the fields of a
/// [`Run`], all in registers on aarch64 and on x86-64 but for Windows.
///
/// # Safety
/// The operation lies in the array of a [`ThreadedProgram`](crate::ThreadedProgram)
/// compiled from a lowered program, and all pointers are those that `ThreadedProgram::run`
/// set up: the program's evidence then covers every access of its operations.
pub(crate) type Step =
    unsafe fn(*const Op, *mut Machine, *const u8, usize, u64, *mut RunContext<'static>) -> Flow;

/// One operation: 32 bytes, two to a cache line, whatever the size of a pointer.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Op {
    pub run: Step,
    /// Immediate, or constant offset of a packet load.
    pub a: u32,
    /// Second immediate: the constant of a fused comparison.
    pub b: u32,
    /// Target of the first branch, relative to this operation.
    pub t: Distance,
    /// Target of the second branch, relative to this operation.
    pub u: Distance,
    pub dst: u8,
    pub src: u8,
    pub off: i16,
    /// Left operand of arithmetic.
    pub lhs: u8,
    /// Uses the run context or the limits of the run.
    pub uses_run: bool,
}

impl Op {
    pub(crate) const fn new(run: Step) -> Op {
        Op {
            run,
            a: 0,
            b: 0,
            t: Distance::NONE,
            u: Distance::NONE,
            dst: 0,
            src: 0,
            off: 0,
            lhs: 0,
            uses_run: false,
        }
    }

    /// An operation that uses the run context or the limits of the run.
    pub(crate) const fn using_run(run: Step) -> Op {
        Op {
            uses_run: true,
            ..Op::new(run)
        }
    }

    /// `a` and `b` as one 64-bit value.
    #[inline(always)]
    pub(crate) const fn wide(&self) -> u64 {
        self.a as u64 | (self.b as u64) << 32
    }

    pub(crate) const fn with_wide(self, value: u64) -> Op {
        Op {
            a: value as u32,
            b: (value >> 32) as u32,
            ..self
        }
    }

    /// `a` as a sign-extended immediate.
    #[inline(always)]
    pub(crate) const fn imm(&self) -> u64 {
        self.a as i32 as i64 as u64
    }
}

const _: () = assert!(size_of::<Op>() == 32);

/// Distance between two operations in 8-byte words, which addressing modes can scale.
#[derive(Clone, Copy)]
pub(crate) struct Distance(i32);

impl Distance {
    const WORD: usize = size_of::<u64>();
    const OP: i32 = (size_of::<Op>() / Distance::WORD) as i32;

    /// The distance to the operation itself.
    pub(crate) const NONE: Distance = Distance(0);
    const ONE: Distance = Distance(Distance::OP);

    /// Largest number of operations for which every distance fits.
    pub(crate) const LONGEST_PROGRAM: usize = (i32::MAX / Distance::OP) as usize;

    /// The distance between two operations, by their indexes.
    pub(crate) const fn between(from: usize, to: usize) -> Distance {
        Distance((to as i32 - from as i32) * Distance::OP)
    }
}

/// Semantics of an operation.
pub(crate) trait Operation {
    /// Performs the operation and continues.
    fn perform(run: Run) -> Flow;
}

/// The handler of an operation.
///
/// # Safety
/// See [`Step`].
pub(crate) unsafe fn step<O: Operation>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    cx: *mut RunContext<'static>,
) -> Flow {
    O::perform(Run {
        op,
        m,
        data,
        len,
        r0,
        last: 0,
        cx,
    })
}

/// The state of a run at an operation.
///
/// Invariants, which the callers of [`step`] and `ThreadedProgram::run` uphold: `op` lies
/// in the array of the program, `m` is the machine of the run, `data` is readable for `len`
/// bytes, and `cx` is the run context that the caller passed, or null. The safe functions below rest
/// on them, and on the compiler, which gives operations valid register numbers and
/// distances.
pub(crate) struct Run {
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    /// `r0`; the other registers are in the machine.
    pub r0: u64,
    /// Result of the previous operation, if both share a handler.
    pub last: u64,
    cx: *mut RunContext<'static>,
}

impl Run {
    /// The state at the first operation of a program.
    ///
    /// # Safety
    /// The invariants of the type hold.
    #[inline(always)]
    pub(crate) unsafe fn new(
        op: *const Op,
        m: *mut Machine,
        data: &[u8],
        cx: *mut RunContext<'static>,
    ) -> Run {
        Run {
            op,
            m,
            data: data.as_ptr(),
            len: data.len(),
            r0: 0,
            last: 0,
            cx,
        }
    }

    /// The state at the first operation of a program none of whose operations uses the run
    /// context.
    ///
    /// # Safety
    /// The invariants of the type hold.
    #[inline(always)]
    pub(crate) unsafe fn without_context(op: *const Op, m: *mut Machine, data: &[u8]) -> Run {
        // SAFETY: passed on to the caller.
        unsafe { Run::new(op, m, data, std::ptr::null_mut()) }
    }

    /// The operation.
    #[inline(always)]
    pub(crate) fn op(&self) -> &Op {
        // SAFETY: an invariant of the type.
        unsafe { &*self.op }
    }

    /// A register of the machine, by its number.
    #[inline(always)]
    pub(crate) fn register(&self, number: u8) -> u64 {
        // SAFETY: an invariant of the type, and the number is that of a register.
        unsafe { *self.register_address(number) }
    }

    /// Sets a register of the machine.
    #[inline(always)]
    pub(crate) fn set_register(&mut self, number: u8, value: u64) {
        // SAFETY: as in `register`.
        unsafe { *self.register_address(number) = value }
    }

    #[inline(always)]
    unsafe fn register_address(&self, number: u8) -> *mut u64 {
        // SAFETY: passed on to the caller.
        unsafe { (&raw mut (*self.m).regs).cast::<u64>().add(number as usize) }
    }

    /// Address and length of the packet's bytes.
    #[inline(always)]
    pub(crate) fn data(&self) -> (*const u8, usize) {
        (self.data, self.len)
    }

    /// Uses the run context. Its own lifetime was cast away; a function for any lifetime keeps
    /// nothing of it, and puts nothing into it that ends before.
    ///
    /// # Panics
    /// If the run has none: the operation is not one of [`Op::using_run`].
    #[inline(always)]
    pub(crate) fn with_cx<R>(&mut self, f: impl for<'a> FnOnce(&mut RunContext<'a>) -> R) -> R {
        // SAFETY: an invariant of the type; only the run uses it.
        let cx = unsafe { self.cx.as_mut() };
        f(cx.expect("operations that use the run context say so"))
    }

    /// The limits of the run.
    #[inline(always)]
    pub(crate) fn meter(&mut self) -> &mut Meter {
        // SAFETY: an invariant of the type; nothing else refers to it.
        unsafe { &mut (*self.m).meter }
    }

    /// Remaining fall-throughs of `may_goto`.
    #[inline(always)]
    pub(crate) fn may_goto(&mut self) -> &mut u64 {
        // SAFETY: an invariant of the type; nothing else refers to it.
        unsafe { &mut (*self.m).may_goto }
    }

    /// Calls the function at a distance: with a frame and a `may_goto` counter of its own,
    /// and with `r6` to `r10` restored when it returns.
    #[inline(always)]
    pub(crate) fn call(&mut self, distance: Distance) {
        const CALLEE_SAVED: [u8; 4] = [6, 7, 8, 9];
        const FRAME_POINTER: u8 = 10;
        let saved = CALLEE_SAVED.map(|number| self.register(number));
        let frame = self.register(FRAME_POINTER);
        self.set_register(FRAME_POINTER, frame.wrapping_sub(FRAME_BYTES as u64));
        let loops = std::mem::replace(self.may_goto(), MAY_GOTO_LOOPS);
        self.r0 = Run { ..*self }.moved(distance).complete();
        *self.may_goto() = loops;
        self.set_register(FRAME_POINTER, frame);
        for (number, value) in CALLEE_SAVED.into_iter().zip(saved) {
            self.set_register(number, value);
        }
    }

    /// As [`Run::call`], of a function of a verified program: its frame is on the host's stack, as
    /// tail calls let a run have any number of them.
    #[inline(always)]
    pub(crate) fn call_with_frame(&mut self, distance: Distance, layout: &FrameLayout) {
        const SAVED: [u8; 5] = [6, 7, 8, 9, 10];
        let saved = SAVED.map(|number| self.register(number));
        let loops = std::mem::replace(self.may_goto(), MAY_GOTO_LOOPS);
        let frames = self.with_cx(|cx| cx.frames);
        let Run { op, m, cx, .. } = Run { ..*self }.moved(distance);
        // SAFETY: the invariants of the type, also at the operation at the distance.
        self.r0 = unsafe { complete_in_frame(op, m, cx, layout) };
        self.with_cx(|cx| cx.frames = frames);
        *self.may_goto() = loops;
        for (number, value) in SAVED.into_iter().zip(saved) {
            self.set_register(number, value);
        }
    }

    /// Tail calls that the run made.
    #[inline(always)]
    pub(crate) fn tail_calls(&mut self) -> &mut u32 {
        // SAFETY: an invariant of the type; nothing else refers to it.
        unsafe { &mut (*self.m).tail_calls }
    }

    /// Continues in another program, in the frame of the function that runs.
    ///
    /// # Safety
    /// The entry is that of a program that was verified for the run's context, and there is
    /// room for every frame below the frame pointer.
    #[inline(always)]
    pub(crate) unsafe fn enter(mut self, entry: &TailEntry, is_linked: bool) -> Flow {
        const FRAME_POINTER: u8 = 10;
        const CONTEXT: u8 = 1;
        const CONTEXT_KEPT: u8 = 6;
        *self.may_goto() = MAY_GOTO_LOOPS;
        let (context, frame) = (self.register(CONTEXT), self.register(FRAME_POINTER));
        self.set_register(CONTEXT_KEPT, context);
        // SAFETY: the function that runs has linked its record, and the rest is upheld by the
        // caller.
        self.with_cx(|cx| unsafe {
            if is_linked {
                cx.frames.unlink();
            }
            entry.layout.enter(frame, &mut cx.frames);
        });
        Run {
            op: std::ptr::with_exposed_provenance(entry.ops),
            ..self
        }
        .dispatch()
    }

    /// The state at the next operation, whose type is known statically.
    #[inline(always)]
    pub(crate) fn forward(self) -> Run {
        self.moved(Distance::ONE)
    }

    /// The state at the operation at a distance.
    #[inline(always)]
    fn moved(self, distance: Distance) -> Run {
        let words = self.op.cast::<u64>().wrapping_offset(distance.0 as isize);
        Run {
            op: words.cast(),
            ..self
        }
    }

    /// Continues with the next operation.
    #[inline(always)]
    pub(crate) fn next(self) -> Flow {
        self.jump(Distance::ONE)
    }

    /// Continues with the operation at a distance.
    #[inline(always)]
    pub(crate) fn jump(self, distance: Distance) -> Flow {
        self.moved(distance).dispatch()
    }

    /// Calls the handler of the operation.
    #[cfg(threaded)]
    #[inline(always)]
    fn dispatch(self) -> Flow {
        // SAFETY: the invariants of the type are the requirements of `Step`.
        unsafe { ((*self.op).run)(self.op, self.m, self.data, self.len, self.r0, self.cx) }
    }

    #[cfg(not(threaded))]
    #[inline(always)]
    fn dispatch(mut self) -> Flow {
        self.set_register(0, self.r0);
        self.op
    }

    /// Ends the function with a result.
    #[cfg(threaded)]
    #[inline(always)]
    pub(crate) fn finish(self, r0: u64) -> Flow {
        r0
    }

    #[cfg(not(threaded))]
    #[inline(always)]
    pub(crate) fn finish(mut self, r0: u64) -> Flow {
        self.set_register(0, r0);
        std::ptr::null()
    }

    /// Continues as another operation by a tail call, out of line: the fast path then saves
    /// no registers.
    #[inline(always)]
    pub(crate) fn continue_as<O: Operation>(self) -> Flow {
        // SAFETY: the invariants of the type are the requirements of `Step`.
        unsafe { step_out_of_line::<O>(self.op, self.m, self.data, self.len, self.r0, self.cx) }
    }

    /// Runs to the end of the function and returns its result.
    #[cfg(threaded)]
    #[inline(always)]
    pub(crate) fn complete(self) -> u64 {
        self.dispatch()
    }

    #[cfg(not(threaded))]
    #[inline(always)]
    pub(crate) fn complete(self) -> u64 {
        let mut op = self.op;
        let mut r0 = self.r0;
        // SAFETY: every operation but the last returns an operation of its array.
        unsafe {
            while !op.is_null() {
                op = ((*op).run)(op, self.m, self.data, self.len, r0, self.cx);
                r0 = self.register(0);
            }
        }
        r0
    }
}

/// A program as tail calls enter it: its first operation, and the frame of its entry function.
pub(crate) struct TailEntry {
    pub(crate) ops: usize,
    pub(crate) layout: FrameLayout,
}

/// Room for the frame of a function, which ends at its frame pointer.
#[repr(align(8))]
struct FrameRoom(
    #[expect(dead_code, reason = "reached by address")] [MaybeUninit<u8>; FrameLayout::ROOM],
);

/// Runs a function of a verified program to its end, in a frame of its own; returns its result.
/// The frames of a run, the entry's among them, are all on the host's stack, so that those of
/// callees are below those of callers.
///
/// # Safety
/// The invariants of [`Run`] hold for these fields of it.
#[inline(never)]
pub(crate) unsafe fn complete_in_frame(
    op: *const Op,
    m: *mut Machine,
    cx: *mut RunContext<'static>,
    layout: &FrameLayout,
) -> u64 {
    const FRAME_POINTER: usize = 10;
    let mut room = FrameRoom([MaybeUninit::uninit(); FrameLayout::ROOM]);
    let top = (&raw mut room).wrapping_add(1).expose_provenance() as u64;
    // SAFETY: passed on to the caller; the room is there until the function has returned.
    unsafe {
        (*m).regs[FRAME_POINTER] = top;
        layout.enter(top, &mut (*cx).frames);
        Run::new(op, m, &[], cx).complete()
    }
}

/// As [`step`], out of line.
#[cold]
#[inline(never)]
unsafe fn step_out_of_line<O: Operation>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    cx: *mut RunContext<'static>,
) -> Flow {
    // SAFETY: passed on to the caller.
    unsafe { step::<O>(op, m, data, len, r0, cx) }
}

/// The operation that dispatches to the handler of the next one.
pub(crate) struct Dispatch;

impl Operation for Dispatch {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        run.dispatch()
    }
}
