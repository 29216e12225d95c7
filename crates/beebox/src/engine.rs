//! The engines, behind one name each.

use std::str::FromStr;

use classic::{Checked, Program, Semantics, convert};
use interp::Code;
use lower::Lowered;

/// What runs a program. All engines give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// A plain switch over the classic instructions.
    Classic,
    /// The threaded interpreter over the converted program.
    #[default]
    Interp,
}

impl Engine {
    /// All of them.
    pub const ALL: &[Engine] = &[Engine::Classic, Engine::Interp];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Classic => "classic",
            Engine::Interp => "interp",
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
}

impl Prepared {
    pub(crate) fn new(program: &Checked, semantics: Semantics, engine: Engine) -> Prepared {
        match engine {
            Engine::Classic => Prepared::Classic(Program::prepare(program, semantics)),
            Engine::Interp => {
                let lowered = Lowered::from_classic(convert(program, semantics));
                let code = Code::compile(&lowered)
                    .expect("the interpreter performs every instruction that conversion makes");
                Prepared::Interp(code)
            }
        }
    }
}
