//! The operation: what a compiled program is an array of, and what travels from
//! one to the next.
//!
//! An operation is a type ([`Operation`]); [`step`] makes its function. What the
//! function gets is a [`Run`], which is taken apart into six arguments so that it
//! stays in registers, and every way on ([`Run::next`], [`Run::jump`]) is a call
//! in tail position.

use vm::{FRAME_BYTES, MAY_GOTO_LOOPS, Machine, Meter, RunContext};

/// What a function of an operation returns: the result, or (in the loop form) the
/// operation to go on with, null at the end.
#[cfg(threaded)]
pub(crate) type Flow = u64;
#[cfg(not(threaded))]
pub(crate) type Flow = *const Op;

/// Performs one operation and goes on: the fields of a [`Run`], all in registers
/// on x86-64 and aarch64.
///
/// # Safety
/// The operation lies in the array of a [`Code`](crate::Code) made from a
/// lowered program, and all pointers are those that `Code::run` set up: the
/// program's evidence then upholds every access that its operations make.
pub(crate) type Step =
    unsafe fn(*const Op, *mut Machine, *const u8, usize, u64, *mut RunContext<'static>) -> Flow;

/// One operation: 32 bytes, two to a cache line.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    pub run: Step,
    /// Immediate, or offset of a packet load.
    pub a: u32,
    /// Second immediate: what a fused comparison compares with.
    pub b: u32,
    /// Target of the (first) branch, from this operation.
    pub t: Distance,
    /// Target of the second branch, likewise.
    pub u: Distance,
    pub dst: u8,
    pub src: u8,
    pub off: i16,
    /// Left operand of arithmetic.
    pub lhs: u8,
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

    /// `a` as an immediate: sign-extended.
    #[inline(always)]
    pub(crate) const fn imm(&self) -> u64 {
        self.a as i32 as i64 as u64
    }
}

const _: () = assert!(size_of::<Op>() == 32);

/// How far it is from one operation to another, in words: what a processor scales
/// by itself.
#[derive(Clone, Copy)]
pub(crate) struct Distance(i32);

impl Distance {
    const WORD: usize = size_of::<u64>();
    const OP: i32 = (size_of::<Op>() / Distance::WORD) as i32;

    /// To the operation itself.
    pub(crate) const NONE: Distance = Distance(0);
    const ONE: Distance = Distance(Distance::OP);

    /// Operations that a program may have, so that every distance fits.
    pub(crate) const LONGEST_PROGRAM: usize = (i32::MAX / Distance::OP) as usize;

    /// From one operation to another, by their places in a program.
    pub(crate) const fn between(from: usize, to: usize) -> Distance {
        Distance((to as i32 - from as i32) * Distance::OP)
    }
}

/// What an operation does.
pub(crate) trait Operation {
    /// Does it and goes on.
    fn perform(run: Run) -> Flow;
}

/// The function of an operation.
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

/// A run at one of its operations.
///
/// Only [`step`] and `Code::run` make one, on their callers' word: `op` lies in
/// the array of the program, `m` is the machine of the run, `data` is readable
/// for `len` bytes, and `cx` is the run context that the caller passed. What the
/// safe functions here rest on is that, and that the compiler of the program
/// gives operations the numbers of registers and the distances of operations.
pub(crate) struct Run {
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    /// `r0`, which travels; the other registers live in the machine.
    pub r0: u64,
    /// What the operation before computed, where this one is part of the same
    /// function.
    pub last: u64,
    cx: *mut RunContext<'static>,
}

impl Run {
    /// A run at the first operation of a program.
    ///
    /// # Safety
    /// As the type says.
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

    /// The operation.
    #[inline(always)]
    pub(crate) fn op(&self) -> &Op {
        // SAFETY: the promise of the type.
        unsafe { &*self.op }
    }

    /// A register of the machine, by its number.
    #[inline(always)]
    pub(crate) fn register(&self, number: u8) -> u64 {
        // SAFETY: the promise of the type, and the number is a register's.
        unsafe { *self.place(number) }
    }

    /// Sets a register of the machine.
    #[inline(always)]
    pub(crate) fn set_register(&mut self, number: u8, value: u64) {
        // SAFETY: as in `register`.
        unsafe { *self.place(number) = value }
    }

