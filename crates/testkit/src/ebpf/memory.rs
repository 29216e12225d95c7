//! Addresses: where an access of some size may go, by which register.
//!
//! Places are drawn from few, so that accesses meet: the same word is written
//! whole and read in part, by another register and another offset.

use super::Dialect;
use super::palette::AccessRow;
use super::scope::{Holds, R10, Scope, alu, bit, branch, load, mov, reg};
use isa::ebpf::{AluOp, AtomicOp, Cond, Insn, Operand, Reg, Size, Width};

/// Requirements of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) size: Size,
    /// The address is to be a multiple of the size, and Linux refuses packets.
    pub(super) is_ordered: bool,
    /// Registers that must not be written to make the address.
    pub(super) keep: u16,
}

impl Need {
    pub(super) fn plain(size: Size, keep: u16) -> Need {
        Need {
            size,
            is_ordered: false,
            keep,
        }
    }
}

/// Accessible area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Area {
    Memory,
    Frame,
    Lent,
}

impl Area {
    /// The byte that the register points to, if it points here.
    fn origin(self, holds: Holds) -> Option<i32> {
        match (self, holds) {
            (Area::Memory, Holds::Memory(at))
            | (Area::Frame, Holds::Frame(at))
            | (Area::Lent, Holds::Lent(at)) => Some(at),
            _ => None,
        }
    }
}

pub(super) fn size_of(size: Size) -> i32 {
    size.bytes() as i32
}

impl Scope<'_, '_> {
    fn bounds(&self, area: Area) -> (i32, i32) {
        match area {
            Area::Memory => (0, self.memory_len),
            Area::Frame => (self.frame.low, self.frame.high),
            Area::Lent => (0, self.frame.lent.map_or(0, |(_, len)| len)),
        }
    }

    /// An area that has room and is allowed.
    fn area(&mut self, need: Need) -> Option<Area> {
        let refused = need.is_ordered && self.dialect == Dialect::Kernel;
        let memory = self.frame.memory.is_some() && !refused;
        let has_room = |area| {
            let (low, high) = self.bounds(area);
            high - low >= size_of(need.size)
        };
        let frame = has_room(Area::Frame);
        let lent = self.frame.lent.is_some() && has_room(Area::Lent);
        for _ in 0..6 {
            let area = self
                .choices
                .pick(&[Area::Memory, Area::Memory, Area::Frame, Area::Lent]);
            match area {
                Area::Memory if memory => return Some(area),
                Area::Frame if frame => return Some(area),
                Area::Lent if lent => return Some(area),
                _ => {}
            }
        }
        frame.then_some(Area::Frame)
    }

    /// A byte of the area at which an access may begin.
    fn spot(&mut self, area: Area, need: Need) -> i32 {
        let (low, high) = self.bounds(area);
        let room = high - low - size_of(need.size);
        let at = match self.choices.below(4) {
            0 => self.choices.below(room as u32 + 1) as i32,
            1 => room - self.choices.below(room.min(9) as u32 + 1) as i32,
            _ => self.choices.below(room.min(23) as u32 + 1) as i32,
        };
        // Linux requires aligned stack accesses.
        let strict = need.is_ordered || self.dialect == Dialect::Kernel && area != Area::Memory;
        let aligned = strict || !self.choices.one_in(4);
        // Every area begins at a multiple of eight.
        let at = if aligned {
            at & !(size_of(need.size) - 1)
        } else {
            at
        };
        low + at
    }

    /// A register and an offset for an access, without writing a register but to
    /// load a kept address.
    pub(super) fn known_place(
        &mut self,
        size: Size,
        is_ordered: bool,
        scratch: u16,
    ) -> Option<(Reg, i16)> {
        let need = Need {
            size,
            is_ordered,
            keep: !scratch,
        };
        self.place(need)
    }

    /// A register and an offset for an access. It may write registers that are
    /// free and not among those to keep, of which there must be one.
    pub(super) fn place(&mut self, need: Need) -> Option<(Reg, i16)> {
        let area = self.area(need)?;
        let at = self.spot(area, need);
        let off = |from: i32| i16::try_from(at - from).ok();
        let mut bases = [(R10, 0i16); 11];
        let mut found = 0;
        for number in 0..=10 {
            let base = reg(number);
            let origin = area.origin(self.holds[base.index()]);
            if let Some(off) = origin.and_then(off) {
                bases[found] = (base, off);
                found += 1;
            }
        }
        if found > 0 && !self.choices.one_in(8) {
            return Some(bases[self.choices.below(found as u32) as usize]);
        }
        let free = self.usable & !self.pinned & !need.keep;
        if free == 0 {
            return (found > 0).then_some(bases[0]);
        }
        let base = self.target_beside(!free);
        let by = self.bias(at);
        self.point(base, area, by);
        Some((base, off(by)?))
    }

