//! Moves between registers, and what is then done to the copy: `lea`, and operations of
//! three operands.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::alu::Arithmetic;
use super::generator::{Generator, bits};
use super::reg::{Gpr, Mem};
use super::shift::shift;

impl Generator<'_> {
    /// `dst = src`, and what is then done to `dst`.
    #[inline(never)]
    pub(super) fn copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> usize {
        if src == Reg::R10 {
            return self.copy_frame_pointer(slot, reg);
        }
        if reg != src
            && let Some(Insn::Alu { dst: next, .. }) = self.peek(slot + 1)
            && next == reg
            && let Some(count) = self.fuse_copy(slot, width, reg, src)
        {
            return count;
        }
        let (dst, from) = (self.gpr(reg), self.gpr(src));
        let known = self.known(src);
        let flags = self.flags_before;
        if dst == from {
            let zeroes = width == Width::W32 && known > 32;
            if !zeroes || !self.upper_wanted(slot, reg) {
                self.flags = flags;
                return 1;
            }
        }
        self.buf.mov(width, dst, from);
        self.keep_flags(flags, reg);
        let known = match width {
            Width::W32 => known.min(32),
            Width::W64 => known,
        };
        self.know(reg, known);
        1
    }

    /// `dst = src`, where the one has the other's place until now.
    pub(super) fn exchanged(&mut self, slot: usize, width: Width, dst: Reg, src: Reg, late: bool) {
        self.frame.exchange(dst, src);
        self.keep_flags(self.flags_before, dst);
        let (to, from) = (self.gpr(src), self.gpr(dst));
        if late {
            self.late.push((src, to, from));
        } else if self.after(slot).has(src) {
            self.buf.mov(Width::W64, to, from);
        }
        let known = self.known(src);
        let truncates = width == Width::W32 && known > 32 && self.upper_wanted(slot, dst);
        if truncates {
            self.buf.mov(Width::W32, from, from);
        }
        self.know(dst, if truncates { 32 } else { known });
    }

    /// `dst = r10`, and a constant added to it.
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
            if self.is_only_address(slot + count + 1, dst, [other, Reg::R10], mem) {
                return count + 1;
            }
        }
        self.lea_or_mov(Width::W64, self.gpr(dst), top);
        self.know(dst, 64);
        count
    }

    /// The register that the slot adds to all of `dst`.
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
            self.buf.mov(width, dst, mem.base);
        } else {
            self.buf.lea(width, dst, mem);
        }
    }

    /// A copy together with the operation on it at the next slot; `None` where there is no form.
    fn fuse_copy(&mut self, slot: usize, width: Width, reg: Reg, src: Reg) -> Option<usize> {
        let next = self.arithmetic_at(slot + 1)?;
        // A copy of the low half that is then used whole must zero the upper one.
        let truncates = width == Width::W32 && self.known(src) > 32;
        if truncates && next.width == Width::W64 {
            return None;
        }
        let (dst, from) = (self.gpr(reg), self.gpr(src));
        let known = self.known(src);
        match (next.op, next.src) {
            (AluOp::Add, Operand::Imm(imm)) => {
                self.buf.lea(next.width, dst, Mem::at(from, imm));
            }
            (AluOp::Sub, Operand::Imm(imm)) if imm != i32::MIN => {
                self.buf.lea(next.width, dst, Mem::at(from, -imm));
            }
            (AluOp::Add, Operand::Reg(other)) if other != Reg::R10 => {
                let other = if other == reg { src } else { other };
                let mem = Mem::indexed(from, self.gpr(other), 0);
                if next.width == Width::W64
                    && self.is_only_address(slot + 2, reg, [src, other], mem)
                {
                    return Some(2);
                }
                self.buf.lea(next.width, dst, short_sum(mem));
            }
            (AluOp::Mul, Operand::Imm(imm)) if !(imm as u32).is_power_of_two() && imm != 0 => {
                self.buf.multiply_imm(next.width, dst, from, imm);
            }
            (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, Operand::Imm(imm)) => {
                self.divide_by_constant(slot + 1, next, src, imm);
                return Some(2);
            }
            (AluOp::And, Operand::Imm(0xff)) => self.buf.extend(Size::B, None, dst, from),
            (AluOp::And, Operand::Imm(0xffff)) => self.buf.extend(Size::H, None, dst, from),
            (AluOp::Lsh, Operand::Imm(count @ 16..)) => {
                let extension = self.extension(slot + 2, reg, next.width, count)?;
                self.buf.extend(extension.from, extension.sign, dst, from);
                self.finish_extension(reg, extension);
                return Some(3);
            }
            (AluOp::Lsh, Operand::Imm(scale @ 1..=3)) => {
                let scaled = (src, scale as u8);
                let added = self
                    .scaled_index(slot + 2, reg, scaled, next.width)
                    .or_else(|| self.add_scaled(slot + 2, reg, scaled, next.width))?;
                return Some(2 + added);
            }
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(count))
                if self.features.bmi2 && count != reg && count != Reg::R10 =>
            {
                let count = self.gpr(count);
                let op = shift(next.op)?;
                self.buf.shift_by(op, next.width, dst, from, count);
            }
            _ => return None,
        }
        let known = match next.op {
            AluOp::And => known.min(bits(self.imm_of(next))),
            _ if next.width == Width::W32 => 32,
            _ => 64,
        };
        self.know(reg, known);
        Some(2)
    }

    fn imm_of(&self, this: Arithmetic) -> u64 {
        match this.src {
            Operand::Imm(imm) => imm as i64 as u64,
            Operand::Reg(_) => u64::MAX,
        }
    }
}

/// A base of rbp or r13 always takes a displacement; as an index they do not.
pub(super) fn short_sum(mem: Mem) -> Mem {
    match mem.index {
        Some((index, 0)) if mem.base.0 & 7 == 5 && index != Gpr::RSP => Mem {
            base: index,
            index: Some((mem.base, 0)),
            ..mem
        },
        _ => mem,
    }
}
