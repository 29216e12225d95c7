//! How x86-64 encodes what an instruction says: prefixes, opcode, ModRM, SIB,
//! displacement and immediate, put together in registers and stored at once.
//! Names and tables are those of the Intel manual, volume 2, chapter 2.

use isa::ebpf::Width;

use super::buffer::Buffer;
use super::reg::{Gpr, Mem};

/// An opcode: a mandatory prefix (0 for none), and its bytes, escapes first.
#[derive(Clone, Copy)]
pub(super) struct Opcode {
    prefix: u8,
    bytes: u32,
    len: u8,
}

pub(super) const fn one(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: byte as u32,
        len: 1,
    }
}

pub(super) const fn two(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x0f | (byte as u32) << 8,
        len: 2,
    }
}

pub(super) const fn three(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x380f | (byte as u32) << 16,
        len: 3,
    }
}

impl Opcode {
    pub(super) const fn prefixed(self, prefix: u8) -> Opcode {
        Opcode { prefix, ..self }
    }
}

/// The operand-size prefix: 16 bits.
pub(super) const HALF: u8 = 0x66;
pub(super) const LOCK: u8 = 0xf0;

pub(super) const fn fits_i8(value: i32) -> bool {
    value as i8 as i32 == value
}

pub(super) const fn wide(width: Width) -> u8 {
    matches!(width, Width::W64) as u8
}

/// What a register adds to an instruction's bits, for opcodes of one byte to three:
/// a bit of the REX prefix, which is the first byte, and three of the ModRM byte,
/// which follows the opcode. Looking both up takes half of what computing them takes.
const fn fields(rex_bit: usize, modrm_bit: usize) -> [[u64; 16]; 3] {
    let mut fields = [[0; 16]; 3];
    let mut at = 0;
    while at < 3 * 16 {
        let (kind, reg) = (at / 16, at % 16);
        let low = (reg as u64 & 7) << (modrm_at(kind) + modrm_bit);
        fields[kind][reg] = (reg as u64 >> 3) << rex_bit | low;
        at += 1;
    }
    fields
}

static REG_FIELDS: [[u64; 16]; 3] = fields(2, 3);
static RM_FIELDS: [[u64; 16]; 3] = fields(0, 0);

/// What a base adds without an index, for a displacement of 0, of one byte and of
/// four: mode, register and a SIB byte, which only `rsp` and `r12` reach; and above
/// them how long ModRM and SIB are, and the displacement.
static BASE_FIELDS: [[[u64; 16]; 3]; 3] = {
    let mut fields = [[[0; 16]; 3]; 3];
    let mut at = 0;
    while at < 3 * 3 * 16 {
        let (kind, reach, base) = (at / 48, at / 16 % 3, at % 16);
        let low = base as u64 & 7;
        let (mode, disp_len) = match reach {
            // A base of rbp or r13 always takes a displacement.
            0 if low != 5 => (0, 0),
            0 | 1 => (0x40, 1),
            _ => (0x80, 4),
        };
        let rest_len = if low == 4 { 2 } else { 1 };
        fields[kind][reach][base] = base as u64 >> 3
            | (mode | low | (NO_INDEX | low) << 8) << modrm_at(kind)
            | rest_len << REST_LEN
            | disp_len << DISP_LEN;
        at += 1;
    }
    fields
};

/// The SIB byte's field for an index, where there is none.
const NO_INDEX: u64 = 4 << 3;
/// Where the fields of a base say how long ModRM and SIB are, and the displacement.
const REST_LEN: u32 = 48;
const DISP_LEN: u32 = 56;

/// A base's fields with an index and the logarithm of its factor.
#[inline(always)]
fn with_index(kind: usize, base: u64, (index, scale): (Gpr, u8)) -> u64 {
    let at = modrm_at(kind);
    let none = (7 | NO_INDEX << 8) << at | 3 << REST_LEN;
    let sib = scale << 6 | (index.number() & 7) << 3;
    let some = (4 | u64::from(sib) << 8) << at | 2 << REST_LEN;
    base & !none | some | u64::from(index.number() >> 3 << 1)
}

