//! Branches: comparison and jump, a jump on the flags of the previous operation, conditional moves.

use isa::ebpf::{Cond, Insn, Operand, Reg, Width};

use super::arithmetic::bits;
use super::generator::{Flags, Generator};
use super::target::{Alu, Assembler, Cc, Layout, Mem, Target};
use crate::Optimization;

impl<T: Target> Generator<'_, T> {
    /// Compiles `if dst cond src goto`, and the move or jump that it may skip; returns the
    /// number of slots.
    pub(crate) fn branch(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        if src == Operand::Imm(0) && self.flags_before.width(dst).is_some() {
            return self.branch_on_flags(slot, cond, width, dst);
        }
        self.compare_and_jump(slot, cond, width, dst, src)
    }

    /// A comparison with 0 of a register that the flags describe.
    fn branch_on_flags(&mut self, slot: usize, cond: Cond, width: Width, dst: Reg) -> usize {
        match self.compared(cond, width, dst) {
            Some(cc) => self.jump_on(slot, cc),
            None => self.compare_and_jump(slot, cond, width, dst, Operand::Imm(0)),
        }
    }

    fn compare_and_jump(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        if cond.tests_bits() || dst == Reg::R10 {
            return self.compare_special(slot, cond, width, dst, src);
        }
        let a = self.gpr(dst);
        let width_at = self.comparison_width(cond, width, dst, src);
        let cc = Cc::of(cond);
        match src {
            Operand::Imm(0) => {
                self.set_flags(dst, width_at);
                self.asm.test(width_at, a, a);
            }
            Operand::Imm(imm) => self.asm.alu_imm(Alu::Cmp, width_at, a, imm),
            Operand::Reg(Reg::R10) => return self.compare_special(slot, cond, width, dst, src),
            Operand::Reg(src) => {
                let b = self.gpr(src);
                self.asm.alu(Alu::Cmp, width_at, a, b);
            }
        }
        self.jump_on(slot, cc)
    }

    fn compare_special(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        if dst == Reg::R10 || src == Operand::Reg(Reg::R10) {
            self.compare_frame_pointer(cond, width, dst, src);
        } else {
            let a = self.gpr(dst);
            let width = self.comparison_width(cond, width, dst, src);
            match src {
                Operand::Reg(src) => {
                    let b = self.gpr(src);
                    self.asm.test(width, a, b);
                }
                Operand::Imm(imm) => self.asm.test_imm(width, a, imm),
            }
        }
        self.jump_on(slot, Cc::of(cond))
    }

    /// The condition code of a comparison with 0, if the flags of the previous operation
    /// have it.
    fn compared(&mut self, cond: Cond, width: Width, dst: Reg) -> Option<Cc> {
        let said = self.flags_before.width(dst)?;
        if !self.uses(Optimization::FlagReuse) {
            return None;
        }
        // The flags of a 32-bit operation are valid where the upper half is zero.
        let whole = said == width || said == Width::W32 && self.known_bits(dst) <= 32;
        if !whole {
            return None;
        }
        let cc = match cond {
            Cond::Eq => Cc::Equal,
            Cond::Ne => Cc::NotEqual,
            Cond::SLt if said == width => Cc::Negative,
            Cond::SGe if said == width => Cc::NotNegative,
            _ => return None,
        };
        self.applies(Optimization::FlagReuse);
        self.flags = self.flags_before;
        Some(cc)
    }

    /// The width of a comparison: 32 bits if the upper halves of both sides are zero.
    fn comparison_width(&self, cond: Cond, width: Width, dst: Reg, src: Operand) -> Width {
        let most = if cond.is_signed() { 31 } else { 32 };
        let is_small = |reg| self.known_bits(reg) <= most;
        let decide = width == Width::W32
            || is_small(dst)
                && match src {
                    Operand::Reg(src) => is_small(src),
                    Operand::Imm(imm) => imm >= 0,
                };
        if decide { Width::W32 } else { Width::W64 }
    }

    fn compare_frame_pointer(&mut self, cond: Cond, width: Width, dst: Reg, src: Operand) {
        let top = self.frame.stack_top();
        self.asm.lea(Width::W64, T::SCRATCH, top);
        let gpr = |generator: &Self, reg| match reg {
            Reg::R10 => T::SCRATCH,
            reg => generator.gpr(reg),
        };
        let a = gpr(self, dst);
        match (cond.tests_bits(), src) {
            (true, Operand::Imm(imm)) => self.asm.test_imm(width, a, imm),
            (false, Operand::Imm(imm)) => self.asm.alu_imm(Alu::Cmp, width, a, imm),
            (true, Operand::Reg(src)) => {
                let b = gpr(self, src);
                self.asm.test(width, a, b);
            }
            (false, Operand::Reg(src)) => {
                let b = gpr(self, src);
                self.asm.alu(Alu::Cmp, width, a, b);
            }
        }
    }

    /// The target of the jump at a slot.
    pub(crate) fn target(&self, slot: usize) -> usize {
        self.infos[slot].jump().expect("the slot holds a jump")
    }

    /// Compiles the branch at a slot on a condition code: a jump, or branch-free code for
    /// the slots that it skips; returns the number of slots.
    pub(crate) fn jump_on(&mut self, slot: usize, cc: Cc) -> usize {
        let target = self.target(slot);
        let is_selection = self.infos[slot].is_selection();
        if is_selection {
            self.applies(Optimization::ConditionalMove);
            return self.select(slot + 1, cc.not());
        }
        if target == slot + 2
            && let Some(count) = self.jump_over(slot, cc)
        {
            return count;
        }
        self.jump_if(cc, target);
        1
    }

    /// Inverts a branch over a jump.
    fn jump_over(&mut self, slot: usize, cc: Cc) -> Option<usize> {
        let (Insn::Goto { .. } | Insn::GotoLong { .. }) = self.peek(slot + 1)? else {
            return None;
        };
        if self.consumes_budget(slot + 1) {
            return None;
        }
        let other = self.target(slot + 1);
        if !self.uses(Optimization::BranchInversion) {
            return None;
        }
        self.applies(Optimization::BranchInversion);
        self.jump_if(cc.not(), other);
        Some(2)
    }

    /// Jumps to a slot if a condition holds.
    fn jump_if(&mut self, cc: Cc, target: usize) {
        let label = self.label(target);
        self.asm.jump_if(cc, label);
    }

    /// Compiles the move at a slot to a conditional move.
    fn select(&mut self, slot: usize, cc: Cc) -> usize {
        let info = self.infos[slot];
        let Insn::Alu {
            width, dst, src, ..
        } = self.insns[slot]
        else {
            unreachable!("a selection is followed by a move");
        };
        // The register that the flags describe may change here.
        self.flags = Flags::NONE;
        if info.is_dead() {
            return 2;
        }
        if self.set_condition == Some(slot) {
            self.set_condition = None;
            let holds = if src == Operand::Imm(1) { cc } else { cc.not() };
            let to = self.gpr(dst);
            self.asm.set_if(holds, to);
            self.set_known_bits(dst, 1);
            return 2;
        }
        let upper = info.live_out.has_upper(dst);
        let (to, known_bits) = (self.gpr(dst), self.known_bits(dst));
        let (from, from_known) = match src {
            Operand::Reg(src) => {
                let from = self.gpr(src);
                let bits = self.known_bits(src);
                if width == Width::W32 && upper && bits > 32 {
                    self.asm.mov(Width::W32, T::SCRATCH, from);
                    (T::SCRATCH, 32)
                } else {
                    (from, bits)
                }
            }
            Operand::Imm(imm) => {
                let value = match width {
                    Width::W32 => u64::from(imm as u32),
                    Width::W64 => imm as i64 as u64,
                };
                self.asm.set_keeping_flags(T::SCRATCH, value);
                (T::SCRATCH, bits(value))
            }
        };
        // A 32-bit conditional move zeroes the upper half in either case.
        let bits = known_bits.max(from_known);
        let width = if upper && bits > 32 {
            Width::W64
        } else {
            Width::W32
        };
        self.asm.mov_if(cc, width, to, from);
        self.set_known_bits(
            dst,
            if width == Width::W32 {
                bits.min(32)
            } else {
                bits
            },
        );
        2
    }

    /// Compiles the unconditional jump at a slot; returns 1, the number of slots.
    pub(crate) fn goto(&mut self, slot: usize) -> usize {
        let target = self.target(slot);
        self.consume_budget(slot);
        if target != slot + 1 {
            let label = self.label(target);
            self.asm.jump(label);
        }
        1
    }

    /// Compiles `may_goto`: decrements the counter and jumps if it is negative.
    pub(crate) fn may_goto(&mut self, slot: usize) {
        let target = self.target(slot);
        let top = self.frame.stack_top();
        let offset = self.frame.may_goto.expect("the function uses may_goto");
        let counter = Mem::at(top.base, top.disp + offset);
        self.asm
            .alu_store_imm(Alu::Sub, isa::ebpf::Size::DW, counter, 1);
        let label = self.label(target);
        self.asm.jump_if(Cc::Negative, label);
    }
}
