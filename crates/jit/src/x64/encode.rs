//! Encoding of x86-64 instructions: prefixes, opcode, ModRM, SIB, displacement, immediate.
//! Names are those of the Intel manual, volume 2, chapter 2.

use isa::ebpf::Width;

use super::buffer::Buffer;
use super::reg::{Gpr, Mem};

/// An opcode: a mandatory prefix (0 for none), and its bytes, escapes first.
#[derive(Clone, Copy)]
pub(super) struct Opcode {
    prefix: u8,
    bytes: u32,
    len: u32,
}

/// A one-byte opcode.
pub(super) const fn one(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: byte as u32,
        len: 1,
    }
}

/// A two-byte opcode of the map 0F.
pub(super) const fn two(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x0f | (byte as u32) << 8,
        len: 2,
    }
}

/// A three-byte opcode of the map 0F 38.
pub(super) const fn three(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x380f | (byte as u32) << 16,
        len: 3,
    }
}

impl Opcode {
    /// The opcode with a mandatory prefix.
    pub(super) const fn prefixed(self, prefix: u8) -> Opcode {
        Opcode { prefix, ..self }
    }
}

/// The operand-size prefix: 16 bits.
pub(super) const HALF: u8 = 0x66;
/// The prefix that makes bit scans counts of zeros.
pub(super) const REP: u8 = 0xf3;
/// The lock prefix.
pub(super) const LOCK: u8 = 0xf0;

/// True if an immediate or displacement fits a signed byte.
pub(super) const fn fits_i8(value: i32) -> bool {
    value as i8 as i32 == value
}

/// REX.W for a width.
pub(super) const fn wide(width: Width) -> u8 {
    matches!(width, Width::W64) as u8
}

/// The immediate at the end of an instruction.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    bits: u32,
    len: u32,
}

impl Tail {
    /// No immediate.
    pub(super) const NONE: Tail = Tail { bits: 0, len: 0 };

    /// One byte.
    pub(super) fn byte(value: u8) -> Tail {
        Tail {
            bits: value.into(),
            len: 1,
        }
    }

    /// Four bytes.
    pub(super) fn long(value: i32) -> Tail {
        Tail {
            bits: value as u32,
            len: 4,
        }
    }

    /// The low `len` bytes, 0 to 4.
    pub(super) fn low(value: i32, len: usize) -> Tail {
        let bits = match len {
            0 => 0,
            1 => u32::from(value as u8),
            2 => u32::from(value as u16),
            _ => value as u32,
        };
        Tail {
            bits,
            len: len as u32,
        }
    }
}

/// The bytes of an instruction, of which there are at most 15, as a little-endian number.
struct Encoding {
    bits: u128,
    len: u32,
}

impl Encoding {
    const EMPTY: Encoding = Encoding { bits: 0, len: 0 };

    /// Prefix, REX prefix (if a field of it is set, or it is forced) and opcode. `reg`,
    /// `index` and `base` are register numbers whose high bits are REX.R, X and B.
    fn new(op: Opcode, w: u8, [reg, index, base]: [u8; 3], force_rex: bool) -> Encoding {
        let mut encoding = Encoding::EMPTY;
        if op.prefix != 0 {
            encoding.push(op.prefix.into(), 1);
        }
        let rex = w << 3 | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | base >> 3 & 1;
        if rex != 0 || force_rex {
            encoding.push((0x40 | rex).into(), 1);
        }
        encoding.push(op.bytes.into(), op.len);
        encoding
    }

    /// An instruction on two registers, up to its immediate.
    fn of_regs(op: Opcode, w: u8, reg: u8, rm: Gpr, force_rex: bool) -> Encoding {
        let rm = rm.number();
        let mut encoding = Encoding::new(op, w, [reg, 0, rm], force_rex);
        encoding.push(modrm(0b11, reg, rm).into(), 1);
        encoding
    }

    /// An instruction on a register and memory, up to its immediate.
    fn of_mem(op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) -> Encoding {
        /// The SIB index that means "no index", and the r/m that means "SIB follows".
        const NONE: u8 = 4;
        let base = mem.base.number();
        let index = mem.index.map_or(0, |(index, _)| index.number());
        let mut encoding = Encoding::new(op, w, [reg, index, base], force_rex);
        // A base of rbp or r13 always takes a displacement.
        let mode = match mem.disp {
            0 if base & 7 != 5 => 0b00,
            disp if fits_i8(disp) => 0b01,
            _ => 0b10,
        };
        // A base of rsp or r12 always takes a SIB byte.
        let rm = match mem.index {
            None if base & 7 != NONE => base,
            _ => NONE,
        };
        encoding.push(modrm(mode, reg, rm).into(), 1);
        if rm == NONE {
            let (index, scale) = mem
                .index
                .map_or((NONE, 0), |(gpr, scale)| (gpr.number(), scale));
            encoding.push(modrm(scale, index, base).into(), 1);
        }
        match mode {
            0b00 => {}
            0b01 => encoding.push(u64::from(mem.disp as u8), 1),
            _ => encoding.push(u64::from(mem.disp as u32), 4),
        }
        encoding
    }

