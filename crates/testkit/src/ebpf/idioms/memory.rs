//! Values put together from memory, changed in it, moved in it.

use super::{At, Recipe};
use crate::ebpf::Dialect;
use crate::ebpf::memory::{Need, size_of};
use crate::ebpf::scope::{Scope, bit};
use isa::ebpf::AluOp::{Add, And, Lsh, Mov, Mul, Or, Rsh, Sub, Xor};
use isa::ebpf::Width::{W32, W64};
use isa::ebpf::{AluOp, AtomicOp, ByteOrder, Cond, Insn, Operand, Reg, Size, Width};

const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::DW];
const OPERATIONS: [AluOp; 6] = [Add, Sub, And, Or, Xor, Mul];

fn keep(registers: &[Reg]) -> u16 {
    registers.iter().fold(0, |set, &reg| set | bit(reg))
}

/// A place for an access of that size beside which these registers stay.
fn place(s: &mut Scope<'_, '_>, size: Size, registers: &[Reg]) -> Option<At> {
    let (base, off) = s.place(Need::plain(size, keep(registers)))?;
    Some(At(base, off))
}

/// Bytes loaded one by one and put together.
fn composed(s: &mut Scope<'_, '_>, reversed: bool) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let (count, size) = s
        .choices
        .pick(&[(2, Size::H), (4, Size::W), (8, Size::DW), (3, Size::W)]);
    let at = place(s, size, &[x, t])?;
    let width = if count == 8 { W64 } else { s.width() };
    let join = s.choices.pick(&[Or, Or, Add, Xor]);
    // Upwards each byte is shifted to its place; downwards all are, each time.
    let upwards = s.choices.one_in(2);
    let mut r = Recipe::new();
    for step in 0..count {
        let byte = if reversed == upwards {
            count - 1 - step
        } else {
            step
        };
        let byte = if upwards { byte } else { count - 1 - byte };
        if step == 0 {
            r.load(Size::B, x, at.plus(byte));
        } else if upwards {
            r.load(Size::B, t, at.plus(byte));
            r.op(Lsh, width, t, 8 * i32::from(step))
                .op(join, width, x, t);
        } else {
            r.op(Lsh, width, x, 8)
                .load(Size::B, t, at.plus(byte))
                .op(join, width, x, t);
        }
    }
    r.done()
}

/// A number of several bytes, the least first.
pub(super) fn composed_load(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    composed(s, false)
}

/// A number of several bytes, the greatest first.
pub(super) fn composed_big_endian(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    composed(s, true)
}

/// A load of which only a part is kept.
pub(super) fn masked_load(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let at = place(s, size, &[x])?;
    let width = s.width();
    let signed = size != Size::DW && s.choices.one_in(3);
    let mut r = Recipe::new();
    r.load_signed(size, signed, x, at);
    match s.choices.below(5) {
        0 => r.op(And, width, x, 0xff),
        1 => r.op(
            And,
            width,
            x,
            s.choices.pick(&[0xffff, 0x7f, 0xf0, 0x1ff, -2]),
        ),
        2 => r.op(Rsh, width, x, s.count(width)),
        3 => r.op(Mov, W32, x, x),
        _ => r.op(Lsh, W64, x, 32).op(Rsh, W64, x, 32),
    };
    r.done()
}

/// An operand that is loaded for one operation.
pub(super) fn load_and_operate(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let size = s
        .choices
        .pick(&[Size::W, Size::DW, Size::W, Size::DW, Size::B, Size::H]);
    let at = place(s, size, &[x, t])?;
    let width = s.width();
    let op = s.choices.pick(&OPERATIONS);
    let mut r = Recipe::new();
    r.load(size, t, at).op(op, width, x, t);
    if s.choices.one_in(3) {
        // The loaded value is gone afterwards.
        r.op(Mov, W64, t, 0);
    }
    r.done()
}

/// A value in memory changed by an operation.
pub(super) fn read_modify_write(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let at = place(s, size, &[t, x])?;
    let width = s.width();
    let op = s.choices.pick(&OPERATIONS);
    let operand = match s.choices.below(3) {
        0 => Operand::Imm(s.choices.pick(&[1, -1])),
        1 => Operand::Imm(s.choices.immediate()),
        _ => Operand::Reg(s.choices.pick(&[x, t])),
    };
    let mut r = Recipe::new();
    r.load(size, t, at);
    match s.choices.below(6) {
        0 => r.neg(width, t),
        1 => r.op(Xor, width, t, -1),
        2 => r.op(s.choices.pick(&[Lsh, Rsh]), width, t, s.count(width)),
        _ => r.op(op, width, t, operand),
    };
    r.store(size, at, t);
    if s.choices.one_in(2) {
        r.op(Mov, W64, t, 0);
    }
    r.done()
}

