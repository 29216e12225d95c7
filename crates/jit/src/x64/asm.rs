//! The instructions of x86-64 that the compiler uses, one method each.
//!
//! A method chooses the shortest encoding of what it names: short immediates and
//! displacements, no REX prefix where none is needed, the accumulator's forms.
//! `W64` is the whole register, `W32` its low half; writing that zeroes the other.
//! Numbers in comments are opcodes of the Intel manual, volume 2.

use isa::ebpf::{Size, Width};

use super::buffer::{Buffer, Label};
use super::reg::{Cc, Gpr, Mem};

/// An opcode: a mandatory prefix (0 for none), and its bytes, escapes first.
#[derive(Clone, Copy)]
struct Opcode {
    prefix: u8,
    bytes: u32,
    len: u8,
}

const fn one(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: byte as u32,
        len: 1,
    }
}

const fn two(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x0f | (byte as u32) << 8,
        len: 2,
    }
}

const fn three(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        bytes: 0x380f | (byte as u32) << 16,
        len: 3,
    }
}

impl Opcode {
    const fn prefixed(self, prefix: u8) -> Opcode {
        Opcode { prefix, ..self }
    }
}

/// The operand-size prefix: 16 bits.
const HALF: u8 = 0x66;
const LOCK: u8 = 0xf0;

/// The eight operations that share their encodings, in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(crate) enum Alu {
    Add = 0,
    Or = 1,
    Adc = 2,
    Sbb = 3,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shifts and rotations by their number in the ModRM byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(crate) enum Shift {
    Rol = 0,
    Shl = 4,
    Shr = 5,
    Sar = 7,
}

/// One-operand operations of opcode F7 by their number in the ModRM byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(crate) enum Unary {
    Not = 2,
    Neg = 3,
    Mul = 4,
    Imul = 5,
    Div = 6,
    Idiv = 7,
}

const fn fits_i8(value: i32) -> bool {
    value as i8 as i32 == value
}

