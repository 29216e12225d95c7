//! Generated eBPF programs on every engine and in the running kernel, beside the reference
//! evaluator.

pub mod engines;
pub mod in_kernel;
pub mod page;