/// A loaded value compared, as itself or with its sign.
pub(super) fn compare_loaded(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x, y] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let at = place(s, size, &[t, x, y])?;
    let width = s.width();
    let out = s.label();
    let cond = s.choices.pick(&[
        Cond::Eq,
        Cond::Ne,
        Cond::Gt,
        Cond::SGt,
        Cond::SLt,
        Cond::Le,
        Cond::Set,
    ]);
    let limit = match s.choices.below(4) {
        0 => Operand::Reg(x),
        1 => Operand::Imm(
            s.choices
                .pick(&[0, 0xff, 0x80, 0x7f, -1, 0xffff, 0x8000, -128]),
        ),
        _ => Operand::Imm(s.choices.immediate()),
    };
    let mut r = Recipe::new();
    let signed = size != Size::DW && s.choices.one_in(3);
    r.load_signed(size, signed, t, at);
    if s.choices.one_in(3) {
        r.op(And, width, t, s.choices.immediate());
    }
    if s.choices.one_in(4) {
        r.jump(cond, width, x, t, out);
    } else {
        r.jump(cond, width, t, limit, out);
    }
    r.op(Xor, W64, y, 0x55).place(out);
    if s.choices.one_in(2) {
        r.op(Mov, W64, t, 0);
    }
    r.done()
}

/// A word stored whole and loaded in part, or the other way round.
pub(super) fn store_then_load(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let at = place(s, Size::DW, &[x, t])?;
    let (stored, loaded) = (s.choices.pick(&SIZES), s.choices.pick(&SIZES));
    let inside = |s: &mut Scope<'_, '_>, size: Size| {
        let places = 8 / size_of(size);
        (s.choices.below(places as u32) as i32 * size_of(size)) as i16
    };
    let (first, second) = (inside(s, stored), inside(s, loaded));
    let operand = s.operand();
    let signed = loaded != Size::DW && s.choices.one_in(3);
    Recipe::new()
        .store(stored, at.plus(first), operand)
        .load_signed(loaded, signed, t, at.plus(second))
        .op(Xor, W64, x, t)
        .done()
}

/// A number stored byte by byte, or in words that lie side by side.
pub(super) fn split_store(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let at = place(s, Size::DW, &[x])?;
    let size = s.choices.pick(&[Size::B, Size::H, Size::W]);
    let step = size_of(size);
    let width = s.width();
    let count = (8 / step).min(2 + s.choices.below(7) as i32);
    let mut r = Recipe::new();
    let constants = s.choices.one_in(3);
    let backwards = s.choices.one_in(3);
    for number in 0..count {
        let place = if backwards {
            count - 1 - number
        } else {
            number
        };
        let at = at.plus((place * step) as i16);
        if constants {
            r.store(size, at, s.choices.immediate());
        } else {
            r.store(size, at, x).op(Rsh, width, x, 8 * step % 32);
        }
    }
    r.done()
}

/// A run of bytes moved, in pieces of any size.
pub(super) fn copy_run(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, u] = s.numbers(0);
    let from = place(s, Size::DW, &[t, u])?;
    let to = place(s, Size::DW, &[t, u, from.0])?;
    let mut r = Recipe::new();
    let size = s.choices.pick(&SIZES);
    let step = size_of(size) as i16;
    // All loaded before all is stored, or each in turn.
    let together = s.choices.one_in(2) && step <= 4;
    let mut at = 0;
    while at + step <= 8 {
        r.load(size, t, from.plus(at));
        if together && at + 2 * step <= 8 {
            r.load(size, u, from.plus(at + step));
            r.store(size, to.plus(at), t)
                .store(size, to.plus(at + step), u);
            at += step;
        } else {
            r.store(size, to.plus(at), t);
        }
        at += step;
    }
    r.done()
}

/// The same constant stored to adjacent addresses.
pub(super) fn fill_run(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let at = place(s, Size::DW, &[])?;
    let size = s.choices.pick(&SIZES);
    let step = size_of(size) as i16;
    let value = s.choices.pick(&[0, 0, -1, 1, 0x1234_5678]);
    let mut r = Recipe::new();
    for number in 0..8 / step {
        r.store(size, at.plus(number * step), value);
    }
    r.done()
}

