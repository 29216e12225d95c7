//! Programs whose safety the caller asserts, run without checks.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use interp::ThreadedProgram;
use jit::memory::Pool;
use jit::{CompileError, Native, Options};
use lower::{Lowered, Malformed, MemoryProgram};
use spec::{Clock, Random};
use vm::{Deadline, Machine, Outcome, Unchecked};

use crate::Engine;

/// A program whose safety the caller asserts, compiled for an engine.
///
/// It is made of an [`Unchecked`], whose `unsafe` constructor is the assertion.
pub struct UncheckedProgram {
    code: Code,
    timeout: Option<Duration>,
}

enum Code {
    Interp(ThreadedProgram<MemoryProgram>),
    Native(Native<MemoryProgram>),
}

impl UncheckedProgram {
    /// Compiles a program. Runs of it end at `timeout` after they began, if there is one.
    ///
    /// # Errors
    /// The program's structure is malformed, the interpreter does not support an
    /// instruction, there is no executable memory, or the engine is the checked one.
    pub fn compile(
        program: Unchecked,
        engine: Engine,
        timeout: Option<Duration>,
    ) -> Result<UncheckedProgram, UncheckedError> {
        let lowered = Lowered::from_unchecked(program).map_err(UncheckedError::Malformed)?;
        let code = match engine {
            Engine::Interp => {
                let code = ThreadedProgram::compile(&lowered);
                Code::Interp(code.map_err(UncheckedError::Unsupported)?)
            }
            Engine::Native => {
                let options = Options {
                    deadline: timeout.is_some(),
                    ..Options::default()
                };
                let code = Native::compile(&lowered, &options, &Pool::new());
                Code::Native(code.map_err(UncheckedError::Native)?)
            }
            Engine::Checked => return Err(UncheckedError::Checked),
        };
        Ok(UncheckedProgram { code, timeout })
    }

    /// Runs the program with the address of `memory` in `r1` and its length in `r2`; its
    /// `r0`.
    pub fn run(
        &self,
        memory: &mut [u8],
        random: &mut dyn Random,
        clock: impl Clock + Send + 'static,
    ) -> Outcome {
        let mut machine = Machine::new().with_clock(clock);
        let machine = &mut machine;
        let deadline = self
            .timeout
            .map(|timeout| Deadline::at(Instant::now() + timeout));
        match (&self.code, deadline) {
            (Code::Interp(code), None) => code.run(machine, memory, random),
            (Code::Interp(code), Some(deadline)) => {
                code.run_until(machine, memory, random, deadline)
            }
            (Code::Native(code), None) => code.run(machine, memory, random),
            (Code::Native(code), Some(deadline)) => {
                code.run_until(machine, memory, random, deadline)
            }
        }
    }
}

/// Reason why a program cannot be run without checks.
#[derive(Debug)]
pub enum UncheckedError {
    /// Its structure is malformed.
    Malformed(Malformed),
    /// The threaded interpreter does not support an instruction.
    Unsupported(interp::Unsupported),
    /// It did not become native code.
    Native(CompileError),
    /// The checked engine runs it without an assertion
    /// ([`CheckedProgram`](super::CheckedProgram)).
    Checked,
}

impl fmt::Display for UncheckedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UncheckedError::Malformed(malformed) => write!(f, "{malformed}"),
            UncheckedError::Unsupported(unsupported) => write!(f, "{unsupported}"),
            UncheckedError::Native(error) => write!(f, "{error}"),
            UncheckedError::Checked => f.write_str("engine checked rests on no assertion"),
        }
    }
}

impl Error for UncheckedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            UncheckedError::Malformed(malformed) => Some(malformed),
            UncheckedError::Unsupported(unsupported) => Some(unsupported),
            UncheckedError::Native(error) => Some(error),
            UncheckedError::Checked => None,
        }
    }
}
