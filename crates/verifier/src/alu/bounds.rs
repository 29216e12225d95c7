//! Contradictory ranges, which arise on branches that cannot be taken.

use crate::domain::Scalar;
use crate::walk::Walk;
use crate::{Result, refuse, verbose};

/// Forgets the ranges of a value that contradicts itself, with the kernel's complaint in
/// the log (`reg_bounds_sanity_check`). With `BPF_F_TEST_REG_INVARIANTS` the program is
/// refused.
#[doc(alias = "reg_bounds_sanity_check")]
pub(crate) fn check_bounds(walk: &mut Walk<'_>, num: &mut Scalar, context: &str) -> Result<()> {
    let Some(violation) = num.violation() else {
        return Ok(());
    };
    let values = *num;
    let text = format_args!(
        "verifier bug: REG INVARIANTS VIOLATION ({context}): {} u64=[{:#x}, {:#x}] s64=[{:#x}, {:#x}] u32=[{:#x}, {:#x}] s32=[{:#x}, {:#x}] var_off=({:#x}, {:#x})",
        violation.message(),
        values.umin,
        values.umax,
        values.smin,
        values.smax,
        values.u32_min,
        values.u32_max,
        values.s32_min,
        values.s32_max,
        values.var_off.value,
        values.var_off.mask
    );
    if walk.env.test_reg_invariants {
        return Err(refuse!(walk, EFAULT, KernelBug, "{text}"));
    }
    verbose!(walk, "{text}\n");
    num.unbound();
    Ok(())
}
