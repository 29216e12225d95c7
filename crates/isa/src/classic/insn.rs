//! The classic instruction table, from which decoding, encoding and mnemonics derive.

/// One instruction as it stands in a `struct sock_filter` array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct SockFilter {
    /// Opcode.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

impl SockFilter {
    /// An instruction from its four fields.
    pub const fn new(code: u16, jt: u8, jf: u8, k: u32) -> SockFilter {
        SockFilter { code, jt, jf, k }
    }
}

/// Words of scratch memory, `M[0]` to `M[15]`.
pub const MEMORY_WORDS: u32 = 16;

/// Largest number of instructions of a program in Linux (`BPF_MAXINSNS`).
pub const MAX_INSNS: usize = 4096;

/// Size of a packet load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// One byte.
    B,
    /// Two bytes, network order.
    H,
    /// Four bytes, network order.
    W,
}

impl Size {
    /// Size in bytes: 1, 2 or 4.
    pub const fn bytes(self) -> u32 {
        match self {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
        }
    }
}

/// A second operand: the constant `k` or the index register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The constant.
    K(u32),
    /// The index register.
    X,
}

/// Arithmetic on the accumulator: `A = A op operand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AluOp {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Lsh,
    Rsh,
    Mod,
    Xor,
}

/// Condition of a branch: `A cond operand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cond {
    /// Equal.
    Eq,
    /// Unsigned greater.
    Gt,
    /// Unsigned greater or equal.
    Ge,
    /// `A & operand != 0`.
    Set,
}

impl Cond {
    /// True if the condition holds for an accumulator and an operand.
    pub const fn holds(self, a: u32, operand: u32) -> bool {
        match self {
            Cond::Eq => a == operand,
            Cond::Gt => a > operand,
            Cond::Ge => a >= operand,
            Cond::Set => a & operand != 0,
        }
    }
}

/// One classic instruction, decoded. Fields that the kernel ignores (jump
/// offsets of loads, `k` of `tax`) are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Insn {
    /// `A = packet[k]`.
    LoadAbs {
        /// Bytes.
        size: Size,
        /// Offset; from [`AD_OFFSET`](super::AD_OFFSET) on, an ancillary value.
        k: u32,
    },
    /// `A = packet[X + k]`.
    LoadInd {
        /// Bytes.
        size: Size,
        /// Offset beyond `X`.
        k: u32,
    },
    /// `A = length of the packet`.
    LoadLen,
    /// `A = k`.
    LoadImm(u32),
    /// `A = M[k]`.
    LoadMem(u32),
    /// `X = k`.
    LoadXImm(u32),
    /// `X = M[k]`.
    LoadXMem(u32),
    /// `X = length of the packet`.
    LoadXLen,
    /// `X = 4 * (packet[k] & 15)`: the length of an IPv4 header.
    LoadXMsh(u32),
    /// `M[k] = A`.
    Store(u32),
    /// `M[k] = X`.
    StoreX(u32),
    /// `A = A op operand`.
    Alu {
        /// The operation.
        op: AluOp,
        /// With what.
        src: Operand,
    },
    /// `A = -A`.
    Neg,
    /// `if A cond operand` skip `jt`, else skip `jf`.
    Jump {
        /// The comparison.
        cond: Cond,
        /// With what.
        src: Operand,
        /// Instructions skipped when it holds.
        jt: u8,
        /// Instructions skipped when it does not.
        jf: u8,
    },
    /// Skip `k` instructions (libpcap reads it as signed; Linux does not).
    Goto(u32),
    /// End with the constant.
    RetK(u32),
    /// End with the accumulator.
    RetA,
    /// `X = A`.
    Tax,
    /// `A = X`.
    Txa,
    /// An opcode without a row in the table.
    Invalid(SockFilter),
}

/// The table. Each row: opcode, the fields that carry meaning, the decoded
/// form (read as an expression it decodes, as a pattern it encodes), and the
/// mnemonic.
macro_rules! rows {
    ($( $code:literal [$($field:ident)*] $name:literal => { $($form:tt)* } )*) => {
        /// Every classic opcode with its mnemonic.
        pub const OPCODES: &[(u16, &str)] = &[ $( ($code, $name) ),* ];

        impl Insn {
            /// Decodes one instruction. Opcodes are matched whole, as Linux
            /// matches them.
            #[inline(always)]
            pub const fn decode(raw: SockFilter) -> Insn {
                match raw.code {
                    $( $code => {
                        $( let $field = raw.$field; )*
                        $($form)*
                    } )*
                    _ => Insn::Invalid(raw),
                }
            }

            /// Encodes; fields without meaning are zero.
            pub const fn encode(self) -> SockFilter {
                match self {
                    $( $($form)* => {
                        #[allow(unused_mut)]
                        let mut raw = SockFilter::new($code, 0, 0, 0);
                        $( raw.$field = $field; )*
                        raw
                    } )*
                    Insn::Invalid(raw) => raw,
                }
            }

            /// The mnemonic (`ldh`, `jset`, …); `None` when invalid.
            #[allow(unused_variables)]
            pub const fn mnemonic(self) -> Option<&'static str> {
                match self {
                    $( $($form)* => Some($name), )*
                    Insn::Invalid(_) => None,
                }
            }
        }
    };
}

