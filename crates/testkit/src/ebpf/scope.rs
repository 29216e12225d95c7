//! A function under way: what each register and the stack hold at this point,
//! and how instructions are added so that nothing unknown is ever read.
//!
//! A register holds a scalar (any number), an address whose place is known, or
//! nothing that may be read. Where two ways meet, it holds what it holds on both.

use super::draft::{Item, Label};
use super::palette::{Demand, Palette};
use super::{Choices, Dialect, Notes};
use isa::ebpf::{AluOp, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};

/// Contents of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Uninitialised.
    Nothing,
    /// A number.
    Scalar,
    /// The address of this byte of the memory.
    Memory(i32),
    /// End address of the memory.
    End,
    /// The address this far from the frame pointer.
    Frame(i32),
    /// The address of this byte of what the caller lent.
    Lent(i32),
}

/// Contents of an argument register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    Scalar,
    /// The start of the memory.
    Memory,
    /// So many bytes of the caller's stack.
    Lent(i32),
}

/// A function that can be called.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) number: usize,
    pub(super) params: Vec<Param>,
    /// The most instructions that a call executes, about.
    pub(super) cost: u32,
    /// Frames that a call needs, its own among them.
    pub(super) frames: u32,
    /// Bytes of stack that a call needs, as Linux counts them.
    pub(super) stack: i32,
}

/// The stack of a function: distances from the frame pointer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Location of the memory's address.
    pub(super) memory: Option<i16>,
    /// Location of the memory's end address.
    pub(super) end: Option<i16>,
    /// Location of the address of the caller's buffer, and its length.
    pub(super) lent: Option<(i16, i32)>,
    /// Location of a copy of the frame pointer.
    pub(super) own: Option<i16>,
    /// Words for the counters of loops that are free.
    pub(super) counters: [Option<i16>; 2],
    /// The numbers: from here...
    pub(super) low: i32,
    /// ... up to here.
    pub(super) high: i32,
}

/// A function under way.
pub(super) struct Scope<'g, 'c> {
    pub(super) choices: &'g mut Choices<'c>,
    pub(super) dialect: Dialect,
    pub(super) palette: &'g Palette,
    pub(super) notes: &'g mut Notes,
    pub(super) items: Vec<Item>,
    labels: u32,
    pub(super) holds: [Holds; Reg::COUNT],
    /// Registers that the function uses at all; bit `n` is register `n`.
    pub(super) usable: u16,
    /// Registers that nothing may write now.
    pub(super) pinned: u16,
    pub(super) frame: Frame,
    /// Bytes of memory that may be accessed.
    pub(super) memory_len: i32,
    pub(super) callable: &'g [Signature],
    /// Frames and bytes of stack that calls from here may need.
    pub(super) frames_left: u32,
    pub(super) stack_left: i32,
    /// Deepest need of the calls so far.
    pub(super) frames_used: u32,
    pub(super) stack_used: i32,
    /// Approximate number of executions of the current position.
    pub(super) times: u32,
    /// Instructions executed at most so far, about, and how many it may be.
    pub(super) cost: u32,
    pub(super) cost_limit: u32,
    /// Forks in loops, weighted by executions.
    pub(super) forks: u32,
    /// Blocks around the current place.
    pub(super) depth: u32,
    /// Weight of each kind of statement.
    pub(super) weights: [u32; super::statements::KINDS],
}

/// Context of a scope.
pub(super) struct ScopeContext<'g, 'c> {
    pub(super) choices: &'g mut Choices<'c>,
    pub(super) dialect: Dialect,
    pub(super) palette: &'g Palette,
    pub(super) notes: &'g mut Notes,
    pub(super) memory_len: i32,
    pub(super) callable: &'g [Signature],
    pub(super) weights: [u32; super::statements::KINDS],
}

pub(super) const R10: Reg = Reg::R10;

/// A register by a number from 0 to 10.
pub(super) fn reg(number: u32) -> Reg {
    Reg::new(number as u8).unwrap_or(Reg::R0)
}

