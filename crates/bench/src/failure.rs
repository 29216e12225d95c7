//! Why a benchmark found nothing.

use std::fmt;
use std::io;

use crate::peer::Unfit;
use crate::race::Unequal;
use crate::step::NotCounted;

/// Why a benchmark found nothing.
#[derive(Debug)]
pub enum Failure {
    /// Engines give different answers.
    Unequal(Unequal),
    /// A program can't be given to rbpf.
    Unfit(&'static str, Unfit),
    /// A program's instructions can't be counted.
    NotCounted(&'static str, NotCounted),
    /// The system refused something that the benchmark needs.
    System(&'static str, io::Error),
    /// A process of ours failed, with what it said.
    Process {
        /// What it was started for.
        purpose: &'static str,
        /// What it wrote to standard error, or how it ended.
        said: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unequal(unequal) => unequal.fmt(f),
            Failure::Unfit(program, Unfit::LongJump) => {
                write!(f, "{program}: a jump is too long for rbpf")
            }
            Failure::Unfit(program, Unfit::Refused(words)) => {
                write!(f, "{program}: rbpf refuses it: {words}")
            }
            Failure::NotCounted(
                program,
                NotCounted {
                    slot,
                    insn: Some(insn),
                },
            ) => {
                write!(f, "{program}: instruction {slot} can't be counted: {insn}")
            }
            Failure::NotCounted(program, NotCounted { slot, insn: None }) => {
                write!(f, "{program}: no instruction {slot} to count")
            }
            Failure::System(what, error) => write!(f, "{what}: {error}"),
            Failure::Process { purpose, said } => write!(f, "{purpose}: {said}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Unequal> for Failure {
    fn from(unequal: Unequal) -> Failure {
        Failure::Unequal(unequal)
    }
}