/// Where the ModRM byte begins behind an opcode of `kind + 1` bytes.
const fn modrm_at(kind: usize) -> usize {
    8 * (2 + kind)
}

/// The bytes of an instruction, or those before its displacement and immediate.
#[derive(Clone, Copy)]
struct Head {
    bits: u64,
    len: usize,
}

impl Head {
    /// Adds the opcode to the low nibble of a REX prefix and `rest_len` bytes that
    /// stand where they belong if there is such a prefix.
    #[inline(always)]
    fn new(op: Opcode, bits: u64, rest_len: usize, force_rex: bool) -> Head {
        let without = usize::from(bits & 0xf == 0 && !force_rex);
        let all = bits | 0x40 | u64::from(op.bytes) << 8;
        let head = Head {
            bits: all >> (8 * without),
            len: 1 + op.len as usize + rest_len - without,
        };
        match op.prefix {
            0 => head,
            prefix => Head {
                bits: head.bits << 8 | u64::from(prefix),
                len: head.len + 1,
            },
        }
    }

    /// With a ModRM byte of two registers and what follows it: all of an instruction,
    /// in eight bytes.
    #[inline(always)]
    fn of_regs(op: Opcode, w: u8, [reg, rm]: [u8; 2], force: bool, tail: Tail) -> Head {
        let kind = usize::from(op.len - 1);
        let bits = u64::from(w) << 3
            | REG_FIELDS[kind][usize::from(reg & 15)]
            | RM_FIELDS[kind][usize::from(rm & 15)]
            | 0xc0 << modrm_at(kind)
            | tail.bits << (modrm_at(kind) + 8);
        Head::new(op, bits, 1 + tail.len, force)
    }

    /// With ModRM and SIB of an address; and the displacement. Bits above the length of
    /// either say nothing.
    #[inline(always)]
    fn of_mem(op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) -> (Head, Tail) {
        let kind = usize::from(op.len - 1);
        let reach = usize::from(mem.disp != 0) + usize::from(!fits_i8(mem.disp));
        let base = BASE_FIELDS[kind][reach][usize::from(mem.base.number())];
        let fields = match mem.index {
            Some(index) => with_index(kind, base, index),
            None => base,
        };
        let bits = u64::from(w) << 3 | REG_FIELDS[kind][usize::from(reg & 15)] | fields;
        let rest_len = usize::from((fields >> REST_LEN) as u8);
        let disp = Tail {
            bits: u64::from(mem.disp as u32),
            len: (fields >> DISP_LEN) as usize,
        };
        (Head::new(op, bits, rest_len, force_rex), disp)
    }

    /// With a register in the last three bits of the opcode, and what follows it.
    #[inline(always)]
    fn of_opcode(op: Opcode, w: u8, reg: Gpr, tail: Tail) -> Head {
        let rex = u64::from(w << 3 | reg.number() >> 3);
        let bits = rex | tail.bits << (8 + 8 * u32::from(op.len));
        Head::new(op, bits, tail.len, false)
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.bits |= u64::from(byte) << (8 * self.len);
        self.len += 1;
    }
}

/// The displacement or the immediate at an instruction's end.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    bits: u64,
    len: usize,
}

impl Tail {
    pub(super) const NONE: Tail = Tail { bits: 0, len: 0 };

    /// A byte.
    #[inline(always)]
    pub(super) fn byte(value: u8) -> Tail {
        let bits = value.into();
        Tail { bits, len: 1 }
    }

    /// Four bytes.
    #[inline(always)]
    pub(super) fn long(value: i32) -> Tail {
        Tail::low(value, 4)
    }

    /// The low `len` bytes, up to four. The others may stay in `bits`: where they are
    /// stored, the next instruction covers them.
    #[inline(always)]
    pub(super) fn low(value: i32, len: usize) -> Tail {
        let bits = u64::from(value as u32);
        Tail { bits, len }
    }
}

