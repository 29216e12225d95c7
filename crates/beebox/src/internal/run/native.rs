//! Native code of verified programs, and why some of them run in the checked engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use jit::memory::Pool;
use jit::{Native, Options, VerifiedNative};
use lower::{
    EntryFunction, Lowered, Problem, UnsupportedConstruct, VerifiedProgram, timer_callbacks,
};
use program::Program;
use spec::kfuncs::KernelFunction;
use verifier::Proof;
use vm::{HostFunction, MapHandle};

/// A program as native code.
pub(super) struct Compiled {
    pub(super) program: VerifiedNative,
    /// The functions of it that timers call, by their first slots.
    pub(super) callbacks: BTreeMap<u32, Native<EntryFunction>>,
}

/// Compiles a verified program with a number for its maps, which are numbered as in the
/// program. The error names what native code does not support, in one line.
pub(super) fn compile(
    (proof, number): (&Proof, u32),
    maps: &[Option<MapHandle>],
    host: &Arc<[HostFunction]>,
    pool: &Pool,
    options: &Options,
) -> Result<Compiled, String> {
    let find_call = ::kernel::find_call;
    let unfit = |unfit| describe(&unfit, proof.program());
    let callback = |slot| {
        let function = (number, slot);
        let lowered = Lowered::from_function(proof, maps, find_call, host, function);
        let native = Native::compile(&lowered.map_err(unfit)?, options, pool);
        Ok((slot, native.map_err(|error| error.to_string())?))
    };
    let lowered = VerifiedProgram::from_numbered(proof, maps, find_call, host, number);
    let program = VerifiedNative::compile(&lowered.map_err(unfit)?, options, pool);
    let callbacks = timer_callbacks(proof).into_iter().map(callback);
    Ok(Compiled {
        program: program.map_err(|error| error.to_string())?,
        callbacks: callbacks.collect::<Result<_, String>>()?,
    })
}

fn describe(unfit: &UnsupportedConstruct, program: &Program) -> String {
    match unfit {
        UnsupportedConstruct::ProgramType(kind) => format!("programs of type {}", kind.name()),
        UnsupportedConstruct::Map(index) => match program.maps().get(*index) {
            Some(map) => format!("map {}", map.name),
            None => format!("map {index}"),
        },
        UnsupportedConstruct::TailCalls(index) => {
            let map = program.maps().get(*index);
            let name = map.map_or("a program array", |map| &*map.name);
            format!("{name} holds programs without native code")
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
        | UnsupportedConstruct::Speculation => unfit.to_string(),
        UnsupportedConstruct::Malformed(malformed) => {
            let what = match malformed.problem {
                Problem::UnknownHelper(number) => {
                    let helper = spec::helpers::helper(number).map(|helper| helper.name);
                    let kfunc = || KernelFunction::of_number(number)?.name();
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

fn at(program: &Program, slot: usize, what: &str) -> String {
    match program.decode().get(slot) {
        Some(insn) => format!("instruction {slot} ({insn}): {what}"),
        None => what.to_owned(),
    }
}
