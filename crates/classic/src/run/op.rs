//! Prepared instructions of the plain interpreter, eight bytes each: the opcode selects the
//! area of a load and the targets of a branch.

use isa::classic::{AD_OFFSET, AluOp, Cond, Extension, Insn, Operand, Size};

use crate::Semantics;

/// One prepared instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) code: OpKind,
    pub(super) jt: u8,
    pub(super) jf: u8,
    /// The operand; for `ja` the target.
    pub(super) k: u32,
}

/// Cases of the interpreter's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
pub(super) enum OpKind {
    LoadW, LoadH, LoadB,
    LoadIndW, LoadIndH, LoadIndB,
    /// A load at a negative offset of Linux.
    LoadNegW, LoadNegH, LoadNegB, MshNeg, Ancillary,
    LoadLen, LoadImm, LoadMem,
    LoadXImm, LoadXMem, LoadXLen, LoadXMsh,
    Store, StoreX,
    AddK, SubK, MulK, DivK, OrK, AndK, LshK, RshK, ModK, XorK,
    AddX, SubX, MulX, DivX, OrX, AndX, LshX, RshX, ModX, XorX,
    Neg,
    Forward, Back,
    /// `jf` is 0: branch if the condition holds.
    EqK, GtK, GeK, SetK,
    EqX, GtX, GeX, SetX,
    /// `jt` is 0: branch if the inverse condition holds.
    NeK, LeK, LtK, ClearK,
    NeX, LeX, LtX, ClearX,
    /// Neither is 0: branch in both cases.
    EqKElse, GtKElse, GeKElse, SetKElse,
    EqXElse, GtXElse, GeXElse, SetXElse,
    RetK, RetA, Tax, Txa,
    /// A load fused with the comparison after it.
    LoadWEqK, LoadWNeK,
    LoadHEqK, LoadHNeK, LoadHSetK,
    LoadBEqK, LoadBNeK,
    LoadIndHEqK, LoadIndHNeK,
}

/// Fuses loads with the comparison after them. The comparison stays in place for jumps to
/// it.
pub(super) fn fuse(mut ops: Vec<Op>) -> Vec<Op> {
    for at in 1..ops.len() {
        ops[at - 1].code = match (ops[at - 1].code, ops[at].code) {
            (OpKind::LoadW, OpKind::EqK) => OpKind::LoadWEqK,
            (OpKind::LoadW, OpKind::NeK) => OpKind::LoadWNeK,
            (OpKind::LoadH, OpKind::EqK) => OpKind::LoadHEqK,
            (OpKind::LoadH, OpKind::NeK) => OpKind::LoadHNeK,
            (OpKind::LoadH, OpKind::SetK) => OpKind::LoadHSetK,
            (OpKind::LoadB, OpKind::EqK) => OpKind::LoadBEqK,
            (OpKind::LoadB, OpKind::NeK) => OpKind::LoadBNeK,
            (OpKind::LoadIndH, OpKind::EqK) => OpKind::LoadIndHEqK,
            (OpKind::LoadIndH, OpKind::NeK) => OpKind::LoadIndHNeK,
            (alone, _) => alone,
        };
    }
    ops
}

