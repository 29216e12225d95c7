//! Byte swaps, sign extensions and casts.

use isa::ebpf::{ByteOrder, Reg, Size, Width};

use super::Generator;
use super::reg::Gpr;
use crate::Optimization;

impl Generator<'_> {
    /// `dst = (signed, from)src`.
    pub(super) fn sign_extend(
        &mut self,
        slot: usize,
        width: Width,
        from: Size,
        dst: Reg,
        src: Reg,
    ) {
        let width = self.narrowed(slot, dst, width);
        let (to, from_reg) = (self.gpr(dst), self.gpr(src));
        self.asm.extend(from, Some(width), to, from_reg);
        self.set_known_bits(dst, if width == Width::W32 { 32 } else { 64 });
    }

    /// Compiles a byte-order instruction.
    pub(super) fn byte_order(&mut self, order: ByteOrder, size: Size, dst: Reg) {
        let gpr = self.gpr(dst);
        let known_bits = self.known_bits(dst);
        let all = 8 * size.bytes() as u8;
        let known_bits = match order {
            ByteOrder::Little => {
                if known_bits > all {
                    self.asm.extend(size, None, gpr, gpr);
                } else if size != Size::DW {
                    self.applies(Optimization::KnownBits);
                }
                known_bits.min(all)
            }
            ByteOrder::Big | ByteOrder::Swap => {
                self.swap_bytes(size, gpr, known_bits);
                all
            }
        };
        self.set_known_bits(dst, known_bits);
    }

    /// Swaps the low bytes of a register and zeroes the others; the register has
    /// `known_bits` significant bits before.
    pub(super) fn swap_bytes(&mut self, size: Size, gpr: Gpr, known_bits: u8) {
        match size {
            Size::H => {
                self.asm.swap_low_bytes(gpr);
                if known_bits > 16 {
                    self.asm.extend(Size::H, None, gpr, gpr);
                }
            }
            Size::DW => self.asm.byte_swap(Width::W64, gpr),
            _ => self.asm.byte_swap(Width::W32, gpr),
        }
    }
}
