//! The eBPF instruction set: RFC 9669, and Linux 6.18 beyond it.
//!
//! One table ([`table`]) holds a row for every instruction, and everything else derives
//! from it: decoding and encoding, the rules for reserved fields, which registers and
//! memory an instruction uses and where control goes, both text forms and the assembler.
//! The semantics of operations are in [`eval`], properties for analyses in [`properties`]. To add an
//! instruction, write one row; a new [`Insn`] variant or operation is then reported by the
//! compiler wherever a match must handle it.
//!
//! Programs are slices with one [`Insn`] for each eight-byte slot, so indices and jump
//! distances are the kernel's. Decoding never fails: an invalid slot becomes
//! [`Insn::Invalid`] with its bits and the [`Fault`] that Linux reports. Encoding is the
//! inverse of decoding, assembling the inverse of printing. Encoding only normalises the
//! offset of `exit`, which Linux ignores.
//!
//! ```
//! use beebox_isa::ebpf::{assemble, encode, to_bytes};
//!
//! let program = assemble(
//!     "
//!         r0 = *(u32 *)(r1 + 4)
//!         if r0 == 0 goto out
//!         w0 = 1
//!     out:
//!         exit
//!     ",
//! )?;
//! assert_eq!(program[1].to_string(), "if r0 == 0 goto +1");
//! assert_eq!(program[0].kernel_form(&|_| None).to_string(), "(61) r0 = *(u32 *)(r1 +4)");
//! assert_eq!(to_bytes(&encode(&program)?)[..4], [0x61, 0x10, 4, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Decoding, encoding and printing are linear in the length of the program.

#[macro_use]
mod row;

mod asm;
mod codec;
mod disasm;
pub mod eval;
mod frequent;
mod insn;
mod opcode;
mod operands;
pub mod properties;
mod pseudo;
pub mod table;
mod template;

pub use asm::{AsmError, AsmProblem, assemble};
pub use codec::{NoEncoding, PartialSlot, decode, decode_bytes, encode, from_bytes, to_bytes};
pub use disasm::{CalleeNames, KernelForm};
pub use insn::*;
pub use operands::{Access, Flow, RegRoles, RegSet};
pub use pseudo::{PseudoCall, PseudoLoad};
pub use row::{Effect, Field, Group, Row};
pub use table::Op;
