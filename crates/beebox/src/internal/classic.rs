//! Classic BPF instructions: decode, check and convert to eBPF.
//!
//! ```
//! use beebox::internal::classic::{Insn, check, convert};
//! use beebox::{Rules, Semantics, SockFilter};
//!
//! let program = [Insn::RetK(0xffff).encode()];
//! let converted = convert(&check(&program, Rules::Socket)?, Semantics::Kernel);
//! assert_eq!(converted.insns().last().unwrap().to_string(), "exit");
//! # Ok::<(), beebox::internal::Refusal>(())
//! ```

pub use ::classic::{Converted, check, convert};
pub use isa::classic::{
    AD_OFFSET, AluOp, Cond, Extension, Insn, LL_OFFSET, MAX_INSNS, MEMORY_WORDS, NET_OFFSET,
    OPCODES, Operand, Size, SockFilter,
};
pub use spec::context::{Field as ContextField, SK_BUFF};