rows! {
    0x20 [k] "ld" => { Insn::LoadAbs { size: Size::W, k } }
    0x28 [k] "ldh" => { Insn::LoadAbs { size: Size::H, k } }
    0x30 [k] "ldb" => { Insn::LoadAbs { size: Size::B, k } }
    0x40 [k] "ld" => { Insn::LoadInd { size: Size::W, k } }
    0x48 [k] "ldh" => { Insn::LoadInd { size: Size::H, k } }
    0x50 [k] "ldb" => { Insn::LoadInd { size: Size::B, k } }
    0x80 [] "ld" => { Insn::LoadLen }
    0x00 [k] "ld" => { Insn::LoadImm(k) }
    0x60 [k] "ld" => { Insn::LoadMem(k) }
    0x01 [k] "ldx" => { Insn::LoadXImm(k) }
    0x61 [k] "ldx" => { Insn::LoadXMem(k) }
    0x81 [] "ldx" => { Insn::LoadXLen }
    0xb1 [k] "ldxb" => { Insn::LoadXMsh(k) }
    0x02 [k] "st" => { Insn::Store(k) }
    0x03 [k] "stx" => { Insn::StoreX(k) }
    0x04 [k] "add" => { Insn::Alu { op: AluOp::Add, src: Operand::K(k) } }
    0x0c [] "add" => { Insn::Alu { op: AluOp::Add, src: Operand::X } }
    0x14 [k] "sub" => { Insn::Alu { op: AluOp::Sub, src: Operand::K(k) } }
    0x1c [] "sub" => { Insn::Alu { op: AluOp::Sub, src: Operand::X } }
    0x24 [k] "mul" => { Insn::Alu { op: AluOp::Mul, src: Operand::K(k) } }
    0x2c [] "mul" => { Insn::Alu { op: AluOp::Mul, src: Operand::X } }
    0x34 [k] "div" => { Insn::Alu { op: AluOp::Div, src: Operand::K(k) } }
    0x3c [] "div" => { Insn::Alu { op: AluOp::Div, src: Operand::X } }
    0x44 [k] "or" => { Insn::Alu { op: AluOp::Or, src: Operand::K(k) } }
    0x4c [] "or" => { Insn::Alu { op: AluOp::Or, src: Operand::X } }
    0x54 [k] "and" => { Insn::Alu { op: AluOp::And, src: Operand::K(k) } }
    0x5c [] "and" => { Insn::Alu { op: AluOp::And, src: Operand::X } }
    0x64 [k] "lsh" => { Insn::Alu { op: AluOp::Lsh, src: Operand::K(k) } }
    0x6c [] "lsh" => { Insn::Alu { op: AluOp::Lsh, src: Operand::X } }
    0x74 [k] "rsh" => { Insn::Alu { op: AluOp::Rsh, src: Operand::K(k) } }
    0x7c [] "rsh" => { Insn::Alu { op: AluOp::Rsh, src: Operand::X } }
    0x94 [k] "mod" => { Insn::Alu { op: AluOp::Mod, src: Operand::K(k) } }
    0x9c [] "mod" => { Insn::Alu { op: AluOp::Mod, src: Operand::X } }
    0xa4 [k] "xor" => { Insn::Alu { op: AluOp::Xor, src: Operand::K(k) } }
    0xac [] "xor" => { Insn::Alu { op: AluOp::Xor, src: Operand::X } }
    0x84 [] "neg" => { Insn::Neg }
    0x05 [k] "ja" => { Insn::Goto(k) }
    0x15 [jt jf k] "jeq" => { Insn::Jump { cond: Cond::Eq, src: Operand::K(k), jt, jf } }
    0x1d [jt jf] "jeq" => { Insn::Jump { cond: Cond::Eq, src: Operand::X, jt, jf } }
    0x25 [jt jf k] "jgt" => { Insn::Jump { cond: Cond::Gt, src: Operand::K(k), jt, jf } }
    0x2d [jt jf] "jgt" => { Insn::Jump { cond: Cond::Gt, src: Operand::X, jt, jf } }
    0x35 [jt jf k] "jge" => { Insn::Jump { cond: Cond::Ge, src: Operand::K(k), jt, jf } }
    0x3d [jt jf] "jge" => { Insn::Jump { cond: Cond::Ge, src: Operand::X, jt, jf } }
    0x45 [jt jf k] "jset" => { Insn::Jump { cond: Cond::Set, src: Operand::K(k), jt, jf } }
    0x4d [jt jf] "jset" => { Insn::Jump { cond: Cond::Set, src: Operand::X, jt, jf } }
    0x06 [k] "ret" => { Insn::RetK(k) }
    0x16 [] "ret" => { Insn::RetA }
    0x07 [] "tax" => { Insn::Tax }
    0x87 [] "txa" => { Insn::Txa }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_decodes_and_encodes_to_itself() {
        for &(code, name) in OPCODES {
            let insn = Insn::decode(SockFilter::new(code, 3, 7, 0x1234));
            assert_eq!(insn.mnemonic(), Some(name));
            let raw = insn.encode();
            assert_eq!(raw.code, code);
            assert_eq!(Insn::decode(raw), insn);
        }
    }

    #[test]
    fn opcodes_off_the_table_are_invalid_and_kept() {
        for code in 0..=u16::MAX {
            let raw = SockFilter::new(code, 1, 2, 3);
            let listed = OPCODES.iter().any(|&(row, _)| row == code);
            assert_eq!(matches!(Insn::decode(raw), Insn::Invalid(_)), !listed);
            if !listed {
                assert_eq!(Insn::decode(raw).encode(), raw);
            }
        }
    }
}
