//! Statements of functions: computations, accesses, idioms, forks, loops and calls, in any
//! nesting.

use super::Dialect;
use super::draft::{Item, Label};
use super::memory::Rows;
use super::scope::{
    GOTO, Holds, Param, R10, Scope, Signature, alu, bit, branch, load, mov, reg, store,
};
use super::{idioms, near_miss};
use isa::ebpf::{AluOp, Callee, Cond, Insn, Operand, Reg, Size, Width};

/// Number of kinds of statements.
pub(super) const KINDS: usize = 14;

/// Default weight of each kind.
pub(super) const WEIGHTS: [u32; KINDS] = [30, 6, 12, 10, 8, 36, 12, 6, 5, 4, 3, 3, 1, 4];

/// Blocks inside blocks.
const DEEPEST: u32 = 4;

/// The number of times that a loop of `may_goto` turns before it gives up is the
/// same in every engine; these run it out.
const ENDLESS_ONCE_IN: u32 = 200_000;

/// A loop under way.
struct Turn {
    head: Label,
    out: Label,
    /// Contents of registers at the loop header.
    at_head: [Holds; Reg::COUNT],
    /// Their contents at an exit from the body, if there is one.
    left: Option<[Holds; Reg::COUNT]>,
    /// Number of executions of the loop statement.
    times: u32,
}

impl Scope<'_, '_> {
    /// So many statements.
    pub(super) fn block(&mut self, count: u32) {
        for _ in 0..count {
            if self.choices.is_spent() {
                break;
            }
            self.statement();
        }
    }

    /// One statement of any kind.
    fn statement(&mut self) {
        let sum: u32 = self.weights.iter().sum();
        let mut at = self.choices.below(sum.max(1));
        let mut kind = 0;
        while kind < KINDS - 1 && at >= self.weights[kind] {
            at -= self.weights[kind];
            kind += 1;
        }
        if self.is_hard_to_verify() {
            return self.compute_any();
        }
        let can_nest = self.depth < DEEPEST && !self.is_costly();
        match kind {
            0 => self.compute_any(),
            1 => {
                let dst = self.target();
                self.fill(dst);
            }
            2 => self.access_any(Rows::Load),
            3 => self.access_any(Rows::Store),
            4 => self.access_any(Rows::Atomic),
            5 => self.idiom(),
            6 if can_nest => self.fork(),
            7 if can_nest => self.turns(),
            8 if can_nest => self.local_call(),
            9 => self.helper_call(),
            10 => self.move_around(),
            11 => self.compare_chain(),
            12 => self.padding(),
            13 => self.spill_and_fill(),
            _ => self.compute_any(),
        }
    }

    /// Something that compilers write, or nearly.
    fn idiom(&mut self) {
        let number = self.choices.below(idioms::ALL.len() as u32) as usize;
        let Some(recipe) = idioms::ALL[number].write(self) else {
            return;
        };
        let forks = |item: &Item| matches!(item, Item::Jump(..));
        let forks = recipe.iter().filter(|item| forks(item)).count() as u32;
        if self.dialect == Dialect::Kernel && self.times > 1 && forks > 2 {
            return;
        }
        self.note_forks(forks);
        let is_near_miss = self.choices.percent(50);
        self.notes.idiom(number, is_near_miss);
        let recipe = if is_near_miss {
            near_miss::change(self, recipe)
        } else {
            recipe
        };
        self.cost = self
            .cost
            .saturating_add(self.times.saturating_mul(recipe.len() as u32));
        self.items.extend(recipe);
    }

    /// Linux's verifier walks every way through every turn of a loop, so loops in
    /// programs for it have few forks.
    fn is_hard_to_verify(&self) -> bool {
        self.dialect == Dialect::Kernel && self.times > 1 && self.forks >= 20
    }

    fn small_block(&mut self) {
        let count = self.choices.pick(&[0, 1, 1, 1, 2, 2, 3, 5]);
        self.nested(count);
    }

    fn nested(&mut self, count: u32) {
        self.depth += 1;
        self.block(count);
        self.depth -= 1;
    }

