//! The engines that run programs whose safety the user asserts (`--trust`).
//!
//! This is the command's one use of unsafe code: it passes on the user's assertion.

use std::time::Duration;

use beebox::internal::raw::{
    CheckedProgram, Clock, Outcome, SplitMix, Unchecked, UncheckedError, UncheckedProgram,
};

use crate::answer::Failure;
use beebox::Engine;

/// Fault of `--trust` for the engine that needs none, and its remedy.
pub(crate) const NEEDLESS_TRUST: &str = "--trust is for engines that do not check";
pub(crate) const OTHER_ENGINES: &str = "--engine native or interp, or no --trust";

/// Fails unless the user asserts that the program is safe.
pub(crate) fn check_trust(trust: bool) -> Result<(), Failure> {
    match trust {
        true => Ok(()),
        false => Err(
            Failure::new("only --engine checked runs unverified programs").hint(
                "--trust, if you know that the program is safe: an unsafe one corrupts this process",
            ),
        ),
    }
}

/// Runs a program that the user asserts to be safe, with the address of `memory` in `r1`
/// and its length in `r2`; returns `r0`, or `None` if the time limit passed.
pub(crate) fn run(
    engine: Engine,
    program: &CheckedProgram,
    memory: &mut [u8],
    mut random: SplitMix,
    clock: impl Clock + Send + 'static,
    timeout: Option<Duration>,
) -> Result<Option<u64>, Failure> {
    let program = UncheckedProgram::compile(assume_safe(program), engine, timeout);
    let program = program.map_err(|error| match &error {
        UncheckedError::Malformed(malformed) => Failure::new(format_args!(
            "only --engine checked runs this program: {malformed}"
        ))
        .hint("--engine checked"),
        UncheckedError::Unsupported(unsupported) => Failure::new(format_args!(
            "engine interp does not support instruction {}: {}",
            unsupported.slot, unsupported.insn
        )),
        UncheckedError::Native(error) => {
            Failure::new(error).hint("--engine interp, which needs no executable memory")
        }
        UncheckedError::Checked => Failure::new(NEEDLESS_TRUST).hint(OTHER_ENGINES),
    })?;
    let outcome = program.run(memory, &mut random, clock);
    match outcome {
        Outcome::Returned(value) => Ok(Some(value)),
        Outcome::BudgetExhausted => Err(Failure::new("the program exceeded its budget")),
        Outcome::DeadlinePassed => Ok(None),
    }
}

/// Passes on the user's assertion that a program is safe.
#[allow(unsafe_code)]
fn assume_safe(program: &CheckedProgram) -> Unchecked {
    // SAFETY: the user asserts it with --trust, whose help says what an unsafe program
    // does; nothing here can check it.
    unsafe { Unchecked::assume_safe(program.insns().to_vec()) }
}
