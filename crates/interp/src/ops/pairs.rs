//! Handlers for pairs of dependent operations.
//!
//! A register in memory delays the next instruction if that uses it (store-to-load
//! forwarding). In a pair, the first operation passes its result in a machine register
//! ([`Last`]) and continues without a dispatch. As in `linked`, the second operation stays
//! in the array.

use isa::ebpf::{AluOp, Cond, Operand, Reg, Size, Width};

use super::alu::Binary;
use super::branch::{Back, Forward, If};
use super::memory::{Load, U8, U16, U32, U64};
use super::operand::{
    Add, And, Eq, Imm, Last, Left, Lsh, Mov, Mul, Ne, Nowhere, Or, R0, Rsh, Same, Stored, Sub, W64,
    Xor,
};
use super::{choose, choose_cond, choose_width};
use crate::Fusion;
use crate::op::{Step, step};

/// The location of a second operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    Imm,
    Reg(Reg),
}

impl From<Operand> for Source {
    fn from(operand: Operand) -> Source {
        match operand {
            Operand::Imm(_) => Source::Imm,
            Operand::Reg(reg) => Source::Reg(reg),
        }
    }
}

/// An operation that may be part of a pair, without its constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Half {
    /// `dst = lhs op src`.
    Binary {
        op: AluOp,
        width: Width,
        dst: Reg,
        lhs: Reg,
        src: Source,
    },
    /// `dst = *(size *)(base + off)`, unsigned.
    Load { size: Size, dst: Reg, base: Reg },
    /// `if dst cond src goto t`.
    If {
        cond: Cond,
        width: Width,
        dst: Reg,
        src: Source,
        back: bool,
    },
}

impl Half {
    /// True if it can be the first of a pair.
    #[inline(always)]
    pub(crate) fn may_lead(self) -> bool {
        match self {
            Half::Binary {
                op: AluOp::Mov,
                src: Source::Imm,
                dst: Reg::R0,
                ..
            } => true,
            Half::Binary { dst, .. } | Half::Load { dst, .. } => is_stored(dst),
            Half::If { .. } => false,
        }
    }
}

/// Binds the operator and the source operand of a first operation to the types `K` and `S`.
macro_rules! choose_first {
    ($op:expr, $src:expr, $body:expr) => {
        match $src {
            Source::Imm => {
                type S = Imm;
                choose!($op, K in [
                    AluOp::Add => Add,
                    AluOp::Mul => Mul,
                    AluOp::And => And,
                    AluOp::Lsh => Lsh,
                    AluOp::Rsh => Rsh; else None
                ], $body)
            }
            Source::Reg(_) => {
                type S = Stored;
                choose!($op, K in [
                    AluOp::Add => Add,
                    AluOp::Sub => Sub,
                    AluOp::Or => Or,
                    AluOp::And => And,
                    AluOp::Xor => Xor; else None
                ], $body)
            }
        }
    };
}

/// Binds the operator and the destination of a second operation whose source is the first
/// one's result.
macro_rules! choose_second_operation {
    ($op:expr, $dst:expr, $body:expr) => {
        choose!($op, T in [
            AluOp::Add => Add,
            AluOp::Sub => Sub,
            AluOp::Or => Or,
            AluOp::And => And,
            AluOp::Xor => Xor,
            AluOp::Mov => Mov; else None
        ], match $dst {
            Reg::R0 => {
                type D = R0;
                type L = R0;
                $body
            }
            _ => {
                type D = Stored;
                type L = Same;
                $body
            }
        })
    };
}

macro_rules! choose_cell {
    ($size:expr, $body:expr) => {
        choose!($size, C in [
            Size::B => U8,
            Size::H => U16,
            Size::W => U32,
            Size::DW => U64,
        ], $body)
    };
}

/// Binds the source of a second operation to the type `S2`.
macro_rules! choose_second {
    ($src:expr, $body:expr) => {
        match $src {
            Source::Imm => {
                type S2 = Imm;
                $body
            }
            Source::Reg(_) => {
                type S2 = Stored;
                $body
            }
        }
    };
}

