//! Assembler for the x86-64 instructions that the compiler uses, one method each.
//!
//! A method chooses the shortest encoding: short immediates and displacements, no REX
//! prefix where none is needed, the accumulator forms. `W64` is the whole register, `W32`
//! its low half; writing that zeroes the upper half. Numbers in comments are opcodes of the
//! Intel manual, volume 2.

use isa::ebpf::{Size, Width};

use super::buffer::Buffer;
use super::encode::{
    HALF, LOCK, Opcode, REP, Tail, Vex, VexPrefix, fits_i8, one, three, two, wide,
};
use super::reg::{Gpr, Mem, SCRATCH, condition};
use crate::codegen::{Alu, Assembler, Cc, Label, Shift};

/// One-operand operations of opcode F7 by their number in the ModRM byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub(crate) enum Unary {
    Not = 2,
    Neg = 3,
    Mul = 4,
    Div = 6,
    Idiv = 7,
}

/// The number of an operation of the ADD group in opcode and ModRM byte.
const fn group(op: Alu) -> u8 {
    match op {
        Alu::Add => 0,
        Alu::Or => 1,
        Alu::And => 4,
        Alu::Sub => 5,
        Alu::Xor => 6,
        Alu::Cmp => 7,
    }
}

/// The number of a shift in the ModRM byte.
const fn shift_number(op: Shift) -> u8 {
    match op {
        Shift::Rol => 0,
        Shift::Ror => 1,
        Shift::Shl => 4,
        Shift::Shr => 5,
        Shift::Sar => 7,
    }
}

impl Assembler for Buffer {
    type Reg = Gpr;

    /// `op dst, src`
    fn alu(&mut self, op: Alu, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(
            one(group(op) << 3 | 1),
            wide(width),
            src.number(),
            dst,
            Tail::NONE,
        );
    }

    /// `op dst, imm`
    fn alu_imm(&mut self, op: Alu, width: Width, dst: Gpr, imm: i32) {
        // The accumulator form is shorter, unless a byte is enough.
        if dst == Gpr::RAX && !fits_i8(imm) {
            let op = one(group(op) << 3 | 5);
            return self.op_opcode(op, wide(width), dst, Tail::long(imm));
        }
        match i8::try_from(imm) {
            Ok(byte) => self.op_regs(
                one(0x83),
                wide(width),
                group(op),
                dst,
                Tail::byte(byte as u8),
            ),
            Err(_) => self.op_regs(one(0x81), wide(width), group(op), dst, Tail::long(imm)),
        }
    }

    /// `op dst, [mem]`
    fn alu_load(&mut self, op: Alu, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(
            one(group(op) << 3 | 3),
            wide(width),
            dst.number(),
            mem,
            false,
        );
    }

    /// `op size [mem], src`
    fn alu_store(&mut self, op: Alu, size: Size, mem: Mem, src: Gpr) {
        let (opcode, w, force) = sized(group(op) * 8, size, src);
        self.op_mem(opcode, w, src.number(), mem, force);
    }

    /// `op size [mem], imm`; the immediate is truncated to the size.
    fn alu_store_imm(&mut self, op: Alu, size: Size, mem: Mem, imm: i32) {
        let imm = if size == Size::H {
            i32::from(imm as i16)
        } else {
            imm
        };
        let short = fits_i8(imm) && size != Size::B;
        let (opcode, w, _) = sized(if short { 0x82 } else { 0x80 }, size, Gpr::RAX);
        let len = if short { 1 } else { imm_len(size) };
        let tail = Tail::low(imm, len);
        self.op_mem_imm(opcode, w, group(op), mem, tail);
    }

    fn lock_alu_store_imm(&mut self, op: Alu, mem: Mem, imm: i8) {
        let opcode = one(0x83).prefixed(LOCK);
        self.op_mem_imm(opcode, 1, group(op), mem, Tail::low(imm.into(), 1));
    }

