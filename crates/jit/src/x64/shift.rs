//! Shifts and rotations; shifts that scale an index or extend a value are fused with what
//! follows.

use isa::ebpf::{AluOp, Operand, Reg, Size, Width};

use super::alu::{Arithmetic, all};
use super::asm::Shift;
use super::form::Form;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Gpr, Mem};
use crate::Optimization;

/// The effect of a left shift and a right shift back: the low bits are extended, and
/// shifted right by `by`.
#[derive(Clone, Copy)]
pub(super) struct Extension {
    pub(super) from: Size,
    /// Sign extension to this width; zero extension otherwise.
    pub(super) sign: Option<Width>,
    width: Width,
    by: u8,
}

impl Generator<'_> {
    /// The extension that `dst <<= count` and the right shift at a slot form.
    pub(super) fn extension(
        &self,
        slot: usize,
        dst: Reg,
        width: Width,
        count: i32,
    ) -> Option<Extension> {
        if !self.uses(Optimization::Extension) {
            return None;
        }
        let from = match (width, count) {
            (Width::W64, 32) => Size::W,
            (Width::W64, 48) | (Width::W32, 16) => Size::H,
            (Width::W64, 56) | (Width::W32, 24) => Size::B,
            _ => return None,
        };
        let back = self.arithmetic(slot)?;
        let Operand::Imm(by) = back.src else {
            return None;
        };
        let sign = match Form::of(back.op) {
            Form::Shift(Shift::Shr) => None,
            Form::Shift(Shift::Sar) => Some(width),
            Form::Shift(Shift::Shl | Shift::Rol | Shift::Ror)
            | Form::Move
            | Form::Plain(_)
            | Form::Multiply
            | Form::Divide { .. } => return None,
        };
        let fits = back.dst == dst && back.width == width && (count..64).contains(&by);
        (fits && by < all(width).into()).then(|| Extension {
            from,
            sign,
            width,
            by: (by - count) as u8,
        })
    }

    /// Shifts the extended value right, and records its significant bits.
    pub(super) fn finish_extension(&mut self, reg: Reg, extension: Extension) {
        let Extension {
            from,
            sign,
            width,
            by,
        } = extension;
        if by > 0 {
            let op = match sign {
                Some(_) => Shift::Sar,
                None => Shift::Shr,
            };
            let dst = self.gpr(reg);
            self.buf.shift(op, width, dst, by);
            self.set_flags(reg, width);
        }
        let known_bits = match sign {
            None => (8 * from.bytes() as u8).saturating_sub(by),
            Some(Width::W32) => 32,
            Some(Width::W64) => 64,
        };
        self.set_known_bits(reg, known_bits);
    }

    /// Fuses `index << scale` with the addition of a base, to `lea` or a scaled address;
    /// returns the number of slots from `slot` on.
    pub(super) fn scaled_index(
        &mut self,
        slot: usize,
        dst: Reg,
        (index, scale): (Reg, u8),
        width: Width,
    ) -> Option<usize> {
        if !self.uses(Optimization::ScaledIndex) {
            return None;
        }
        let next = self.arithmetic(slot)?;
        let Operand::Reg(base) = next.src else {
            return None;
        };
        let fits = next.op == AluOp::Add
            && next.dst == dst
            && base != dst
            && base != Reg::R10
            && (next.width == width || next.width == Width::W32);
        if !fits {
            return None;
        }
        self.applies(Optimization::ScaledIndex);
        let mem = Mem {
            base: self.gpr(base),
            index: Some((self.gpr(index), scale)),
            disp: 0,
        };
        if next.width == Width::W64 && self.fold_address(slot + 1, dst, [base, index], mem) {
            return Some(1);
        }
        self.buf.lea(next.width, self.gpr(dst), mem);
        self.set_known_bits(dst, all(next.width));
        Some(1)
    }

    /// Fuses `shifted = index << scale` with its addition to a base, if `shifted` is dead
    /// afterwards. The base may be copied first and a constant added to it. Returns the
    /// number of slots from `slot` on.
    pub(super) fn add_scaled(
        &mut self,
        slot: usize,
        shifted: Reg,
        (index, scale): (Reg, u8),
        width: Width,
    ) -> Option<usize> {
        if !self.uses(Optimization::ScaledIndex) {
            return None;
        }
        let whole = width == Width::W64 || self.known_bits(index) + scale <= 32;
        let first = self.wide_sum(slot)?;
        let sum = first.dst;
        if !whole || sum == shifted {
            return None;
        }
        let (base, mut disp, mut at) = match (first.op, first.src) {
            (AluOp::Add, _) => (sum, 0, slot),
            (_, Operand::Reg(base)) if base != shifted => (base, 0, slot + 1),
            _ => return None,
        };
        if let Arithmetic {
            op: AluOp::Add,
            dst,
            src: Operand::Imm(imm),
            ..
        } = self.wide_sum(at)?
            && dst == sum
        {
            disp = imm;
            at += 1;
        }
        let last = self.wide_sum(at)?;
        let adds = last.op == AluOp::Add && last.src == Operand::Reg(shifted);
        if !adds || last.dst != sum || self.live_out(at).has(shifted) {
            return None;
        }
        let top = match base {
            Reg::R10 => self.frame.stack_top(),
            base => Mem::at(self.gpr(base), 0),
        };
        let mem = Mem {
            index: Some((self.gpr(index), scale)),
            disp: top.disp.checked_add(disp)?,
            ..top
        };
        self.applies(Optimization::ScaledIndex);
        if !self.fold_address(at + 1, sum, [base, index], mem) {
            self.buf.lea(Width::W64, self.gpr(sum), mem);
            self.set_known_bits(sum, 64);
        }
        Some(at + 1 - slot)
    }

    /// The 64-bit addition or copy at a slot within the peephole window.
    fn wide_sum(&self, slot: usize) -> Option<Arithmetic> {
        let this = self.arithmetic(slot)?;
        let sums = matches!(this.op, AluOp::Add | AluOp::Mov);
        (sums && this.width == Width::W64).then_some(this)
    }

    pub(super) fn shift_imm(
        &mut self,
        slot: usize,
        op: Shift,
        width: Width,
        reg: Reg,
        count: i32,
    ) -> usize {
        let count = count as u8 & (all(width) - 1);
        match (op, count) {
            (_, 0) => {
                self.zero_upper(slot, width, reg);
                1
            }
            (Shift::Shl, 1..=3 | 16 | 24 | 32 | 48 | 56) => {
                self.fuse_or_shift(slot, width, reg, count)
            }
            _ => self.only_shift(op, width, reg, count),
        }
    }

    fn fuse_or_shift(&mut self, slot: usize, width: Width, reg: Reg, count: u8) -> usize {
        match self.fuse_shift(slot, width, reg, count) {
            Some(slots) => slots,
            None => self.only_shift(Shift::Shl, width, reg, count),
        }
    }

    /// Shifts `dst` by a nonzero count; returns 1, the number of slots.
    fn only_shift(&mut self, op: Shift, width: Width, reg: Reg, count: u8) -> usize {
        let most = all(width);
        let known_bits = self.known_bits(reg).min(most);
        let left = match op {
            Shift::Shl => known_bits + count,
            Shift::Shr => known_bits.saturating_sub(count),
            Shift::Sar | Shift::Rol | Shift::Ror => most,
        };
        self.set_known_bits(reg, left.min(most));
        self.set_flags(reg, width);
        self.buf.shift(op, width, self.frame.gpr(reg), count);
        1
    }

    /// Fuses `dst <<= count` with a shift back or an addition; returns the number of slots.
    fn fuse_shift(&mut self, slot: usize, width: Width, reg: Reg, count: u8) -> Option<usize> {
        if count <= 3 {
            let more = self
                .scaled_index(slot + 1, reg, (reg, count), width)
                .or_else(|| self.add_scaled(slot + 1, reg, (reg, count), width))?;
            return Some(1 + more);
        }
        let extension = self.extension(slot + 1, reg, width, count.into())?;
        if extension.by > 0 {
            return None;
        }
        self.applies(Optimization::Extension);
        if extension.sign.is_some() || self.known_bits(reg) > 8 * extension.from.bytes() as u8 {
            let dst = self.gpr(reg);
            self.buf.extend(extension.from, extension.sign, dst, dst);
            self.finish_extension(reg, extension);
        }
        Some(2)
    }

    pub(super) fn shift_by_reg(&mut self, op: Shift, width: Width, reg: Reg, count: Reg) {
        let (dst, count) = (self.gpr(reg), self.gpr(count));
        let rcx = Gpr::RCX;
        if count == rcx && dst != rcx {
            self.buf.shift_by_cl(op, width, dst);
        } else if self.features.bmi2 {
            self.buf.shift_by(op, width, dst, dst, count);
        } else if dst == rcx {
            self.buf.mov(Width::W64, SCRATCH, dst);
            self.buf.mov(Width::W32, rcx, count);
            self.buf.shift_by_cl(op, width, SCRATCH);
            self.buf.mov(Width::W64, rcx, SCRATCH);
        } else {
            self.buf.mov(Width::W64, SCRATCH, rcx);
            self.buf.mov(Width::W32, rcx, count);
            self.buf.shift_by_cl(op, width, dst);
            self.buf.mov(Width::W64, rcx, SCRATCH);
        }
        self.set_known_bits(reg, all(width));
    }

    /// Compiles `dst` = `src` rotated left.
    pub(super) fn rotate(&mut self, width: Width, dst: Reg, src: Reg, left: u8) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        let bits: u8 = if width == Width::W32 { 32 } else { 64 };
        if to != from && self.features.bmi2 {
            self.buf.rotate_right(width, to, from, bits - left);
        } else {
            if to != from {
                self.buf.mov(width, to, from);
            }
            self.buf.shift(Shift::Rol, width, to, left);
        }
        self.set_known_bits(dst, bits);
    }
}
