//! Classic BPF, exactly as Linux (and, by name, as libpcap) treats it.
//!
//! ```text
//! text, dump ──► text ──► [SockFilter] ──► check ──► Checked ──► convert ──► Converted (eBPF)
//!                                                       └──► run (the plain interpreter)
//! ```
//!
//! [`Checked`] can only be made by [`check`], so whoever holds one knows that
//! the program obeys the rules it names.
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
pub use run::{BACKWARD_JUMPS, JumpLimitExceeded, Program};
pub use seccomp_data::SeccompData;

/// What a run means by the length of a packet and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// libpcap's: `len` is the wire length, loads are bounded by the captured
    /// length, there is no ancillary data (loads at such offsets lie beyond the
    /// packet), indirect offsets do not wrap, shifts by 32 or more give 0.
    Capture,
    /// Linux's: one length, ancillary data, negative offsets to the network and
    /// link-layer headers, indirect offsets wrap at 32 bits, shift counts are
    /// masked.
    Kernel,
}
