//! Generated eBPF programs on every engine and in the running kernel, beside the reference
//! evaluator.
//!
//! # Modules
//!
//! `engines.rs` is the list of engines, `page.rs` the counts.

pub mod engines;
pub mod in_kernel;
pub mod page;
