//! Contradictory ranges, which arise on branches that cannot be taken.

use spec::behaviour::Behaviour;

use crate::domain::Scalar;
use crate::input::Input;
use crate::log::Sink;
use crate::rejection::Alu;
use crate::{Result, verbose};

/// Forgets the ranges of a value that contradicts itself, with the kernel's complaint in
/// the log (`reg_bounds_sanity_check`). With `BPF_F_TEST_REG_INVARIANTS` the program is
/// refused.
#[doc(alias = "reg_bounds_sanity_check")]
pub(crate) fn check_bounds(
    input: &Input<'_>,
    log: &mut Sink<'_>,
    num: &mut Scalar,
    context: &str,
) -> Result<()> {
    let violation = num.violation();
    let Some(violation) = violation.filter(|_| input.rules.has(Behaviour::RangesChecked)) else {
        return Ok(());
    };
    let fault = violation.message().to_owned();
    let context = context.to_owned();
    let rejection = Alu::RegInvariants {
        context,
        fault,
        num: *num,
    };
    if input.test_reg_invariants {
        return Err(log.refuse(rejection));
    }
    verbose!(log, "{rejection}\n");
    num.unbound();
    Ok(())
}
