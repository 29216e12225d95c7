//! Arithmetic, moves and byte order.

use isa::ebpf::{AluOp, ByteOrder, Operand, Reg, Size, Width, eval};
use vm::{Machine, Surroundings};

use super::operand::{self, Arithmetic, Bits, Read, Target};
use super::{choose, choose_reg, choose_source, choose_width};
use crate::op::{Flow, Op, Step, go};

/// `dst = dst op src`.
unsafe fn alu<K: Arithmetic, W: Bits, D: Target, S: Read>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    mut r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        let value = eval::alu(K::OP, W::WIDTH, D::get(&*op, m, r0), S::read(&*op, m, r0));
        D::put(&*op, m, &mut r0, value);
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// A two-operand operation.
pub(crate) fn binary(op: AluOp, width: Width, dst: Reg, src: Operand) -> Op {
    let step = choose!(op, K in [
        AluOp::Add => operand::Add,
        AluOp::Sub => operand::Sub,
        AluOp::Mul => operand::Mul,
        AluOp::Div => operand::Div,
        AluOp::SDiv => operand::SDiv,
        AluOp::Mod => operand::Mod,
        AluOp::SMod => operand::SMod,
        AluOp::Or => operand::Or,
        AluOp::And => operand::And,
        AluOp::Xor => operand::Xor,
        AluOp::Lsh => operand::Lsh,
        AluOp::Rsh => operand::Rsh,
        AluOp::Arsh => operand::Arsh,
        AluOp::Mov => operand::Mov,
    ], choose_width!(width, W, choose_reg!(dst, D, choose_source!(src, S, alu::<K, W, D, S> as Step))));
    Op::new(step).dst(dst).operand(src)
}

/// A pure function of one register: `dst = f(src)`.
trait Unary {
    fn apply(value: u64) -> u64;
}

struct Negate<W>(std::marker::PhantomData<W>);
/// Sign extension from `FROM` bits.
struct SignExtend<W, const FROM: u32>(std::marker::PhantomData<W>);
/// Byte order: swaps or only truncates, to `BITS` bits.
struct Order<const SWAP: bool, const BITS: u32>;

impl<W: Bits> Unary for Negate<W> {
    #[inline(always)]
    fn apply(value: u64) -> u64 {
        eval::neg(W::WIDTH, value)
    }
}

impl<W: Bits, const FROM: u32> Unary for SignExtend<W, FROM> {
    #[inline(always)]
    fn apply(value: u64) -> u64 {
        let size = match FROM {
            8 => Size::B,
            16 => Size::H,
            _ => Size::W,
        };
        eval::mov_sx(W::WIDTH, size, value)
    }
}

impl<const SWAP: bool, const BITS: u32> Unary for Order<SWAP, BITS> {
    #[inline(always)]
    fn apply(value: u64) -> u64 {
        let order = if SWAP {
            ByteOrder::Swap
        } else {
            ByteOrder::Little
        };
        let size = match BITS {
            16 => Size::H,
            32 => Size::W,
            _ => Size::DW,
        };
        eval::endian(order, size, value)
    }
}

unsafe fn unary<U: Unary, D: Target, S: Read>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    mut r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        let value = U::apply(S::read(&*op, m, r0));
        D::put(&*op, m, &mut r0, value);
        go!(op.add(1), m, data, len, r0, world)
    }
}

fn unary_op<U: Unary>(dst: Reg, src: Reg) -> Op {
    let source = Operand::Reg(src);
    let step = choose_reg!(dst, D, choose_reg!(src, S, unary::<U, D, S> as Step));
    Op::new(step).dst(dst).operand(source)
}

/// `dst = -dst`.
pub(crate) fn negate(width: Width, dst: Reg) -> Op {
    choose_width!(width, W, unary_op::<Negate<W>>(dst, dst))
}

/// `dst = (signed, from)src`.
pub(crate) fn sign_extend(width: Width, from: Size, dst: Reg, src: Reg) -> Op {
    choose_width!(
        width,
        W,
        match from {
            Size::B => unary_op::<SignExtend<W, 8>>(dst, src),
            Size::H => unary_op::<SignExtend<W, 16>>(dst, src),
            Size::W | Size::DW => unary_op::<SignExtend<W, 32>>(dst, src),
        }
    )
}

/// `dst = order(dst)`. The host is little-endian or big-endian; a program means
/// what it means on the machine it was built for, so big-endian order swaps.
pub(crate) fn byte_order(order: ByteOrder, size: Size, dst: Reg) -> Op {
    let swap = order != ByteOrder::Little;
    match (swap, size) {
        (true, Size::H) => unary_op::<Order<true, 16>>(dst, dst),
        (true, Size::W) => unary_op::<Order<true, 32>>(dst, dst),
        (true, _) => unary_op::<Order<true, 64>>(dst, dst),
        (false, Size::H) => unary_op::<Order<false, 16>>(dst, dst),
        (false, Size::W) => unary_op::<Order<false, 32>>(dst, dst),
        (false, _) => unary_op::<Order<false, 64>>(dst, dst),
    }
}

unsafe fn load_wide<D: Target>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    mut r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        D::put(&*op, m, &mut r0, (*op).wide());
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// `dst = value`, 64 bits.
pub(crate) fn load_imm64(dst: Reg, value: u64) -> Op {
    let step = choose_reg!(dst, D, load_wide::<D> as Step);
    Op::new(step).dst(dst).with_wide(value)
}
