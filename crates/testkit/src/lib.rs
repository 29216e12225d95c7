//! Program generators, a shrinker, and the running kernel as oracle.
//!
//! - [`generate`] makes classic programs and packets from a seed;
//! - [`reach`] counts what they reached;
//! - [`shrink`](shrink::shrink) makes a program that shows a difference small;
//! - [`kernel`] compares the checker, the limits and the plain interpreter with
//!   Linux itself;
//! - [`btf`] compares our check of type information with the kernel's;
//! - [`objects`] compares what libbpf makes of objects with what we make of them;
//! - [`numbers`] compares the verifier's numeric domain with the kernel's;
//! - [`captures`] makes captures of any size from a seed;
//! - [`corpus`] is programs of others, for counting;
//! - [`verifier`] compares our verifier with the kernel's on generated programs;
//! - [`tail_calls`] runs chains of programs that call each other;
//! - [`engines`] compares two engines with each other, fast.
#![deny(unsafe_code)]

pub mod btf;
pub mod captures;
pub mod corpus;
pub mod ebpf;
pub mod engines;
pub mod execution;
mod frames;
pub mod generate;
pub mod helpers;
pub mod kernel;
pub mod maps;
pub mod numbers;
pub mod objects;
pub mod reach;
pub mod registry;
pub mod shrink;
pub mod tail_calls;
pub mod verifier;
pub mod witness;