    /// A condition with what follows from it.
    fn fork(&mut self) {
        let condition = self.condition();
        let (otherwise, join) = (self.label(), self.label());
        self.jump(condition, otherwise);
        let before = self.holds;
        match self.choices.below(8) {
            // Nothing between: both ways lead to the next instruction.
            0 => self.place_label(otherwise),
            1..4 => {
                self.small_block();
                self.place_label(otherwise);
                self.meet(&before);
            }
            4 if self.choices.one_in(3) => {
                self.leave();
                self.place_label(otherwise);
                self.holds = before;
            }
            5 => {
                // A second condition leads to the same place.
                let second = self.condition();
                let to = self.choices.pick(&[otherwise, join]);
                self.jump(second, to);
                let at_second = self.holds;
                self.small_block();
                self.jump_on(join);
                let after = self.holds;
                self.holds = before;
                self.meet(&at_second);
                self.place_label(otherwise);
                self.small_block();
                self.meet(&after);
                self.meet(&at_second);
                self.place_label(join);
            }
            _ => {
                self.small_block();
                self.jump_on(join);
                let after = self.holds;
                self.holds = before;
                self.place_label(otherwise);
                self.small_block();
                self.meet(&after);
                self.place_label(join);
            }
        }
    }

    /// An unconditional jump, short or long.
    fn jump_on(&mut self, to: Label) {
        let insn = if self.choices.one_in(4) {
            Insn::GotoLong { off: 0 }
        } else {
            GOTO
        };
        self.jump(insn, to);
    }

    /// Leaves the function early.
    fn leave(&mut self) {
        self.give_number();
        self.emit(Insn::Exit);
    }

    /// Sets `r0` to a number.
    pub(super) fn give_number(&mut self) {
        let from = self.scalar();
        if from != Reg::R0 {
            let width = self.width();
            let insn = alu(AluOp::Mov, width, Reg::R0, Operand::Reg(from));
            self.compute(Reg::R0, insn);
        }
    }

    /// A loop whose turns are counted.
    fn turns(&mut self) {
        let is_main = self.frame.end.is_some();
        if self.dialect == Dialect::Engines
            && (is_main && self.depth == 0)
            && self.choices.one_in(ENDLESS_ONCE_IN)
        {
            return self.endless_turns();
        }
        let room = self.cost_limit.saturating_sub(self.cost) / self.times.max(1) / 12;
        let most = match self.dialect {
            Dialect::Kernel => 4,
            Dialect::Engines => 24,
        };
        let most = most.min(room);
        // The body needs registers beside the counter and its limit.
        if most < 1 || (0x3ff & !self.pinned).count_ones() < 8 {
            return self.compute_any();
        }
        let turns = 1 + self.choices.below(most) as i32;
        let on_stack = self.frame.counters.iter().position(Option::is_some);
        let before = self.pinned;
        match on_stack {
            Some(number) if self.choices.one_in(4) => {
                let slot = self.frame.counters[number].take();
                self.turns_counted_on_stack(slot.unwrap_or(0), turns);
                self.frame.counters[number] = slot;
            }
            _ => self.turns_counted_in_register(turns),
        }
        self.pinned = before;
    }

    fn turns_counted_in_register(&mut self, turns: i32) {
        let counter = self.target();
        self.pinned |= bit(counter);
        let width = self.width();
        let shape = self.choices.below(5);
        let start = if matches!(shape, 0 | 4) { turns } else { 0 };
        let start = alu(AluOp::Mov, Width::W64, counter, Operand::Imm(start));
        let step = if matches!(shape, 0 | 4) { -1 } else { 1 };
        let step = alu(AluOp::Add, width, counter, Operand::Imm(step));
        let until = |cond, limit| branch(cond, width, counter, limit);
        let mut limit = Operand::Imm(turns);
        if shape == 3 {
            // Only the run knows how many.
            let mask = (turns as u32 + 1).next_power_of_two() as i32 / 2 - 1;
            let dst = self.target();
            self.fill(dst);
            let and = alu(AluOp::And, Width::W64, dst, Operand::Imm(mask));
            self.compute(dst, and);
            self.pinned |= bit(dst);
            limit = Operand::Reg(dst);
        }
        self.compute(counter, start);
        let mut turn = self.begin_turns(turns);
        match shape {
            // The condition first.
            2 => {
                let cond = self.choices.pick(&[Cond::Eq, Cond::SGe, Cond::Ge]);
                self.jump(until(cond, limit), turn.out);
            }
            // A second exit from the loop.
            4 => self.jump(Insn::MayGoto { off: 0 }, turn.out),
            _ => {}
        }
        self.body(&mut turn);
        if self.choices.one_in(2) {
            self.restore(&turn.at_head);
            self.emit(step);
        } else {
            self.emit(step);
            self.restore(&turn.at_head);
        }
        match shape {
            0 => {
                let cond = self.choices.pick(&[Cond::Ne, Cond::SGt, Cond::Gt]);
                self.jump(until(cond, Operand::Imm(0)), turn.head);
            }
            1 => {
                let cond = self.choices.pick(&[Cond::Ne, Cond::SLt, Cond::Lt]);
                self.jump(until(cond, limit), turn.head);
            }
            2 => {
                self.jump_on(turn.head);
                self.holds = turn.at_head;
            }
            3 => {
                let cond = self.choices.pick(&[Cond::Le, Cond::Lt]);
                self.jump(until(cond, limit), turn.head);
            }
            _ => {
                self.jump(until(Cond::Ne, Operand::Imm(0)), turn.head);
                self.meet(&turn.at_head);
            }
        }
        self.end_turns(turn);
    }

