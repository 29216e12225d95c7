//! Comparisons: Beebox beside the running kernel, libbpf, and engines beside each other.
//!
//! The tests of this crate make them with few inputs, the program `beebox-differential`
//! (`cargo differential`) with many.
//!
//! - [`classic`] compares checker, limits and plain interpreter with Linux;
//! - [`ebpf`] compares every engine with the reference evaluator, and that with Linux;
//! - [`execution`] runs generated programs with maps on every engine for verified programs;
//! - [`helpers`] compares helpers and kfuncs, [`maps`] operations on maps;
//! - [`tail_calls`] runs chains of programs that call each other;
//! - [`verifier`] compares verdicts and logs on generated programs, [`numbers`] the numeric
//!   domain, [`registry`] what the kernel offers to programs, [`btf`] the check of types;
//! - [`objects`] compares what libbpf makes of objects with what we make of them;
//! - [`loaders`] compares what other loaders parse of objects;
//! - [`corpus`] is programs of others, for counting;
//! - [`direct`] runs verified programs in the engines without checks;
//! - [`recorded`] reads answers of kernels, [`refusals`] writes the page of the most frequent ones;
//! - [`page`] writes tables into pages of the repository.
#![deny(unsafe_code)]

pub mod btf;
pub mod classic;
pub mod corpus;
pub mod direct;
pub mod ebpf;
pub mod execution;
pub mod helpers;
pub mod loaders;
pub mod maps;
pub mod numbers;
pub mod objects;
pub mod page;
pub mod recorded;
pub mod refusals;
pub mod registry;
pub mod tail_calls;
pub mod verifier;
