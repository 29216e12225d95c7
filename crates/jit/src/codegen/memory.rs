//! Loads and stores by themselves.

use isa::ebpf::{Operand, Reg, Size, Width};

use super::generator::Generator;
use super::target::{Assembler, Mem, Target};
use crate::Optimization;
use crate::analysis::Halves;

/// Significant bits of a zero-extended value of this size.
pub(crate) const fn bits_of(size: Size) -> u8 {
    8 * size.bytes() as u8
}

impl<T: Target> Generator<'_, T> {
    /// Compiles a load by itself; returns 1, the number of slots.
    pub(crate) fn only_load(
        &mut self,
        size: Size,
        dst: Reg,
        live_out: Halves,
        mem: Mem<T::Reg>,
    ) -> usize {
        // A 64-bit load whose upper half is not live is narrowed.
        let size = match size {
            Size::DW if !live_out.has_upper(dst) && self.uses(Optimization::Narrowing) => {
                self.applies(Optimization::Narrowing);
                Size::W
            }
            size => size,
        };
        self.keep_flags(dst);
        self.set_known_bits(dst, bits_of(size));
        self.asm.load(size, None, self.frame.gpr(dst), mem);
        1
    }

    /// A sign-extending load.
    pub(crate) fn load_signed(&mut self, slot: usize, size: Size, dst: Reg, mem: Mem<T::Reg>) {
        let (width, bits) = match self.upper_live(slot, dst) {
            true => (Width::W64, 64),
            false => (Width::W32, 32),
        };
        let gpr = self.gpr(dst);
        self.asm.load(size, Some(width), gpr, mem);
        self.keep_flags(dst);
        self.set_known_bits(dst, bits);
    }

    /// Compiles a store.
    pub(crate) fn store(&mut self, size: Size, mem: Mem<T::Reg>, src: Operand) {
        self.flags = self.flags_before;
        match src {
            Operand::Imm(imm) => self.asm.store_imm(size, mem, imm),
            Operand::Reg(Reg::R10) => self.store_frame_pointer(size, mem),
            Operand::Reg(src) => self.asm.store(size, mem, self.frame.gpr(src)),
        }
    }

    fn store_frame_pointer(&mut self, size: Size, mem: Mem<T::Reg>) {
        let top = self.frame.stack_top();
        self.asm.lea(Width::W64, T::SCRATCH, top);
        self.asm.store(size, mem, T::SCRATCH);
    }

    /// `dst = (u32)src`: casts between address spaces.
    pub(crate) fn truncate(&mut self, dst: Reg, src: Reg) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        let known_bits = self.known_bits(src).min(32);
        self.asm.mov(Width::W32, to, from);
        self.set_known_bits(dst, known_bits);
    }
}
