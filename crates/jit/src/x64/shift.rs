//! Shifts and rotations; shifts that extend a value are fused with the shift back.

use isa::ebpf::{Reg, Width};

use super::Generator;
use super::reg::{Gpr, SCRATCH};
use crate::Optimization;
use crate::codegen::{Assembler, Extension, Shift, all};

impl Generator<'_> {
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
            self.asm.shift(op, width, dst, by);
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
        self.asm.shift(op, width, self.frame.gpr(reg), count);
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
            self.asm.extend(extension.from, extension.sign, dst, dst);
            self.finish_extension(reg, extension);
        }
        Some(2)
    }

    pub(super) fn shift_by_reg(&mut self, op: Shift, width: Width, reg: Reg, count: Reg) {
        let (dst, count) = (self.gpr(reg), self.gpr(count));
        let rcx = Gpr::RCX;
        if count == rcx && dst != rcx {
            self.asm.shift_by_cl(op, width, dst);
        } else if self.target.features.bmi2 {
            self.asm.shift_by(op, width, dst, dst, count);
        } else if dst == rcx {
            self.asm.mov(Width::W64, SCRATCH, dst);
            self.asm.mov(Width::W32, rcx, count);
            self.asm.shift_by_cl(op, width, SCRATCH);
            self.asm.mov(Width::W64, rcx, SCRATCH);
        } else {
            self.asm.mov(Width::W64, SCRATCH, rcx);
            self.asm.mov(Width::W32, rcx, count);
            self.asm.shift_by_cl(op, width, dst);
            self.asm.mov(Width::W64, rcx, SCRATCH);
        }
        self.set_known_bits(reg, all(width));
    }

    /// Compiles `dst` = `src` rotated left.
    pub(super) fn rotate(&mut self, width: Width, dst: Reg, src: Reg, left: u8) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        let bits: u8 = if width == Width::W32 { 32 } else { 64 };
        if to != from && self.target.features.bmi2 {
            self.asm.rotate_right(width, to, from, bits - left);
        } else {
            if to != from {
                self.asm.mov(width, to, from);
            }
            self.asm.shift(Shift::Rol, width, to, left);
        }
        self.set_known_bits(dst, bits);
    }
}
