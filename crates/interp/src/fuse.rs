//! Recognition of instruction sequences that become one operation.
//!
//! A sequence is fused only if no jump leads into its middle. Comparison trees are found in
//! [`lower::trees`].

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};
use lower::flow::{Cfg, jump_target};
use lower::trees::Test;

/// `w0 = imm; exit`.
pub(crate) fn constant_return(insns: &[Insn], at: &Cfg, slot: usize) -> Option<i32> {
    match insns[slot..] {
        [mov, Insn::Exit, ..] if at.none_within(slot, 1) => mov_imm(mov, Reg::R0),
        _ => None,
    }
}

fn mov_imm(insn: Insn, to: Reg) -> Option<i32> {
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst,
            src: Operand::Imm(imm),
        } if dst == to => Some(imm),
        _ => None,
    }
}

/// `w0 &= 15; w0 <<= 2; wN = w0` after a packet load; returns `wN`.
pub(crate) fn header_length(insns: &[Insn], at: &Cfg, slot: usize) -> Option<Reg> {
    const MASK: Insn = w0(AluOp::And, 15);
    const SHIFT: Insn = w0(AluOp::Lsh, 2);
    match insns[slot + 1..] {
        [MASK, SHIFT, mov, ..] if at.none_within(slot, 3) => match mov {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W32,
                dst,
                src: Operand::Reg(Reg::R0),
            } if dst != Reg::R0 => Some(dst),
            _ => None,
        },
        _ => None,
    }
}

const fn w0(op: AluOp, imm: i32) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst: Reg::R0,
        src: Operand::Imm(imm),
    }
}

/// The test after `slot`, if `slot` is its only predecessor.
pub(crate) fn test_after(insns: &[Insn], at: &Cfg, slot: usize, dst: Reg) -> Option<Test> {
    let test = Test::at(insns, slot + 1)?;
    (test.dst == dst && !at.is_target(slot + 1)).then_some(test)
}

/// True for a one-byte packet load at a constant offset.
pub(crate) fn is_byte_load(insn: Insn) -> bool {
    matches!(insn, Insn::PacketAbs { size: Size::B, .. })
}

/// The operation on a copy.
pub(crate) struct Change {
    pub op: AluOp,
    pub width: Width,
    pub src: Operand,
}

/// `dst = lhs; dst op= src`; returns the second operation, with `lhs` as left operand.
pub(crate) fn changed_copy(insns: &[Insn], at: &Cfg, slot: usize) -> Option<Change> {
    let [
        Insn::Alu {
            op: AluOp::Mov,
            width: moved,
            dst,
            src: Operand::Reg(lhs),
        },
        Insn::Alu {
            op,
            width,
            dst: changed,
            src,
        },
        ..,
    ] = insns[slot..]
    else {
        return None;
    };
    // A 32-bit move zeroes the upper half, so the operation must be 32-bit too.
    let whole = moved == Width::W64 || width == Width::W32;
    if changed != dst || lhs == dst || !whole || at.is_target(slot + 1) {
        return None;
    }
    let src = match src {
        Operand::Reg(reg) if reg == dst => Operand::Reg(lhs),
        other => other,
    };
    Some(Change { op, width, src })
}

/// `if … goto +1; goto target`; returns the inverted condition and the target.
pub(crate) fn inverted_branch(insns: &[Insn], at: &Cfg, slot: usize) -> Option<(Cond, usize)> {
    let [
        Insn::Jump { cond, off: 1, .. },
        goto @ (Insn::Goto { .. } | Insn::GotoLong { .. }),
        ..,
    ] = insns[slot..]
    else {
        return None;
    };
    if at.is_target(slot + 1) {
        return None;
    }
    Some((cond.inverse()?, jump_target(&goto, slot + 1)?))
}
