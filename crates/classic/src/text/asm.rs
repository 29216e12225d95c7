//! The assembly language of `bpf_asm` (Documentation/networking/filter.rst).
//!
//! Everything that bpf_asm takes is taken, but for what it gets wrong without a
//! word: a label defined twice, a number beyond 32 bits. Taken beyond it:
//! labels of one letter (`a`, `x` and `m` apart), several labels before one
//! instruction, `[x - k]`, `[x+k]` without spaces, signs before numbers of any
//! base, `//` comments, the names that `tcpdump -d` gives to extensions, and
//!
//! ```text
//! .insn 0x28, 0, 0, 12        ; opcode, jt, jf, k
//! ```
//!
//! which the writer uses for what the language can't say: an opcode off the
//! table, a jump out of the program. So every program can be written; only
//! values in fields that an instruction ignores are lost (libpcap leaves chance
//! values in the `k` of `tax`, which nobody wants to read).
//!
//! Jumps are resolved when all labels are known: one pass over the text, one
//! over the jumps.

mod reader;
mod writer;

pub(super) use reader::read;
pub(super) use writer::write;

/// The word before an instruction given by its fields.
const RAW_INSN: &str = ".insn";

/// The opcode of `ret x`, which the language has and Linux does not.
const RET_X: u16 = 0x0e;
