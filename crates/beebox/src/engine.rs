//! The engines, behind one name each.

use std::str::FromStr;

use classic::{Checked, Program, Semantics, convert};
use interp::Code;
use jit::memory::Pool;
use jit::perf;
use jit::{Native, OnPackets, Options};
use lower::Lowered;

/// What runs a program. All engines give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// A plain switch over the classic instructions.
    Classic,
    /// The threaded interpreter over the converted program.
    Interp,
    /// Native code, made from the converted program; where there is none to be
    /// had, the threaded interpreter. A child made by `fork` can't run what its
    /// parent compiled, unless the pool gives each program pages of its own
    /// ([`jit::memory::Writing::OwnPages`]).
    #[default]
    Jit,
}

impl Engine {
    /// All of them.
    pub const ALL: &[Engine] = &[Engine::Classic, Engine::Interp, Engine::Jit];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Classic => "classic",
            Engine::Interp => "interp",
            Engine::Jit => "jit",
        }
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        Engine::ALL
            .iter()
            .copied()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| {
                let known: Vec<_> = Engine::ALL.iter().map(|engine| engine.name()).collect();
                format!(
                    "no engine is called {name:?}; there are: {}",
                    known.join(", ")
                )
            })
    }
}

/// A program in the form that its engine runs.
pub(crate) enum Prepared {
    Classic(Program),
    Interp(Code),
    Jit(Native),
}

impl Prepared {
    /// Prepares a program for an engine, native code in the pool's memory. Where
    /// there is no native code to be had (another processor, a system that gives
    /// no executable memory), it is prepared for the interpreter.
    pub(crate) fn new(
        program: &Checked,
        semantics: Semantics,
        engine: Engine,
        pool: &Pool,
    ) -> Prepared {
        if engine == Engine::Classic {
            return Prepared::Classic(Program::prepare(program, semantics));
        }
        let lowered = Lowered::from_classic(convert(program, semantics));
        if engine == Engine::Jit
            && let Ok(code) = Native::compile(&lowered, &Options::default(), pool)
        {
            return Prepared::Jit(code);
        }
        let code = Code::compile(&lowered)
            .expect("the interpreter performs every instruction that conversion makes");
        Prepared::Interp(code)
    }

    /// What runs it on packets' bytes alone, where that is all that it wants.
    pub(crate) fn on_packets(&self) -> Option<OnPackets<'_>> {
        match self {
            Prepared::Jit(code) => code.on_packets(),
            Prepared::Classic(_) | Prepared::Interp(_) => None,
        }
    }

    /// The native code under a name, if there is any.
    pub(crate) fn native_code<'a>(&'a self, name: &'a str) -> Option<perf::Code<'a>> {
        match self {
            Prepared::Jit(code) => Some(perf::Code::of(name, code)),
            Prepared::Classic(_) | Prepared::Interp(_) => None,
        }
    }

    /// What runs it.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Prepared::Classic(_) => Engine::Classic,
            Prepared::Interp(_) => Engine::Interp,
            Prepared::Jit(_) => Engine::Jit,
        }
    }
}
