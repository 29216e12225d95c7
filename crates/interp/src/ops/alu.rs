//! Arithmetic, moves and byte order.

use std::marker::PhantomData;

use isa::ebpf::{AluOp, ByteOrder, Operand, Reg, Size, Width, eval};

use super::operand::{self, Arithmetic, Bits, Left, Put, R0, Read, Same, Stored};
use super::{choose, choose_reg, choose_source, choose_width};
use crate::op::{Dispatch, Flow, Op, Operation, Run, Step, step};

/// `dst = lhs op src`, followed by `N`.
pub(super) struct Binary<K, W, D, L, S, N = Dispatch>(PhantomData<(K, W, D, L, S, N)>);

impl<K, W, D, L, S, N> Operation for Binary<K, W, D, L, S, N>
where
    K: Arithmetic,
    W: Bits,
    D: Put,
    L: Read,
    S: Read,
    N: Operation,
{
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let value = eval::alu(K::OP, W::WIDTH, L::read(&run), S::read(&run));
        D::put(&mut run, value);
        run.last = value;
        N::perform(run.forward())
    }
}

/// `dst = dst op src`.
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
    ], choose_width!(width, W, choose_source!(src, S, match dst {
        Reg::R0 => step::<Binary<K, W, R0, R0, S>> as Step,
        _ => step::<Binary<K, W, Stored, Same, S>> as Step,
    })));
    Op::new(step).dst(dst).lhs(dst).operand(src)
}

/// `dst = lhs op src`, where `dst` and `lhs` differ; `None` for infrequent operations.
pub(crate) fn ternary(op: AluOp, width: Width, dst: Reg, lhs: Reg, src: Operand) -> Option<Op> {
    let step = choose!(op, K in [
        AluOp::Add => operand::Add,
        AluOp::Sub => operand::Sub,
        AluOp::Mul => operand::Mul,
        AluOp::Or => operand::Or,
        AluOp::And => operand::And,
        AluOp::Xor => operand::Xor,
        AluOp::Lsh => operand::Lsh,
        AluOp::Rsh => operand::Rsh,
        AluOp::Arsh => operand::Arsh;
        else None
    ], choose_width!(width, W, choose_source!(src, S, match (dst, lhs) {
        (Reg::R0, _) => step::<Binary<K, W, R0, Left, S>> as Step,
        (_, Reg::R0) => step::<Binary<K, W, Stored, R0, S>> as Step,
        _ => step::<Binary<K, W, Stored, Left, S>> as Step,
    })));
    Some(Op::new(step).dst(dst).lhs(lhs).operand(src))
}

/// A pure function of one register: `dst = f(src)`.
trait Function {
    fn apply(value: u64) -> u64;
}

struct Negate<W>(PhantomData<W>);
/// Sign extension from `FROM` bits.
struct SignExtend<W, const FROM: u32>(PhantomData<W>);
/// Byte swap or truncation to `BITS` bits.
struct Order<const SWAP: bool, const BITS: u32>;

impl<W: Bits> Function for Negate<W> {
    #[inline(always)]
    fn apply(value: u64) -> u64 {
        eval::neg(W::WIDTH, value)
    }
}

impl<W: Bits, const FROM: u32> Function for SignExtend<W, FROM> {
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

impl<const SWAP: bool, const BITS: u32> Function for Order<SWAP, BITS> {
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

/// `dst = f(src)`.
struct Unary<F, D, S>(PhantomData<(F, D, S)>);

impl<F: Function, D: Put, S: Read> Operation for Unary<F, D, S> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let value = F::apply(S::read(&run));
        D::put(&mut run, value);
        run.next()
    }
}

fn unary<F: Function>(dst: Reg, src: Reg) -> Op {
    let source = Operand::Reg(src);
    let step = choose_reg!(dst, D, choose_reg!(src, S, step::<Unary<F, D, S>> as Step));
    Op::new(step).dst(dst).operand(source)
}

/// `dst = -dst`.
pub(crate) fn negate(width: Width, dst: Reg) -> Op {
    choose_width!(width, W, unary::<Negate<W>>(dst, dst))
}

/// `dst = (signed, from)src`.
pub(crate) fn sign_extend(width: Width, from: Size, dst: Reg, src: Reg) -> Op {
    choose_width!(
        width,
        W,
        match from {
            Size::B => unary::<SignExtend<W, 8>>(dst, src),
            Size::H => unary::<SignExtend<W, 16>>(dst, src),
            Size::W | Size::DW => unary::<SignExtend<W, 32>>(dst, src),
        }
    )
}

/// `dst = order(dst)`. Programs are little-endian, so conversion to big-endian swaps on
/// every host.
pub(crate) fn byte_order(order: ByteOrder, size: Size, dst: Reg) -> Op {
    let swap = match order {
        ByteOrder::Little => false,
        ByteOrder::Big | ByteOrder::Swap => true,
    };
    match (swap, size) {
        (true, Size::H) => unary::<Order<true, 16>>(dst, dst),
        (true, Size::W) => unary::<Order<true, 32>>(dst, dst),
        (true, _) => unary::<Order<true, 64>>(dst, dst),
        (false, Size::H) => unary::<Order<false, 16>>(dst, dst),
        (false, Size::W) => unary::<Order<false, 32>>(dst, dst),
        (false, _) => unary::<Order<false, 64>>(dst, dst),
    }
}

/// `dst = value`, 64 bits.
struct LoadWide<D>(PhantomData<D>);

impl<D: Put> Operation for LoadWide<D> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let value = run.op().wide();
        D::put(&mut run, value);
        run.next()
    }
}

/// `dst = value`, 64 bits.
pub(crate) fn load_imm64(dst: Reg, value: u64) -> Op {
    let step = choose_reg!(dst, D, step::<LoadWide<D>> as Step);
    Op::new(step).dst(dst).with_wide(value)
}
