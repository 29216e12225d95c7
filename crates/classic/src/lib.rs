//! Classic BPF with the semantics of Linux or libpcap: text forms, checker, interpreter,
//! conversion to eBPF.
//!
//! ```text
//! text, dump ──► text ──► [SockFilter] ──► check ──► Checked ──► convert ──► Converted (eBPF)
//!                                                       └──► run (the plain interpreter)
//! ```
//!
//! A [`Checked`] is only constructed by [`check`], so it obeys the rules that it names.
//!
//! # Modules
//!
//! `text/` has a reader and a writer for each form, and one table of operands; `check.rs` has the
//! rules in the kernel's order, `screen.rs` a table that accepts most instructions at once;
//! `run.rs` is the plain interpreter (`run/op.rs` its operations, `run/input.rs` its inputs,
//! `run/trace.rs` its observer); `ancillary.rs` has the values of ancillary loads; `convert.rs` is
//! the conversion, with `convert/forms.rs` (a template for each opcode), `liveness.rs`, `code.rs`
//! (the pass that emits code) and `special.rs` (opcodes that need several instructions);
//! `kernel_limits.rs` computes the length of the kernel's own conversion, which decides about
//! EINVAL and ENOMEM.
#![forbid(unsafe_code)]

pub mod ancillary;
mod check;
mod convert;
pub mod kernel_limits;
pub mod run;
mod screen;
mod seccomp_data;
pub mod text;

pub use check::{Checked, EINVAL, ENOMEM, Refusal, Rule, Rules, Stage, check};
pub use convert::{Converted, convert};
pub use run::{BACKWARD_JUMPS, JumpLimitExceeded, PlainProgram};
pub use seccomp_data::SeccompData;

/// The semantics of a run: packet length, bounds and shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// libpcap's: `len` is the wire length, loads are bounded by the captured length, there
    /// are no ancillary loads (such offsets are outside the packet), indirect offsets do
    /// not wrap, shifts by 32 or more give 0.
    Capture,
    /// Linux's: one length, ancillary loads, negative offsets relative to the network and
    /// link-layer headers, indirect offsets wrap at 32 bits, shift counts are masked.
    Kernel,
}