/// The three-byte VEX prefix's field for a mandatory prefix.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum VexPrefix {
    P66 = 1,
    PF3 = 2,
    PF2 = 3,
}

/// What a VEX prefix says of an operation, and its opcode in that map.
#[derive(Clone, Copy)]
pub(super) struct Vex {
    prefix: VexPrefix,
    map: u8,
    byte: u8,
}

impl Vex {
    /// Of the second map, 0F 38.
    pub(super) const fn two(prefix: VexPrefix, byte: u8) -> Vex {
        let map = 2;
        Vex { prefix, map, byte }
    }

    /// Of the third map, 0F 3A.
    pub(super) const fn three(prefix: VexPrefix, byte: u8) -> Vex {
        let map = 3;
        Vex { prefix, map, byte }
    }
}

impl Buffer {
    #[inline(always)]
    pub(super) fn op_regs(&mut self, op: Opcode, w: u8, reg: u8, rm: Gpr, tail: Tail) {
        let all = Head::of_regs(op, w, [reg, rm.number()], false, tail);
        self.put_short(all.bits, all.len);
    }

    /// As `op_regs`, for operands of one byte.
    #[inline(always)]
    pub(super) fn op_byte_regs(
        &mut self,
        op: Opcode,
        w: u8,
        reg: u8,
        rm: Gpr,
        force: bool,
        tail: Tail,
    ) {
        let all = Head::of_regs(op, w, [reg, rm.number()], force, tail);
        self.put_short(all.bits, all.len);
    }

    #[inline(always)]
    pub(super) fn op_opcode(&mut self, op: Opcode, w: u8, reg: Gpr, tail: Tail) {
        let all = Head::of_opcode(op, w, reg, tail);
        self.put_short(all.bits, all.len);
    }

    #[inline(always)]
    pub(super) fn op_opcode_imm64(&mut self, op: Opcode, reg: Gpr, imm: u64) {
        let head = Head::of_opcode(op, 1, reg, Tail::NONE);
        self.put(head.bits, head.len, imm, 8);
    }

    /// With an address relative to the instruction's end, that distance being still to
    /// be put there.
    pub(super) fn op_from_here(&mut self, op: Opcode, w: u8, reg: u8) {
        let kind = usize::from(op.len - 1);
        // Without a displacement, that base stands for the instruction pointer.
        let from_here = 5 << modrm_at(kind);
        let bits = u64::from(w) << 3 | REG_FIELDS[kind][usize::from(reg & 15)] | from_here;
        let head = Head::new(op, bits, 1, false);
        self.put_short(head.bits, head.len);
    }

    #[inline(always)]
    pub(super) fn op_mem(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) {
        let (head, disp) = Head::of_mem(op, w, reg, mem, force_rex);
        self.put(head.bits, head.len, disp.bits, disp.len);
    }

    #[inline(always)]
    pub(super) fn op_mem_imm(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, imm: Tail) {
        let (head, disp) = Head::of_mem(op, w, reg, mem, false);
        let above = u64::MAX << (8 * disp.len);
        let tail = disp.bits & !above | imm.bits << (8 * disp.len);
        self.put(head.bits, head.len, tail, disp.len + imm.len);
    }

    /// An operation on `[reg, v, rm]`, as the encoding calls them.
    pub(super) fn vex(&mut self, op: Vex, width: Width, regs: [Gpr; 3]) {
        self.vex_imm(op, width, regs, Tail::NONE);
    }

    pub(super) fn vex_imm(&mut self, op: Vex, width: Width, regs: [Gpr; 3], imm: Tail) {
        let [reg, v, rm] = regs;
        let mut head = Head { bits: 0, len: 0 };
        head.push(0xc4);
        head.push((!reg.number() & 8) << 4 | 0x40 | (!rm.number() & 8) << 2 | op.map);
        head.push(wide(width) << 7 | (!v.number() & 15) << 3 | op.prefix as u8);
        head.push(op.byte);
        head.push(0xc0 | (reg.number() & 7) << 3 | rm.number() & 7);
        self.put(head.bits, head.len, imm.bits, imm.len);
    }
}