    /// The counter is in memory, and in a register only to be changed.
    fn turns_counted_on_stack(&mut self, slot: i16, turns: i32) {
        let (size, width) = self
            .choices
            .pick(&[(Size::W, Width::W32), (Size::DW, Width::W64)]);
        let counter = self.target();
        if self.holds[counter.index()] != Holds::Scalar {
            self.holds[counter.index()] = Holds::Nothing;
        }
        self.emit(store(size, R10, slot, Operand::Imm(turns)));
        let mut turn = self.begin_turns(turns);
        self.body(&mut turn);
        self.compute(counter, load(size, counter, R10, slot));
        let step = alu(AluOp::Add, Width::W64, counter, Operand::Imm(-1));
        self.compute(counter, step);
        self.emit(store(size, R10, slot, Operand::Reg(counter)));
        self.restore(&turn.at_head);
        self.jump(branch(Cond::Ne, width, counter, Operand::Imm(0)), turn.head);
        self.end_turns(turn);
    }

    /// The head of a loop.
    fn begin_turns(&mut self, turns: i32) -> Turn {
        let (head, out) = (self.label(), self.label());
        let times = self.times;
        self.times = times.saturating_mul(turns as u32);
        self.place_label(head);
        Turn {
            head,
            out,
            at_head: self.holds,
            left: None,
            times,
        }
    }

    /// Body of the loop, sometimes with an exit.
    fn body(&mut self, turn: &mut Turn) {
        let count = self.choices.pick(&[1, 1, 2, 3, 4]);
        self.nested(count);
        if self.choices.one_in(4) {
            let condition = self.condition();
            self.jump(condition, turn.out);
            turn.left = Some(self.holds);
            self.nested(1);
        }
    }

    /// Behind the loop, where all ways out of it meet.
    fn end_turns(&mut self, turn: Turn) {
        if let Some(left) = turn.left {
            self.meet(&left);
        }
        self.place_label(turn.out);
        self.times = turn.times;
    }

    /// A loop that only `may_goto` ends.
    fn endless_turns(&mut self) {
        let (head, out) = (self.label(), self.label());
        let [dst, src] = self.numbers::<2>(0);
        self.place_label(head);
        self.jump(Insn::MayGoto { off: 0 }, out);
        self.emit(alu(AluOp::Add, Width::W64, dst, Operand::Reg(src)));
        self.jump(GOTO, head);
        self.place_label(out);
        self.notes.endless += 1;
    }

    /// A call of a function of this program.
    fn local_call(&mut self) {
        let fits = |signature: &&Signature, scope: &Self| {
            signature.frames <= scope.frames_left
                && signature.stack <= scope.stack_left
                && signature.cost.saturating_mul(scope.times)
                    <= scope.cost_limit.saturating_sub(scope.cost)
                && signature.params.iter().all(|param| match param {
                    Param::Scalar => true,
                    Param::Memory => scope.frame.memory.is_some(),
                    Param::Lent(len) => scope.frame.high - scope.frame.low >= *len,
                })
        };
        let callable = self.callable;
        let start = self.choices.below(callable.len() as u32) as usize;
        let around = callable[start..].iter().chain(&callable[..start]);
        let chosen = around.into_iter().find(|signature| fits(signature, self));
        let Some(signature) = chosen.filter(|_| self.pinned & 0x3f == 0) else {
            return self.compute_any();
        };
        for (number, param) in signature.params.iter().enumerate() {
            self.pass(reg(number as u32 + 1), *param);
            self.pinned |= 2 << number;
        }
        self.items.push(Item::Call(signature.number));
        self.pinned &= !0x3f;
        self.cost = self
            .cost
            .saturating_add(self.times.saturating_mul(signature.cost + 1));
        self.frames_used = self.frames_used.max(signature.frames);
        self.stack_used = self.stack_used.max(signature.stack);
        self.after_call();
        self.keep_result();
    }

