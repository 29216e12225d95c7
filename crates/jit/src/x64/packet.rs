//! Packet loads: byte order, and comparisons with the packet.

use isa::ebpf::{Cond, Insn, Operand, Reg, Size, Width};

use super::Generator;
use super::reg::{Gpr, Mem};
use crate::Optimization;
use crate::codegen::{Alu, Assembler, Cc};

impl Generator<'_> {
    /// Compiles the packet load `r0 = mem`, with the comparison at the next slot where possible;
    /// returns the number of slots from there on that were compiled with it.
    pub(super) fn load_packet(&mut self, next: Option<usize>, size: Size, mem: Mem) -> usize {
        if let Some(count) = next.and_then(|next| self.compare_packet(next, size, mem)) {
            return count;
        }
        self.load_swapped(size, mem);
        0
    }

    /// `rax = mem`, in network byte order.
    fn load_swapped(&mut self, size: Size, mem: Mem) {
        let rax = Gpr::RAX;
        if size == Size::W && self.target.features.movbe {
            self.asm.load_swapped(Width::W32, rax, mem);
        } else {
            self.asm.load(size, None, rax, mem);
            if size != Size::B {
                self.swap_bytes(size, rax, 8 * size.bytes() as u8);
            }
        }
        self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
    }

    /// `if w0 cond imm goto` after a load, if `r0` is dead afterwards: a comparison with
    /// memory in network byte order.
    fn compare_packet(&mut self, slot: usize, size: Size, mem: Mem) -> Option<usize> {
        let Insn::Jump {
            cond,
            width: Width::W32,
            dst: Reg::R0,
            src: Operand::Imm(imm),
            ..
        } = self.peek(slot)?
        else {
            return None;
        };
        if self.live_out(slot).has(Reg::R0) || !self.uses(Optimization::PacketComparison) {
            return None;
        }
        let swapped = match size {
            Size::B if (0..=0xff).contains(&imm) => imm,
            Size::W if matches!(cond, Cond::Eq | Cond::Ne) => imm.swap_bytes(),
            // A 16-bit immediate after an operand-size prefix stalls the decoder (LCP
            // stall), so the value is loaded.
            Size::H
                if matches!(cond, Cond::Eq | Cond::Ne | Cond::Set)
                    && (0..=0xffff).contains(&imm) =>
            {
                self.applies(Optimization::PacketComparison);
                let swapped = i32::from((imm as u16).swap_bytes());
                self.asm.load(Size::H, None, Gpr::RAX, mem);
                if cond.tests_bits() {
                    self.asm.test_imm(Width::W32, Gpr::RAX, swapped);
                } else {
                    self.asm.alu_imm(Alu::Cmp, Width::W32, Gpr::RAX, swapped);
                }
                return Some(self.jump_on(slot, Cc::of(cond)));
            }
            _ => return None,
        };
        self.applies(Optimization::PacketComparison);
        if cond.tests_bits() {
            self.asm.test_byte(mem, swapped as u8);
        } else {
            self.asm.alu_store_imm(Alu::Cmp, size, mem, swapped);
        }
        Some(self.jump_on(slot, Cc::of(cond.unsigned())))
    }
}
