//! The engines that run programs whose safety the user asserts (`--trust`).
//!
//! This is the command's one use of unsafe code: it passes on the user's assertion.

use std::time::{Duration, Instant};

use beebox::raw::{CheckedProgram, Clock, SplitMix};
use interp::ThreadedProgram;
use jit::memory::Pool;
use jit::{Native, Options};
use lower::Lowered;
use vm::{Deadline, Machine, Outcome, Unchecked};

use crate::answer::Failure;

/// Engine of a run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// The checked interpreter, for any program
    Checked,
    /// Native code, for verified programs of objects
    Native,
    /// The threaded interpreter, for programs assumed safe (--trust)
    Interp,
    /// Native code, for programs assumed safe (--trust)
    Jit,
}

impl Engine {
    /// True if it runs programs without checking them.
    pub(crate) fn is_unchecked(self) -> bool {
        self != Engine::Checked
    }
}

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
/// and its length in `r2`; returns `r0`. [`Engine::Checked`] stands for the threaded
/// interpreter here.
pub(crate) fn run(
    engine: Engine,
    program: &CheckedProgram,
    memory: &mut [u8],
    mut random: SplitMix,
    clock: impl Clock + Send + 'static,
    timeout: Option<Duration>,
) -> Result<u64, Failure> {
    let lowered = Lowered::from_unchecked(assume_safe(program)).map_err(|malformed| {
        Failure::new(format_args!(
            "only --engine checked runs this program: {malformed}"
        ))
        .hint("--engine checked")
    })?;
    let mut machine = Machine::new().with_clock(clock);
    let deadline = || timeout.map(|timeout| Deadline::at(Instant::now() + timeout));
    let outcome = match engine {
        Engine::Checked | Engine::Interp => {
            let code = ThreadedProgram::compile(&lowered).map_err(|unsupported| {
                Failure::new(format_args!(
                    "engine interp does not support instruction {}: {}",
                    unsupported.slot, unsupported.insn
                ))
            })?;
            match deadline() {
                Some(deadline) => {
                    code.run_memory_until(&mut machine, memory, &mut random, deadline)
                }
                None => code.run_memory(&mut machine, memory, &mut random),
            }
        }
        Engine::Jit | Engine::Native => {
            let options = Options {
                deadline: timeout.is_some(),
                ..Options::default()
            };
            let native = Native::compile(&lowered, &options, &Pool::new());
            let native = native.map_err(|error| {
                Failure::new(error).hint("--engine interp, which needs no executable memory")
            })?;
            match deadline() {
                Some(deadline) => {
                    native.run_memory_until(&mut machine, memory, &mut random, deadline)
                }
                None => native.run_memory(&mut machine, memory, &mut random),
            }
        }
    };
    match outcome {
        Outcome::Returned(value) => Ok(value),
        Outcome::BudgetExhausted => Err(Failure::new("the program exceeded its budget")),
        Outcome::DeadlinePassed => Err(Failure::new("the program exceeded its time limit")),
    }
}

/// Passes on the user's assertion that a program is safe.
#[allow(unsafe_code)]
fn assume_safe(program: &CheckedProgram) -> Unchecked {
    // SAFETY: the user asserts it with --trust, whose help says what an unsafe program
    // does; nothing here can check it.
    unsafe { Unchecked::assume_safe(program.insns().to_vec()) }
}