    /// `test a, b`
    fn test(&mut self, width: Width, a: Gpr, b: Gpr) {
        self.op_regs(one(0x85), wide(width), b.number(), a, Tail::NONE);
    }

    /// `test reg, imm`; only the zero flag is specified.
    fn test_imm(&mut self, width: Width, reg: Gpr, imm: i32) {
        // A positive immediate tests no bits above 31.
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

    /// `imul dst, src`
    fn multiply(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xaf), wide(width), dst.number(), src, Tail::NONE);
    }

    /// `imul dst, src, imm`
    fn multiply_imm(&mut self, width: Width, dst: Gpr, src: Gpr, imm: i32) {
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

    /// `lea dst, [mem]`
    fn lea(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(one(0x8d), wide(width), dst.number(), mem, false);
    }

    /// `lea dst, [label]`
    fn lea_label(&mut self, dst: Gpr, label: Label) {
        self.op_rip_relative(one(0x8d), 1, dst.number());
        self.distance(label);
    }

    /// `mov dst, src`
    fn mov(&mut self, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(one(0x89), wide(width), src.number(), dst, Tail::NONE);
    }

    /// Sets the whole register; clobbers the flags if `value` is 0.
    fn set(&mut self, dst: Gpr, value: u64) {
        if value == 0 {
            self.alu(Alu::Xor, Width::W32, dst, dst);
        } else {
            self.set_keeping_flags(dst, value);
        }
    }

    /// Sets the whole register and preserves the flags.
    fn set_keeping_flags(&mut self, dst: Gpr, value: u64) {
        let op = one(0xb8 | dst.number() & 7);
        let low = Tail::long(value as i32);
        if u32::try_from(value).is_ok() {
            self.op_opcode(op, 0, dst, low);
        } else if value as i32 as u64 == value {
            self.op_regs(one(0xc7), 1, 0, dst, low);
        } else {
            self.op_opcode_imm64(op, dst, value);
        }
    }

    /// A load of the given size into the whole register; `signed` extends the
    /// sign to `width`.
    fn load(&mut self, size: Size, signed: Option<Width>, dst: Gpr, mem: Mem) {
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

    /// `mov size [mem], src`
    fn store(&mut self, size: Size, mem: Mem, src: Gpr) {
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
    fn store_imm(&mut self, size: Size, mem: Mem, imm: i32) {
        let (op, w, _) = sized(0xc6, size, Gpr::RAX);
        let len = imm_len(size);
        let tail = Tail::low(imm, len);
        self.op_mem_imm(op, w, 0, mem, tail);
    }

    /// `cmovcc dst, src`
    fn mov_if(&mut self, cc: Cc, width: Width, dst: Gpr, src: Gpr) {
        self.op_regs(
            two(0x40 | condition(cc)),
            wide(width),
            dst.number(),
            src,
            Tail::NONE,
        );
    }

    /// `setcc dst`: the low byte becomes 1 or 0, the others stay.
    fn set_if(&mut self, cc: Cc, dst: Gpr) {
        let op = two(0x90 | condition(cc));
        self.op_byte_regs(op, 0, 0, dst, dst.byte_needs_rex(), Tail::NONE);
    }

    /// `shift dst, count`, with a nonzero count.
    fn shift(&mut self, op: Shift, width: Width, dst: Gpr, count: u8) {
        let (opcode, len) = if count == 1 { (0xd1, 0) } else { (0xc1, 1) };
        let tail = Tail::low(count.into(), len);
        self.op_regs(one(opcode), wide(width), shift_number(op), dst, tail);
    }

    /// `andn dst, inverted, src` (BMI1): `dst = !inverted & src`
    fn and_not(&mut self, width: Width, dst: Gpr, inverted: Gpr, src: Gpr) {
        self.vex(Vex::two(VexPrefix::None, 0xf2), width, [dst, inverted, src]);
    }

    /// `tzcnt dst, src` (BMI1): 64 for 0.
    fn trailing_zeros(&mut self, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xbc).prefixed(REP), 1, dst.number(), src, Tail::NONE);
    }

    fn ret(&mut self) {
        self.put(&[0xc3]);
    }

    /// Up to eight bytes of data.
    fn data(&mut self, value: u64, len: usize) {
        self.put(&value.to_le_bytes()[..len]);
    }

    /// The no-operation of a slot at an entry.
    fn entry_slot(&mut self) {
        self.put(&[0x0f, 0x1f, 0x44, 0x00, 0x00]);
    }

    fn multiply_hash(&mut self, by: Gpr) {
        self.unary(Unary::Mul, Width::W64, by);
    }

    fn enter_frame(&mut self, has_frame_pointer: bool, saved: &[Gpr], reserved: i32) {
        if has_frame_pointer {
            self.push(Gpr::RBP);
            self.mov(Width::W64, Gpr::RBP, Gpr::RSP);
            self.reserve(Alu::Sub, reserved);
        }
        for &gpr in saved {
            self.push(gpr);
        }
        if !has_frame_pointer {
            self.reserve(Alu::Sub, reserved);
        }
    }

    fn leave_frame(&mut self, has_frame_pointer: bool, saved: &[Gpr], reserved: i32) {
        if !has_frame_pointer {
            self.reserve(Alu::Add, reserved);
        }
        for &gpr in saved.iter().rev() {
            self.pop(gpr);
        }
        if has_frame_pointer {
            self.leave();
        }
    }

    /// Pushes them, and aligns the stack.
    fn save(&mut self, kept: &[Gpr]) {
        for &gpr in kept {
            self.push(gpr);
        }
        if kept.len().is_multiple_of(2) {
            self.push(SCRATCH);
        }
    }

    fn restore(&mut self, kept: &[Gpr]) {
        if kept.len().is_multiple_of(2) {
            self.pop(SCRATCH);
        }
        for &gpr in kept.iter().rev() {
            self.pop(gpr);
        }
    }
}

