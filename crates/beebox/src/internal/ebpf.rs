//! eBPF instructions as data: decode, encode, assemble, print, and what each of them uses.
//!
//! ```
//! use beebox::internal::ebpf::{assemble, decode_bytes, encode, to_bytes};
//!
//! let program = assemble("w0 = 2\nexit\n")?;
//! let bytes = to_bytes(&encode(&program)?);
//! assert_eq!(bytes[..8], [0xb4, 0, 0, 0, 2, 0, 0, 0]);
//! assert_eq!(decode_bytes(&bytes)?[0].to_string(), "w0 = 2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use isa::ebpf::properties::Halves;
pub use isa::ebpf::{
    Access, AddrSpaceCast, AluOp, AsmError, AsmProblem, AtomicOp, ByteOrder, Callee, CalleeNames,
    Cond, Effect, Fault, Field, Flow, Group, Imm64, Insn, KernelForm, NoEncoding, Op, Operand,
    PartialSlot, PseudoCall, PseudoLoad, RawInsn, Reg, RegRoles, RegSet, Row, Size, Value64, Width,
    assemble, decode, decode_bytes, encode, from_bytes, to_bytes,
};
pub use spec::calls::name as helper_name;