const fn wide(width: Width) -> u8 {
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
struct Tail {
    bits: u64,
    len: usize,
}

impl Tail {
    const NONE: Tail = Tail { bits: 0, len: 0 };

    /// A byte.
    #[inline(always)]
    fn byte(value: u8) -> Tail {
        let bits = value.into();
        Tail { bits, len: 1 }
    }

    /// Four bytes.
    #[inline(always)]
    fn long(value: i32) -> Tail {
        let bits = u64::from(value as u32);
        Tail { bits, len: 4 }
    }
}

/// The three-byte VEX prefix's field for a mandatory prefix.
#[derive(Clone, Copy)]
#[repr(u8)]
enum VexPrefix {
    None = 0,
    P66 = 1,
    PF3 = 2,
    PF2 = 3,
}

/// What a VEX prefix says of an operation, and its opcode in that map.
#[derive(Clone, Copy)]
struct Vex {
    prefix: VexPrefix,
    map: u8,
    byte: u8,
}

impl Vex {
    /// Of the second map, 0F 38.
    const fn two(prefix: VexPrefix, byte: u8) -> Vex {
        let map = 2;
        Vex { prefix, map, byte }
    }
}

impl Buffer {
    #[inline(always)]
    fn op_regs(&mut self, op: Opcode, w: u8, reg: u8, rm: Gpr, tail: Tail) {
        let all = Head::of_regs(op, w, [reg, rm.number()], false, tail);
        self.put_short(all.bits, all.len);
    }

    /// As `op_regs`, for operands of one byte.
    #[inline(always)]
    fn op_byte_regs(&mut self, op: Opcode, w: u8, reg: u8, rm: Gpr, force: bool, tail: Tail) {
        let all = Head::of_regs(op, w, [reg, rm.number()], force, tail);
        self.put_short(all.bits, all.len);
    }

    #[inline(always)]
    fn op_opcode(&mut self, op: Opcode, w: u8, reg: Gpr, tail: Tail) {
        let all = Head::of_opcode(op, w, reg, tail);
        self.put_short(all.bits, all.len);
    }

    #[inline(always)]
    fn op_mem(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) {
        let (head, disp) = Head::of_mem(op, w, reg, mem, force_rex);
        self.put(head.bits, head.len, disp.bits, disp.len);
    }

    #[inline(always)]
    fn op_mem_imm(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, imm: Tail) {
        let (head, disp) = Head::of_mem(op, w, reg, mem, false);
        let above = u64::MAX << (8 * disp.len);
        let tail = disp.bits & !above | imm.bits << (8 * disp.len);
        self.put(head.bits, head.len, tail, disp.len + imm.len);
    }

    // Arithmetic and comparison

    /// `op dst, src`
    #[inline(always)]
    pub(crate) fn alu(&mut self, op: Alu, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(
            one((op as u8) << 3 | 1),
            wide(width),
            src.number(),
            dst,
            Tail::NONE,
        );
    }

    /// `op dst, imm`
    #[inline(always)]
    pub(crate) fn alu_imm(&mut self, op: Alu, width: Width, dst: Gpr, imm: i32) {
        // The accumulator has a form of its own, unless a byte is enough.
        if dst == Gpr::RAX && !fits_i8(imm) {
            let op = one((op as u8) << 3 | 5);
            return self.op_opcode(op, wide(width), dst, Tail::long(imm));
        }
        match i8::try_from(imm) {
            Ok(byte) => self.op_regs(
                one(0x83),
                wide(width),
                op as u8,
                dst,
                Tail::byte(byte as u8),
            ),
            Err(_) => self.op_regs(one(0x81), wide(width), op as u8, dst, Tail::long(imm)),
        }
    }

    /// `op dst, [mem]`
    pub(crate) fn alu_load(&mut self, op: Alu, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(
            one((op as u8) << 3 | 3),
            wide(width),
            dst.number(),
            mem,
            false,
        );
    }

    /// `op size [mem], src`
    pub(crate) fn alu_store(&mut self, op: Alu, size: Size, mem: Mem, src: Gpr) {
        let (opcode, w, force) = sized(op as u8 * 8, size, src);
        self.op_mem(opcode, w, src.number(), mem, force);
    }

    /// `op size [mem], imm`; of the immediate, what the size holds.
    pub(crate) fn alu_store_imm(&mut self, op: Alu, size: Size, mem: Mem, imm: i32) {
        let imm = if size == Size::H {
            i32::from(imm as i16)
        } else {
            imm
        };
        let short = fits_i8(imm) && size != Size::B;
        let (opcode, w, _) = sized(if short { 0x82 } else { 0x80 }, size, Gpr::RAX);
        let len = if short { 1 } else { imm_len(size) };
        let tail = Tail {
            len,
            ..Tail::long(imm)
        };
        self.op_mem_imm(opcode, w, op as u8, mem, tail);
    }

    /// `lock op size [mem], src`
    pub(crate) fn lock_alu(&mut self, op: Alu, width: Width, mem: Mem, src: Gpr) {
        let opcode = one((op as u8) << 3 | 1).prefixed(LOCK);
        self.op_mem(opcode, wide(width), src.number(), mem, false);
    }

    /// `test a, b`
    pub(crate) fn test(&mut self, width: Width, a: Gpr, b: Gpr) {
        self.op_regs(one(0x85), wide(width), b.number(), a, Tail::NONE);
    }

    /// `test reg, imm`, for its zero flag: no sign flag is promised.
    pub(crate) fn test_imm(&mut self, width: Width, reg: Gpr, imm: i32) {
        // A positive immediate says nothing of what lies above it.
        let width = if imm >= 0 { Width::W32 } else { width };
        let byte = u8::try_from(imm).map(Tail::byte);
        let long = Tail::long(imm);
        match (byte, reg) {
            (Ok(byte), Gpr::RAX) => self.op_opcode(one(0xa8), 0, reg, byte),
            (Ok(byte), _) => self.op_byte_regs(one(0xf6), 0, 0, reg, reg.byte_needs_rex(), byte),
            (Err(_), Gpr::RAX) => self.op_opcode(one(0xa9), wide(width), reg, long),
            (Err(_), _) => self.op_regs(one(0xf7), wide(width), 0, reg, long),
        }
    }

    /// `test byte [mem], imm`
    pub(crate) fn test_byte(&mut self, mem: Mem, imm: u8) {
        self.op_mem_imm(one(0xf6), 0, 0, mem, Tail::byte(imm));
    }

    /// `bt reg, bit`: the carry flag becomes that bit.
    pub(crate) fn test_bit(&mut self, width: Width, reg: Gpr, bit: u8) {
        self.op_regs(two(0xba), wide(width), 4, reg, Tail::byte(bit));
    }

    /// `op reg` of opcode F7; multiplication and division take `rdx:rax`.
    pub(crate) fn unary(&mut self, op: Unary, width: Width, reg: Gpr) {
        self.op_regs(one(0xf7), wide(width), op as u8, reg, Tail::NONE);
    }

    /// `inc reg`
    pub(crate) fn increment(&mut self, width: Width, reg: Gpr) {
        self.op_regs(one(0xff), wide(width), 0, reg, Tail::NONE);
    }

    /// `dec reg`
    pub(crate) fn decrement(&mut self, width: Width, reg: Gpr) {
        self.op_regs(one(0xff), wide(width), 1, reg, Tail::NONE);
    }

    /// `imul dst, src`
    pub(crate) fn multiply(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xaf), wide(width), dst.number(), src, Tail::NONE);
    }

    /// `imul dst, [mem]`
    pub(crate) fn multiply_load(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(two(0xaf), wide(width), dst.number(), mem, false);
    }

    /// `imul dst, src, imm`
    pub(crate) fn multiply_imm(&mut self, width: Width, dst: Gpr, src: Gpr, imm: i32) {
        match i8::try_from(imm) {
            Ok(byte) => self.op_regs(
                one(0x6b),
                wide(width),
                dst.number(),
                src,
                Tail::byte(byte as u8),
            ),
            Err(_) => self.op_regs(one(0x69), wide(width), dst.number(), src, Tail::long(imm)),
        }
    }

    /// `cdq` or `cqo`: the sign of `rax` into all of `rdx`.
    pub(crate) fn sign_into_rdx(&mut self, width: Width) {
        self.op_opcode(one(0x99), wide(width), Gpr::RAX, Tail::NONE);
    }

    /// `lea dst, [mem]`
    pub(crate) fn lea(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(one(0x8d), wide(width), dst.number(), mem, false);
    }

    /// `lea dst, [label]`
    pub(crate) fn lea_label(&mut self, dst: Gpr, label: Label) {
        // Without a displacement, that base stands for the instruction pointer.
        let from_here = 5 << modrm_at(0);
        let bits = REG_FIELDS[0][usize::from(dst.number())] | from_here;
        let head = Head::new(one(0x8d), 8 | bits, 1, false);
        self.put_short(head.bits, head.len);
        self.distance(label);
    }

    // Moves

    /// `mov dst, src`
    #[inline(always)]
    pub(crate) fn mov(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(one(0x89), wide(width), src.number(), dst, Tail::NONE);
    }

    /// Sets the whole register; destroys flags if `value` is 0.
    #[inline(always)]
    pub(crate) fn set(&mut self, dst: Gpr, value: u64) {
        if value == 0 {
            self.alu(Alu::Xor, Width::W32, dst, dst);
        } else {
            self.set_keeping_flags(dst, value);
        }
    }

    /// Sets the whole register.
    #[inline(always)]
    pub(crate) fn set_keeping_flags(&mut self, dst: Gpr, value: u64) {
        let op = one(0xb8 | dst.number() & 7);
        let low = Tail::long(value as i32);
        if u32::try_from(value).is_ok() {
            self.op_opcode(op, 0, dst, low);
        } else if value as i32 as u64 == value {
            self.op_regs(one(0xc7), 1, 0, dst, low);
        } else {
            let head = Head::of_opcode(op, 1, dst, Tail::NONE);
            self.put(head.bits, head.len, value, 8);
        }
    }

    /// A load of the given size into the whole register; `signed` extends the
    /// sign to `width`.
    #[inline(always)]
    pub(crate) fn load(&mut self, size: Size, signed: Option<Width>, dst: Gpr, mem: Mem) {
        // Opcodes of one byte and of two are written apart: that length is then known.
        match size {
            Size::B | Size::H => {
                let (op, w) = extension(size, signed);
                self.op_mem(two(op), w, dst.number(), mem, false);
            }
            Size::W if signed == Some(Width::W64) => {
                self.op_mem(one(0x63), 1, dst.number(), mem, false);
            }
            Size::W | Size::DW => {
                let w = u8::from(size == Size::DW);
                self.op_mem(one(0x8b), w, dst.number(), mem, false);
            }
        }
    }

    /// As [`Buffer::load`], from a register.
    #[inline(always)]
    pub(crate) fn extend(&mut self, size: Size, signed: Option<Width>, dst: Gpr, src: Gpr) {
        match size {
            Size::B | Size::H => {
                let (op, w) = extension(size, signed);
                let force = size == Size::B && src.byte_needs_rex();
                self.op_byte_regs(two(op), w, dst.number(), src, force, Tail::NONE);
            }
            Size::W if signed == Some(Width::W64) => {
                self.op_regs(one(0x63), 1, dst.number(), src, Tail::NONE);
            }
            Size::W => self.mov(Width::W32, dst, src),
            Size::DW => self.mov(Width::W64, dst, src),
        }
    }

    /// `mov size [mem], src`
    #[inline(always)]
    pub(crate) fn store(&mut self, size: Size, mem: Mem, src: Gpr) {
        // Apart, so that prefix and length of the opcode are known.
        match size {
            Size::B => self.op_mem(one(0x88), 0, src.number(), mem, src.byte_needs_rex()),
            Size::H => self.op_mem(one(0x89).prefixed(HALF), 0, src.number(), mem, false),
            Size::W | Size::DW => {
                let w = u8::from(size == Size::DW);
                self.op_mem(one(0x89), w, src.number(), mem, false);
            }
        }
    }

    /// `mov size [mem], imm`; a doubleword's immediate is sign-extended.
    pub(crate) fn store_imm(&mut self, size: Size, mem: Mem, imm: i32) {
        let (op, w, _) = sized(0xc6, size, Gpr::RAX);
        let len = imm_len(size);
        let tail = Tail {
            len,
            ..Tail::long(imm)
        };
        self.op_mem_imm(op, w, 0, mem, tail);
    }

    /// `cmovcc dst, src`
    pub(crate) fn mov_if(&mut self, cc: Cc, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(
            two(0x40 | cc as u8),
            wide(width),
            dst.number(),
            src,
            Tail::NONE,
        );
    }

    /// `setcc dst`: the low byte becomes 1 or 0, the others stay.
    pub(crate) fn set_if(&mut self, cc: Cc, dst: Gpr) {
        let op = two(0x90 | cc as u8);
        self.op_byte_regs(op, 0, 0, dst, dst.byte_needs_rex(), Tail::NONE);
    }

    // Shifts and bits

    /// `shift dst, count`; a count of 0 is not to be written.
    #[inline(always)]
    pub(crate) fn shift(&mut self, op: Shift, width: Width, dst: Gpr, count: u8) {
        // What is not part of an instruction, the next one covers.
        let (opcode, len) = if count == 1 { (0xd1, 0) } else { (0xc1, 1) };
        let tail = Tail {
            len,
            ..Tail::byte(count)
        };
        self.op_regs(one(opcode), wide(width), op as u8, dst, tail);
    }

    /// `rol dst16, 8`: swaps the low two bytes and leaves the others.
    pub(crate) fn swap_low_bytes(&mut self, dst: Gpr) {
        self.op_regs(
            one(0xc1).prefixed(HALF),
            0,
            Shift::Rol as u8,
            dst,
            Tail::byte(8),
        );
    }

    /// `shift dst, cl`
    pub(crate) fn shift_by_cl(&mut self, op: Shift, width: Width, dst: Gpr) {
        self.op_regs(one(0xd3), wide(width), op as u8, dst, Tail::NONE);
    }

    /// `bswap dst`
    pub(crate) fn byte_swap(&mut self, width: Width, dst: Gpr) {
        self.op_opcode(two(0xc8 | dst.number() & 7), wide(width), dst, Tail::NONE);
    }

    /// `movbe dst, [mem]` (MOVBE), four or eight bytes.
    pub(crate) fn load_swapped(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(three(0xf0), wide(width), dst.number(), mem, false);
    }

    /// `movbe [mem], src` (MOVBE), four or eight bytes.
    pub(crate) fn store_swapped(&mut self, width: Width, mem: Mem, src: Gpr) {
        self.op_mem(three(0xf1), wide(width), src.number(), mem, false);
    }

    /// `popcnt dst, src` (POPCNT)
    pub(crate) fn count_ones(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xb8).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.number(), src, Tail::NONE);
    }

    /// `tzcnt dst, src` (BMI1; without it, `bsf`, which leaves `dst` as it was
    /// where `src` is 0).
    pub(crate) fn count_trailing_zeros(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xbc).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.number(), src, Tail::NONE);
    }

    /// `lzcnt dst, src` (LZCNT; without it, `bsr`, which finds another number)
    pub(crate) fn count_leading_zeros(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xbd).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.number(), src, Tail::NONE);
    }

    /// An operation on `[reg, v, rm]`, as the encoding calls them.
    fn vex(&mut self, op: Vex, width: Width, regs: [Gpr; 3]) {
        self.vex_imm(op, width, regs, Tail::NONE);
    }

    fn vex_imm(&mut self, op: Vex, width: Width, regs: [Gpr; 3], imm: Tail) {
        let [reg, v, rm] = regs;
        let mut head = Head { bits: 0, len: 0 };
        head.push(0xc4);
        head.push((!reg.number() & 8) << 4 | 0x40 | (!rm.number() & 8) << 2 | op.map);
        head.push(wide(width) << 7 | (!v.number() & 15) << 3 | op.prefix as u8);
        head.push(op.byte);
        head.push(0xc0 | (reg.number() & 7) << 3 | rm.number() & 7);
        self.put(head.bits, head.len, imm.bits, imm.len);
    }

    /// `shlx`, `shrx` or `sarx dst, src, count` (BMI2)
    pub(crate) fn shift_by(&mut self, op: Shift, width: Width, dst: Gpr, src: Gpr, count: Gpr) {
        let prefix = match op {
            Shift::Shr => VexPrefix::PF2,
            Shift::Sar => VexPrefix::PF3,
            _ => VexPrefix::P66,
        };
        self.vex(Vex::two(prefix, 0xf7), width, [dst, count, src]);
    }

    /// `rorx dst, src, count` (BMI2)
    pub(crate) fn rotate_right(&mut self, width: Width, dst: Gpr, src: Gpr, count: u8) {
        let op = Vex {
            prefix: VexPrefix::PF2,
            map: 3,
            byte: 0xf0,
        };
        self.vex_imm(op, width, [dst, Gpr::RAX, src], Tail::byte(count));
    }

    /// `mulx dst, dst, src` (BMI2): the upper half of `rdx * src`
    pub(crate) fn multiply_high(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = Vex::two(VexPrefix::PF2, 0xf6);
        self.vex(op, width, [dst, dst, src]);
    }

    /// `andn dst, not, src`: `dst = !not & src` (BMI1)
    pub(crate) fn and_not(&mut self, width: Width, dst: Gpr, not: Gpr, src: Gpr) {
        let op = Vex::two(VexPrefix::None, 0xf2);
        self.vex(op, width, [dst, not, src]);
    }

    // Atomics

    /// `xchg [mem], reg` (locked by itself)
    pub(crate) fn exchange_memory(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.op_mem(one(0x87), wide(width), reg.number(), mem, false);
    }

    /// `lock xadd [mem], reg`
    pub(crate) fn lock_exchange_add(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.op_mem(
            two(0xc1).prefixed(LOCK),
            wide(width),
            reg.number(),
            mem,
            false,
        );
    }

    /// `lock cmpxchg [mem], reg`; compares with `rax`, which gets the old value
    /// if it differs.
    pub(crate) fn lock_compare_exchange(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.op_mem(
            two(0xb1).prefixed(LOCK),
            wide(width),
            reg.number(),
            mem,
            false,
        );
    }

    // Control

    pub(crate) fn push(&mut self, reg: Gpr) {
        self.op_opcode(one(0x50 | reg.number() & 7), 0, reg, Tail::NONE);
    }

    pub(crate) fn pop(&mut self, reg: Gpr) {
        self.op_opcode(one(0x58 | reg.number() & 7), 0, reg, Tail::NONE);
    }

    /// `leave`: frees the frame that `rbp` stands for.
    pub(crate) fn leave(&mut self) {
        self.put_short(0xc9, 1);
    }

    pub(crate) fn ret(&mut self) {
        self.put_short(0xc3, 1);
    }

    /// `call [label]`: the address of the callee lies at the label.
    pub(crate) fn call_through(&mut self, label: Label) {
        self.put_short(0x15ff, 2);
        self.distance(label);
    }

    /// Up to eight bytes of data.
    pub(crate) fn data(&mut self, value: u64, len: usize) {
        self.put_short(value, len);
    }

    /// `jmp gpr`
    pub(crate) fn jump_to(&mut self, gpr: Gpr) {
        self.op_regs(one(0xff), 0, 4, gpr, Tail::NONE);
    }
}

/// The second byte of the opcode that extends one or two bytes, and REX.W.
#[inline(always)]
fn extension(size: Size, signed: Option<Width>) -> (u8, u8) {
    let op = 0xb6 | u8::from(size == Size::H);
    match signed {
        None => (op, 0),
        Some(width) => (op | 8, wide(width)),
    }
}

/// The opcode of an operation with the operand's size in its lowest bit.
#[inline(always)]
fn sized(byte_op: u8, size: Size, reg: Gpr) -> (Opcode, u8, bool) {
    match size {
        Size::B => (one(byte_op), 0, reg.byte_needs_rex()),
        Size::H => (one(byte_op | 1).prefixed(HALF), 0, false),
        Size::W => (one(byte_op | 1), 0, false),
        Size::DW => (one(byte_op | 1), 1, false),
    }
}

/// Bytes of an immediate operand of that size.
const fn imm_len(size: Size) -> usize {
    match size {
        Size::B => 1,
        Size::H => 2,
        Size::W | Size::DW => 4,
    }
}

#[cfg(test)]
mod tests;