macro_rules! choose_direction {
    ($back:expr, $body:expr) => {
        choose!($back, T in [false => Forward, true => Back], $body)
    };
}

/// The handler of both operations; `None` if they are no pair.
pub(crate) fn pair(first: Half, second: Half) -> Option<(Fusion, Step)> {
    let (fusion, step) = match first {
        Half::Binary {
            op: AluOp::Mov,
            width,
            dst: Reg::R0,
            src: Source::Imm,
            ..
        } => (Fusion::ResultAndBranch, result_and_branch(width, second)),
        Half::Binary {
            op: AluOp::Mov,
            width,
            dst,
            src: Source::Reg(src),
            ..
        } if is_stored(dst) && is_stored(src) => (Fusion::MovePair, move_pair(width, second)),
        Half::Binary {
            op,
            width,
            dst,
            lhs,
            src,
        } if is_stored(dst) && is_stored(lhs) && src != Source::Reg(Reg::R0) => match second {
            Half::Binary {
                op: then,
                width: same,
                dst: into,
                lhs: left,
                src: right,
            } if same == width => {
                if right == Source::Reg(dst) && left == into {
                    (
                        Fusion::OperationOnResult,
                        operation_on_result(op, width, src, then, into),
                    )
                } else if into == dst && left == dst {
                    (
                        Fusion::RepeatedOperation,
                        repeated_operation(op, width, src, then, right),
                    )
                } else {
                    return None;
                }
            }
            Half::Load {
                size,
                dst: into,
                base,
            } if base == dst && (op, width) == (AluOp::Add, Width::W64) => {
                (Fusion::AddressAndLoad, address_and_load(src, size, into))
            }
            Half::If {
                cond,
                width: same,
                dst: tested,
                src: right,
                back,
            } if same == width
                && tested == dst
                && src == Source::Imm
                && right != Source::Reg(Reg::R0) =>
            {
                (
                    Fusion::OperationAndBranch,
                    operation_and_branch(op, width, cond, right, back),
                )
            }
            _ => return None,
        },
        Half::Load { size, dst, base } if is_stored(dst) && is_stored(base) => match second {
            Half::Binary {
                op,
                width,
                dst: into,
                lhs,
                src: Source::Reg(src),
            } if src == dst && lhs == into => (
                Fusion::LoadAndOperation,
                load_and_operation(size, op, width, into),
            ),
            Half::If {
                cond,
                width,
                dst: tested,
                src,
                back: false,
            } if tested == dst && src != Source::Reg(Reg::R0) => (
                Fusion::LoadAndBranch,
                load_and_branch(size, cond, width, src),
            ),
            _ => return None,
        },
        _ => return None,
    };
    Some((fusion, step?))
}

fn is_stored(reg: Reg) -> bool {
    reg != Reg::R0
}

/// `r0 = k; if a cond b goto …`: a result and a conditional return.
fn result_and_branch(width: Width, second: Half) -> Option<Step> {
    match second {
        Half::If {
            cond,
            width: compared,
            dst,
            src,
            back,
        } if is_stored(dst) && src != Source::Reg(Reg::R0) => Some(choose!(cond, C in [
            Cond::Eq => Eq,
            Cond::Ne => Ne; else None
        ], choose_width!(
            width,
            W,
            choose_width!(
                compared,
                X,
                choose_second!(
                    src,
                    choose_direction!(
                        back,
                        step::<Binary<Mov, W, R0, R0, Imm, If<C, X, Stored, S2, T>>> as Step
                    )
                )
            )
        ))),
        _ => None,
    }
}

/// `a = b; c = d`, dependent or not.
fn move_pair(width: Width, second: Half) -> Option<Step> {
    type Move<W, N> = Binary<Mov, W, Stored, Same, Stored, N>;
    match second {
        Half::Binary {
            op: AluOp::Mov,
            width: then,
            dst,
            src: Source::Reg(src),
            ..
        } if is_stored(dst) && is_stored(src) => Some(choose_width!(
            width,
            W,
            choose_width!(
                then,
                X,
                step::<Move<W, Binary<Mov, X, Stored, Same, Stored>>> as Step
            )
        )),
        _ => None,
    }
}

