//! What a BPF instruction is.
//!
//! Two instruction sets live here, each as one table of rows from which
//! everything else derives: [`ebpf`] (RFC 9669 and what Linux 6.18 executes
//! beyond it) and [`classic`] (the 1992 machine that capture filters and
//! seccomp still speak, with Linux's ancillary loads).
//!
//! This crate knows no program: it decodes, encodes and names single
//! instructions and says what each one means. Decoding never fails as a whole;
//! a bad instruction becomes an `Invalid` value that says what is wrong with it,
//! and whoever judges a program decides when that matters.
#![forbid(unsafe_code)]

pub mod classic;
pub mod ebpf;
