//! The engines that run filters.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use classic::{Checked, PlainProgram, Semantics, convert};
use interp::{Threaded, ThreadedProgram};
use jit::memory::Pool;
use jit::perf;
use jit::{Entered, Native, OnPackets, Options};
use lower::{ClassicFilter, Lowered, PacketFilter, SyscallFilter};

/// Engine that runs a program. All engines return the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// A plain switch over the classic instructions.
    Classic,
    /// The threaded interpreter over the converted program.
    Interp,
    /// Native code, compiled from the converted program. The threaded interpreter runs
    /// instead where there is no native code (another processor, no executable memory).
    /// A child made by `fork` can't run what its parent compiled, unless the pool gives
    /// each program pages of its own (`PoolOptions::writing`).
    #[default]
    Native,
}

impl Engine {
    /// All of them.
    pub const ALL: &[Engine] = &[Engine::Classic, Engine::Interp, Engine::Native];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Classic => "classic",
            Engine::Interp => "interp",
            Engine::Native => "native",
        }
    }
}

#[doc(hidden)]
impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Engine, UnknownEngine> {
        let mut engines = Engine::ALL.iter().copied();
        let found = engines.find(|engine| engine.name() == name);
        found.ok_or_else(|| UnknownEngine(name.to_owned()))
    }
}

/// A name that no engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEngine(pub String);

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Engine::ALL.iter().map(|engine| engine.name()).collect();
        let known = known.join(", ");
        write!(
            f,
            "no engine has the name {:?}; the names are {known}",
            self.0
        )
    }
}

impl Error for UnknownEngine {}

/// Kinds of classic filters.
pub(crate) trait FilterKind: Entered + Threaded {
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
    Classic(PlainProgram),
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
        if engine == Engine::Classic {
            return Some(Prepared::Classic(PlainProgram::prepare(program, semantics)));
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
            Prepared::Classic(_) | Prepared::Interp(_) => None,
        }
    }

    /// The engine that runs it.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Prepared::Classic(_) => Engine::Classic,
            Prepared::Interp(_) => Engine::Interp,
            Prepared::Native(_) => Engine::Native,
        }
    }
}

impl Prepared<PacketFilter> {
    /// The entry for packets' bytes alone, if the program reads nothing else.
    pub(crate) fn on_packets(&self) -> Option<OnPackets<'_>> {
        match self {
            Prepared::Native(code) => code.on_packets(),
            Prepared::Classic(_) | Prepared::Interp(_) => None,
        }
    }
}
