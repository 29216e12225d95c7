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

/// The bytes of an instruction before its displacement and immediate.
#[derive(Clone, Copy)]
struct Head {
    bits: u64,
    len: usize,
}

impl Head {
    /// Prefixes, opcode and what follows it; `rex` is the low nibble of that
    /// prefix.
    #[inline(always)]
    fn new(op: Opcode, rex: u8, force_rex: bool, rest: u64, rest_len: usize) -> Head {
        let op_len = op.len as usize;
        let all = u64::from(0x40 | rex) | u64::from(op.bytes) << 8 | rest << (8 + 8 * op_len);
        // Everything has its place behind a REX prefix, which then goes.
        let without = usize::from(rex == 0 && !force_rex);
        let head = Head {
            bits: all >> (8 * without),
            len: 1 + op_len + rest_len - without,
        };
        match op.prefix {
            0 => head,
            prefix => Head {
                bits: head.bits << 8 | u64::from(prefix),
                len: head.len + 1,
            },
        }
    }

    /// With a ModRM byte of two registers.
    #[inline(always)]
    fn of_regs(op: Opcode, w: u8, reg: u8, rm: Gpr, force_rex: bool) -> Head {
        let modrm = 0xc0 | (reg & 7) << 3 | rm.0 & 7;
        Head::new(op, rex_regs(w, reg, rm), force_rex, modrm.into(), 1)
    }

    /// With ModRM and SIB of an address; and the displacement and its length.
    #[inline(always)]
    fn of_mem(op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) -> (Head, u64, usize) {
        // A base of rbp or r13 always takes a displacement.
        let (mode, disp_len) = if mem.disp == 0 && mem.base.0 & 7 != 5 {
            (0, 0)
        } else if fits_i8(mem.disp) {
            (0x40, 1)
        } else {
            (0x80, 4)
        };
        let modrm = mode | (reg & 7) << 3;
        let base = mem.base.0 & 7;
        let (rest, rest_len) = match mem.index {
            Some((index, scale)) => {
                let sib = scale << 6 | (index.0 & 7) << 3 | base;
                (u64::from(modrm | 4) | u64::from(sib) << 8, 2)
            }
            // rsp and r12 need the longer form.
            None if base == 4 => (u64::from(modrm | 4) | 0x2400, 2),
            None => (u64::from(modrm | base), 1),
        };
        let head = Head::new(op, rex_mem(w, reg, mem), force_rex, rest, rest_len);
        let disp = u64::from(mem.disp as u32) & (u64::MAX >> (64 - 8 * disp_len.max(1)));
        (head, disp, disp_len)
    }

    /// With a register in the last three bits of the opcode.
    #[inline(always)]
    fn of_opcode(op: Opcode, w: u8, reg: Gpr) -> Head {
        Head::new(op, w << 3 | reg.0 >> 3, false, 0, 0)
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.bits |= u64::from(byte) << (8 * self.len);
        self.len += 1;
    }
}

const fn rex_regs(w: u8, reg: u8, rm: Gpr) -> u8 {
    w << 3 | reg >> 3 << 2 | rm.0 >> 3
}