    /// Range of an address register for an access at `at`.
    fn bias(&mut self, at: i32) -> i32 {
        match self.choices.below(6) {
            0..3 => 0,
            3 => at,
            4 => at + self.choices.between(-200, 200),
            _ => at + self.choices.pick(&[127, 128, 129, -127, -128, 0x7000]),
        }
    }

    /// Sets a register to the address of a byte of the area.
    fn point(&mut self, dst: Reg, area: Area, at: i32) {
        match area {
            Area::Memory => self.reload(dst, self.frame.memory, Holds::Memory(0)),
            Area::Frame if self.frame.own.is_some() && self.choices.one_in(2) => {
                self.reload(dst, self.frame.own, Holds::Frame(0));
            }
            Area::Frame => self.derive(dst, Holds::Frame(0), mov(dst, R10)),
            Area::Lent => {
                let kept = self.frame.lent.map(|(slot, _)| slot);
                self.reload(dst, kept, Holds::Lent(0));
            }
        }
        self.advance(dst, at);
    }

    /// A register that points into the memory, and to which byte.
    pub(super) fn memory_base(&mut self, keep: u16) -> Option<(Reg, i32)> {
        self.frame.memory?;
        let pointing = (0..10).find_map(|number| match self.holds[number as usize] {
            Holds::Memory(at) => Some((reg(number), at)),
            _ => None,
        });
        if pointing.is_some() {
            return pointing;
        }
        let base = self.target_beside(keep);
        self.point(base, Area::Memory, 0);
        Some((base, 0))
    }

    /// An access by any row that accesses memory.
    pub(super) fn access_any(&mut self, rows: Rows) {
        let rows = match rows {
            Rows::Load => &self.palette.load,
            Rows::Store => &self.palette.store,
            Rows::Atomic => &self.palette.atomic,
        };
        let chosen = rows[self.choices.below(rows.len() as u32) as usize];
        if self.choices.one_in(6) {
            self.access_by_index(chosen);
        } else if let Some((base, off)) = self.prepare(chosen) {
            self.access(chosen, base, off);
        }
    }

    /// A place for an access of that row.
    fn prepare(&mut self, row: AccessRow) -> Option<(Reg, i16)> {
        self.place(Need {
            size: row.size,
            is_ordered: row.is_ordered,
            keep: 0,
        })
    }

    /// The access itself: its other registers hold numbers and are free.
    fn access(&mut self, chosen: AccessRow, base: Reg, off: i16) {
        let AccessRow { row, .. } = chosen;
        match row.effect {
            isa::ebpf::Effect::Load => {
                let dst = self.target();
                let slot = row.slot(dst.number(), base.number(), off, 0);
                self.compute(dst, Insn::decode_one(slot, None));
            }
            isa::ebpf::Effect::Store => {
                let src = self.scalar_beside(bit(base));
                let imm = self.choices.immediate();
                let slot = row.slot(base.number(), src.number(), off, imm);
                self.emit(Insn::decode_one(slot, None));
            }
            _ => self.access_atomically(chosen, base, off),
        }
    }

    /// A register that holds a number, without writing those in `keep`.
    fn scalar_beside(&mut self, keep: u16) -> Reg {
        if self.scalars() == 0 {
            let dst = self.target_beside(keep);
            let imm = Operand::Imm(self.choices.immediate());
            self.compute(dst, alu(AluOp::Mov, Width::W64, dst, imm));
        }
        self.scalar()
    }

    fn access_atomically(&mut self, chosen: AccessRow, base: Reg, off: i16) {
        let AccessRow { row, .. } = chosen;
        let sample = Insn::decode_one(row.slot(base.number(), 0, off, 0), None);
        let Insn::Atomic { op, .. } = sample else {
            return;
        };
        let compares = op == AtomicOp::CmpXchg;
        if compares && (base == Reg::R0 || self.pinned & 1 != 0) {
            return;
        }
        if compares && self.holds[0] != Holds::Scalar {
            let imm = Operand::Imm(self.choices.immediate());
            self.compute(Reg::R0, alu(AluOp::Mov, Width::W64, Reg::R0, imm));
        }
        let src = if op.fetches_into_src() {
            self.plain_number(bit(base))
        } else {
            self.scalar_beside(bit(base) | u16::from(compares))
        };
        // Half of the exchanges find what they expect.
        if compares && self.choices.one_in(2) {
            self.compute(Reg::R0, load(chosen.size, Reg::R0, base, off));
        }
        let slot = row.slot(base.number(), src.number(), off, 0);
        self.emit(Insn::decode_one(slot, None));
        // Linux 6.18 does not always clear the upper half of `r0` after 32 bits
        // were exchanged: it forgets who reads it where its verifier cuts a way
        // short (`tests/kernel.rs` has a program that shows it).
        if compares && chosen.size == Size::W && self.dialect == Dialect::Kernel {
            let r0 = Operand::Reg(Reg::R0);
            self.emit(alu(AluOp::Mov, Width::W32, Reg::R0, r0));
        }
    }

