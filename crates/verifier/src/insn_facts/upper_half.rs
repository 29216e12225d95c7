//! Upper halves of registers that may be read: backward liveness of the upper 32 bits over
//! the reached part of the control-flow graph.
//!
//! An instruction that writes 32 bits clears the upper half; a compiler for a machine
//! without that rule needs an instruction for it only where the half is live. Arithmetic
//! whose low half depends on low halves alone (sum, product, bitwise operations, shifts to
//! the left) reads upper halves only if its own is live. Calls and returns read all of
//! their registers.

use isa::ebpf::{AluOp, AtomicOp, ByteOrder, Insn, Operand, Reg, RegSet, Size, Width};

use super::{Branch, InsnFact};
use crate::analysis::Analysis;
use crate::input::Input;

/// Sets [`InsnFact::needs_zero_extension`].
pub(super) fn mark_upper_halves(input: &Input<'_>, analysis: &Analysis, insns: &mut [InsnFact]) {
    let mut live = vec![0u16; insns.len()];
    loop {
        let mut changed = false;
        for index in (0..insns.len())
            .rev()
            .filter(|index| insns[*index].is_reached)
        {
            let before = transfer(
                input.insns[index],
                live_after(analysis, insns, &live, index),
            );
            changed |= before != live[index];
            live[index] = before;
        }
        if !changed {
            break;
        }
    }
    for index in 0..insns.len() {
        if insns[index].is_reached
            && let Some(reg) = cleared(input.insns[index])
        {
            let after = live_after(analysis, insns, &live, index);
            insns[index].needs_zero_extension = Some(after >> reg.number() & 1 != 0);
        }
    }
}

/// Upper halves that are live behind an instruction.
fn live_after(analysis: &Analysis, insns: &[InsnFact], live: &[u16], index: usize) -> u16 {
    let [next, target] = analysis.successors[index];
    let is_possible =
        |edge: u32, excluded: Branch| edge != u32::MAX && insns[index].branch != Some(excluded);
    let table = analysis.jump_tables.get(&(index as u32));
    let table = table.into_iter().flatten();
    let mut after = table.fold(0, |after, next| after | live[*next as usize]);
    if is_possible(next, Branch::Always) {
        after |= live[next as usize];
    }
    if is_possible(target, Branch::Never) {
        after |= live[target as usize];
    }
    after
}

/// The register whose upper half an instruction clears.
pub(super) fn cleared(insn: Insn) -> Option<Reg> {
    match insn {
        Insn::Alu {
            width: Width::W32,
            dst,
            ..
        }
        | Insn::Neg {
            width: Width::W32,
            dst,
        }
        | Insn::MovSx {
            width: Width::W32,
            dst,
            ..
        } => Some(dst),
        Insn::Load {
            size,
            signed: false,
            dst,
            ..
        }
        | Insn::LoadAcquire { size, dst, .. }
            if size != Size::DW =>
        {
            Some(dst)
        }
        Insn::Atomic {
            op: AtomicOp::CmpXchg,
            size: Size::W,
            ..
        } => Some(Reg::R0),
        _ => None,
    }
}

fn transfer(insn: Insn, after: u16) -> u16 {
    let bit = |reg: Reg| 1u16 << reg.number();
    let bits = |regs: RegSet| regs.bits();
    let of = |operand: Operand| match operand {
        Operand::Reg(reg) => bit(reg),
        Operand::Imm(_) => 0,
    };
    let is_live = |reg: Reg| after & bit(reg) != 0;
    match insn {
        Insn::Alu {
            width: Width::W32,
            dst,
            ..
        }
        | Insn::Neg {
            width: Width::W32,
            dst,
        } => after & !bit(dst),
        Insn::Alu {
            op,
            width: Width::W64,
            dst,
            src,
        } => {
            let others = after & !bit(dst);
            match (op, src) {
                (AluOp::Mov, _) if is_live(dst) => others | of(src),
                (AluOp::Mov, _) => others,
                // The upper half becomes zero.
                (AluOp::And, Operand::Imm(0..)) => others,
                (AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor, _) => {
                    match is_live(dst) {
                        true => after | of(src),
                        false => others,
                    }
                }
                // The count is masked.
                (AluOp::Lsh, _) => after,
                (AluOp::Rsh | AluOp::Arsh, _) => after | bit(dst),
                (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, _) => {
                    after | bit(dst) | of(src)
                }
            }
        }
        Insn::Neg { .. } => after,
        // Low halves and less are extended.
        Insn::MovSx { dst, .. } => after & !bit(dst),
        Insn::Endian {
            order: ByteOrder::Little,
            size: Size::DW,
            ..
        } => after,
        Insn::Endian { size, dst, .. } => match size {
            Size::DW => after | bit(dst),
            Size::B | Size::H | Size::W => after & !bit(dst),
        },
        Insn::Store {
            size, base, src, ..
        } => match size {
            Size::DW => after | bit(base) | of(src),
            Size::B | Size::H | Size::W => after | bit(base),
        },
        Insn::StoreRelease {
            size, base, src, ..
        } => match size {
            Size::DW => after | bit(base) | bit(src),
            Size::B | Size::H | Size::W => after | bit(base),
        },
        Insn::Load { base, dst, .. } | Insn::LoadAcquire { base, dst, .. } => {
            after & !bit(dst) | bit(base)
        }
        Insn::Jump {
            width, dst, src, ..
        } => match width {
            Width::W64 => after | bit(dst) | of(src),
            Width::W32 => after,
        },
        // Everything else reads all of what it reads.
        _ => after & !bits(insn.writes()) | bits(insn.reads()),
    }
}
