//! Calls and the end of the program.

use vm::{Call, Machine, Surroundings};

use super::memory::arguments;
use crate::op::{Flow, Op, finish, go};

unsafe fn call_out(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    _: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`; `wide` is the address of a `Call`, put
    // there by `call`.
    unsafe {
        let address = std::ptr::with_exposed_provenance::<()>((*op).wide() as usize);
        let function = std::mem::transmute::<*const (), Call>(address);
        let [r1, r2, r3, r4, r5] = arguments(m);
        let r0 = function(r1, r2, r3, r4, r5, &mut *world);
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// `r0 = function(r1, …, r5)`.
pub(crate) fn call(function: Call) -> Op {
    Op::new(call_out).with_wide((function as *const ()).expose_provenance() as u64)
}

unsafe fn return_r0(
    _: *const Op,
    m: *mut Machine,
    _: *const u8,
    _: usize,
    r0: u64,
    _: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    #[allow(unused_unsafe)]
    unsafe {
        finish!(m, r0)
    }
}

/// Ends with `r0`.
pub(crate) fn exit() -> Op {
    Op::new(return_r0)
}

unsafe fn return_imm(
    op: *const Op,
    m: *mut Machine,
    _: *const u8,
    _: usize,
    _: u64,
    _: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe { finish!(m, u64::from((*op).a)) }
}

/// Ends with a constant: `w0 = imm; exit`.
pub(crate) fn exit_with(imm: i32) -> Op {
    Op {
        a: imm as u32,
        ..Op::new(return_imm)
    }
}
