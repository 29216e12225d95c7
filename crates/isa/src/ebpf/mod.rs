//! The eBPF instruction set (RFC 9669, and Linux 6.18 beyond it).
//!
//! [`table`] holds one row for every instruction; the rest derives from it.

#[macro_use]
mod row;

mod asm;
mod codec;
mod disasm;
pub mod eval;
mod insn;
mod operands;
pub mod table;
mod template;

pub use asm::{AsmError, AsmProblem, assemble};
pub use codec::{NoEncoding, PartialSlot, decode, encode, from_bytes, to_bytes};
pub use disasm::{CalleeNames, KernelForm};
pub use insn::*;
pub use operands::{Access, Flow, RegRoles, RegSet};
pub use row::{Effect, Field, Group, Row};
pub use table::Op;