    /// Sets an argument register.
    fn pass(&mut self, dst: Reg, param: Param) {
        match param {
            Param::Scalar => {
                if self.holds[dst.index()] == Holds::Scalar && self.choices.one_in(2) {
                    return;
                }
                let scalars = self.scalars();
                if scalars != 0 && !self.choices.one_in(4) {
                    let src = self.scalar();
                    let width = self.width();
                    let insn = alu(AluOp::Mov, width, dst, Operand::Reg(src));
                    self.compute(dst, insn);
                } else {
                    let imm = Operand::Imm(self.choices.immediate());
                    self.compute(dst, alu(AluOp::Mov, Width::W64, dst, imm));
                }
            }
            Param::Memory => {
                let pointing = (0..10).find_map(|number| match self.holds[number as usize] {
                    Holds::Memory(at) => Some((reg(number), at)),
                    _ => None,
                });
                match pointing {
                    Some((base, at)) => {
                        if base != dst {
                            self.derive(dst, Holds::Memory(at), mov(dst, base));
                        }
                        self.advance(dst, -at);
                    }
                    None => self.reload(dst, self.frame.memory, Holds::Memory(0)),
                }
            }
            Param::Lent(len) => {
                let room = (self.frame.high - self.frame.low - len) / 8;
                let at = self.frame.low + 8 * self.choices.below(room as u32 + 1) as i32;
                self.derive(dst, Holds::Frame(0), mov(dst, R10));
                self.advance(dst, at);
            }
        }
    }

    /// A call out of the program.
    fn helper_call(&mut self) {
        if self.pinned & 0x3f != 0 {
            return self.compute_any();
        }
        if self.dialect == Dialect::Engines {
            match self.choices.below(4) {
                0 => return self.packet_load(),
                1 => return self.packet_helper_call(),
                _ => {}
            }
        }
        let number = self.choices.pick(super::HELPERS);
        self.emit(Insn::Call(Callee::Helper(number)));
        self.after_call();
        match self.dialect {
            // The kernel's numbers are others than ours, so none is kept.
            Dialect::Kernel => {
                let imm = Operand::Imm(self.choices.immediate());
                let insn = alu(AluOp::Mov, Width::W64, Reg::R0, imm);
                self.compute(Reg::R0, insn);
            }
            Dialect::Engines => self.keep_result(),
        }
    }

    /// A packet load, mostly inside the packet: outside, the function returns 0.
    fn packet_load(&mut self) {
        /// Less than any memory has, so than any packet.
        const INSIDE: u32 = 64;
        let size = self.choices.pick(&[Size::B, Size::H, Size::W]);
        let imm = match self.choices.one_in(12) {
            true => self.choices.immediate(),
            false => self.choices.below(INSIDE) as i32,
        };
        if self.choices.one_in(2) {
            self.emit(Insn::PacketAbs { size, imm });
        } else {
            let [src] = self.numbers::<1>(0);
            if !self.choices.one_in(8) {
                let mask = Operand::Imm(INSIDE as i32 - 1);
                self.compute(src, alu(AluOp::And, Width::W64, src, mask));
            }
            self.emit(Insn::PacketInd { size, src, imm });
        }
        self.after_call();
        self.keep_result();
    }

    /// A call of a helper with several arguments.
    fn packet_helper_call(&mut self) {
        for number in 1..=3 {
            self.pass(reg(number), Param::Scalar);
            self.pinned |= 1 << number;
        }
        for (number, mask) in [(2, 0xfc), (3, 3)] {
            let dst = reg(number);
            let mask = Operand::Imm(mask);
            self.compute(dst, alu(AluOp::And, Width::W64, dst, mask));
        }
        let number = self.choices.pick(super::PACKET_HELPERS);
        self.emit(Insn::Call(Callee::Helper(number)));
        self.pinned &= !0x3f;
        self.after_call();
        self.keep_result();
    }

