//! Seccomp filters: decisions, symbolic tables, differences, profiles.
//!
//! ```text
//! code ──► FilterProgram ──► Stack ──┬──► run: one call, as the kernel decides it
//! profile ──► compile ──┘            └──► Analysis: all calls at once ──► Table, findings, expectations
//!                                         diff: two stacks ──► differences, each with a call
//! ```
//!
//! Symbolic execution computes a decision diagram over the bits of `struct seccomp_data`;
//! tables, differences and proofs are queries on it, and printed conditions are exact. Time
//! and memory are limited; beyond the limit the result is [`TooComplex`], which names an
//! instruction.
//!
//! # Modules
//!
//! `filter.rs` and `action.rs` decide one call as the kernel does. `symbolic/` decides all calls at
//! once: `diagram.rs` (decision diagrams over the bits of the call), `bits.rs` and `value.rs`
//! (arithmetic on them), `explore.rs` (symbolic execution), `solver.rs` (satisfiability), `set.rs`
//! and `condition.rs` (diagrams to text). `table.rs`, `diff.rs`, `expect.rs` and `lint.rs` query
//! it. `profile/` reads container profiles and compiles them.
#![forbid(unsafe_code)]

mod action;
mod annotate;
mod arch;
pub mod calls;
pub mod constants;
mod diff;
pub mod errno;
mod expect;
mod filter;
pub mod json;
mod lint;
mod nearest;
pub mod profile;
mod symbolic;
mod table;
mod word;

pub use action::{Action, MAX_ERRNO, combine, decide};
pub use annotate::annotate;
pub use arch::{Arch, ByteOrder, X32_BIT};
pub use diff::{Contrast, Difference, diff};
pub use expect::{Expectation, ExpectationError, Miss, read_expectations};
pub use filter::{FilterProgram, Stack};
pub use lint::Finding;
pub use symbolic::TooComplex;
pub use symbolic::condition::Condition;
pub use symbolic::set::number as number_text;
pub use table::{Analysis, Case, Group, Others, Table};
pub use word::Word;
