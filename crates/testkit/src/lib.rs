//! Inputs of tests: generators, reducers and the reference evaluator of eBPF. It runs no
//! engine and asks no kernel; `beebox-differential` does both.
//!
//! - [`generate`] makes classic programs and packets from a seed, [`frames`] Ethernet frames,
//!   [`coverage`] counts what they reached, [`shrink`](shrink::shrink) makes a program that shows a
//!   difference small, [`state_dump`] one that shows the whole value that another returned;
//! - [`ebpf`] makes eBPF programs that are safe by construction, and evaluates them;
//! - [`verifier`] makes programs for the verifier, and of programs others with one change;
//! - [`btf`] makes blobs of type information;
//! - [`captures`] makes captures of any size;
//! - [`engines`] compares two engines for classic programs with each other, fast.
#![forbid(unsafe_code)]

pub mod btf;
pub mod captures;
pub mod coverage;
pub mod ebpf;
pub mod engines;
pub mod frames;
pub mod generate;
pub mod shrink;
pub mod state_dump;
pub mod verifier;
