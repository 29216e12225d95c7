//! Expectation files: statements, runs, and their comparison ([`crate::expect`] describes them).

mod check;
mod compare;
mod context;
mod error;
mod file;
mod model_run;
mod model_statement;
mod report;
mod resolve;
mod runs;
#[cfg(feature = "fuzz")]
mod single;
mod statement;

pub use check::ExpectCheck;
pub use error::{ExpectError, ExpectProblem};
pub use file::{ExpectFile, FORM};
pub use report::{CheckReport, CheckedExpectation, ExpectDifference};
#[cfg(feature = "fuzz")]
pub(crate) use single::{Expectation, ExpectationKind};
