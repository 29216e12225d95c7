//! The numeric domain: the facts about a 64-bit value.
//!
//! A [`Scalar`] is the reduced product of a [`Tnum`] (known bits) and four
//! ranges (signed and unsigned, of the whole value and of its low half).
//! Transfer functions ([`Scalar::alu`], [`Scalar::neg`], [`Scalar::byte_order`],
//! [`Scalar::sign_extend64`] …) over-approximate what the machine computes;
//! [`Scalar::sync`] is the reduction; [`decide`] and [`refine`] are the
//! conditions of branches.
//!
//! Every result is that of Linux 6.18 to the bit, which is more than soundness:
//! where a transfer function could be tighter and the kernel's is not, ours is
//! not either, since logs, pruning and verdicts depend on it.
//!
//! The domain is independent of registers. Values are plain `Copy` data; every operation
//! takes constant time and allocates nothing.

mod alu;
mod branch;
mod circular;
mod cnum;
mod scalar;
mod tnum;
mod union;

pub use branch::{decide, decide_by_constant, decide_same, refine, refine_same, refine_synced};
pub use cnum::{Cnum32, Cnum64};
pub use scalar::{Scalar, Violation};
pub use tnum::Tnum;
