//! Verified programs in the engines that run them without checks: native code and the threaded
//! interpreter.

use std::fmt;
use std::sync::Arc;

use interp::{ThreadedProgram, VerifiedThreaded};
use jit::memory::Pool;
use jit::{Native, Options, VerifiedNative};
use lower::{ContextKind, EntryFunction, Lowered, VerifiedProgram};
use vm::{
    CellSlice, DirectContext, Machine, MapHandle, NoSuchCpu, Outcome, PacketBuffer, RunContext,
    RunGuard, TailTarget,
};

/// An engine of verified programs without checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectEngine {
    /// Native code.
    Native,
    /// The threaded interpreter.
    Interp,
}

impl DirectEngine {
    /// Those that run on this machine.
    pub const ALL: &[DirectEngine] = match (jit::RUNS_HERE, cfg!(target_endian = "little")) {
        (true, _) => &[DirectEngine::Native, DirectEngine::Interp],
        (false, true) => &[DirectEngine::Interp],
        // Programs are of a little-endian machine.
        (false, false) => &[],
    };
}

impl fmt::Display for DirectEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DirectEngine::Native => "native",
            DirectEngine::Interp => "interp",
        })
    }
}

/// A verified program for one of the engines.
pub(crate) enum DirectProgram {
    Native(VerifiedNative),
    Interp(VerifiedThreaded),
}

impl DirectProgram {
    /// Compiles a program; the reason if that fails.
    pub(crate) fn compile(
        engine: DirectEngine,
        program: &VerifiedProgram,
        options: &Options,
        pool: &Pool,
    ) -> Result<DirectProgram, String> {
        Ok(match engine {
            DirectEngine::Native => {
                let native = VerifiedNative::compile(program, options, pool);
                DirectProgram::Native(native.map_err(|error| error.to_string())?)
            }
            DirectEngine::Interp => {
                let threaded = VerifiedThreaded::compile(program);
                DirectProgram::Interp(threaded.map_err(|error| error.to_string())?)
            }
        })
    }

    /// The kind of context that it was verified for.
    pub(crate) fn context_kind(&self) -> ContextKind {
        match self {
            DirectProgram::Native(program) => program.context_kind(),
            DirectProgram::Interp(program) => program.context_kind(),
        }
    }

    /// The program as a target of tail calls.
    pub(crate) fn tail_target(&self) -> Option<Arc<dyn TailTarget>> {
        match self {
            DirectProgram::Native(program) => program.tail_target(),
            DirectProgram::Interp(program) => program.tail_target(),
        }
    }

    /// Runs it on a packet, if its kind has one, and a context; the reason if that is not possible.
    pub(crate) fn run<'r>(
        &'r self,
        packet: Option<&mut PacketBuffer>,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
    ) -> Result<u64, String> {
        let packet = || packet.ok_or("no packet");
        let outcome = match self {
            DirectProgram::Native(VerifiedNative::Packet(program)) => {
                program.run_until(packet()?, context, guard, cx, None)
            }
            DirectProgram::Native(VerifiedNative::Context(program)) => {
                program.run_until(context, guard, cx, None)
            }
            DirectProgram::Interp(VerifiedThreaded::Packet(program)) => {
                program.run_until(&mut Machine::new(), packet()?, context, guard, cx, None)
            }
            DirectProgram::Interp(VerifiedThreaded::Context(program)) => {
                program.run_until(&mut Machine::new(), context, guard, cx, None)
            }
        };
        returned(outcome)
    }
}

/// A function that timers call, for one of the engines.
pub(crate) enum DirectFunction {
    Native(Native<EntryFunction>),
    Interp(ThreadedProgram<EntryFunction>),
}

impl DirectFunction {
    /// Compiles a function; the reason if that fails.
    pub(crate) fn compile(
        engine: DirectEngine,
        function: &Lowered<EntryFunction>,
        options: &Options,
        pool: &Pool,
    ) -> Result<DirectFunction, String> {
        Ok(match engine {
            DirectEngine::Native => {
                let native = Native::compile(function, options, pool);
                DirectFunction::Native(native.map_err(|error| error.to_string())?)
            }
            DirectEngine::Interp => {
                let threaded = ThreadedProgram::compile(function);
                DirectFunction::Interp(threaded.map_err(|error| error.to_string())?)
            }
        })
    }

    /// Calls it with a map and an entry of it.
    pub(crate) fn call<'r>(
        &'r self,
        map: &MapHandle,
        entry: [CellSlice<'r>; 2],
        guard: &'r RunGuard,
        cx: RunContext<'r>,
    ) -> Result<u64, String> {
        let outcome = match self {
            DirectFunction::Native(native) => native.run_until(map, entry, guard, cx, None),
            DirectFunction::Interp(threaded) => {
                threaded.run_until(&mut Machine::new(), (map, entry), guard, cx, None)
            }
        };
        returned(outcome)
    }
}

fn returned(outcome: Result<Outcome, NoSuchCpu>) -> Result<u64, String> {
    match outcome.map_err(|error| error.to_string())? {
        Outcome::Returned(value) => Ok(value),
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => Err("the run did not end".into()),
    }
}
