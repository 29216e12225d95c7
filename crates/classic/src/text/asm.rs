//! The assembly language of `bpf_asm` (Documentation/networking/filter.rst).
//!
//! The reader accepts the language of bpf_asm, but rejects labels that are defined twice
//! and numbers beyond 32 bits, which bpf_asm misreads silently. Extensions: labels of one
//! letter (`a`, `x` and `m` apart), several labels before one instruction, `[x - k]`,
//! `[x+k]` without spaces, signs before numbers of any base, `//` comments, the names that
//! `tcpdump -d` gives to extensions, and
//!
//! ```text
//! .insn 0x28, 0, 0, 12        ; opcode, jt, jf, k
//! ```
//!
//! which the writer uses for instructions without syntax: unknown opcodes, jumps out of the
//! program. So every program can be written; only values of ignored fields are lost
//! (libpcap leaves arbitrary values in the `k` of `tax`).
//!
//! Cost: one pass over the text, one over the jumps to resolve labels.

mod reader;
mod writer;

pub(super) use reader::read;
pub(super) use writer::write;

/// Directive for an instruction given by its fields.
const RAW_INSN: &str = ".insn";

/// Opcode of `ret x`, which the language has and Linux rejects.
const RET_X: u16 = 0x0e;
