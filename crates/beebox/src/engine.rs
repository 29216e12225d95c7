//! The engines of programs, and what classic filters are prepared to for them.

use std::error::Error;
use std::fmt;

use classic::{Checked, PlainProgram, Semantics, convert};
use interp::{Threaded, ThreadedProgram};
use jit::memory::Pool;
use jit::perf;
use jit::{EntryAbi, Native, Options, PacketFn};
use lower::{ClassicFilter, Lowered, PacketFilter, SyscallFilter};

/// Engine that runs a program. All engines return the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// Native code, of verified programs and of classic filters (x86-64 Linux). A child made by
    /// `fork` can't run what its parent compiled.
    Native,
    /// The threaded interpreter, of verified programs (on little-endian machines) and of classic
    /// filters.
    Interp,
    /// The interpreter that checks every access, of any program; of classic filters a plain switch
    /// over their instructions.
    Checked,
}

impl Engine {
    /// All of them.
    pub const ALL: &[Engine] = &[Engine::Native, Engine::Interp, Engine::Checked];

    /// Its name in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Native => "native",
            Engine::Interp => "interp",
            Engine::Checked => "checked",
        }
    }

    /// The engine that runs verified programs for which this one is requested, on this machine.
    #[cfg(feature = "run")]
    pub(crate) const fn of_objects(self) -> Engine {
        match self {
            // Programs are of a little-endian machine.
            Engine::Native | Engine::Interp if cfg!(target_endian = "big") => Engine::Checked,
            Engine::Native if !jit::RUNS_HERE => Engine::Interp,
            engine => engine,
        }
    }
}

impl Default for Engine {
    /// The fastest one for classic filters on this machine.
    fn default() -> Engine {
        match jit::RUNS_HERE {
            true => Engine::Native,
            false => Engine::Interp,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Reason why an engine does not run a program, so that another one does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineRefusal {
    /// The engine does not run on this machine.
    Machine(Engine),
    /// The program has a construct that neither native code nor the threaded interpreter supports.
    Construct {
        /// Index of the instruction, if it is one.
        insn: Option<usize>,
        /// The construct, in one line with its instruction.
        what: String,
    },
    /// Tail calls stay in one engine, and they reach a program that only the checked engine runs.
    TailCalls {
        /// The name of that program.
        program: String,
        /// Why no other engine runs it.
        refusal: Box<EngineRefusal>,
    },
}

impl fmt::Display for EngineRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineRefusal::Machine(engine) => {
                write!(f, "this machine has no engine {engine} for it")
            }
            EngineRefusal::Construct { what, .. } => f.write_str(what),
            EngineRefusal::TailCalls { program, refusal } => write!(
                f,
                "tail calls reach {program}, which runs in the checked engine: {refusal}"
            ),
        }
    }
}

impl Error for EngineRefusal {}

/// Kinds of classic filters.
pub(crate) trait FilterKind: EntryAbi + Threaded {
    /// A filter, if it is of this kind.
    fn of(filter: ClassicFilter) -> Option<Lowered<Self>>
    where
        Self: Sized;
}

impl FilterKind for PacketFilter {
    fn of(filter: ClassicFilter) -> Option<Lowered<PacketFilter>> {
        filter.packet()
    }
}

impl FilterKind for SyscallFilter {
    fn of(filter: ClassicFilter) -> Option<Lowered<SyscallFilter>> {
        filter.syscall()
    }
}

/// A filter of a kind in the form that its engine runs.
pub(crate) enum Prepared<K: FilterKind> {
    Checked(PlainProgram),
    Interp(ThreadedProgram<K>),
    Native(Native<K>),
}

impl<K: FilterKind> Prepared<K> {
    /// Prepares a program for an engine, with native code in the pool's memory, or for
    /// the threaded interpreter where there is no native code. `None` if the rules that the
    /// program obeys are those of another kind of filters.
    pub(crate) fn new(
        program: &Checked,
        semantics: Semantics,
        engine: Engine,
        pool: &Pool,
    ) -> Option<Prepared<K>> {
        let lowered = K::of(ClassicFilter::from_converted(convert(program, semantics)))?;
        if engine == Engine::Checked {
            return Some(Prepared::Checked(PlainProgram::prepare(program, semantics)));
        }
        if engine == Engine::Native
            && let Ok(code) = Native::compile(&lowered, &Options::default(), pool)
        {
            return Some(Prepared::Native(code));
        }
        let code = ThreadedProgram::compile(&lowered)
            .expect("the interpreter performs every instruction that conversion makes");
        Some(Prepared::Interp(code))
    }

    /// The native code under a name, if there is any.
    pub(crate) fn native_code<'a>(&'a self, name: &'a str) -> Option<perf::CodeRegion<'a>> {
        match self {
            Prepared::Native(code) => Some(code.code_region(name)),
            Prepared::Checked(_) | Prepared::Interp(_) => None,
        }
    }

    /// The engine that runs it.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Prepared::Checked(_) => Engine::Checked,
            Prepared::Interp(_) => Engine::Interp,
            Prepared::Native(_) => Engine::Native,
        }
    }
}

impl Prepared<PacketFilter> {
    /// The entry for packets' bytes alone, if the program reads nothing else.
    pub(crate) fn on_packets(&self) -> Option<PacketFn<'_>> {
        match self {
            Prepared::Native(code) => code.on_packets(),
            Prepared::Checked(_) | Prepared::Interp(_) => None,
        }
    }
}