pub(super) const fn bit(reg: Reg) -> u16 {
    1 << reg.number()
}

pub(super) const fn alu(op: AluOp, width: Width, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src,
    }
}

pub(super) const fn mov(dst: Reg, src: Reg) -> Insn {
    alu(AluOp::Mov, Width::W64, dst, Operand::Reg(src))
}

pub(super) const fn constant(dst: Reg, value: u64) -> Insn {
    let imm = Imm64::Value(Value64::new(value));
    Insn::LoadImm64 { dst, imm }
}

pub(super) const fn load(size: Size, dst: Reg, base: Reg, off: i16) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst,
        base,
        off,
    }
}

pub(super) const fn store(size: Size, base: Reg, off: i16, src: Operand) -> Insn {
    Insn::Store {
        size,
        base,
        off,
        src,
    }
}

pub(super) const fn branch(cond: Cond, width: Width, dst: Reg, src: Operand) -> Insn {
    Insn::Jump {
        cond,
        width,
        dst,
        src,
        off: 0,
    }
}

pub(super) const GOTO: Insn = Insn::Goto { off: 0 };

impl<'g, 'c> Scope<'g, 'c> {
    /// A function that has not begun.
    pub(super) fn new(context: ScopeContext<'g, 'c>, frame: Frame) -> Scope<'g, 'c> {
        let mut holds = [Holds::Nothing; Reg::COUNT];
        holds[R10.index()] = Holds::Frame(0);
        Scope {
            choices: context.choices,
            dialect: context.dialect,
            palette: context.palette,
            notes: context.notes,
            items: Vec::with_capacity(128),
            labels: 0,
            holds,
            usable: 0x3ff,
            pinned: 0,
            frame,
            memory_len: context.memory_len,
            callable: context.callable,
            frames_left: 0,
            stack_left: 0,
            frames_used: 0,
            stack_used: 0,
            times: 1,
            cost: 0,
            cost_limit: 0,
            forks: 0,
            depth: 0,
            weights: context.weights,
        }
    }

    /// Adds an instruction whose registers the caller has looked after.
    pub(super) fn emit(&mut self, insn: Insn) {
        self.items.push(Item::Plain(insn));
        self.cost = self.cost.saturating_add(self.times);
    }

    /// Adds an instruction that leaves a number in that register.
    pub(super) fn compute(&mut self, dst: Reg, insn: Insn) {
        self.emit(insn);
        self.holds[dst.index()] = Holds::Scalar;
    }

    /// Adds an instruction that leaves this in that register.
    pub(super) fn derive(&mut self, dst: Reg, holds: Holds, insn: Insn) {
        self.emit(insn);
        self.holds[dst.index()] = holds;
    }

    /// Adds a jump.
    pub(super) fn jump(&mut self, insn: Insn, to: Label) {
        self.items.push(Item::Jump(insn, to));
        self.note_forks(1);
        self.cost = self.cost.saturating_add(self.times);
    }

    /// Counts forks at the current place.
    pub(super) fn note_forks(&mut self, count: u32) {
        if self.times > 1 {
            self.forks = self.forks.saturating_add(self.times.saturating_mul(count));
        }
    }

    /// A label that has no place yet.
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Binds a label to the current position.
    pub(super) fn place_label(&mut self, label: Label) {
        self.items.push(Item::Place(label));
    }

    /// True if the number of executed instructions is near its limit.
    pub(super) fn is_costly(&self) -> bool {
        self.cost >= self.cost_limit
    }

    /// The registers that hold numbers; bit `n` is register `n`.
    pub(super) fn scalars(&self) -> u16 {
        let numbered = self.holds.iter().enumerate();
        numbered.fold(0, |set, (number, holds)| {
            set | u16::from(*holds == Holds::Scalar) << number
        })
    }

    fn pick_of(&mut self, set: u16) -> Option<Reg> {
        let count = set.count_ones();
        if count == 0 {
            return None;
        }
        let mut rest = set;
        for _ in 0..self.choices.below(count) {
            rest &= rest - 1;
        }
        Some(reg(rest.trailing_zeros()))
    }

