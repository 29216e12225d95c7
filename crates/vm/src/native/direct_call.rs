//! Helpers over a memory port as functions that native code calls.

use std::convert::Infallible;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;

use crate::{Call, Direct, RunContext};

/// The function through which code of verified programs calls a helper that is written
/// over a memory port. A panic of the helper does not leave it: see [`RunContext::panic`].
pub fn direct_call<H>(_: H) -> Call
where
    H: Fn([u64; 5], &mut Direct, &mut RunContext<'_>) -> Result<u64, Infallible> + Copy + 'static,
{
    const { assert!(size_of::<H>() == 0, "a function item, not a pointer") };
    call::<H>
}

/// Calls the helper `H`.
///
/// # Safety
/// As for [`Call`], and [`direct_call`] was called with a value of `H`.
unsafe extern "C" fn call<H>(
    r1: u64,
    r2: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    cx: &mut RunContext<'_>,
) -> u64
where
    H: Fn([u64; 5], &mut Direct, &mut RunContext<'_>) -> Result<u64, Infallible> + Copy + 'static,
{
    let call = || {
        // SAFETY: the type has no bytes and is `Copy`, and there was a value of it.
        let helper = unsafe { NonNull::<H>::dangling().read() };
        // SAFETY: guard and maps outlive the call, native code is called with the run context,
        // and the arguments are those of a verified program.
        let mut memory = unsafe { Direct::new(cx) };
        let Ok(result) = helper([r1, r2, r3, r4, r5], &mut memory, cx);
        result
    };
    match panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => {
            cx.panic.get_or_insert(payload);
            0
        }
    }
}