    #[inline(always)]
    unsafe fn place(&self, number: u8) -> *mut u64 {
        // SAFETY: passed on to the caller.
        unsafe { (&raw mut (*self.m).regs).cast::<u64>().add(number as usize) }
    }

    /// The packet's bytes: where they start and how many there are.
    #[inline(always)]
    pub(crate) fn data(&self) -> (*const u8, usize) {
        (self.data, self.len)
    }

    /// The run context.
    #[inline(always)]
    pub(crate) fn cx(&mut self) -> &mut RunContext<'static> {
        // SAFETY: the promise of the type; the run is the only one who uses it.
        unsafe { &mut *self.cx }
    }

    /// How long the run may go on.
    #[inline(always)]
    pub(crate) fn meter(&mut self) -> &mut Meter {
        // SAFETY: the promise of the type; nothing else refers to it.
        unsafe { &mut (*self.m).meter }
    }

    /// How often `may_goto` still falls through.
    #[inline(always)]
    pub(crate) fn may_goto(&mut self) -> &mut u64 {
        // SAFETY: the promise of the type; nothing else refers to it.
        unsafe { &mut (*self.m).may_goto }
    }

    /// Calls the function of the program that stands at this distance:
    /// with a frame and loops of its own, and `r6` to `r9` as they were when it
    /// returns.
    #[inline(always)]
    pub(crate) fn call(&mut self, distance: Distance) {
        const KEPT: [u8; 4] = [6, 7, 8, 9];
        const FRAME_POINTER: u8 = 10;
        let kept = KEPT.map(|number| self.register(number));
        let frame = self.register(FRAME_POINTER);
        self.set_register(FRAME_POINTER, frame.wrapping_sub(FRAME_BYTES as u64));
        let loops = std::mem::replace(self.may_goto(), MAY_GOTO_LOOPS);
        self.r0 = Run { ..*self }.moved(distance).complete();
        *self.may_goto() = loops;
        self.set_register(FRAME_POINTER, frame);
        for (number, value) in KEPT.into_iter().zip(kept) {
            self.set_register(number, value);
        }
    }

    /// At the next operation, where that is known to be a certain one.
    #[inline(always)]
    pub(crate) fn forward(self) -> Run {
        self.moved(Distance::ONE)
    }

    /// At the operation at this distance.
    #[inline(always)]
    fn moved(self, distance: Distance) -> Run {
        let words = self.op.cast::<u64>().wrapping_offset(distance.0 as isize);
        Run {
            op: words.cast(),
            ..self
        }
    }

    /// Goes on with the next operation.
    #[inline(always)]
    pub(crate) fn next(self) -> Flow {
        self.jump(Distance::ONE)
    }

    /// Goes on with the operation at this distance.
    #[inline(always)]
    pub(crate) fn jump(self, distance: Distance) -> Flow {
        self.moved(distance).dispatch()
    }

    /// Goes on with what the operation says it is.
    #[cfg(threaded)]
    #[inline(always)]
    fn dispatch(self) -> Flow {
        // SAFETY: the promise of the type is what a `Step` asks for.
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

    /// Goes on as another, rare operation by a tail call: done in place, it would
    /// have the common one save registers.
    #[inline(always)]
    pub(crate) fn turn_to<O: Operation>(self) -> Flow {
        // SAFETY: the promise of the type is what a `Step` asks for.
        unsafe { rare::<O>(self.op, self.m, self.data, self.len, self.r0, self.cx) }
    }

    /// Runs to the end of the function and gives its result.
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
        // SAFETY: every operation but the last returns one of its array.
        unsafe {
            while !op.is_null() {
                op = ((*op).run)(op, self.m, self.data, self.len, r0, self.cx);
                r0 = self.register(0);
            }
        }
        r0
    }
}

/// As [`step`], apart from the operation that turns to it.
#[cold]
#[inline(never)]
unsafe fn rare<O: Operation>(
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

/// Whatever the operation says it is.
pub(crate) struct Dispatch;

impl Operation for Dispatch {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        run.dispatch()
    }
}