    /// A register that holds a number.
    pub(super) fn scalar(&mut self) -> Reg {
        match self.pick_of(self.scalars()) {
            Some(found) => found,
            None => self.fresh(),
        }
    }

    /// A register to write: it may hold anything now, but seldom the last
    /// address of the memory.
    pub(super) fn target(&mut self) -> Reg {
        if self.usable & !self.pinned == 0 {
            self.usable |= 0x3ff & !self.pinned;
        }
        let free = self.usable & !self.pinned;
        let addresses = self.holds[..10].iter();
        let addresses = addresses.filter(|h| matches!(h, Holds::Memory(_))).count();
        for _ in 0..4 {
            let Some(found) = self.pick_of(free) else {
                break;
            };
            let is_last = addresses == 1 && matches!(self.holds[found.index()], Holds::Memory(_));
            if !is_last || self.choices.one_in(8) {
                return found;
            }
        }
        // Loops and calls leave some registers free.
        self.pick_of(free).unwrap_or(Reg::R0)
    }

    /// A register to write that is none of these.
    pub(super) fn target_beside(&mut self, others: u16) -> Reg {
        let was = self.pinned;
        self.pinned |= others;
        let found = self.target();
        self.pinned = was;
        found
    }

    /// Different registers that hold numbers and may be written, none of them
    /// among `others`.
    pub(super) fn numbers<const N: usize>(&mut self, others: u16) -> [Reg; N] {
        let mut taken = others;
        [(); N].map(|()| {
            let found = match self.pick_of(self.scalars() & !self.pinned & !taken) {
                Some(found) => found,
                None => {
                    let found = self.target_beside(taken);
                    self.fill(found);
                    found
                }
            };
            taken |= bit(found);
            found
        })
    }

    /// A register that holds a number already and may be written.
    pub(super) fn number_at_hand(&mut self, others: u16) -> Option<Reg> {
        self.pick_of(self.scalars() & !self.pinned & !others)
    }

    /// A register that holds a number it did not hold before.
    pub(super) fn fresh(&mut self) -> Reg {
        let dst = self.target();
        self.fill(dst);
        dst
    }

    /// Sets a register to a number: a constant, or one unknown to the verifier.
    pub(super) fn fill(&mut self, dst: Reg) {
        use AluOp::Mov;
        match self.choices.below(8) {
            0 => {
                let value = self.choices.value();
                self.compute(dst, constant(dst, value));
            }
            1 => {
                let imm = Operand::Imm(self.choices.immediate());
                let width = self.width();
                self.compute(dst, alu(Mov, width, dst, imm));
            }
            2 if self.scalars() != 0 => {
                let src = self.scalar();
                let width = self.width();
                self.compute(dst, alu(Mov, width, dst, Operand::Reg(src)));
            }
            _ => match self.known_place(Size::DW, false, bit(dst)) {
                Some((base, off)) => self.compute(dst, load(Size::DW, dst, base, off)),
                None => {
                    let value = self.choices.value();
                    self.compute(dst, constant(dst, value));
                }
            },
        }
    }

    /// One of the widths.
    pub(super) fn width(&mut self) -> Width {
        self.choices.pick(&[Width::W32, Width::W64])
    }

    /// A number or an immediate.
    pub(super) fn operand(&mut self) -> Operand {
        if self.choices.one_in(2) {
            Operand::Reg(self.scalar())
        } else {
            Operand::Imm(self.choices.immediate())
        }
    }

    /// Adds an instruction of any row that works on registers.
    pub(super) fn compute_any(&mut self) {
        let chosen = self.choices.below(self.palette.compute.len() as u32);
        let chosen = self.palette.compute[chosen as usize];
        let src = self.scalar();
        let imm = match chosen.demand {
            Demand::Anything => self.choices.immediate(),
            Demand::Count(width) => self.count(width),
            Demand::Divisor => self.divisor(),
            Demand::Cast => self.choices.pick(&[1, 1 << 16]),
        };
        let reads_dst = chosen.row.reads.resolve(12, 13).bits() & 1 << 12 != 0;
        let dst = if reads_dst {
            self.numbers::<1>(0)[0]
        } else {
            self.target()
        };
        // A 64-bit count of one row is too far for another: the slot is that of
        // the row, so it decodes to it.
        let slot = chosen.row.slot(dst.number(), src.number(), 0, imm);
        self.compute(dst, Insn::decode_one(slot, None));
    }

