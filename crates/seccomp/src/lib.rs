//! Seccomp filters: decisions, symbolic tables, differences, profiles.
#![forbid(unsafe_code)]

mod action;
mod arch;
pub mod calls;
mod diff;
pub mod errno;
mod expect;
mod filter;
mod lint;
pub mod profile;
mod symbolic;
mod table;
mod word;

pub use action::{Action, MAX_ERRNO, combine, decide};
pub use arch::{Arch, X32_BIT};
pub use diff::{Contrast, Difference, diff};
pub use expect::{Expectation, ExpectationError, Miss, read_expectations};
pub use filter::{Filter, Stack};
pub use lint::Finding;
pub use symbolic::condition::Condition;
pub use symbolic::diagram::TooComplex;
pub use symbolic::set::number as number_text;
pub use table::{Analysis, Case, Group, Others, Table};
pub use word::Word;
