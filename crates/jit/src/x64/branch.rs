//! Branches: comparison and jump, or a jump on the flags of the operation before.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Width};

use super::asm::Alu;
use super::frame::SCRATCH;
use super::generator::{Flags, Generator, bits};
use super::reg::{Cc, Gpr, Mem};
use crate::Optimization;

impl Generator<'_> {
    /// `if dst cond src goto`, and the jump over which it may lead; how many
    /// slots that was.
    #[inline(never)]
    pub(super) fn branch(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        if self.usage.packet {
            return self.branch_in_filter(slot, cond, width, dst, src);
        }
        if src == Operand::Imm(0) && self.flags_before.width(dst).is_some() {
            return self.branch_on_flags(slot, cond, width, dst);
        }
        self.compare_and_jump(slot, cond, width, dst, src)
    }

    /// A branch where tests of a packet may be merged.
    #[inline(never)]
    fn branch_in_filter(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        self.merge_from(slot);
        let src = self.in_packet_order(slot, src);
        if src == Operand::Imm(0)
            && let Some(cc) = self.compared(cond, width, dst)
        {
            return self.jump_on(slot, cc);
        }
        if self.merged.is_some()
            && let (Width::W32, Operand::Imm(imm)) = (width, src)
            && self.note_difference(slot, cond, self.gpr(dst), imm)
        {
            return 1;
        }
        self.compare_and_jump(slot, cond, width, dst, src)
    }

    /// A branch on how a register that flags speak of compares with 0.
    #[inline(never)]
    fn branch_on_flags(&mut self, slot: usize, cond: Cond, width: Width, dst: Reg) -> usize {
        match self.compared(cond, width, dst) {
            Some(cc) => self.jump_on(slot, cc),
            None => self.compare_and_jump(slot, cond, width, dst, Operand::Imm(0)),
        }
    }

    #[inline(always)]
    fn compare_and_jump(
        &mut self,
        slot: usize,
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        if cond == Cond::Set || dst == Reg::R10 {
            return self.compare_rarely(slot, cond, width, dst, src);
        }
        let a = self.gpr(dst);
        let width_at = self.comparison_width(cond, width, dst, src);
        let cc = Cc::of(cond);
        match src {
            Operand::Imm(0) => {
                self.set_flags(dst, width_at);
                self.jump_on_self(slot, cc, width_at, a)
            }
            Operand::Imm(imm) => self.jump_on_imm(slot, cc, width_at, a, imm),
            Operand::Reg(Reg::R10) => self.compare_rarely(slot, cond, width, dst, src),
            Operand::Reg(src) => {
                let b = self.gpr(src);
                self.jump_on_regs(slot, cc, width_at, a, b)
            }
        }
    }

    // Each comparison is a function, so that none has registers to save.

    #[inline(never)]
    fn jump_on_self(&mut self, slot: usize, cc: Cc, width: Width, a: Gpr) -> usize {
        self.buf.test(width, a, a);
        self.jump_on(slot, cc)
    }

    #[inline(never)]
    fn jump_on_imm(&mut self, slot: usize, cc: Cc, width: Width, a: Gpr, imm: i32) -> usize {
        self.buf.alu_imm(Alu::Cmp, width, a, imm);
        self.jump_on(slot, cc)
    }

    #[inline(never)]
    fn jump_on_regs(&mut self, slot: usize, cc: Cc, width: Width, a: Gpr, b: Gpr) -> usize {
        self.buf.alu(Alu::Cmp, width, a, b);
        self.jump_on(slot, cc)
    }

    #[inline(never)]
    fn compare_rarely(
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
                    self.buf.test(width, a, b);
                }
                Operand::Imm(imm) => self.buf.test_imm(width, a, imm),
            }
        }
        self.jump_on(slot, Cc::of(cond))
    }

    /// The condition of a comparison with 0 in the flags as they are, if they tell.
    fn compared(&mut self, cond: Cond, width: Width, dst: Reg) -> Option<Cc> {
        let said = self.flags_before.width(dst)?;
        if !self.uses(Optimization::FlagReuse) {
            return None;
        }
        // The low half's result says all where the upper half is zero.
        let whole = said == width || said == Width::W32 && self.known(dst) <= 32;
        if !whole {
            return None;
        }
        let cc = match cond {
            Cond::Eq => Cc::E,
            Cond::Ne => Cc::Ne,
            Cond::SLt if said == width => Cc::S,
            Cond::SGe if said == width => Cc::Ns,
            _ => return None,
        };
        self.applies(Optimization::FlagReuse);
        self.flags = self.flags_before;
        Some(cc)
    }

    /// 32 bits where they decide: both sides are zero above.
    #[inline(always)]
    fn comparison_width(&self, cond: Cond, width: Width, dst: Reg, src: Operand) -> Width {
        let signed = matches!(cond, Cond::SGt | Cond::SGe | Cond::SLt | Cond::SLe);
        let most = if signed { 31 } else { 32 };
        let is_small = |reg| self.known(reg) <= most;
        let decide = width == Width::W32
            || is_small(dst)
                && match src {
                    Operand::Reg(src) => is_small(src),
                    Operand::Imm(imm) => imm >= 0,
                };
        if decide { Width::W32 } else { Width::W64 }
    }

    /// Compares two machine registers; the code under which the condition holds.
    pub(super) fn compare_with(&mut self, cond: Cond, width: Width, a: Gpr, b: Gpr) -> Cc {
        match cond {
            Cond::Set => self.buf.test(width, a, b),
            _ => self.buf.alu(Alu::Cmp, width, a, b),
        }
        Cc::of(cond)
    }

    #[cold]
    fn compare_frame_pointer(&mut self, cond: Cond, width: Width, dst: Reg, src: Operand) {
        let top = self.frame.stack_top();
        self.buf.lea(Width::W64, SCRATCH, top);
        let gpr = |generator: &Self, reg| match reg {
            Reg::R10 => SCRATCH,
            reg => generator.gpr(reg),
        };
        let a = gpr(self, dst);
        match (cond, src) {
            (Cond::Set, Operand::Imm(imm)) => self.buf.test_imm(width, a, imm),
            (_, Operand::Imm(imm)) => self.buf.alu_imm(Alu::Cmp, width, a, imm),
            (Cond::Set, Operand::Reg(src)) => {
                let b = gpr(self, src);
                self.buf.test(width, a, b);
            }
            (_, Operand::Reg(src)) => {
                let b = gpr(self, src);
                self.buf.alu(Alu::Cmp, width, a, b);
            }
        }
    }

    /// Where the jump at a slot leads.
    pub(super) fn target(&self, slot: usize) -> usize {
        self.facts[slot].jump().expect("the slot holds a jump")
    }

    /// Jumps where the branch at a slot leads, or does what it leads over without a
    /// jump; how many slots that was.
    #[inline(never)]
    pub(super) fn jump_on(&mut self, slot: usize, cc: Cc) -> usize {
        let fact = &self.facts[slot];
        match fact.jump() {
            Some(target) if target != slot + 2 && !fact.is_selection() && !self.filters_packets => {
                self.jump_if(cc, target);
                1
            }
            _ => self.jump_rarely(slot, cc),
        }
    }

    /// As [`Generator::jump_on`], in its rare forms.
    #[inline(never)]
    fn jump_rarely(&mut self, slot: usize, cc: Cc) -> usize {
        let target = self.target(slot);
        let is_selection = self.facts[slot].is_selection();
        let results = match self.filters_packets && !is_selection {
            true => self.results_on(slot, target),
            false => None,
        };
        let cc = match self.merged {
            Some(merged) => match (self.note_test(merged, slot, cc), results) {
                (None, _) => return 1,
                (Some(asked), Some(results)) if self.return_masked(asked, results) => {
                    return self.slots_returned(slot);
                }
                (Some(asked), _) => self.ask(asked),
            },
            None => cc,
        };
        if is_selection {
            self.applies(Optimization::ConditionalMove);
            return self.select(slot + 1, cc.not());
        }
        if target == slot + 2
            && let Some(count) = self.jump_over(slot, cc)
        {
            return count;
        }
        if let Some(results) = results {
            self.return_either(cc, results);
            return self.slots_returned(slot);
        }
        self.jump_if(cc, target);
        1
    }

    /// How many slots are done with a branch behind which all has returned.
    fn slots_returned(&self, slot: usize) -> usize {
        // `ld #k; ret a` may be entered at its end.
        let is_reached = [slot + 1, slot + 2].map(|at| self.facts[at].is_target());
        if is_reached == [false; 2] { 3 } else { 1 }
    }

    /// A branch over a jump is the opposite branch to where that leads.
    fn jump_over(&mut self, slot: usize, cc: Cc) -> Option<usize> {
        let (Insn::Goto { .. } | Insn::GotoLong { .. }) = self.peek(slot + 1)? else {
            return None;
        };
        if self.draws_on_budget(slot + 1) {
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

    /// What a packet filter returns behind a branch and where it leads, if both ends
    /// return constants.
    fn results_on(&self, slot: usize, target: usize) -> Option<[u32; 2]> {
        let result = |slot: usize| match (self.insns.get(slot)?, self.insns.get(slot + 1)?) {
            (
                Insn::Alu {
                    op: AluOp::Mov,
                    dst: Reg::R0,
                    src: Operand::Imm(imm),
                    ..
                },
                Insn::Exit,
            ) => Some(*imm as u32),
            _ => None,
        };
        if self.blinds() || !self.uses(Optimization::ConditionalReturn) {
            return None;
        }
        let next = match self.insns.get(slot + 1)? {
            Insn::Goto { .. } if !self.draws_on_budget(slot + 1) => self.target(slot + 1),
            _ => slot + 1,
        };
        Some([result(next)?, result(target)?])
    }

    /// Returns the second where the condition holds, else the first, without a jump:
    /// whether a packet matches is what is hardest to predict.
    fn return_either(&mut self, cc: Cc, [first, second]: [u32; 2]) {
        self.applies(Optimization::ConditionalReturn);
        let result = self.gpr(Reg::R0);
        self.buf.set_keeping_flags(result, u64::from(first));
        self.buf.set_keeping_flags(SCRATCH, u64::from(second));
        self.buf.mov_if(cc, Width::W32, result, SCRATCH);
        self.exit();
    }

    /// Jumps to a slot under a condition.
    #[inline(always)]
    fn jump_if(&mut self, cc: Cc, target: usize) {
        let label = self.label(target);
        self.buf.jump_if(cc, label);
    }

    /// The move at a slot, where the condition holds.
    fn select(&mut self, slot: usize, cc: Cc) -> usize {
        let fact = self.facts[slot];
        let Insn::Alu {
            width, dst, src, ..
        } = self.insns[slot]
        else {
            unreachable!("a selection is followed by a move");
        };
        // What flags speak of may change here.
        self.flags = Flags::NONE;
        if fact.is_dead() {
            return 2;
        }
        if self.set_condition == Some(slot) {
            self.set_condition = None;
            let holds = if src == Operand::Imm(1) { cc } else { cc.not() };
            let to = self.gpr(dst);
            self.buf.set_if(holds, to);
            self.know(dst, 1);
            return 2;
        }
        let upper = fact.after.has_upper(dst);
        let (to, known) = (self.gpr(dst), self.known(dst));
        let (from, from_known) = match src {
            Operand::Reg(src) => {
                let from = self.gpr(src);
                let bits = self.known(src);
                if width == Width::W32 && upper && bits > 32 {
                    self.buf.mov(Width::W32, SCRATCH, from);
                    (SCRATCH, 32)
                } else {
                    (from, bits)
                }
            }
            Operand::Imm(imm) => {
                let value = match width {
                    Width::W32 => u64::from(imm as u32),
                    Width::W64 => imm as i64 as u64,
                };
                self.set_constant(SCRATCH, value);
                (SCRATCH, bits(value))
            }
        };
        // On 32 bits the upper half is zeroed, whether the move is done or not.
        let bits = known.max(from_known);
        let width = if upper && bits > 32 {
            Width::W64
        } else {
            Width::W32
        };
        self.buf.mov_if(cc, width, to, from);
        self.know(
            dst,
            if width == Width::W32 {
                bits.min(32)
            } else {
                bits
            },
        );
        2
    }

    /// The jump at a slot, and perhaps the loop that it enters; how many slots that was.
    #[inline(never)]
    pub(super) fn goto(&mut self, slot: usize) -> usize {
        let target = self.target(slot);
        self.spend_budget(slot);
        if target != slot + 1 {
            let label = self.label(target);
            self.buf.jump(label);
        }
        1
    }

    /// The counter goes down, and below 0 it stays: every later one jumps too.
    #[inline(never)]
    pub(super) fn may_goto(&mut self, slot: usize) {
        let target = self.target(slot);
        let top = self.frame.stack_top();
        let offset = self.frame.may_goto.expect("the function uses may_goto");
        let counter = Mem::at(top.base, top.disp + offset);
        self.buf
            .alu_store_imm(Alu::Sub, isa::ebpf::Size::DW, counter, 1);
        let label = self.label(target);
        self.buf.jump_if(Cc::S, label);
    }
}