    /// Appends `len` bytes, up to 8; the higher bytes of `bits` are zero.
    fn push(&mut self, bits: u64, len: u32) {
        self.bits |= u128::from(bits) << (8 * self.len);
        self.len += len;
    }
}

/// A ModRM byte; a SIB byte has the same layout: scale, index, base.
const fn modrm(mode: u8, reg: u8, rm: u8) -> u8 {
    mode << 6 | (reg & 7) << 3 | rm & 7
}

/// The field of a VEX prefix for a mandatory prefix.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum VexPrefix {
    None = 0,
    P66 = 1,
    PF3 = 2,
    PF2 = 3,
}

/// Mandatory prefix, opcode map and opcode of a VEX instruction.
#[derive(Clone, Copy)]
pub(super) struct Vex {
    prefix: VexPrefix,
    map: u8,
    byte: u8,
}

impl Vex {
    /// An opcode of the second map, 0F 38.
    pub(super) const fn two(prefix: VexPrefix, byte: u8) -> Vex {
        let map = 2;
        Vex { prefix, map, byte }
    }

    /// An opcode of the third map, 0F 3A.
    pub(super) const fn three(prefix: VexPrefix, byte: u8) -> Vex {
        let map = 3;
        Vex { prefix, map, byte }
    }
}

impl Buffer {
    fn put_encoding(&mut self, mut encoding: Encoding, tail: Tail) {
        encoding.push(tail.bits.into(), tail.len);
        self.put_number(encoding.bits, encoding.len as usize);
    }

    /// An operation on two registers; `reg` may be an opcode extension.
    pub(super) fn op_regs(&mut self, op: Opcode, w: u8, reg: u8, rm: Gpr, tail: Tail) {
        self.put_encoding(Encoding::of_regs(op, w, reg, rm, false), tail);
    }

    /// An operation on two registers of one byte, which may need a REX prefix.
    pub(super) fn op_byte_regs(
        &mut self,
        op: Opcode,
        w: u8,
        reg: u8,
        rm: Gpr,
        force_rex: bool,
        tail: Tail,
    ) {
        self.put_encoding(Encoding::of_regs(op, w, reg, rm, force_rex), tail);
    }

    /// An operation with a register in the last three bits of the opcode.
    pub(super) fn op_opcode(&mut self, op: Opcode, w: u8, reg: Gpr, tail: Tail) {
        self.put_encoding(Encoding::new(op, w, [0, 0, reg.number()], false), tail);
    }

    /// As [`Buffer::op_opcode`] on 64 bits, with an immediate of eight bytes.
    pub(super) fn op_opcode_imm64(&mut self, op: Opcode, reg: Gpr, imm: u64) {
        let mut encoding = Encoding::new(op, 1, [0, 0, reg.number()], false);
        encoding.push(imm, 8);
        self.put_number(encoding.bits, encoding.len as usize);
    }

    /// An operation on a register and a RIP-relative address, up to its displacement.
    pub(super) fn op_rip_relative(&mut self, op: Opcode, w: u8, reg: u8) {
        /// With mode 0, this base is the instruction pointer.
        const RIP: u8 = 5;
        let mut encoding = Encoding::new(op, w, [reg, 0, 0], false);
        encoding.push(modrm(0b00, reg, RIP).into(), 1);
        self.put_encoding(encoding, Tail::NONE);
    }

    /// An operation on a register and memory.
    pub(super) fn op_mem(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) {
        self.put_encoding(Encoding::of_mem(op, w, reg, mem, force_rex), Tail::NONE);
    }

    /// An operation on memory and an immediate; `reg` is an opcode extension.
    pub(super) fn op_mem_imm(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, imm: Tail) {
        self.put_encoding(Encoding::of_mem(op, w, reg, mem, false), imm);
    }

    /// A VEX operation on `[reg, vvvv, rm]`.
    pub(super) fn vex(&mut self, op: Vex, width: Width, regs: [Gpr; 3]) {
        self.vex_imm(op, width, regs, Tail::NONE);
    }

    /// As [`Buffer::vex`], with an immediate.
    pub(super) fn vex_imm(&mut self, op: Vex, width: Width, regs: [Gpr; 3], imm: Tail) {
        let [reg, v, rm] = regs.map(Gpr::number);
        let mut encoding = Encoding::EMPTY;
        let bytes = [
            0xc4,
            (!reg & 8) << 4 | 0x40 | (!rm & 8) << 2 | op.map,
            wide(width) << 7 | (!v & 15) << 3 | op.prefix as u8,
            op.byte,
        ];
        encoding.push(u32::from_le_bytes(bytes).into(), 4);
        encoding.push(modrm(0b11, reg, rm).into(), 1);
        self.put_encoding(encoding, imm);
    }
}
