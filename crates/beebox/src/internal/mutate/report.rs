//! What came of changes, and what no test notices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::internal::run::LoadError;

/// A change of one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The program.
    pub program: String,
    /// The instruction.
    pub slot: usize,
    /// It.
    pub before: String,
    /// What it is changed to.
    pub after: String,
    /// File, number and text of its source line.
    pub line: Option<(String, u32, String)>,
    /// What came of it.
    pub outcome: MutantOutcome,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutantOutcome {
    /// The verifier refuses it.
    Refused,
    /// A test fails.
    Noticed {
        /// Its name.
        test: String,
    },
    /// All tests pass.
    Missed {
        /// A test executes the instruction.
        is_executed: bool,
    },
}

/// What came of all changes, in the order of programs and instructions.
#[derive(Debug, Default)]
pub struct MutationReport {
    /// The changes.
    pub mutants: Vec<Mutant>,
    /// Lines of which a test executes an instruction, changed or not: files and numbers.
    pub(super) executed_lines: BTreeSet<(String, u32)>,
}

/// Changes of a source line that no test notices.
#[derive(Debug)]
pub struct MissedLine<'r> {
    /// File, number and text of the line, if they are known.
    pub line: Option<&'r (String, u32, String)>,
    /// A test executes an instruction of the line.
    pub is_executed: bool,
    /// The changes.
    pub mutants: Vec<&'r Mutant>,
}

impl MutationReport {
    /// Changes that tests notice, of those that the verifier accepts.
    pub fn share(&self) -> (usize, usize) {
        let count = |is_it: fn(&MutantOutcome) -> bool| {
            let mutants = self.mutants.iter();
            mutants.filter(|mutant| is_it(&mutant.outcome)).count()
        };
        let noticed = count(|outcome| matches!(outcome, MutantOutcome::Noticed { .. }));
        let refused = count(|outcome| matches!(outcome, MutantOutcome::Refused));
        (noticed, self.mutants.len() - refused)
    }

    /// What no test notices, by source line.
    pub fn missed(&self) -> Vec<MissedLine<'_>> {
        let mut lines: BTreeMap<Option<(&str, u32)>, MissedLine<'_>> = BTreeMap::new();
        for mutant in &self.mutants {
            if let MutantOutcome::Missed { .. } = mutant.outcome {
                let key = mutant
                    .line
                    .as_ref()
                    .map(|(file, line, _)| (file.as_str(), *line));
                let missed = lines.entry(key).or_insert_with(|| MissedLine {
                    line: mutant.line.as_ref(),
                    is_executed: key.is_some_and(|(file, line)| {
                        self.executed_lines.contains(&(file.to_owned(), line))
                    }),
                    mutants: Vec::new(),
                });
                missed.is_executed |= mutant.outcome == MutantOutcome::Missed { is_executed: true };
                missed.mutants.push(mutant);
            }
        }
        lines.into_values().collect()
    }
}

/// Why changes cannot be tried.
#[derive(Debug)]
pub enum MutationError {
    /// The object cannot be loaded.
    Load(LoadError),
    /// A test does not pass on the object as it is, or cannot be run.
    Test {
        /// Its name.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// No test executes a program.
    NoTests,
}

impl fmt::Display for MutationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MutationError::Load(error) => error.fmt(f),
            MutationError::Test { name, what } => {
                write!(f, "{name}: it does not pass on the object as it is: {what}")
            }
            MutationError::NoTests => f.write_str("there is no test"),
        }
    }
}

impl std::error::Error for MutationError {}
