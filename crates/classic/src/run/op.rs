//! Classic instructions as the plain interpreter runs them: eight bytes each, whose
//! opcode already says where a load goes and which ways a branch has.

use isa::classic::{AD_OFFSET, AluOp, Cond, Extension, Insn, Operand, Size};

use crate::Semantics;

/// One prepared instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) code: Code,
    pub(super) jt: u8,
    pub(super) jf: u8,
    /// The operand; for `ja` the target.
    pub(super) k: u32,
}

/// Every case of the interpreter's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
pub(super) enum Code {
    LoadW, LoadH, LoadB,
    LoadIndW, LoadIndH, LoadIndB,
    /// A load that Linux reads as something else than an offset from the start.
    LoadNegW, LoadNegH, LoadNegB, MshNeg, Ancillary,
    LoadLen, LoadImm, LoadMem,
    LoadXImm, LoadXMem, LoadXLen, LoadXMsh,
    Store, StoreX,
    AddK, SubK, MulK, DivK, OrK, AndK, LshK, RshK, ModK, XorK,
    AddX, SubX, MulX, DivX, OrX, AndX, LshX, RshX, ModX, XorX,
    Neg,
    Forward, Back,
    /// `jf` is 0: the next instruction, unless the condition holds.
    EqK, GtK, GeK, SetK,
    EqX, GtX, GeX, SetX,
    /// `jt` is 0: the next instruction, unless the opposite holds.
    NeK, LeK, LtK, ClearK,
    NeX, LeX, LtX, ClearX,
    /// Neither is 0.
    EqKElse, GtKElse, GeKElse, SetKElse,
    EqXElse, GtXElse, GeXElse, SetXElse,
    RetK, RetA, Tax, Txa,
    /// A load, and the next instruction with it.
    LoadWEqK, LoadWNeK,
    LoadHEqK, LoadHNeK, LoadHSetK,
    LoadBEqK, LoadBNeK,
    LoadIndHEqK, LoadIndHNeK,
}

/// Lets loads do the comparison behind them as well. It stays where it is, for jumps
/// that lead to it.
pub(super) fn join(mut ops: Vec<Op>) -> Vec<Op> {
    for at in 1..ops.len() {
        ops[at - 1].code = match (ops[at - 1].code, ops[at].code) {
            (Code::LoadW, Code::EqK) => Code::LoadWEqK,
            (Code::LoadW, Code::NeK) => Code::LoadWNeK,
            (Code::LoadH, Code::EqK) => Code::LoadHEqK,
            (Code::LoadH, Code::NeK) => Code::LoadHNeK,
            (Code::LoadH, Code::SetK) => Code::LoadHSetK,
            (Code::LoadB, Code::EqK) => Code::LoadBEqK,
            (Code::LoadB, Code::NeK) => Code::LoadBNeK,
            (Code::LoadIndH, Code::EqK) => Code::LoadIndHEqK,
            (Code::LoadIndH, Code::NeK) => Code::LoadIndHNeK,
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
                plain(Code::Ancillary, k - AD_OFFSET)
            }
            Insn::LoadAbs { size, k } => plain(
                match (size, reads_header(k)) {
                    (Size::W, false) => Code::LoadW,
                    (Size::H, false) => Code::LoadH,
                    (Size::B, false) => Code::LoadB,
                    (Size::W, true) => Code::LoadNegW,
                    (Size::H, true) => Code::LoadNegH,
                    (Size::B, true) => Code::LoadNegB,
                },
                k,
            ),
            Insn::LoadInd { size, k } => plain(
                match size {
                    Size::W => Code::LoadIndW,
                    Size::H => Code::LoadIndH,
                    Size::B => Code::LoadIndB,
                },
                k,
            ),
            Insn::LoadLen => plain(Code::LoadLen, 0),
            Insn::LoadImm(k) => plain(Code::LoadImm, k),
            Insn::LoadMem(k) => plain(Code::LoadMem, k),
            Insn::LoadXImm(k) => plain(Code::LoadXImm, k),
            Insn::LoadXMem(k) => plain(Code::LoadXMem, k),
            Insn::LoadXLen => plain(Code::LoadXLen, 0),
            Insn::LoadXMsh(k) if reads_header(k) => plain(Code::MshNeg, k),
            Insn::LoadXMsh(k) => plain(Code::LoadXMsh, k),
            Insn::Store(k) => plain(Code::Store, k),
            Insn::StoreX(k) => plain(Code::StoreX, k),
            Insn::Alu { op, src } => {
                let (by_k, by_x) = match op {
                    AluOp::Add => (Code::AddK, Code::AddX),
                    AluOp::Sub => (Code::SubK, Code::SubX),
                    AluOp::Mul => (Code::MulK, Code::MulX),
                    AluOp::Div => (Code::DivK, Code::DivX),
                    AluOp::Or => (Code::OrK, Code::OrX),
                    AluOp::And => (Code::AndK, Code::AndX),
                    AluOp::Lsh => (Code::LshK, Code::LshX),
                    AluOp::Rsh => (Code::RshK, Code::RshX),
                    AluOp::Mod => (Code::ModK, Code::ModX),
                    AluOp::Xor => (Code::XorK, Code::XorX),
                };
                match src {
                    Operand::K(k) => plain(by_k, k),
                    Operand::X => plain(by_x, 0),
                }
            }
            Insn::Neg => plain(Code::Neg, 0),
            Insn::Goto(k) => {
                let target = (at as u32).wrapping_add(1).wrapping_add(k);
                let back = target as usize <= at;
                plain(if back { Code::Back } else { Code::Forward }, target)
            }
            Insn::Jump { cond, src, jt, jf } => {
                let (by_k, by_x) = match (cond, jt, jf) {
                    (Cond::Eq, _, 0) => (Code::EqK, Code::EqX),
                    (Cond::Gt, _, 0) => (Code::GtK, Code::GtX),
                    (Cond::Ge, _, 0) => (Code::GeK, Code::GeX),
                    (Cond::Set, _, 0) => (Code::SetK, Code::SetX),
                    (Cond::Eq, 0, _) => (Code::NeK, Code::NeX),
                    (Cond::Gt, 0, _) => (Code::LeK, Code::LeX),
                    (Cond::Ge, 0, _) => (Code::LtK, Code::LtX),
                    (Cond::Set, 0, _) => (Code::ClearK, Code::ClearX),
                    (Cond::Eq, _, _) => (Code::EqKElse, Code::EqXElse),
                    (Cond::Gt, _, _) => (Code::GtKElse, Code::GtXElse),
                    (Cond::Ge, _, _) => (Code::GeKElse, Code::GeXElse),
                    (Cond::Set, _, _) => (Code::SetKElse, Code::SetXElse),
                };
                let (code, k) = match src {
                    Operand::K(k) => (by_k, k),
                    Operand::X => (by_x, 0),
                };
                Op { code, jt, jf, k }
            }
            Insn::RetK(k) => plain(Code::RetK, k),
            // No checked program holds an invalid instruction.
            Insn::Invalid(_) => plain(Code::RetK, 0),
            Insn::RetA => plain(Code::RetA, 0),
            Insn::Tax => plain(Code::Tax, 0),
            Insn::Txa => plain(Code::Txa, 0),
        }
    }
}
