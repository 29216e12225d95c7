//! Arithmetic, moves, shifts, byte order.
//!
//! Several instructions become one where the machine has it: a move and what
//! follows it (`lea`, three-operand multiplication and shifts), a shift that
//! scales an index, two shifts that only extend. What is written is as narrow as
//! what is wanted of the result: the low half's form is shorter and zeroes the
//! upper half, which also replaces most masks.

use isa::ebpf::{AluOp, ByteOrder, Insn, Operand, Reg, Size, Width};

use super::asm::{Alu, Shift, Unary};
use super::frame::SCRATCH;
use super::generator::{Generator, bits};
use super::reg::{Gpr, Mem};
use crate::analysis::{Count, Fact};

/// How many instructions after a constant another one may be chosen.
const FARTHEST_CHOICE: usize = 3;

/// The operation's encoding, if it is one of the eight that share theirs.
pub(super) const fn plain(op: AluOp) -> Option<Alu> {
    Some(match op {
        AluOp::Add => Alu::Add,
        AluOp::Sub => Alu::Sub,
        AluOp::Or => Alu::Or,
        AluOp::And => Alu::And,
        AluOp::Xor => Alu::Xor,
        _ => return None,
    })
}

const fn shift(op: AluOp) -> Option<Shift> {
    Some(match op {
        AluOp::Lsh => Shift::Shl,
        AluOp::Rsh => Shift::Shr,
        AluOp::Arsh => Shift::Sar,
        _ => return None,
    })
}

/// Whether the low half of the result depends on the low halves alone.
const fn is_narrowable(op: AluOp, src: Operand) -> bool {
    match op {
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Mov => {
            true
        }
        AluOp::Lsh => matches!(src, Operand::Imm(count) if count & 63 < 32),
        _ => false,
    }
}

/// An arithmetic instruction in parts, at the width that is wanted of it.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    pub(super) op: AluOp,
    pub(super) width: Width,
    pub(super) dst: Reg,
    pub(super) src: Operand,
}

/// What a shift to the left and one back make of the low bits of a value: they are
/// extended, and perhaps shifted down.
#[derive(Clone, Copy)]
pub(super) struct Extension {
    pub(super) from: Size,
    /// As wide as that, with the sign; with zeros otherwise.
    pub(super) sign: Option<Width>,
    width: Width,
    by: u8,
}