const fn rex_mem(w: u8, reg: u8, mem: Mem) -> u8 {
    let index = match mem.index {
        Some((index, _)) => index.0 >> 3,
        None => 0,
    };
    w << 3 | reg >> 3 << 2 | index << 1 | mem.base.0 >> 3
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
    fn op_regs(&mut self, op: Opcode, w: u8, reg: u8, rm: Gpr, tail: u64, tail_len: usize) {
        let head = Head::of_regs(op, w, reg, rm, false);
        self.put(head.bits, head.len, tail, tail_len);
    }

    /// As `op_regs`, for operands of one byte.
    #[inline(always)]
    fn op_byte_regs(&mut self, op: Opcode, w: u8, reg: Gpr, rm: Gpr, force: bool) {
        let head = Head::of_regs(op, w, reg.0, rm, force);
        self.put(head.bits, head.len, 0, 0);
    }

    #[inline(always)]
    fn op_mem(&mut self, op: Opcode, w: u8, reg: u8, mem: Mem, force_rex: bool) {
        self.op_mem_imm(op, w, reg, mem, force_rex, 0, 0);
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn op_mem_imm(
        &mut self,
        op: Opcode,
        w: u8,
        reg: u8,
        mem: Mem,
        force_rex: bool,
        imm: u32,
        imm_len: usize,
    ) {
        let (head, disp, disp_len) = Head::of_mem(op, w, reg, mem, force_rex);
        let tail = disp | u64::from(imm) << (8 * disp_len);
        self.put(head.bits, head.len, tail, disp_len + imm_len);
    }

    // Arithmetic and comparison

    /// `op dst, src`
    #[inline(always)]
    pub(crate) fn alu(&mut self, op: Alu, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(one((op as u8) << 3 | 1), wide(width), src.0, dst, 0, 0);
    }

    /// `op dst, imm`
    #[inline(always)]
    pub(crate) fn alu_imm(&mut self, op: Alu, width: Width, dst: Gpr, imm: i32) {
        let tail = u64::from(imm as u32);
        if fits_i8(imm) {
            self.op_regs(one(0x83), wide(width), op as u8, dst, tail, 1);
        } else if dst == Gpr::RAX {
            let head = Head::of_opcode(one((op as u8) << 3 | 5), wide(width), dst);
            self.put(head.bits, head.len, tail, 4);
        } else {
            self.op_regs(one(0x81), wide(width), op as u8, dst, tail, 4);
        }
    }

    /// `op dst, [mem]`
    pub(crate) fn alu_load(&mut self, op: Alu, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(one((op as u8) << 3 | 3), wide(width), dst.0, mem, false);
    }

    /// `op size [mem], src`
    pub(crate) fn alu_store(&mut self, op: Alu, size: Size, mem: Mem, src: Gpr) {
        let (opcode, w, force) = sized(op as u8 * 8, size, src);
        self.op_mem(opcode, w, src.0, mem, force);
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
        let imm = imm as u32 & mask(len);
        self.op_mem_imm(opcode, w, op as u8, mem, false, imm, len);
    }

    /// `lock op size [mem], src`
    pub(crate) fn lock_alu(&mut self, op: Alu, width: Width, mem: Mem, src: Gpr) {
        let opcode = one((op as u8) << 3 | 1).prefixed(LOCK);
        self.op_mem(opcode, wide(width), src.0, mem, false);
    }

    /// `test a, b`
    pub(crate) fn test(&mut self, width: Width, a: Gpr, b: Gpr) {
        self.op_regs(one(0x85), wide(width), b.0, a, 0, 0);
    }

    /// `test reg, imm`, for its zero flag: no sign flag is promised.
    pub(crate) fn test_imm(&mut self, width: Width, reg: Gpr, imm: i32) {
        let tail = u64::from(imm as u32);
        // A positive immediate says nothing of what lies above it.
        let width = if imm >= 0 { Width::W32 } else { width };
        if (0..256).contains(&imm) {
            if reg == Gpr::RAX {
                self.put(0xa8, 1, tail, 1);
            } else {
                let head = Head::of_regs(one(0xf6), 0, 0, reg, reg.byte_needs_rex());
                self.put(head.bits, head.len, tail, 1);
            }
        } else if reg == Gpr::RAX {
            let head = Head::of_opcode(one(0xa9), wide(width), reg);
            self.put(head.bits, head.len, tail, 4);
        } else {
            self.op_regs(one(0xf7), wide(width), 0, reg, tail, 4);
        }
    }

    /// `test byte [mem], imm`
    pub(crate) fn test_byte(&mut self, mem: Mem, imm: u8) {
        self.op_mem_imm(one(0xf6), 0, 0, mem, false, u32::from(imm), 1);
    }

    /// `bt reg, bit`: the carry flag becomes that bit.
    pub(crate) fn test_bit(&mut self, width: Width, reg: Gpr, bit: u8) {
        self.op_regs(two(0xba), wide(width), 4, reg, bit.into(), 1);
    }

    /// `op reg` of opcode F7; multiplication and division take `rdx:rax`.
    pub(crate) fn unary(&mut self, op: Unary, width: Width, reg: Gpr) {
        self.op_regs(one(0xf7), wide(width), op as u8, reg, 0, 0);
    }

    /// `inc reg`
    pub(crate) fn increment(&mut self, width: Width, reg: Gpr) {
        self.op_regs(one(0xff), wide(width), 0, reg, 0, 0);
    }

    /// `dec reg`
    pub(crate) fn decrement(&mut self, width: Width, reg: Gpr) {
        self.op_regs(one(0xff), wide(width), 1, reg, 0, 0);
    }

    /// `imul dst, src`
    pub(crate) fn multiply(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xaf), wide(width), dst.0, src, 0, 0);
    }

    /// `imul dst, [mem]`
    pub(crate) fn multiply_load(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(two(0xaf), wide(width), dst.0, mem, false);
    }

    /// `imul dst, src, imm`
    pub(crate) fn multiply_imm(&mut self, width: Width, dst: Gpr, src: Gpr, imm: i32) {
        let (op, len) = if fits_i8(imm) { (0x6b, 1) } else { (0x69, 4) };
        let tail = u64::from(imm as u32);
        self.op_regs(one(op), wide(width), dst.0, src, tail, len);
    }

    /// `cdq` or `cqo`: the sign of `rax` into all of `rdx`.
    pub(crate) fn sign_into_rdx(&mut self, width: Width) {
        let head = Head::of_opcode(one(0x99), wide(width), Gpr::RAX);
        self.put(head.bits, head.len, 0, 0);
    }

    /// `lea dst, [mem]`
    pub(crate) fn lea(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(one(0x8d), wide(width), dst.0, mem, false);
    }

    /// `lea dst, [label]`
    pub(crate) fn lea_label(&mut self, dst: Gpr, label: Label) {
        let modrm = (dst.0 & 7) << 3 | 5;
        let head = Head::new(one(0x8d), 8 | dst.0 >> 3 << 2, false, modrm.into(), 1);
        self.put(head.bits, head.len, 0, 0);
        self.distance(label);
    }

    // Moves

    /// `mov dst, src`
    #[inline(always)]
    pub(crate) fn mov(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(one(0x89), wide(width), src.0, dst, 0, 0);
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
        if u32::try_from(value).is_ok() {
            let head = Head::of_opcode(one(0xb8 | dst.0 & 7), 0, dst);
            self.put(head.bits, head.len, value, 4);
        } else if value as i32 as u64 == value {
            self.op_regs(one(0xc7), 1, 0, dst, value, 4);
        } else {
            let head = Head::of_opcode(one(0xb8 | dst.0 & 7), 1, dst);
            self.put(head.bits, head.len, value, 8);
        }
    }

    /// A load of the given size into the whole register; `signed` extends the
    /// sign to `width`.
    #[inline(always)]
    pub(crate) fn load(&mut self, size: Size, signed: Option<Width>, dst: Gpr, mem: Mem) {
        let (op, w) = match (size, signed) {
            (Size::B, None) => (two(0xb6), 0),
            (Size::H, None) => (two(0xb7), 0),
            (Size::W, None) => (one(0x8b), 0),
            (Size::DW, _) => (one(0x8b), 1),
            (Size::B, Some(width)) => (two(0xbe), wide(width)),
            (Size::H, Some(width)) => (two(0xbf), wide(width)),
            (Size::W, Some(Width::W64)) => (one(0x63), 1),
            (Size::W, Some(Width::W32)) => (one(0x8b), 0),
        };
        self.op_mem(op, w, dst.0, mem, false);
    }

    /// As [`Buffer::load`], from a register.
    #[inline(always)]
    pub(crate) fn extend(&mut self, size: Size, signed: Option<Width>, dst: Gpr, src: Gpr) {
        let (op, w) = match (size, signed) {
            (Size::B, None) => (two(0xb6), 0),
            (Size::H, None) => (two(0xb7), 0),
            (Size::B, Some(width)) => (two(0xbe), wide(width)),
            (Size::H, Some(width)) => (two(0xbf), wide(width)),
            (Size::W, Some(Width::W64)) => (one(0x63), 1),
            (Size::W, _) => return self.mov(Width::W32, dst, src),
            (Size::DW, _) => return self.mov(Width::W64, dst, src),
        };
        let force = size == Size::B && src.byte_needs_rex();
        self.op_byte_regs(op, w, dst, src, force);
    }

    /// `mov size [mem], src`
    #[inline(always)]
    pub(crate) fn store(&mut self, size: Size, mem: Mem, src: Gpr) {
        let (op, w, force) = sized(0x88, size, src);
        self.op_mem(op, w, src.0, mem, force);
    }

    /// `mov size [mem], imm`; a doubleword's immediate is sign-extended.
    pub(crate) fn store_imm(&mut self, size: Size, mem: Mem, imm: i32) {
        let (op, w, _) = sized(0xc6, size, Gpr::RAX);
        let len = imm_len(size);
        self.op_mem_imm(op, w, 0, mem, false, imm as u32 & mask(len), len);
    }

    /// `cmovcc dst, src`
    pub(crate) fn mov_if(&mut self, cc: Cc, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(two(0x40 | cc as u8), wide(width), dst.0, src, 0, 0);
    }

    /// `setcc dst`: the low byte becomes 1 or 0, the others stay.
    pub(crate) fn set_if(&mut self, cc: Cc, dst: Gpr) {
        self.op_byte_regs(two(0x90 | cc as u8), 0, Gpr::RAX, dst, dst.byte_needs_rex());
    }

    // Shifts and bits

    /// `shift dst, count`; a count of 0 is not to be written.
    pub(crate) fn shift(&mut self, op: Shift, width: Width, dst: Gpr, count: u8) {
        if count == 1 {
            self.op_regs(one(0xd1), wide(width), op as u8, dst, 0, 0);
        } else {
            self.op_regs(one(0xc1), wide(width), op as u8, dst, count.into(), 1);
        }
    }

    /// `rol dst16, 8`: swaps the low two bytes and leaves the others.
    pub(crate) fn swap_low_bytes(&mut self, dst: Gpr) {
        self.op_regs(one(0xc1).prefixed(HALF), 0, Shift::Rol as u8, dst, 8, 1);
    }

    /// `shift dst, cl`
    pub(crate) fn shift_by_cl(&mut self, op: Shift, width: Width, dst: Gpr) {
        self.op_regs(one(0xd3), wide(width), op as u8, dst, 0, 0);
    }

    /// `bswap dst`
    pub(crate) fn byte_swap(&mut self, width: Width, dst: Gpr) {
        let head = Head::of_opcode(two(0xc8 | dst.0 & 7), wide(width), dst);
        self.put(head.bits, head.len, 0, 0);
    }

    /// `movbe dst, [mem]` (MOVBE), four or eight bytes.
    pub(crate) fn load_swapped(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(three(0xf0), wide(width), dst.0, mem, false);
    }

    /// `movbe [mem], src` (MOVBE), four or eight bytes.
    pub(crate) fn store_swapped(&mut self, width: Width, mem: Mem, src: Gpr) {
        self.op_mem(three(0xf1), wide(width), src.0, mem, false);
    }

    /// `popcnt dst, src` (POPCNT)
    pub(crate) fn count_ones(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xb8).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.0, src, 0, 0);
    }

    /// `tzcnt dst, src` (BMI1; without it, `bsf`, which leaves `dst` as it was
    /// where `src` is 0).
    pub(crate) fn count_trailing_zeros(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xbc).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.0, src, 0, 0);
    }

    /// `lzcnt dst, src` (LZCNT; without it, `bsr`, which finds another number)
    pub(crate) fn count_leading_zeros(&mut self, width: Width, dst: Gpr, src: Gpr) {
        let op = two(0xbd).prefixed(0xf3);
        self.op_regs(op, wide(width), dst.0, src, 0, 0);
    }

    /// An operation on `[reg, v, rm]`, as the encoding calls them.
    fn vex(&mut self, op: Vex, width: Width, regs: [Gpr; 3]) {
        self.vex_imm(op, width, regs, 0, 0);
    }

    fn vex_imm(&mut self, op: Vex, width: Width, regs: [Gpr; 3], imm: u8, imm_len: usize) {
        let [reg, v, rm] = regs;
        let mut head = Head { bits: 0, len: 0 };
        head.push(0xc4);
        head.push((!reg.0 & 8) << 4 | 0x40 | (!rm.0 & 8) << 2 | op.map);
        head.push(wide(width) << 7 | (!v.0 & 15) << 3 | op.prefix as u8);
        head.push(op.byte);
        head.push(0xc0 | (reg.0 & 7) << 3 | rm.0 & 7);
        self.put(head.bits, head.len, imm.into(), imm_len);
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
        self.vex_imm(op, width, [dst, Gpr(0), src], count, 1);
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
        self.op_mem(one(0x87), wide(width), reg.0, mem, false);
    }

    /// `lock xadd [mem], reg`
    pub(crate) fn lock_exchange_add(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.op_mem(two(0xc1).prefixed(LOCK), wide(width), reg.0, mem, false);
    }

    /// `lock cmpxchg [mem], reg`; compares with `rax`, which gets the old value
    /// if it differs.
    pub(crate) fn lock_compare_exchange(&mut self, width: Width, mem: Mem, reg: Gpr) {
        self.op_mem(two(0xb1).prefixed(LOCK), wide(width), reg.0, mem, false);
    }

    // Control

    pub(crate) fn push(&mut self, reg: Gpr) {
        let head = Head::of_opcode(one(0x50 | reg.0 & 7), 0, reg);
        self.put(head.bits, head.len, 0, 0);
    }

    pub(crate) fn pop(&mut self, reg: Gpr) {
        let head = Head::of_opcode(one(0x58 | reg.0 & 7), 0, reg);
        self.put(head.bits, head.len, 0, 0);
    }

    /// `leave`: frees the frame that `rbp` stands for.
    pub(crate) fn leave(&mut self) {
        self.put(0xc9, 1, 0, 0);
    }

    pub(crate) fn ret(&mut self) {
        self.put(0xc3, 1, 0, 0);
    }

    /// `call [label]`: the address of the callee lies at the label.
    pub(crate) fn call_through(&mut self, label: Label) {
        self.put(0x15ff, 2, 0, 0);
        self.distance(label);
    }

    /// Up to eight bytes of data.
    pub(crate) fn data(&mut self, value: u64, len: usize) {
        self.put(0, 0, value, len);
    }

    /// `jmp gpr`
    pub(crate) fn jump_to(&mut self, gpr: Gpr) {
        self.op_regs(one(0xff), 0, 4, gpr, 0, 0);
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

const fn mask(bytes: usize) -> u32 {
    u32::MAX >> (32 - 8 * bytes as u32)
}

#[cfg(test)]
mod tests;