    /// Contents of registers after a call.
    fn after_call(&mut self) {
        for number in 1..6 {
            self.holds[number] = Holds::Nothing;
        }
        self.holds[0] = Holds::Scalar;
    }

    /// Results are used soon, often as halves.
    fn keep_result(&mut self) {
        if self.choices.one_in(3) {
            let dst = self.target();
            let width = self.width();
            let insn = alu(AluOp::Mov, width, dst, Operand::Reg(Reg::R0));
            self.compute(dst, insn);
        }
    }

    /// Moves between registers: round in a ring, swapped, copied on.
    fn move_around(&mut self) {
        let [a, b, c, spare] = self.numbers::<4>(0);
        let width = self.width();
        let copy = |dst, src| alu(AluOp::Mov, width, dst, Operand::Reg(src));
        let moves: &[(Reg, Reg)] = match self.choices.below(5) {
            // What is read at the end of many turns was written at the start.
            0 => return self.hand_on(),
            1 => &[(spare, a), (a, b), (b, spare)],
            2 => &[(spare, a), (a, b), (b, c), (c, spare)],
            3 => &[(a, b), (c, a), (b, c)],
            _ => &[(a, b), (b, a), (a, a)],
        };
        for &(dst, src) in moves {
            self.compute(dst, copy(dst, src));
        }
    }

    /// Each of several registers takes what the next one holds: in a loop a value
    /// needs as many turns to get through as there are registers.
    fn hand_on(&mut self) {
        let chain = self.numbers::<6>(0);
        for pair in chain.windows(2) {
            let copy = alu(AluOp::Mov, Width::W64, pair[0], Operand::Reg(pair[1]));
            self.compute(pair[0], copy);
        }
    }

    /// Comparisons of one register with constant after constant.
    fn compare_chain(&mut self) {
        let [dst] = self.numbers::<1>(0);
        let value = self.scalar();
        let width = self.width();
        let first = self.choices.immediate();
        let count = 2 + self.choices.below(8);
        let out = self.label();
        let cond = self.choices.pick(&[Cond::Eq, Cond::Eq, Cond::Ne, Cond::Gt]);
        for step in 0..count as i32 {
            let next = if self.choices.one_in(4) {
                self.choices.immediate()
            } else {
                first.wrapping_add(step)
            };
            self.jump(branch(cond, width, value, Operand::Imm(next)), out);
        }
        self.compute(dst, alu(AluOp::Xor, Width::W64, dst, Operand::Imm(1)));
        self.place_label(out);
    }

    /// A long stretch to jump over.
    fn padding(&mut self) {
        let count = match self.choices.below(400) {
            0..300 => 12 + self.choices.below(40),
            300..398 => 100 + self.choices.below(500),
            // More than 16 bits can jump, where it may take that long.
            _ if self.dialect == Dialect::Engines && self.choices.one_in(20) => 33_000,
            _ => 200,
        };
        let over = self.label();
        let condition = self.condition();
        self.jump(condition, over);
        let before = self.holds;
        let cost = self.cost;
        for _ in 0..count {
            self.compute_any();
        }
        // Straight code costs little, however long.
        self.cost = cost + self.times * (count / 16);
        self.meet(&before);
        self.place_label(over);
    }

    /// Numbers to the stack and back, crossed.
    fn spill_and_fill(&mut self) {
        let (low, high) = (self.frame.low, self.frame.high);
        let words = (high - low) / 8;
        if words < 2 {
            return self.compute_any();
        }
        let slot = |word: i32| (low + 8 * word) as i16;
        let first = self.choices.below(words as u32) as i32;
        let second = (first + 1 + self.choices.below(words as u32 - 1) as i32) % words;
        let [a, b] = self.numbers::<2>(0);
        self.emit(store(Size::DW, R10, slot(first), Operand::Reg(a)));
        self.emit(store(Size::DW, R10, slot(second), Operand::Reg(b)));
        let count = self.choices.below(3);
        for _ in 0..count {
            self.compute_any();
        }
        let [c, d] = self.numbers::<2>(0);
        let size = self.choices.pick(&[Size::DW, Size::DW, Size::W, Size::H]);
        self.compute(c, load(size, c, R10, slot(second)));
        self.compute(d, load(Size::DW, d, R10, slot(first)));
    }
}