    /// A count of bits to shift by.
    pub(super) fn count(&mut self, width: Width) -> i32 {
        let bits = match width {
            Width::W32 => 32,
            Width::W64 => 64,
        };
        match self.choices.below(8) {
            0 => self.choices.pick(&[0, 1, bits - 1]),
            1 => self.choices.pick(&[8, 16, 24, bits / 2]),
            2 if self.dialect == Dialect::Engines && self.choices.one_in(4) => {
                self.choices.immediate()
            }
            _ => self.choices.below(bits as u32) as i32,
        }
    }

    /// An immediate to divide by.
    pub(super) fn divisor(&mut self) -> i32 {
        match (self.choices.immediate(), self.dialect) {
            (0, Dialect::Kernel) => -1,
            (divisor, _) => divisor,
        }
    }

    /// A conditional jump on numbers.
    pub(super) fn condition(&mut self) -> Insn {
        let chosen = self.choices.below(self.palette.branch.len() as u32);
        let row = self.palette.branch[chosen as usize];
        let dst = self.scalar().number();
        let src = self.scalar().number();
        let slot = row.slot(dst, src, 0, self.choices.immediate());
        Insn::decode_one(slot, None)
    }

    /// Merges the contents of registers at a join point.
    pub(super) fn meet(&mut self, other: &[Holds; Reg::COUNT]) {
        for (here, there) in self.holds.iter_mut().zip(other) {
            if here != there {
                *here = Holds::Nothing;
            }
        }
    }

    /// Restores the contents of registers at a loop header.
    pub(super) fn restore(&mut self, head: &[Holds; Reg::COUNT]) {
        for number in 0..10u32 {
            let (dst, was) = (reg(number), head[number as usize]);
            if was == Holds::Nothing || was == self.holds[dst.index()] {
                continue;
            }
            match was {
                Holds::Nothing => {}
                Holds::Scalar => {
                    let imm = Operand::Imm(self.choices.immediate());
                    self.compute(dst, alu(AluOp::Mov, Width::W64, dst, imm));
                }
                Holds::Frame(_) => self.derive(dst, Holds::Frame(0), mov(dst, R10)),
                Holds::Memory(_) => self.reload(dst, self.frame.memory, Holds::Memory(0)),
                Holds::End => self.reload(dst, self.frame.end, Holds::End),
                Holds::Lent(_) => {
                    let kept = self.frame.lent.map(|(slot, _)| slot);
                    self.reload(dst, kept, Holds::Lent(0));
                }
            }
            let by = match (was, self.holds[dst.index()]) {
                (Holds::Frame(to), Holds::Frame(from))
                | (Holds::Memory(to), Holds::Memory(from))
                | (Holds::Lent(to), Holds::Lent(from)) => to - from,
                _ => 0,
            };
            self.advance(dst, by);
        }
    }

    /// Loads an address that is kept on the stack.
    pub(super) fn reload(&mut self, dst: Reg, kept: Option<i16>, holds: Holds) {
        if let Some(slot) = kept {
            self.derive(dst, holds, load(Size::DW, dst, R10, slot));
        }
    }

    /// Moves the address in a register.
    pub(super) fn advance(&mut self, dst: Reg, by: i32) {
        if by == 0 {
            return;
        }
        let moved = match self.holds[dst.index()] {
            Holds::Memory(at) => Holds::Memory(at + by),
            Holds::Frame(at) => Holds::Frame(at + by),
            Holds::Lent(at) => Holds::Lent(at + by),
            other => other,
        };
        let add = alu(AluOp::Add, Width::W64, dst, Operand::Imm(by));
        self.derive(dst, moved, add);
    }
}
