//! Zero extensions and masks that change nothing, because the verifier proved the cleared
//! bits zero. Compilers emit them where the range is unproven.

use isa::ebpf::{AluOp, Insn, Operand, Width};
use verifier::{InsnFact, ProgramFacts, Scalar, Value};

use crate::flow::Cfg;

/// The instructions from a slot on that change nothing: none, one, or two shifts.
pub(super) fn redundant(insns: &[Insn], slot: usize, facts: &ProgramFacts, cfg: &Cfg) -> usize {
    let Insn::Alu {
        op,
        width,
        dst,
        src,
    } = insns[slot]
    else {
        return 0;
    };
    let fact = &facts.insns[slot];
    let kept = match (op, width, src) {
        (AluOp::Mov, Width::W32, Operand::Reg(src)) if src == dst => u32::MAX.into(),
        (AluOp::And, Width::W32, Operand::Imm(mask)) => u64::from(mask as u32),
        (AluOp::And, Width::W64, Operand::Imm(mask)) => mask as u64,
        (AluOp::Lsh, Width::W64, Operand::Imm(count @ 1..=63)) => {
            let back = Insn::Alu {
                op: AluOp::Rsh,
                width,
                dst,
                src,
            };
            let is_pair = insns.get(slot + 1) == Some(&back) && !cfg.is_target(slot + 1);
            let kept = u64::MAX >> count;
            return match is_pair && has_only(fact, dst, kept) {
                true => 2,
                false => 0,
            };
        }
        _ => return 0,
    };
    usize::from(has_only(fact, dst, kept))
}

/// True if all bits of the register that may be set are among these.
fn has_only(fact: &InsnFact, reg: isa::ebpf::Reg, kept: u64) -> bool {
    match fact.operand(reg) {
        Some(Value::Scalar(scalar)) => possible_bits(scalar) & !kept == 0,
        Some(Value::Pointer(_) | Value::Mixed) | None => false,
    }
}

/// The bits of a value that may be set.
fn possible_bits(scalar: &Scalar) -> u64 {
    let below = match scalar.umax {
        0 => 0,
        most => u64::MAX >> most.leading_zeros(),
    };
    (scalar.var_off.value | scalar.var_off.mask) & below
}
