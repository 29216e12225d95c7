//! Register moves, fused with the operation on the copy: `lea` and three-operand forms.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::Generator;
use super::alu::extended;
use super::form::Form;
use super::reg::{Gpr, Mem};
use crate::Optimization;
use crate::codegen::{Alu, Arithmetic, Assembler, Shift, all};

impl Generator<'_> {
    /// Compiles `dst = src`, fused with the next operation on `dst` where possible; returns
    /// the number of slots.
    pub(super) fn copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> usize {
        if src == Reg::R10 {
            return self.copy_frame_pointer(slot, reg);
        }
        // A quick check of the next slot before the peephole search.
        if let Some(&Insn::Alu {
            op,
            dst,
            src: other,
            ..
        }) = self.insns.get(slot + 1)
            && dst == reg
            && reg != src
        {
            match (op, other) {
                _ if !self.uses(Optimization::ThreeOperands) => {}
                (AluOp::Add, Operand::Imm(imm)) => {
                    return self.copy_and_add(slot, width, reg, src, imm);
                }
                _ if has_three_operand_form(op, other) => {
                    return self.fuse_or_copy(slot, width, reg, src);
                }
                _ => {}
            }
        }
        self.only_copy(slot, width, reg, src)
    }

    /// `dst = src; dst += imm`
    fn copy_and_add(&mut self, slot: usize, width: Width, reg: Reg, src: Reg, imm: i32) -> usize {
        let Some(Arithmetic { width: wanted, .. }) = self.after_copy(slot + 1, width, src) else {
            return self.only_copy(slot, width, reg, src);
        };
        self.applies(Optimization::ThreeOperands);
        self.set_known_bits(reg, all(wanted));
        let mem = Mem::at(self.gpr(src), imm);
        self.asm.lea(wanted, self.frame.gpr(reg), mem);
        2
    }

    /// The operation at a slot on the copy, if it may use the source register instead.
    fn after_copy(&self, slot: usize, width: Width, src: Reg) -> Option<Arithmetic> {
        let this = self.arithmetic(slot)?;
        // A 32-bit copy that is then used on 64 bits must zero the upper half.
        let zeroes = width == Width::W32 && self.known_bits(src) > 32 && this.width == Width::W64;
        (!zeroes).then_some(this)
    }

    fn fuse_or_copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> usize {
        match self.fuse_copy(slot, width, reg, src) {
            Some(count) => {
                self.applies(Optimization::ThreeOperands);
                count
            }
            None => self.only_copy(slot, width, reg, src),
        }
    }

    /// `dst = src`; returns 1, the number of slots.
    fn only_copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> usize {
        let (dst, from) = (self.gpr(reg), self.gpr(src));
        let known_bits = self.known_bits(src);
        if dst == from && (width == Width::W64 || known_bits <= 32 || !self.upper_live(slot, reg)) {
            if width == Width::W32 {
                self.applies(Optimization::KnownBits);
            }
            self.flags = self.flags_before;
            return 1;
        }
        self.keep_flags(reg);
        self.set_known_bits(reg, known_bits.min(all(width)));
        self.asm.mov(width, dst, from);
        1
    }

    /// `dst = r10`, fused with the addition of a constant.
    fn copy_frame_pointer(&mut self, slot: usize, dst: Reg) -> usize {
        let mut top = self.frame.stack_top();
        let mut count = 1;
        if let Some(Arithmetic {
            op: AluOp::Add,
            width: Width::W64,
            dst: next,
            src: Operand::Imm(imm),
        }) = self.arithmetic(slot + 1)
            && next == dst
            && let Some(disp) = top.disp.checked_add(imm)
        {
            top.disp = disp;
            count = 2;
        }
        if let Some(other) = self.added(slot + count, dst) {
            let mem = Mem {
                index: Some((self.gpr(other), 0)),
                ..top
            };
            if self.fold_address(slot + count + 1, dst, [other, Reg::R10], mem) {
                return count + 1;
            }
        }
        self.lea_or_mov(Width::W64, self.gpr(dst), top);
        self.set_known_bits(dst, 64);
        count
    }

    /// The register that the slot adds to `dst` on 64 bits.
    fn added(&self, slot: usize, dst: Reg) -> Option<Reg> {
        match self.arithmetic(slot)? {
            Arithmetic {
                op: AluOp::Add,
                width: Width::W64,
                dst: to,
                src: Operand::Reg(other),
            } if to == dst && other != dst && other != Reg::R10 => Some(other),
            _ => None,
        }
    }

    fn lea_or_mov(&mut self, width: Width, dst: Gpr, mem: Mem) {
        if mem.disp == 0 && mem.index.is_none() {
            self.asm.mov(width, dst, mem.base);
        } else {
            self.asm.lea(width, dst, mem);
        }
    }

    /// Fuses a copy with the operation on it at the next slot; `None` if there is no
    /// three-operand form.
    fn fuse_copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> Option<usize> {
        let Arithmetic {
            op,
            width,
            src: operand,
            ..
        } = self.after_copy(slot + 1, width, src)?;
        let known_bits = self.known_bits(src);
        let (dst, from) = (self.gpr(reg), self.gpr(src));
        let mut most = all(width);
        match (op, operand) {
            (AluOp::Sub, Operand::Imm(imm)) if imm != i32::MIN => {
                self.asm.lea(width, dst, Mem::at(from, -imm));
            }
            (AluOp::Add, Operand::Reg(other)) if other != Reg::R10 => {
                let other = if other == reg { src } else { other };
                let mem = Mem::indexed(from, self.gpr(other), 0);
                if width == Width::W64 && self.fold_address(slot + 2, reg, [src, other], mem) {
                    return Some(2);
                }
                self.asm.lea(width, dst, short_sum(mem));
            }
            (AluOp::Mul, Operand::Imm(imm)) if !matches!(imm, 0 | 1) => {
                self.asm.multiply_imm(width, dst, from, imm);
            }
            (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, Operand::Imm(imm)) => {
                let division = Arithmetic {
                    op,
                    width,
                    dst: reg,
                    src: operand,
                };
                self.divide_by_constant(slot + 1, division, src, imm);
                return Some(2);
            }
            (AluOp::And, Operand::Imm(mask)) => {
                let size = extended(mask)?;
                if self.is_compared_with_zero(slot + 2, reg) {
                    return None;
                }
                self.asm.extend(size, None, dst, from);
                most = known_bits.min(size.bytes() as u8 * 8);
            }
            (AluOp::Lsh, Operand::Imm(count @ 16..)) => {
                let extension = self.extension(slot + 2, reg, width, count)?;
                self.applies(Optimization::Extension);
                self.asm.extend(extension.from, extension.sign, dst, from);
                self.finish_extension(reg, extension);
                return Some(3);
            }
            (op, Operand::Reg(count))
                if let Form::Shift(op) = Form::of(op)
                    && self.target.features.bmi2
                    && count != reg
                    && count != Reg::R10 =>
            {
                let count = self.gpr(count);
                self.asm.shift_by(op, width, dst, from, count);
            }
            _ => return None,
        }
        self.set_known_bits(reg, most);
        Some(2)
    }
}

/// True if an operation may have a three-operand form.
const fn has_three_operand_form(op: AluOp, src: Operand) -> bool {
    match (Form::of(op), src) {
        (Form::Plain(Alu::And), Operand::Imm(mask)) => extended(mask).is_some(),
        (Form::Plain(Alu::Add), _) | (Form::Shift(_), Operand::Reg(_)) => true,
        (Form::Shift(shift), Operand::Imm(_)) => matches!(shift, Shift::Shl),
        (Form::Plain(Alu::Sub) | Form::Multiply | Form::Divide { .. }, Operand::Imm(_)) => true,
        (Form::Move | Form::Plain(_) | Form::Multiply | Form::Divide { .. }, _) => false,
    }
}

/// Swaps base and index if that saves the displacement, which a base of `rbp` or `r13`
/// always has.
fn short_sum(mem: Mem) -> Mem {
    match mem.index {
        Some((index, 0)) if mem.base.number() & 7 == 5 && index != Gpr::RSP => Mem {
            base: index,
            index: Some((mem.base, 0)),
            ..mem
        },
        _ => mem,
    }
}
