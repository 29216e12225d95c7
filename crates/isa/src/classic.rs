//! The classic instruction set (`struct sock_filter`) and Linux's ancillary loads.

mod extension;
mod insn;

pub use extension::*;
pub use insn::*;
