//! The engines that believe: a program runs on them when the user vouches for it.
//!
//! This is the command's one use of unsafe code: the word that it passes on is
//! not its own.

use std::time::{Duration, Instant};

use beebox::raw::{Clock, Program, SplitMix};
use interp::Code;
use jit::memory::Pool;
use jit::{Native, Options};
use lower::Lowered;
use vm::{Deadline, Machine, Outcome, Trusted};

use crate::answer::Failure;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// The checked interpreter, for any program
    Checked,
    /// The threaded interpreter, for programs that you vouch for (--trust)
    Interp,
    /// Native code, for programs that you vouch for (--trust)
    Jit,
}

impl Engine {
    /// Whether it takes a program on somebody's word.
    pub(crate) fn believes(self) -> bool {
        self != Engine::Checked
    }
}

/// Refuses to go on without the user's word.
pub(crate) fn check_vouched(trust: bool) -> Result<(), Failure> {
    match trust {
        true => Ok(()),
        false => Err(
            Failure::new("only --engine checked runs a program that nobody vouches for").hint(
                "--trust, if you know that the program does no harm to the process it runs in",
            ),
        ),
    }
}

/// Runs a program on the user's word with `memory`, whose address it finds in
/// `r1` and whose length in `r2`; returns `r0`. [`Engine::Checked`] is not run
/// here, and stands for the threaded interpreter.
pub(crate) fn run(
    engine: Engine,
    program: &Program,
    memory: &mut [u8],
    mut random: SplitMix,
    clock: impl Clock + Send + 'static,
    timeout: Option<Duration>,
) -> Result<u64, Failure> {
    let lowered = Lowered::from_trusted(vouch(program)).map_err(|malformed| {
        Failure::new(format_args!("no engine but checked runs this: {malformed}"))
            .hint("--engine checked goes as far as the program does")
    })?;
    let mut machine = Machine::new().with_clock(clock);
    let deadline = || timeout.map(|timeout| Deadline::at(Instant::now() + timeout));
    let outcome = match engine {
        Engine::Checked | Engine::Interp => {
            let code = Code::compile(&lowered).map_err(|unsupported| {
                Failure::new(format_args!(
                    "engine interp does not perform instruction {}: {}",
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
        Engine::Jit => {
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
        Outcome::BudgetExhausted => Err(Failure::new("the program used up its budget")),
        Outcome::DeadlinePassed => Err(Failure::new("the program was not done in time")),
    }
}

/// Passes on the user's word that a program is safe.
#[allow(unsafe_code)]
fn vouch(program: &Program) -> Trusted {
    // SAFETY: the user said so with --trust, whose description says what a
    // program that is not does; nothing here can know.
    unsafe { Trusted::assume_safe(program.insns().to_vec()) }
}
