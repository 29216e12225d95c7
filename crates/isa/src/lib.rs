//! The BPF instruction sets.
//!
//! Each instruction set is a table of rows from which everything else derives: [`ebpf`]
//! (RFC 9669 and the extensions of Linux 6.18) and [`classic`] (the instruction set of
//! capture filters and seccomp filters, with Linux's ancillary loads).
//!
//! The crate decodes, encodes, prints and evaluates single instructions. Decoding never
//! fails as a whole: an invalid instruction becomes an `Invalid` value with its fault, and
//! each user decides when that matters.
//!
//! # Modules
//!
//! `ebpf/table.rs` and `classic/insn.rs` are the tables. From the first derive `codec.rs` (slots
//! and bytes) with `frequent.rs` (a fast path for common slots), `disasm.rs` (LLVM's text and the
//! verifier log's text), `asm` (the assembler), `operands.rs` (registers read and written, memory,
//! control flow), `properties.rs` (algebraic properties); `eval.rs` computes each operation, for the
//! interpreters and the tests.
#![forbid(unsafe_code)]

pub mod classic;
pub mod ebpf;