/// Two values exchanged in memory.
pub(super) fn swap_in_memory(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, u] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let first = place(s, size, &[t, u])?;
    let second = place(s, size, &[t, u, first.0])?;
    Recipe::new()
        .load(size, t, first)
        .load(size, u, second)
        .store(size, first, u)
        .store(size, second, t)
        .done()
}

/// A repeated load, with other instructions between.
pub(super) fn load_twice(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y, z] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let at = place(s, size, &[x, y, z])?;
    let other = place(s, size, &[x, y, z, at.0])?;
    let mut r = Recipe::new();
    r.load(size, x, at);
    if s.choices.one_in(2) {
        r.store(size, other, z);
    }
    r.load(size, y, at).op(Sub, W64, x, y).done()
}

/// A load with an extension that it makes needless, or does not.
pub(super) fn extend_loaded(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let size = s.choices.pick(&SIZES);
    let at = place(s, size, &[x])?;
    let signed = size != Size::DW && s.choices.one_in(2);
    let from = s.choices.pick(&[Size::B, Size::H, Size::W]);
    let width = if from == Size::W { W64 } else { s.width() };
    let mut r = Recipe::new();
    r.load_signed(size, signed, x, at);
    match s.choices.below(3) {
        0 => r.mov_sx(width, from, x, x),
        1 => r.op(Mov, W32, x, x),
        _ => r.op(Lsh, W64, x, 56).op(AluOp::Arsh, W64, x, 56),
    };
    r.done()
}

/// A counter in memory that is updated and then tested.
pub(super) fn update_and_test(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, y] = s.numbers(0);
    let size = s.choices.pick(&[Size::W, Size::DW]);
    let at = place(s, size, &[t, y])?;
    let (computed, compared) = (s.width(), s.width());
    let op = s.choices.pick(&[Add, Sub, And, Or]);
    let operand = s.operand();
    let cond = s
        .choices
        .pick(&[Cond::Eq, Cond::Ne, Cond::SLt, Cond::SGe, Cond::Gt]);
    let out = s.label();
    Recipe::new()
        .load(size, t, at)
        .op(op, computed, t, operand)
        .store(size, at, t)
        .jump(cond, compared, t, 0, out)
        .op(Add, W64, y, 3)
        .place(out)
        .done()
}

/// An atomic change by comparison and exchange.
pub(super) fn exchange_loop(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    if s.pinned & 1 != 0 {
        return None;
    }
    let [t, x] = s.numbers(1);
    if !s.scalars() & 1 != 0 {
        let imm = Operand::Imm(0);
        let zero = super::super::scope::alu(Mov, W64, Reg::R0, imm);
        s.compute(Reg::R0, zero);
    }
    // For Linux and 32 bits see `Scope::access_atomically`.
    let size = match s.dialect {
        Dialect::Kernel => Size::DW,
        Dialect::Engines => s.choices.pick(&[Size::W, Size::DW]),
    };
    let (base, off) = s.place(Need {
        size,
        is_ordered: true,
        keep: keep(&[Reg::R0, t, x]),
    })?;
    let op = s.choices.pick(&OPERATIONS);
    let width = match size {
        Size::W => W32,
        _ => W64,
    };
    let out = s.label();
    let exchange = Insn::Atomic {
        op: AtomicOp::CmpXchg,
        size,
        base,
        off,
        src: t,
    };
    let mut r = Recipe::new();
    r.load(size, Reg::R0, At(base, off));
    r.mov(t, Reg::R0).op(op, width, t, x).mov(x, Reg::R0);
    r.plain(exchange);
    r.jump(Cond::Eq, width, Reg::R0, x, out);
    r.op(Xor, W64, t, -1).place(out).done()
}

/// A field in network byte order, read or written.
pub(super) fn big_endian_field(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y] = s.numbers(0);
    let size = s.choices.pick(&[Size::H, Size::W, Size::DW]);
    let at = place(s, size, &[x, y])?;
    let swapped = s.choices.pick(&[size, size, size, Size::W]);
    let order = s.choices.pick(&[ByteOrder::Big, ByteOrder::Swap]);
    let out = s.label();
    let width: Width = s.width();
    let mut r = Recipe::new();
    match s.choices.below(3) {
        0 => r.load(size, x, at).endian(order, swapped, x),
        1 => r.endian(order, swapped, x).store(size, at, x),
        _ => r
            .load(size, x, at)
            .endian(order, swapped, x)
            .jump(Cond::Gt, width, x, y, out)
            .op(Add, W64, y, 1)
            .place(out),
    };
    r.done()
}
