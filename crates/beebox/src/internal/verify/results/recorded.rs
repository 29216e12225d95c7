//! Comparison of our answer with those that a text case records.
//!
//! Answers of another series of kernels than the one answered for are named, not
//! compared. The others agree if the error number is the same and every recorded line of
//! the log is one of ours. What a test run returned is no question to a verifier.

use std::fmt;

use crate::kernel::KernelVersion;
use program::case::KernelAnswer;
use report::veristat::ResultVerdict;
use serde::Serialize;
use verifier::LogOutput;

use super::log::LineSearch;
use super::row::Row;
use crate::Kernel;

/// Comparison of our answer with a recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Release of the kernel that gave the recorded answer.
    release: String,
    /// The result.
    agrees: Outcome,
    /// True if the answer has the return value of a test run.
    #[serde(skip)]
    has_return_value: bool,
    /// The kernel's answer, if it differs from ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Yes,
    No,
    /// Another series of kernels, or an unsupported program.
    NotCompared,
}

impl Agreement {
    /// True if our answer is another one than the recorded answer.
    pub fn differs(&self) -> bool {
        self.agrees == Outcome::No
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = &self.release;
        match (self.agrees, &self.answered) {
            (Outcome::Yes, _) => {
                write!(f, "agrees with the recorded answer of {release}")?;
                match self.has_return_value {
                    true => f.write_str(" (its return value is not compared)"),
                    false => Ok(()),
                }
            }
            (Outcome::NotCompared, _) => {
                write!(f, "not compared with the recorded answer of {release}")
            }
            (Outcome::No, Some(answered)) => {
                write!(
                    f,
                    "differs from the recorded answer of {release}: {answered}"
                )
            }
            (Outcome::No, None) => write!(f, "differs from the recorded answer of {release}"),
        }
    }
}

/// Compares each answer with a row. `log` writes our whole log; it is called only if the
/// reason does not have the recorded lines.
pub(super) fn compare(
    answers: &[KernelAnswer],
    row: &Row,
    kernel: &Kernel,
    log: &dyn Fn(&mut dyn LogOutput),
) -> Vec<Agreement> {
    let series = |version: KernelVersion| (version.major, version.minor);
    let compare = |answer: &KernelAnswer| {
        let recorded: Option<KernelVersion> = answer.release.parse().ok();
        let is_ours = recorded.map(series) == kernel.version().map(series);
        let agrees = match row.verdict {
            _ if !is_ours => Outcome::NotCompared,
            ResultVerdict::Unsupported => Outcome::NotCompared,
            _ if row.errno == answer.errno && has_lines(answer, row, log) => Outcome::Yes,
            _ => Outcome::No,
        };
        Agreement {
            release: answer.release.clone(),
            has_return_value: answer.returns.is_some(),
            agrees,
            answered: (agrees == Outcome::No).then(|| in_words(answer)),
        }
    };
    answers.iter().map(compare).collect()
}

fn has_lines(answer: &KernelAnswer, row: &Row, log: &dyn Fn(&mut dyn LogOutput)) -> bool {
    let search = || LineSearch::new(answer.log.iter().map(String::as_str));
    let mut in_reason = search();
    in_reason.write(&row.reason);
    if in_reason.finish() {
        return true;
    }
    let mut in_log = search();
    log(&mut in_log);
    in_log.finish()
}

fn in_words(answer: &KernelAnswer) -> String {
    let verdict = match answer.errno {
        None => "accepted".to_owned(),
        Some(errno) => format!("refused with error {errno}"),
    };
    match answer.log.is_empty() {
        true => verdict,
        false => format!("{verdict}, {}", answer.log.join(" / ")),
    }
}
