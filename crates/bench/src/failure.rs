//! Errors of benchmarks.

use std::fmt;
use std::io;

use interp::Unsupported;
use jit::CompileError;
use lower::Malformed;

use crate::engines::Unreadable;
use crate::peer::UnsupportedConstruct;
use crate::race::Unequal;
use crate::step::NotCounted;

/// Reason why a benchmark has no result.
#[derive(Debug)]
pub enum Failure {
    /// Engines give different answers.
    Unequal(Unequal),
    /// A program can't be given to rbpf.
    UnsupportedConstruct(&'static str, UnsupportedConstruct),
    /// solana-sbpf refuses a program, in its words.
    RefusedBySolana(&'static str, String),
    /// A workload's object holds no program.
    Unreadable(&'static str, Unreadable),
    /// A workload can't be lowered.
    Malformed(&'static str, Malformed),
    /// An engine of ours can't run a workload.
    Unsupported(&'static str, Unsupported),
    /// A workload can't be compiled.
    NotCompiled(&'static str, CompileError),
    /// There is no such workload, but these.
    NoWorkload(String, Vec<&'static str>),
    /// A program's instructions can't be counted.
    NotCounted(&'static str, NotCounted),
    /// The system refused something that the benchmark needs.
    System(&'static str, io::Error),
    /// A process of ours failed, with what it said.
    Process {
        /// Purpose of the command.
        purpose: &'static str,
        /// Its standard error, or its exit status.
        said: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unequal(unequal) => unequal.fmt(f),
            Failure::UnsupportedConstruct(program, UnsupportedConstruct::LongJump) => {
                write!(f, "{program}: a jump is too long for rbpf")
            }
            Failure::UnsupportedConstruct(program, UnsupportedConstruct::Refused(words)) => {
                write!(f, "{program}: rbpf refuses it: {words}")
            }
            Failure::RefusedBySolana(program, words) => {
                write!(f, "{program}: solana-sbpf refuses it: {words}")
            }
            Failure::Unreadable(workload, why) => {
                write!(f, "the object of {workload}: {why}")
            }
            Failure::Malformed(workload, malformed) => write!(f, "{workload}: {malformed}"),
            Failure::NotCompiled(workload, error) => write!(f, "{workload}: {error}"),
            Failure::NoWorkload(name, known) if known.is_empty() => {
                write!(
                    f,
                    "no workload {name:?}: this benchmark is measured as a whole"
                )
            }
            Failure::NoWorkload(name, known) => {
                write!(f, "no workload {name:?}; there are: {}", known.join(", "))
            }
            Failure::Unsupported(workload, Unsupported { slot, insn }) => {
                write!(f, "{workload}: instruction {slot} is not performed: {insn}")
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
