//! Constants and decided branches. Both leave every instruction in its slot.

use isa::ebpf::{AluOp, Insn, Operand, Width};
use verifier::{Branch, InsnFact, ProgramFacts};

/// Replaces instructions whose result is always the same number.
pub(super) fn fold_constants(insns: &mut [Insn], facts: &ProgramFacts) {
    for (insn, fact) in insns.iter_mut().zip(&facts.insns) {
        if let Some(folded) = folded(*insn, fact) {
            *insn = folded;
        }
    }
}

fn folded(insn: Insn, fact: &InsnFact) -> Option<Insn> {
    let is_pure = matches!(
        insn,
        Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Load { .. }
    );
    let (dst, value) = fact.result.as_ref().filter(|_| is_pure)?;
    let value = value.constant()?;
    let (width, imm) = match (i32::try_from(value as i64), u32::try_from(value)) {
        (Ok(imm), _) => (Width::W64, imm),
        (_, Ok(imm)) => (Width::W32, imm as i32),
        _ => return None,
    };
    Some(Insn::Alu {
        op: AluOp::Mov,
        width,
        dst: *dst,
        src: Operand::Imm(imm),
    })
}

/// Replaces branches that always go the same way.
pub(super) fn decide_branches(insns: &mut [Insn], facts: &ProgramFacts) {
    for (insn, fact) in insns.iter_mut().zip(&facts.insns) {
        if let Insn::Jump { off, .. } = *insn {
            match fact.branch {
                Some(Branch::Always) => *insn = Insn::Goto { off },
                Some(Branch::Never) => *insn = Insn::Goto { off: 0 },
                Some(Branch::Both) | None => {}
            }
        }
    }
}
