//! Verified programs in the engines without checks, and why some of them run in the checked engine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use interp::{ThreadedProgram, VerifiedThreaded};
use jit::memory::Pool;
use jit::{Native, Options, VerifiedNative};
use lower::{
    ContextKind, Counting, EntryFunction, Lowered, Problem, UnsupportedConstruct, VerifiedProgram,
    timer_callbacks,
};
use program::Program;
use spec::kfuncs::KernelFunction;
use verifier::Proof;
use vm::{
    CellSlice, Deadline, DirectContext, HostFunction, Machine, MapHandle, NoSuchCpu, Outcome,
    PacketBuffer, RunContext, RunGuard, TailTarget,
};

use crate::Engine;
use crate::engine::EngineRefusal;

/// A verified program for an engine without checks.
#[derive(Clone)]
pub(super) enum Code {
    Native(VerifiedNative),
    Interp(VerifiedThreaded),
}

impl Code {
    /// Its engine.
    pub(super) fn engine(&self) -> Engine {
        match self {
            Code::Native(_) => Engine::Native,
            Code::Interp(_) => Engine::Interp,
        }
    }

    /// The kind of context that it was verified for.
    pub(super) fn context_kind(&self) -> ContextKind {
        match self {
            Code::Native(program) => program.context_kind(),
            Code::Interp(program) => program.context_kind(),
        }
    }

    /// The program as a target of tail calls.
    pub(super) fn tail_target(&self) -> Option<Arc<dyn TailTarget>> {
        match self {
            Code::Native(program) => program.tail_target(),
            Code::Interp(program) => program.tail_target(),
        }
    }

    /// Runs it on a context and on its packet, if its kind has one.
    ///
    /// # Panics
    /// If there is no packet for a kind that has one.
    #[inline]
    pub(super) fn run<'r>(
        &'r self,
        machine: &mut Scratch,
        packet: Option<&mut PacketBuffer>,
        context: &mut DirectContext,
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        let packet = || packet.expect("programs of these types get a packet");
        match self {
            Code::Native(VerifiedNative::Packet(program)) => {
                program.run_until(packet(), context, guard, cx, deadline)
            }
            Code::Native(VerifiedNative::Context(program)) => {
                program.run_until(context, guard, cx, deadline)
            }
            Code::Interp(VerifiedThreaded::Packet(program)) => {
                program.run_until(machine.get(), packet(), context, guard, cx, deadline)
            }
            Code::Interp(VerifiedThreaded::Context(program)) => {
                program.run_until(machine.get(), context, guard, cx, deadline)
            }
        }
    }
}

/// A function that timers call, for an engine without checks.
pub(super) enum FunctionCode {
    Native(Native<EntryFunction>),
    Interp(ThreadedProgram<EntryFunction>),
}

impl FunctionCode {
    /// Calls it with a map and an entry of it.
    pub(super) fn call<'r>(
        &'r self,
        machine: &mut Scratch,
        (map, entry): (&MapHandle, [CellSlice<'r>; 2]),
        guard: &'r RunGuard,
        cx: RunContext<'r>,
        deadline: Option<Deadline>,
    ) -> Result<Outcome, NoSuchCpu> {
        match self {
            FunctionCode::Native(function) => function.run_until(map, entry, guard, cx, deadline),
            FunctionCode::Interp(function) => {
                function.run_until(machine.get(), (map, entry), guard, cx, deadline)
            }
        }
    }
}

/// The machine of the threaded interpreter, made when it is used first.
#[derive(Default)]
pub(super) struct Scratch(Option<Box<Machine>>);

impl Scratch {
    fn get(&mut self) -> &mut Machine {
        self.0.get_or_insert_default()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scratch")
    }
}

/// A program for an engine without checks.
pub(super) struct Compiled {
    pub(super) program: Code,
    /// The functions of it that timers call, by their first slots.
    pub(super) callbacks: BTreeMap<u32, FunctionCode>,
}

/// Compiles verified programs for an engine.
pub(super) enum Compiler {
    Native(Options, Pool),
    Interp,
}

impl Compiler {
    fn program(&self, program: &VerifiedProgram) -> Result<Code, EngineRefusal> {
        Ok(match self {
            Compiler::Native(options, pool) => {
                let native = VerifiedNative::compile(program, options, pool);
                Code::Native(native.map_err(|error| refusal(&error))?)
            }
            Compiler::Interp => {
                let threaded = VerifiedThreaded::compile(program);
                Code::Interp(threaded.map_err(|error| refusal(&error))?)
            }
        })
    }

