//! The operation: what a compiled program is an array of.

use vm::{Machine, Surroundings};

/// What a function of an operation returns: the program's result, or (in the
/// loop form) the operation to go on with, null at the end.
#[cfg(threaded)]
pub(crate) type Flow = u64;
#[cfg(not(threaded))]
pub(crate) type Flow = *const Op;

/// Performs one operation and goes on.
///
/// Arguments: the operation, the machine, the packet's bytes and their number,
/// `r0`, and the surroundings. Six, all in registers on x86-64 and aarch64.
///
/// # Safety
/// The operation lies in the array of a [`Code`](crate::Code) made from a
/// lowered program, and all pointers are those that `Code::run` set up: the
/// program's evidence then upholds every access that its operations make.
pub(crate) type Step =
    unsafe fn(*const Op, *mut Machine, *const u8, usize, u64, *mut Surroundings<'static>) -> Flow;

/// One operation: 32 bytes, two to a cache line.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Op {
    pub run: Step,
    /// Immediate, or offset of a packet load.
    pub a: u32,
    /// Second immediate: what a fused comparison compares with.
    pub b: u32,
    /// Target of the (first) branch, in operations from this one.
    pub t: i32,
    /// Target of the second branch, likewise.
    pub u: i32,
    pub dst: u8,
    pub src: u8,
    pub off: i16,
}

impl Op {
    pub(crate) const fn new(run: Step) -> Op {
        Op {
            run,
            a: 0,
            b: 0,
            t: 0,
            u: 0,
            dst: 0,
            src: 0,
            off: 0,
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

/// Goes on with another operation.
#[cfg(threaded)]
macro_rules! go {
    ($op:expr, $m:ident, $data:ident, $len:ident, $r0:expr, $world:ident) => {{
        let op = $op;
        return ((*op).run)(op, $m, $data, $len, $r0, $world);
    }};
}
#[cfg(not(threaded))]
macro_rules! go {
    ($op:expr, $m:ident, $data:ident, $len:ident, $r0:expr, $world:ident) => {{
        let _ = ($data, $len, $world);
        (*$m).regs[0] = $r0;
        return $op;
    }};
}

/// Ends the run with a result.
#[cfg(threaded)]
macro_rules! finish {
    ($m:ident, $r0:expr) => {{
        let _ = $m;
        return $r0;
    }};
}
#[cfg(not(threaded))]
macro_rules! finish {
    ($m:ident, $r0:expr) => {{
        (*$m).regs[0] = $r0;
        return std::ptr::null();
    }};
}

pub(crate) use {finish, go};

/// Where an operation goes when it falls through to the next one.
pub(crate) trait Next {
    /// Goes on with `op`.
    ///
    /// # Safety
    /// As for [`Step`].
    unsafe fn go_on(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        r0: u64,
        world: *mut Surroundings<'static>,
    ) -> Flow;
}

/// Whatever the next operation says.
pub(crate) struct Dispatch;

impl Next for Dispatch {
    #[inline(always)]
    unsafe fn go_on(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        r0: u64,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        // SAFETY: passed on to the caller.
        unsafe { go!(op, m, data, len, r0, world) }
    }
}

/// Runs from the first operation to the end.
///
/// # Safety
/// As for [`Step`].
#[inline(always)]
pub(crate) unsafe fn start(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    world: *mut Surroundings<'static>,
) -> u64 {
    // SAFETY: passed on to the caller.
    #[cfg(threaded)]
    unsafe {
        ((*op).run)(op, m, data, len, 0, world)
    }
    // SAFETY: likewise; every operation but the last returns one of its array.
    #[cfg(not(threaded))]
    unsafe {
        let mut next = op;
        loop {
            next = ((*next).run)(next, m, data, len, (*m).regs[0], world);
            if next.is_null() {
                return (*m).regs[0];
            }
        }
    }
}
