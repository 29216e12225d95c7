//! Shifts and rotations; shifts that extend a value are fused with the shift back.

use isa::ebpf::{Operand, Reg, Size, Width};

use super::alu::all;
use super::asm::Shift;
use super::form::Form;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::Gpr;
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
            (Shift::Shl, 16 | 24 | 32 | 48 | 56) => self.fuse_or_shift(slot, width, reg, count),
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

    /// Fuses `dst <<= count` with a shift back; returns the number of slots.
    fn fuse_shift(&mut self, slot: usize, width: Width, reg: Reg, count: u8) -> Option<usize> {
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