/// `t = a op b; c = c then t`.
fn operation_on_result(
    op: AluOp,
    width: Width,
    src: Source,
    then: AluOp,
    into: Reg,
) -> Option<Step> {
    Some(choose_first!(
        op,
        src,
        choose_width!(
            width,
            W,
            choose_second_operation!(
                then,
                into,
                step::<Binary<K, W, Stored, Left, S, Binary<T, W, D, L, Last>>> as Step
            )
        )
    ))
}

/// `t = a op b; t = t then c`: the first value of `t` is never stored.
fn repeated_operation(
    op: AluOp,
    width: Width,
    src: Source,
    then: AluOp,
    right: Source,
) -> Option<Step> {
    if right == Source::Reg(Reg::R0) {
        return None;
    }
    Some(choose_first!(
        op,
        src,
        choose_width!(
            width,
            W,
            match right {
                Source::Imm => choose!(then, T in [
                    AluOp::Add => Add,
                    AluOp::And => And,
                    AluOp::Lsh => Lsh,
                    AluOp::Rsh => Rsh; else None
                ], step::<Binary<K, W, Nowhere, Left, S, Binary<T, W, Stored, Last, Imm>>> as Step),
                Source::Reg(_) => choose!(then, T in [
                    AluOp::Add => Add,
                    AluOp::Sub => Sub,
                    AluOp::Or => Or,
                    AluOp::And => And,
                    AluOp::Xor => Xor; else None
                ], step::<Binary<K, W, Nowhere, Left, S, Binary<T, W, Stored, Last, Stored>>> as Step),
            }
        )
    ))
}

/// `t = a + b; c = *(size *)(t + off)`.
fn address_and_load(src: Source, size: Size, into: Reg) -> Option<Step> {
    Some(choose_second!(
        src,
        choose_cell!(
            size,
            match into {
                Reg::R0 => step::<Binary<Add, W64, Stored, Left, S2, Load<C, R0, Last>>> as Step,
                _ => step::<Binary<Add, W64, Stored, Left, S2, Load<C, Stored, Last>>> as Step,
            }
        )
    ))
}

/// `t = a op k; if t cond c goto …`: loop counters and bit tests.
fn operation_and_branch(
    op: AluOp,
    width: Width,
    cond: Cond,
    right: Source,
    back: bool,
) -> Option<Step> {
    match (op, cond, right) {
        (AluOp::Add, ..) => Some(choose_cond!(
            cond,
            C,
            choose_width!(
                width,
                W,
                choose_second!(
                    right,
                    choose_direction!(
                        back,
                        step::<Binary<Add, W, Stored, Left, Imm, If<C, W, Last, S2, T>>> as Step
                    )
                )
            )
        )),
        (AluOp::And, _, Source::Imm) => Some(choose!(cond, C in [
            Cond::Eq => Eq,
            Cond::Ne => Ne; else None
        ], choose_width!(
            width,
            W,
            choose_direction!(
                back,
                step::<Binary<And, W, Stored, Left, Imm, If<C, W, Last, Imm, T>>> as Step
            )
        ))),
        _ => None,
    }
}

/// `t = *(size *)(b + off); c = c op t`.
fn load_and_operation(size: Size, op: AluOp, width: Width, into: Reg) -> Option<Step> {
    Some(choose_cell!(
        size,
        choose_width!(
            width,
            W,
            choose_second_operation!(
                op,
                into,
                step::<Load<C, Stored, Stored, Binary<T, W, D, L, Last>>> as Step
            )
        )
    ))
}

/// `t = *(size *)(b + off); if t cond c goto …`.
fn load_and_branch(size: Size, cond: Cond, width: Width, src: Source) -> Option<Step> {
    Some(choose!(cond, K in [
        Cond::Eq => Eq,
        Cond::Ne => Ne; else None
    ], choose_cell!(
        size,
        choose_width!(
            width,
            W,
            choose_second!(
                src,
                step::<Load<C, Stored, Stored, If<K, W, Last, S2>>> as Step
            )
        )
    )))
}