impl Op {
    pub(super) fn new(insn: Insn, at: usize, semantics: Semantics) -> Op {
        let plain = |code, k| Op {
            code,
            jt: 0,
            jf: 0,
            k,
        };
        let reads_header = |k: u32| semantics == Semantics::Kernel && (k as i32) < 0;
        match insn {
            Insn::LoadAbs { k, .. }
                if semantics == Semantics::Kernel && Extension::from_offset(k).is_some() =>
            {
                plain(OpKind::Ancillary, k - AD_OFFSET)
            }
            Insn::LoadAbs { size, k } => plain(
                match (size, reads_header(k)) {
                    (Size::W, false) => OpKind::LoadW,
                    (Size::H, false) => OpKind::LoadH,
                    (Size::B, false) => OpKind::LoadB,
                    (Size::W, true) => OpKind::LoadNegW,
                    (Size::H, true) => OpKind::LoadNegH,
                    (Size::B, true) => OpKind::LoadNegB,
                },
                k,
            ),
            Insn::LoadInd { size, k } => plain(
                match size {
                    Size::W => OpKind::LoadIndW,
                    Size::H => OpKind::LoadIndH,
                    Size::B => OpKind::LoadIndB,
                },
                k,
            ),
            Insn::LoadLen => plain(OpKind::LoadLen, 0),
            Insn::LoadImm(k) => plain(OpKind::LoadImm, k),
            Insn::LoadMem(k) => plain(OpKind::LoadMem, k),
            Insn::LoadXImm(k) => plain(OpKind::LoadXImm, k),
            Insn::LoadXMem(k) => plain(OpKind::LoadXMem, k),
            Insn::LoadXLen => plain(OpKind::LoadXLen, 0),
            Insn::LoadXMsh(k) if reads_header(k) => plain(OpKind::MshNeg, k),
            Insn::LoadXMsh(k) => plain(OpKind::LoadXMsh, k),
            Insn::Store(k) => plain(OpKind::Store, k),
            Insn::StoreX(k) => plain(OpKind::StoreX, k),
            Insn::Alu { op, src } => {
                let (by_k, by_x) = match op {
                    AluOp::Add => (OpKind::AddK, OpKind::AddX),
                    AluOp::Sub => (OpKind::SubK, OpKind::SubX),
                    AluOp::Mul => (OpKind::MulK, OpKind::MulX),
                    AluOp::Div => (OpKind::DivK, OpKind::DivX),
                    AluOp::Or => (OpKind::OrK, OpKind::OrX),
                    AluOp::And => (OpKind::AndK, OpKind::AndX),
                    AluOp::Lsh => (OpKind::LshK, OpKind::LshX),
                    AluOp::Rsh => (OpKind::RshK, OpKind::RshX),
                    AluOp::Mod => (OpKind::ModK, OpKind::ModX),
                    AluOp::Xor => (OpKind::XorK, OpKind::XorX),
                };
                match src {
                    Operand::K(k) => plain(by_k, k),
                    Operand::X => plain(by_x, 0),
                }
            }
            Insn::Neg => plain(OpKind::Neg, 0),
            Insn::Goto(k) => {
                let target = (at as u32).wrapping_add(1).wrapping_add(k);
                let back = target as usize <= at;
                plain(if back { OpKind::Back } else { OpKind::Forward }, target)
            }
            Insn::Jump { cond, src, jt, jf } => {
                let (by_k, by_x) = match (cond, jt, jf) {
                    (Cond::Eq, _, 0) => (OpKind::EqK, OpKind::EqX),
                    (Cond::Gt, _, 0) => (OpKind::GtK, OpKind::GtX),
                    (Cond::Ge, _, 0) => (OpKind::GeK, OpKind::GeX),
                    (Cond::Set, _, 0) => (OpKind::SetK, OpKind::SetX),
                    (Cond::Eq, 0, _) => (OpKind::NeK, OpKind::NeX),
                    (Cond::Gt, 0, _) => (OpKind::LeK, OpKind::LeX),
                    (Cond::Ge, 0, _) => (OpKind::LtK, OpKind::LtX),
                    (Cond::Set, 0, _) => (OpKind::ClearK, OpKind::ClearX),
                    (Cond::Eq, _, _) => (OpKind::EqKElse, OpKind::EqXElse),
                    (Cond::Gt, _, _) => (OpKind::GtKElse, OpKind::GtXElse),
                    (Cond::Ge, _, _) => (OpKind::GeKElse, OpKind::GeXElse),
                    (Cond::Set, _, _) => (OpKind::SetKElse, OpKind::SetXElse),
                };
                let (code, k) = match src {
                    Operand::K(k) => (by_k, k),
                    Operand::X => (by_x, 0),
                };
                Op { code, jt, jf, k }
            }
            Insn::RetK(k) => plain(OpKind::RetK, k),
            // Checked programs have no invalid instructions.
            Insn::Invalid(_) => plain(OpKind::RetK, 0),
            Insn::RetA => plain(OpKind::RetA, 0),
            Insn::Tax => plain(OpKind::Tax, 0),
            Insn::Txa => plain(OpKind::Txa, 0),
        }
    }
}