    /// A register that holds a number and may be written, made by a constant
    /// where there is none.
    fn plain_number(&mut self, keep: u16) -> Reg {
        let free = self.scalars() & !self.pinned & !keep;
        if free == 0 {
            let dst = self.target_beside(keep);
            let imm = Operand::Imm(self.choices.immediate());
            self.compute(dst, alu(AluOp::Mov, Width::W64, dst, imm));
            return dst;
        }
        self.numbers::<1>(keep)[0]
    }

    /// An access at an index that is only known when it runs, cut to the area.
    fn access_by_index(&mut self, chosen: AccessRow) {
        // Linux requires constant offsets of atomic accesses to the stack, and explores
        // every index of a loop.
        if self.dialect == Dialect::Kernel && (chosen.is_ordered || self.times > 1) {
            return;
        }
        let need = Need {
            size: chosen.size,
            is_ordered: chosen.is_ordered,
            keep: 0,
        };
        let Some(area) = self.area(need) else {
            return;
        };
        let size = size_of(chosen.size);
        let (low, high) = self.bounds(area);
        let room = high - low - size;
        let most = 31 - (room + 1).leading_zeros() as i32;
        let mut mask = (1 << most) - 1;
        let strict = chosen.is_ordered || self.dialect == Dialect::Kernel && area != Area::Memory;
        if strict {
            mask &= !(size - 1);
        }
        let checked =
            area == Area::Memory && (self.dialect == Dialect::Kernel || self.frame.end.is_some());
        if checked && self.frame.end.is_none() {
            return;
        }
        let [index] = self.numbers::<1>(0);
        let origin = self.target_beside(bit(index));
        let shift = size.trailing_zeros() as i32;
        // The index scaled by the size, as arrays are read, or in bytes.
        if self.choices.one_in(2) && mask >> shift > 0 {
            self.masked(index, mask >> shift);
            self.scaled(index, shift);
        } else {
            self.masked(index, mask);
        }
        self.point(origin, area, low);
        // Linux 6.18 forgets which frame an address is of when the address is added
        // to a number, so for it the number is added to the address.
        let onto_address =
            area != Area::Memory && (self.dialect == Dialect::Kernel || self.choices.one_in(2));
        let (sum, added) = if onto_address {
            (origin, index)
        } else {
            (index, origin)
        };
        self.holds[sum.index()] = Holds::Nothing;
        self.emit(alu(AluOp::Add, Width::W64, sum, Operand::Reg(added)));
        if !checked {
            self.access_pinned(chosen, sum);
            return;
        }
        // The way that packets are read where the verifier watches.
        let past = self.label();
        self.reload(origin, self.frame.end, Holds::End);
        let limit = self.target_beside(bit(index) | bit(origin));
        self.holds[limit.index()] = Holds::Nothing;
        self.emit(mov(limit, index));
        self.emit(alu(AluOp::Add, Width::W64, limit, Operand::Imm(size)));
        let beyond = branch(Cond::Gt, Width::W64, limit, Operand::Reg(origin));
        self.jump(beyond, past);
        let before = self.holds;
        self.access_pinned(chosen, index);
        self.meet(&before);
        self.place_label(past);
    }

    /// The access at the address in `base`, which only a load may overwrite.
    fn access_pinned(&mut self, chosen: AccessRow, base: Reg) {
        let was = self.pinned;
        if chosen.row.effect != isa::ebpf::Effect::Load {
            self.pinned |= bit(base);
        }
        self.access(chosen, base, 0);
        self.pinned = was;
    }

    fn masked(&mut self, dst: Reg, mask: i32) {
        let and = alu(AluOp::And, Width::W64, dst, Operand::Imm(mask));
        self.compute(dst, and);
    }

    fn scaled(&mut self, dst: Reg, by: i32) {
        let shift = alu(AluOp::Lsh, Width::W64, dst, Operand::Imm(by));
        self.compute(dst, shift);
    }
}

/// Rows that access memory, by how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Load,
    Store,
    Atomic,
}
