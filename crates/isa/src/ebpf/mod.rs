//! The eBPF instruction set (RFC 9669, and Linux 6.18 beyond it).

mod insn;

pub use insn::*;
