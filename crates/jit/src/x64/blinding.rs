//! Constant blinding for untrusted programs.
//!
//! The constants of an untrusted program become bytes of machine code that an attacker may
//! jump to (JIT spraying). Every constant of more than a byte is split into two random
//! summands: one is loaded, the other is added by `lea`, which preserves the flags.
//! Comparisons are not fused in blinded code, and comparison trees are not replaced.
//!
//! Not blinded are the 16-bit offsets of loads and stores, and constants that are compared
//! with the frame pointer, which no verifier accepts.

use isa::ebpf::{AluOp, Imm64, Insn, Operand, Reg, Width};

use spec::Random;

use super::frame::SCRATCH;
use super::generator::{Generator, bits};
use super::reg::{Gpr, Mem};

impl Generator<'_> {
    /// True if constants are blinded.
    pub(super) fn blinds(&self) -> bool {
        self.blinding_keys.is_some()
    }

    /// True if a constant may be an immediate operand.
    pub(super) fn may_be_immediate(&self, imm: i32) -> bool {
        !self.blinds() || i8::try_from(imm).is_ok()
    }

    /// Sets a register to a constant of the program and preserves the flags.
    pub(super) fn set_constant(&mut self, gpr: Gpr, value: u64) {
        match &mut self.blinding_keys {
            Some(blinding_keys) => {
                let is_half = value as i32 as u64 == value || u32::try_from(value).is_ok();
                let [key, other] = [(); 2].map(|()| blinding_keys.next_u32() as i32);
                let masked = value.wrapping_sub(key as i64 as u64);
                if is_half {
                    self.buf.set_keeping_flags(gpr, masked);
                } else {
                    // The summand of `lea` has 32 bits, so each half is blinded in turn.
                    let masked = masked.swap_bytes().wrapping_sub(other as i64 as u64);
                    self.buf.set_keeping_flags(gpr, masked);
                    self.buf.lea(Width::W64, gpr, Mem::at(gpr, other));
                    self.buf.byte_swap(Width::W64, gpr);
                }
                self.buf.lea(Width::W64, gpr, Mem::at(gpr, key));
            }
            None => self.buf.set_keeping_flags(gpr, value),
        }
    }

    /// Compiles the instruction at a slot with its constant blinded; returns the number of
    /// slots, or `None` if there is nothing to blind.
    pub(super) fn write_blinded(&mut self, slot: usize) -> Option<usize> {
        match self.insns[slot] {
            Insn::Alu {
                src: Operand::Imm(imm),
                ..
            } if !self.may_be_immediate(imm) => self.compute_blinded(slot, imm),
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => {
                self.set_constant(self.gpr(dst), value.get());
                self.set_known_bits(dst, bits(value.get()));
                Some(1)
            }
            Insn::Store {
                size,
                base,
                off,
                src: Operand::Imm(imm),
            } if !self.may_be_immediate(imm) => {
                self.set_constant(SCRATCH, imm as i64 as u64);
                let mem = self.address(base, off);
                self.buf.store(size, mem, SCRATCH);
                Some(1)
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src: Operand::Imm(imm),
                ..
            } if !self.may_be_immediate(imm) && dst != Reg::R10 => {
                self.set_constant(SCRATCH, imm as i64 as u64);
                let cc = self.compare_with(cond, width, self.gpr(dst), SCRATCH);
                Some(self.jump_on(slot, cc))
            }
            Insn::PacketAbs { size, imm } if !self.may_be_immediate(imm) && imm > 0 => {
                self.set_constant(SCRATCH, imm as u64);
                self.packet_at_index(slot + 1, size, SCRATCH, true, 0);
                Some(1)
            }
            Insn::PacketInd { size, src, imm } if !self.may_be_immediate(imm) && imm > 0 => {
                let index = self.gpr(src);
                self.buf.mov(Width::W32, Gpr::RAX, index);
                self.set_constant(SCRATCH, imm as u64);
                let sum = Mem::indexed(Gpr::RAX, SCRATCH, 0);
                self.buf.lea(Width::W64, SCRATCH, sum);
                self.packet_at_index(slot + 1, size, SCRATCH, true, 0);
                Some(1)
            }
            // No constant, or one that need not be blinded.
            Insn::Alu { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Store { .. }
            | Insn::Jump { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::Imm64High
            | Insn::Load { .. }
            | Insn::LoadAcquire { .. }
            | Insn::StoreRelease { .. }
            | Insn::Atomic { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => None,
        }
    }

    fn compute_blinded(&mut self, slot: usize, imm: i32) -> Option<usize> {
        let this = self.arithmetic_at(slot)?;
        let value = match this.width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        match this.op {
            AluOp::Mov => {
                self.set_constant(self.gpr(this.dst), value);
                self.set_known_bits(this.dst, bits(value));
            }
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => return None,
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => self.divide(slot, this),
            AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor => {
                self.set_constant(SCRATCH, value);
                self.compute(
                    this.op,
                    this.width,
                    this.dst,
                    SCRATCH,
                    bits(imm as i64 as u64),
                );
            }
        }
        Some(1)
    }
}