impl Buffer {
    /// `lock op size [mem], src`
    pub(crate) fn lock_alu(&mut self, op: Alu, width: Width, mem: Mem, src: Gpr) {
        let opcode = one(group(op) << 3 | 1).prefixed(LOCK);
        self.op_mem(opcode, wide(width), src.number(), mem, false);
    }

    /// `test byte [mem], imm`
    pub(crate) fn test_byte(&mut self, mem: Mem, imm: u8) {
        self.op_mem_imm(one(0xf6), 0, 0, mem, Tail::byte(imm));
    }

    /// `op reg` of opcode F7; division takes `rdx:rax`, multiplication returns it.
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

    /// `imul dst, [mem]`
    pub(crate) fn multiply_load(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(two(0xaf), wide(width), dst.number(), mem, false);
    }

    /// `cdq` or `cqo`: the sign of `rax` into all of `rdx`.
    pub(crate) fn sign_into_rdx(&mut self, width: Width) {
        self.op_opcode(one(0x99), wide(width), Gpr::RAX, Tail::NONE);
    }

    /// As [`Buffer::load`], from a register.
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

    /// `rol dst16, 8`: swaps the low two bytes and leaves the others.
    pub(crate) fn swap_low_bytes(&mut self, dst: Gpr) {
        self.op_regs(
            one(0xc1).prefixed(HALF),
            0,
            shift_number(Shift::Rol),
            dst,
            Tail::byte(8),
        );
    }

    /// `shift dst, cl`
    pub(crate) fn shift_by_cl(&mut self, op: Shift, width: Width, dst: Gpr) {
        self.op_regs(one(0xd3), wide(width), shift_number(op), dst, Tail::NONE);
    }

    /// `bswap dst`
    pub(crate) fn byte_swap(&mut self, width: Width, dst: Gpr) {
        self.op_opcode(two(0xc8 | dst.number() & 7), wide(width), dst, Tail::NONE);
    }

    /// `movbe dst, [mem]` (MOVBE), four or eight bytes.
    pub(crate) fn load_swapped(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.op_mem(three(0xf0), wide(width), dst.number(), mem, false);
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
        let op = Vex::three(VexPrefix::PF2, 0xf0);
        self.vex_imm(op, width, [dst, Gpr::RAX, src], Tail::byte(count));
    }