impl Generator<'_> {
    /// The arithmetic at a slot that is looked at from the slots before it.
    #[inline(always)]
    pub(super) fn arithmetic(&self, slot: usize) -> Option<Arithmetic> {
        self.peek(slot)?;
        self.arithmetic_at(slot)
    }

    /// The arithmetic at a slot, if it is such, at the width that is wanted.
    #[inline(always)]
    pub(super) fn arithmetic_at(&self, slot: usize) -> Option<Arithmetic> {
        match self.insns[slot] {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => Some(self.wanted(slot, op, width, dst, src)),
            _ => None,
        }
    }

    /// The arithmetic at a slot, at the width that is wanted.
    #[inline(always)]
    pub(super) fn wanted(
        &self,
        slot: usize,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> Arithmetic {
        let narrow =
            width == Width::W64 && !self.after(slot).has_upper(dst) && is_narrowable(op, src);
        Arithmetic {
            op,
            width: if narrow { Width::W32 } else { width },
            dst,
            src,
        }
    }

    /// Performs the arithmetic at a slot and perhaps what follows it; how many
    /// slots that was.
    #[inline(always)]
    pub(super) fn alu(&mut self, slot: usize, this: Arithmetic) -> usize {
        let Arithmetic {
            op,
            width,
            dst,
            src,
        } = this;
        match (op, src) {
            (AluOp::Mov, Operand::Imm(imm)) => self.set_imm(slot, width, dst, imm),
            (AluOp::Mov, Operand::Reg(src)) => self.copy(slot, width, dst, src),
            (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, _) => {
                self.divide(slot, this);
                1
            }
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Imm(count)) => {
                self.shift_imm(slot, op, width, dst, count)
            }
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(count)) => {
                self.shift_by_reg(this, self.gpr(dst), count);
                1
            }
            (AluOp::Xor, Operand::Imm(-1)) => self.invert(slot, this),
            (_, Operand::Imm(imm)) => {
                self.alu_imm(op, width, dst, imm);
                1
            }
            (_, Operand::Reg(src)) => {
                if src == dst || src == Reg::R10 || op == AluOp::Add && width == Width::W64 {
                    self.alu_reg(slot, this, src);
                } else {
                    self.operate(this, self.gpr(src));
                }
                1
            }
        }
    }

    #[inline(never)]
    fn set_imm(&mut self, slot: usize, width: Width, reg: Reg, imm: i32) -> usize {
        let value = match width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        if let Some(stored) = self.store_constant(slot, reg, imm, value) {
            return stored;
        }
        let dst = self.gpr(reg);
        let value = match self.truth_of(slot, reg, imm) {
            Some(chosen) => {
                self.truth = Some(chosen);
                0
            }
            None => value,
        };
        self.buf.set(dst, value);
        self.know(reg, bits(value));
        1
    }

    /// The move a little later that makes 1 of `dst = 0`, or 0 of `dst = 1`, if a
    /// condition holds and nothing looks at `dst` before: then `dst` is how the
    /// condition comes out.
    fn truth_of(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
        if !matches!(imm, 0 | 1) {
            return None;
        }
        // Few constants have a choice so near, which is quickly seen.
        let near = self.facts.get(slot + 1..=slot + FARTHEST_CHOICE)?;
        if !near.iter().any(Fact::is_selection) {
            return None;
        }
        for at in slot + 1..=slot + FARTHEST_CHOICE {
            let insn = self.peek(at)?;
            let fact = &self.facts[at];
            if fact.reads(dst) || fact.writes(dst) {
                return None;
            }
            match insn {
                Insn::Jump { .. } if fact.is_selection() => {
                    let chosen = self.arithmetic(at + 1)?;
                    let flips = chosen.dst == dst && chosen.src == Operand::Imm(imm ^ 1);
                    return flips.then_some(at + 1);
                }
                Insn::Alu { .. } | Insn::Load { .. } | Insn::Store { .. } => {}
                _ => return None,
            }
        }
        None
    }

    /// `dst = imm; *(size *)(base + off) = dst`, where nothing else reads `dst`.
    fn store_constant(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> Option<usize> {
        let Insn::Store {
            size,
            base,
            off,
            src: Operand::Reg(src),
        } = self.peek(slot + 1)?
        else {
            return None;
        };
        let same = size != Size::DW || value == imm as i64 as u64;
        if src != dst || base == dst || self.after(slot + 1).has(dst) || !same {
            return None;
        }
        let mem = self.address(base, off);
        self.buf.store_imm(size, mem, imm);
        Some(2)
    }

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

    /// After `dst <<= count`: what that and the shift back at a slot extend.
    pub(super) fn extension(
        &self,
        slot: usize,
        dst: Reg,
        width: Width,
        count: i32,
    ) -> Option<Extension> {
        let from = match (width, count) {
            (Width::W64, 32) => Size::W,
            (Width::W64, 48) | (Width::W32, 16) => Size::H,
            (Width::W64, 56) | (Width::W32, 24) => Size::B,
            _ => return None,
        };
        let back = self.arithmetic(slot)?;
        let Operand::Imm(by) = back.src else {
            return None;
        };
        let sign = match back.op {
            AluOp::Rsh => None,
            AluOp::Arsh => Some(width),
            _ => return None,
        };
        let fits = back.dst == dst && back.width == width && (count..64).contains(&by);
        let all = if width == Width::W32 { 32 } else { 64 };
        (fits && by < all).then_some(Extension {
            from,
            sign,
            width,
            by: (by - count) as u8,
        })
    }

    /// Shifts down what was extended, and notes what is known of it.
    pub(super) fn finish_extension(&mut self, reg: Reg, extension: Extension) {
        let Extension {
            from,
            sign,
            width,
            by,
        } = extension;
        if by > 0 {
            let op = match sign {
                Some(_) => Shift::Sar,
                None => Shift::Shr,
            };
            let dst = self.gpr(reg);
            self.buf.shift(op, width, dst, by);
            self.set_flags(reg, width);
        }
        let known = match sign {
            None => (8 * from.bytes() as u8).saturating_sub(by),
            Some(Width::W32) => 32,
            Some(Width::W64) => 64,
        };
        self.know(reg, known);
    }

    /// After an index was shifted left by up to 3: adding a base, and an access
    /// through the sum. How many slots from `slot` on.
    fn scaled_index(
        &mut self,
        slot: usize,
        dst: Reg,
        (index, scale): (Reg, u8),
        width: Width,
    ) -> Option<usize> {
        let next = self.arithmetic(slot)?;
        let Operand::Reg(base) = next.src else {
            return None;
        };
        let fits = next.op == AluOp::Add
            && next.dst == dst
            && base != dst
            && base != Reg::R10
            && (next.width == width || next.width == Width::W32);
        if !fits {
            return None;
        }
        let mem = Mem {
            base: self.gpr(base),
            index: Some((self.gpr(index), scale)),
            disp: 0,
        };
        if next.width == Width::W64 && self.is_only_address(slot + 1, dst, [base, index], mem) {
            return Some(1);
        }
        self.buf.lea(next.width, self.gpr(dst), mem);
        self.know(dst, if next.width == Width::W32 { 32 } else { 64 });
        Some(1)
    }

    /// After `index << scale` was to be put into `shifted`: adding that to a base, and
    /// accesses through the sum, where nothing else wants it. The base may be copied
    /// for it, and moved by a constant. How many slots from `slot` on.
    fn add_scaled(
        &mut self,
        slot: usize,
        shifted: Reg,
        (index, scale): (Reg, u8),
        width: Width,
    ) -> Option<usize> {
        let whole = width == Width::W64 || self.known(index) + scale <= 32;
        let first = self.wide_sum(slot)?;
        let sum = first.dst;
        if !whole || sum == shifted {
            return None;
        }
        let (base, mut disp, mut at) = match (first.op, first.src) {
            (AluOp::Add, _) => (sum, 0, slot),
            (_, Operand::Reg(base)) if base != shifted => (base, 0, slot + 1),
            _ => return None,
        };
        if let Arithmetic {
            op: AluOp::Add,
            dst,
            src: Operand::Imm(imm),
            ..
        } = self.wide_sum(at)?
            && dst == sum
        {
            disp = imm;
            at += 1;
        }
        let last = self.wide_sum(at)?;
        let adds = last.op == AluOp::Add && last.src == Operand::Reg(shifted);
        if !adds || last.dst != sum || self.after(at).has(shifted) {
            return None;
        }
        let top = match base {
            Reg::R10 => self.frame.stack_top(),
            base => Mem::at(self.gpr(base), 0),
        };
        let mem = Mem {
            index: Some((self.gpr(index), scale)),
            disp: top.disp.checked_add(disp)?,
            ..top
        };
        if !self.is_only_address(at + 1, sum, [base, index], mem) {
            self.buf.lea(Width::W64, self.gpr(sum), mem);
            self.know(sum, 64);
        }
        Some(at + 1 - slot)
    }

    /// The 64-bit addition or copy at a slot, which is looked at from before.
    fn wide_sum(&self, slot: usize) -> Option<Arithmetic> {
        let this = self.arithmetic(slot)?;
        let sums = matches!(this.op, AluOp::Add | AluOp::Mov);
        (sums && this.width == Width::W64).then_some(this)
    }

    #[inline(never)]
    fn shift_imm(&mut self, slot: usize, op: AluOp, width: Width, reg: Reg, count: i32) -> usize {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let count = match width {
            Width::W32 => count & 31,
            Width::W64 => count & 63,
        } as u8;
        if count == 0 {
            self.zero_upper(slot, width, reg);
            return 1;
        }
        if op == AluOp::Lsh {
            if let Some(extension) = self.extension(slot + 1, reg, width, count.into())
                && extension.by == 0
            {
                if extension.sign.is_some() || known > 8 * extension.from.bytes() as u8 {
                    self.buf.extend(extension.from, extension.sign, dst, dst);
                    self.finish_extension(reg, extension);
                }
                return 2;
            }
            if count <= 3
                && let Some(more) = self
                    .scaled_index(slot + 1, reg, (reg, count), width)
                    .or_else(|| self.add_scaled(slot + 1, reg, (reg, count), width))
            {
                return 1 + more;
            }
        }
        let encoded = shift(op).expect("the caller passes shifts");
        self.buf.shift(encoded, width, dst, count);
        self.set_flags(reg, width);
        let most = match width {
            Width::W32 => 32,
            Width::W64 => 64,
        };
        let left = match op {
            AluOp::Lsh => known.min(most) + count,
            AluOp::Rsh => known.min(most).saturating_sub(count),
            _ => most,
        };
        self.know(reg, left.min(most));
        1
    }

    fn shift_by_reg(&mut self, this: Arithmetic, dst: Gpr, count: Reg) {
        let op = shift(this.op).expect("the caller passes shifts");
        let width = this.width;
        let count = self.gpr(count);
        let rcx = Gpr::RCX;
        if count == rcx && dst != rcx {
            self.buf.shift_by_cl(op, width, dst);
        } else if self.features.bmi2 {
            self.buf.shift_by(op, width, dst, dst, count);
        } else if dst == rcx {
            self.buf.mov(Width::W64, SCRATCH, dst);
            self.buf.mov(Width::W32, rcx, count);
            self.buf.shift_by_cl(op, width, SCRATCH);
            self.buf.mov(Width::W64, rcx, SCRATCH);
        } else {
            self.buf.mov(Width::W64, SCRATCH, rcx);
            self.buf.mov(Width::W32, rcx, count);
            self.buf.shift_by_cl(op, width, dst);
            self.buf.mov(Width::W64, rcx, SCRATCH);
        }
        self.know(this.dst, if width == Width::W32 { 32 } else { 64 });
    }

    #[inline(never)]
    fn alu_reg(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let dst = self.gpr(this.dst);
        if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.buf.lea(Width::W64, SCRATCH, top);
            return self.operate(this, SCRATCH);
        }
        let from = self.gpr(src);
        match this.op {
            AluOp::Or | AluOp::And if src == this.dst => {
                self.zero_upper(slot, this.width, this.dst)
            }
            AluOp::Add
                if this.width == Width::W64
                    && src != this.dst
                    && self.is_only_address(
                        slot + 1,
                        this.dst,
                        [this.dst, src],
                        Mem::indexed(dst, from, 0),
                    ) => {}
            _ => self.operate(this, from),
        }
    }

    /// `dst op= from`, and what is then known.
    #[inline(always)]
    pub(super) fn operate(&mut self, this: Arithmetic, from: Gpr) {
        let dst = self.gpr(this.dst);
        let (a, b) = (self.known(this.dst), self.known_of(this.src));
        match plain(this.op) {
            Some(op) => {
                self.buf.alu(op, this.width, dst, from);
                self.set_flags(this.dst, this.width);
            }
            None => self.buf.multiply(this.width, dst, from),
        }
        let most = if this.width == Width::W32 { 32 } else { 64 };
        let known = match this.op {
            AluOp::And => a.min(b),
            AluOp::Or | AluOp::Xor => a.max(b),
            AluOp::Add => a.max(b).saturating_add(1),
            AluOp::Mul => a.saturating_add(b),
            _ => 64,
        };
        self.know(this.dst, known.min(most));
    }

    #[inline(never)]
    fn alu_imm(&mut self, op: AluOp, width: Width, reg: Reg, imm: i32) {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let most: u8 = if width == Width::W32 { 32 } else { 64 };
        let fits = known <= most;
        match (op, imm) {
            (AluOp::Mul, 0) | (AluOp::And, 0) => {
                self.buf.set(dst, 0);
                self.know(reg, 0);
                return;
            }
            (AluOp::Add | AluOp::Sub | AluOp::Or | AluOp::Xor, 0)
            | (AluOp::And, -1)
            | (AluOp::Mul, 1) => {
                if !fits {
                    self.buf.mov(width, dst, dst);
                }
                self.know(reg, known.min(most));
                return;
            }
            (AluOp::And, mask) if mask > 0 => {
                self.mask(width, reg, mask);
                return;
            }
            (AluOp::Mul, imm) if imm > 0 && imm.count_ones() == 1 => {
                let count = imm.trailing_zeros() as u8;
                self.buf.shift(Shift::Shl, width, dst, count);
                self.set_flags(reg, width);
                self.know(reg, known.saturating_add(count).min(most));
                return;
            }
            (AluOp::Mul, 3 | 5 | 9) => {
                let scale = (imm - 1).trailing_zeros() as u8;
                let mem = Mem {
                    base: dst,
                    index: Some((dst, scale)),
                    disp: 0,
                };
                self.buf.lea(width, dst, short_sum(mem));
                self.know(reg, most);
                return;
            }
            (AluOp::Mul, imm) => {
                self.buf.multiply_imm(width, dst, dst, imm);
                self.know(reg, most);
                return;
            }
            (AluOp::Add, 1) | (AluOp::Sub, -1) => self.buf.increment(width, dst),
            (AluOp::Add, -1) | (AluOp::Sub, 1) => self.buf.decrement(width, dst),
            (AluOp::Add, 128) => self.buf.alu_imm(Alu::Sub, width, dst, -128),
            (AluOp::Sub, 128) => self.buf.alu_imm(Alu::Add, width, dst, -128),
            _ => {
                let op = plain(op).expect("multiplications are done above");
                self.buf.alu_imm(op, width, dst, imm);
            }
        }
        self.set_flags(reg, width);
        let known = match op {
            AluOp::Or | AluOp::Xor if imm >= 0 => known.min(most).max(bits(imm as u64)),
            _ => most,
        };
        self.know(reg, known);
    }

    /// `dst = !dst`, together with an `and` that takes the result.
    fn invert(&mut self, slot: usize, this: Arithmetic) -> usize {
        if let Some(count) = self.and_inverse(slot, this) {
            return count;
        }
        let dst = self.gpr(this.dst);
        self.buf.unary(Unary::Not, this.width, dst);
        let most = if this.width == Width::W32 { 32 } else { 64 };
        self.know(this.dst, most);
        1
    }

    fn and_inverse(&mut self, slot: usize, this: Arithmetic) -> Option<usize> {
        let next = self.arithmetic(slot + 1)?;
        let Operand::Reg(src) = next.src else {
            return None;
        };
        let other = if next.dst == this.dst { src } else { next.dst };
        let takes = next.op == AluOp::And
            && (next.dst == this.dst || src == this.dst && !self.after(slot + 1).has(src))
            && other != this.dst
            && other != Reg::R10;
        if !takes || !self.features.bmi1 {
            return None;
        }
        // If one of them has no upper half, the result has none.
        let (width, most) = match (this.width, next.width) {
            (Width::W64, Width::W64) => (Width::W64, 64),
            _ => (Width::W32, 32),
        };
        let known = self.known(other).min(most);
        let [dst, not, other] = [next.dst, this.dst, other].map(|reg| self.gpr(reg));
        self.buf.and_not(width, dst, not, other);
        self.set_flags(next.dst, width);
        self.know(next.dst, known);
        Some(2)
    }

    /// `dst &= mask`, a positive mask.
    fn mask(&mut self, width: Width, reg: Reg, mask: i32) {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let most = bits(mask as u64);
        let is_run = (mask as u32 + 1).is_power_of_two();
        if is_run && known <= most {
            return;
        }
        match mask {
            0xff => self.buf.extend(Size::B, None, dst, dst),
            0xffff => self.buf.extend(Size::H, None, dst, dst),
            _ => {
                // The result has no upper half, whatever the width.
                self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
                self.set_flags(reg, width);
            }
        }
        self.know(reg, known.min(most));
    }

    /// An operation that changes nothing but, on 32 bits, zeroes the upper half.
    fn zero_upper(&mut self, slot: usize, width: Width, reg: Reg) {
        let wanted = self.known(reg) > 32 && self.upper_wanted(slot, reg);
        if width == Width::W32 && wanted {
            let dst = self.gpr(reg);
            self.buf.mov(Width::W32, dst, dst);
            self.know(reg, 32);
        }
    }

    /// `dst = -dst`.
    pub(super) fn negate(&mut self, slot: usize, width: Width, dst: Reg) {
        let narrow = !self.upper_wanted(slot, dst);
        let width = if narrow { Width::W32 } else { width };
        let gpr = self.gpr(dst);
        self.buf.unary(Unary::Neg, width, gpr);
        self.set_flags(dst, width);
        self.know(dst, if width == Width::W32 { 32 } else { 64 });
    }

    /// `dst = (signed, from)src`.
    pub(super) fn sign_extend(
        &mut self,
        slot: usize,
        width: Width,
        from: Size,
        dst: Reg,
        src: Reg,
    ) {
        let narrow = !self.upper_wanted(slot, dst);
        let width = if narrow { Width::W32 } else { width };
        let (to, from_reg) = (self.gpr(dst), self.gpr(src));
        self.buf.extend(from, Some(width), to, from_reg);
        self.know(dst, if width == Width::W32 { 32 } else { 64 });
    }

    /// `dst = (u32)src`: casts between address spaces.
    pub(super) fn truncate(&mut self, dst: Reg, src: Reg) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        let known = self.known(src).min(32);
        self.buf.mov(Width::W32, to, from);
        self.know(dst, known);
    }

    /// A byte-order instruction, and a store of its result.
    pub(super) fn byte_order(
        &mut self,
        slot: usize,
        order: ByteOrder,
        size: Size,
        dst: Reg,
    ) -> usize {
        let gpr = self.gpr(dst);
        let known = self.known(dst);
        let all = 8 * size.bytes() as u8;
        if order == ByteOrder::Little {
            if known > all {
                self.buf.extend(size, None, gpr, gpr);
            }
            self.know(dst, known.min(all));
            return 1;
        }
        if let Some(mem) = self.swapped_store(slot + 1, size, dst) {
            let width = if size == Size::W {
                Width::W32
            } else {
                Width::W64
            };
            self.buf.store_swapped(width, mem, gpr);
            return 2;
        }
        self.swap_bytes(size, gpr, known);
        self.know(dst, all);
        1
    }

    /// Swaps the low bytes of a register and zeroes the others; so many low bits
    /// may be set before.
    pub(super) fn swap_bytes(&mut self, size: Size, gpr: Gpr, known: u8) {
        match size {
            Size::H => {
                self.buf.swap_low_bytes(gpr);
                if known > 16 {
                    self.buf.extend(Size::H, None, gpr, gpr);
                }
            }
            Size::DW => self.buf.byte_swap(Width::W64, gpr),
            _ => self.buf.byte_swap(Width::W32, gpr),
        }
    }

    /// The address of a store of `reg`, which nothing reads after it.
    fn swapped_store(&self, slot: usize, size: Size, reg: Reg) -> Option<Mem> {
        if !self.features.movbe || size == Size::H {
            return None;
        }
        match self.peek(slot)? {
            Insn::Store {
                size: stored,
                base,
                off,
                src: Operand::Reg(src),
            } if stored == size && src == reg && base != reg && !self.after(slot).has(reg) => {
                Some(self.address(base, off))
            }
            _ => None,
        }
    }

    /// `dst` is `src` rotated left.
    pub(super) fn rotate(&mut self, width: Width, dst: Reg, src: Reg, left: u8) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        let bits: u8 = if width == Width::W32 { 32 } else { 64 };
        if to != from && self.features.bmi2 {
            self.buf.rotate_right(width, to, from, bits - left);
        } else {
            if to != from {
                self.buf.mov(width, to, from);
            }
            self.buf.shift(Shift::Rol, width, to, left);
        }
        self.know(dst, bits);
    }

    /// `dst` is a count of bits of `src`, at most 64.
    pub(super) fn count(&mut self, what: Count, width: Width, dst: Reg, src: Reg) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        if to != from {
            // Many processors wait for what it held, as if it were read.
            self.buf.set(to, 0);
        }
        match what {
            Count::Ones => self.buf.count_ones(width, to, from),
            Count::TrailingZeros => self.buf.count_trailing_zeros(width, to, from),
            Count::LeadingZeros => self.buf.count_leading_zeros(width, to, from),
        }
        self.know(dst, bits(64));
    }
}

/// A base of rbp or r13 always takes a displacement; as an index they do not.
fn short_sum(mem: Mem) -> Mem {
    match mem.index {
        Some((index, 0)) if mem.base.0 & 7 == 5 && index != Gpr::RSP => Mem {
            base: index,
            index: Some((mem.base, 0)),
            ..mem
        },
        _ => mem,
    }
}