    fn function(&self, function: &Lowered<EntryFunction>) -> Result<FunctionCode, EngineRefusal> {
        Ok(match self {
            Compiler::Native(options, pool) => {
                let native = Native::compile(function, options, pool);
                FunctionCode::Native(native.map_err(|error| refusal(&error))?)
            }
            Compiler::Interp => {
                let threaded = ThreadedProgram::compile(function);
                FunctionCode::Interp(threaded.map_err(|error| refusal(&error))?)
            }
        })
    }
}

/// Compiles a verified program with a number for its maps, which are numbered as in the
/// program, and with the counters that it increments. The error names what the engines without checks do not support, in one line.
pub(super) fn compile(
    (proof, number, counting): (&Proof, u32, Option<&Counting>),
    maps: &[Option<MapHandle>],
    host: &Arc<[HostFunction]>,
    compiler: &Compiler,
) -> Result<Compiled, EngineRefusal> {
    let find_call = ::kernel::find_call;
    let unfit = |unfit| describe(&unfit, proof.program());
    let callback = |slot| {
        let function = (number, slot, counting);
        let lowered = Lowered::from_counted_function(proof, maps, find_call, host, function);
        Ok((slot, compiler.function(&lowered.map_err(unfit)?)?))
    };
    let number = (number, counting);
    let lowered = VerifiedProgram::from_counted(proof, maps, find_call, host, number);
    let program = compiler.program(&lowered.map_err(unfit)?)?;
    let callbacks = timer_callbacks(proof).into_iter().map(callback);
    Ok(Compiled {
        program,
        callbacks: callbacks.collect::<Result<_, EngineRefusal>>()?,
    })
}

fn describe(unfit: &UnsupportedConstruct, program: &Program) -> EngineRefusal {
    match unfit {
        UnsupportedConstruct::ProgramType(kind) => {
            refusal(&format_args!("programs of type {}", kind.name()))
        }
        UnsupportedConstruct::Map(index) => match program.maps().get(*index) {
            Some(map) => refusal(&format_args!("map {}", map.name)),
            None => refusal(&format_args!("map {index}")),
        },
        UnsupportedConstruct::TailCalls(index) => {
            let map = program.maps().get(*index);
            let name = map.map_or("a program array", |map| &*map.name);
            refusal(&format_args!("{name} holds programs of another engine"))
        }
        UnsupportedConstruct::KernelObject(slot) => {
            let what = "it uses an object of the kernel";
            at(program, *slot, what)
        }
        UnsupportedConstruct::Arena(slot) => at(program, *slot, "a pointer into an arena"),
        UnsupportedConstruct::Reference(slot) => {
            at(program, *slot, "the address of a variable of the kernel")
        }
        UnsupportedConstruct::Field(slot) => at(
            program,
            *slot,
            "a field that the context or the socket has not",
        ),
        UnsupportedConstruct::Callback(_)
        | UnsupportedConstruct::TooLong
        | UnsupportedConstruct::HostFunctions
        | UnsupportedConstruct::Signature(_)
        | UnsupportedConstruct::Speculation => refusal(unfit),
        UnsupportedConstruct::Malformed(malformed) => {
            let what = match malformed.problem {
                Problem::UnknownHelper(number) => {
                    let helper = spec::helpers::helper(number).map(|helper| helper.name);
                    let kfunc = || KernelFunction::from_number(number)?.name();
                    match helper.or_else(kfunc) {
                        Some(name) => format!("a call of {name}"),
                        None => format!("a call of helper {number}"),
                    }
                }
                problem => problem.to_string(),
            };
            at(program, malformed.slot, &what)
        }
    }
}

/// The refusal of an instruction.
fn at(program: &Program, slot: usize, what: &str) -> EngineRefusal {
    let insn = program.decode().get(slot).copied();
    EngineRefusal::Construct {
        insn: insn.map(|_| slot),
        what: match insn {
            Some(insn) => format!("instruction {slot} ({insn}): {what}"),
            None => what.to_owned(),
        },
    }
}

/// The refusal of a program as a whole.
fn refusal(what: &dyn fmt::Display) -> EngineRefusal {
    EngineRefusal::Construct {
        insn: None,
        what: what.to_string(),
    }
}