    /// `lzcnt dst, src` (LZCNT): 64 for 0.
    pub(crate) fn leading_zeros(&mut self, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xbd).prefixed(REP), 1, dst.number(), src, Tail::NONE);
    }

    /// `popcnt dst, src` (POPCNT)
    pub(crate) fn count_ones(&mut self, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xb8).prefixed(REP), 1, dst.number(), src, Tail::NONE);
    }

    /// `bsf dst, src`: sets ZF for 0, where `dst` is undefined.
    pub(crate) fn lowest_bit(&mut self, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xbc), 1, dst.number(), src, Tail::NONE);
    }

    /// `bsr dst, src`: sets ZF for 0, where `dst` is undefined.
    pub(crate) fn highest_bit(&mut self, dst: Gpr, src: Gpr) {
        self.op_regs(two(0xbd), 1, dst.number(), src, Tail::NONE);
    }

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

    pub(crate) fn push(&mut self, reg: Gpr) {
        self.op_opcode(one(0x50 | reg.number() & 7), 0, reg, Tail::NONE);
    }

    pub(crate) fn pop(&mut self, reg: Gpr) {
        self.op_opcode(one(0x58 | reg.number() & 7), 0, reg, Tail::NONE);
    }

    /// `leave`: frees the frame that starts at `rbp`.
    pub(crate) fn leave(&mut self) {
        self.put(&[0xc9]);
    }

    /// `mov dst, [label]`
    pub(crate) fn load_label(&mut self, dst: Gpr, label: Label) {
        self.op_rip_relative(one(0x8b), 1, dst.number());
        self.distance(label);
    }

    /// `call [label]`: the label holds the address of the callee.
    pub(crate) fn call_through(&mut self, label: Label) {
        self.put(&[0xff, 0x15]);
        self.distance(label);
    }

    /// `pause`, `lfence`.
    pub(crate) fn wait_for_speculation(&mut self) {
        self.put(&[0xf3, 0x90, 0x0f, 0xae, 0xe8]);
    }

    /// `jmp gpr`
    pub(crate) fn jump_to(&mut self, gpr: Gpr) {
        self.op_regs(one(0xff), 0, 4, gpr, Tail::NONE);
    }

    /// Changes the stack pointer.
    fn reserve(&mut self, op: Alu, bytes: i32) {
        match (bytes, op) {
            (0, _) => {}
            // An 8-bit immediate holds -128, not 128.
            (128, Alu::Sub) => self.alu_imm(Alu::Add, Width::W64, Gpr::RSP, -128),
            (128, _) => self.alu_imm(Alu::Sub, Width::W64, Gpr::RSP, -128),
            (bytes, op) => self.alu_imm(op, Width::W64, Gpr::RSP, bytes),
        }
    }
}

/// The second opcode byte of `movzx` and `movsx`, and REX.W.
fn extension(size: Size, signed: Option<Width>) -> (u8, u8) {
    let op = 0xb6 | u8::from(size == Size::H);
    match signed {
        None => (op, 0),
        Some(width) => (op | 8, wide(width)),
    }
}

/// The opcode of an operation whose lowest bit encodes the operand size, REX.W, and whether
/// a REX prefix is required.
fn sized(byte_op: u8, size: Size, reg: Gpr) -> (Opcode, u8, bool) {
    match size {
        Size::B => (one(byte_op), 0, reg.byte_needs_rex()),
        Size::H => (one(byte_op | 1).prefixed(HALF), 0, false),
        Size::W => (one(byte_op | 1), 0, false),
        Size::DW => (one(byte_op | 1), 1, false),
    }
}

/// Length of an immediate operand in bytes.
const fn imm_len(size: Size) -> usize {
    match size {
        Size::B => 1,
        Size::H => 2,
        Size::W | Size::DW => 4,
    }
}

#[cfg(test)]
mod tests;
