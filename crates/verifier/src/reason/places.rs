//! Places in memory that values were read from: which two reads are of one place.
//!
//! Two values are alike if the same instructions made them of the same values, whatever
//! registers hold them. What two instructions read from alike addresses is one place read
//! twice, which may have changed in between.
//!
//! Complexity: `MOST_PAIRS` pairs of definitions at most are compared.

use isa::ebpf::{AluOp, Insn, Operand, Width};

use super::scene::Scene;
use super::values::{DefId, DefKind, Holder};

/// Pairs of definitions that are compared for two values.
const MOST_PAIRS: u32 = 64;

/// True if two values were read from the same place in memory by different reads.
pub(super) fn is_reread(scene: &Scene<'_>, one: DefId, other: DefId) -> bool {
    let (one, other) = (scene.values.same(one), scene.values.same(other));
    let is_read = matches!(
        scene.values.defs[one].kind,
        DefKind::Loaded(_) | DefKind::StackBytes { .. }
    );
    one != other && is_read && are_alike(scene, one, other, &mut { MOST_PAIRS })
}

/// The instruction that defined a value.
fn insn(scene: &Scene<'_>, id: DefId) -> Insn {
    let step = scene.values.defs[id].step;
    scene.input.insns[scene.trace.steps()[step].insn as usize]
}

/// A value without the constants that were added to it, and their sum.
fn base_and_offset(scene: &Scene<'_>, id: DefId) -> (DefId, i64) {
    let mut id = scene.values.same(id);
    let mut offset = 0i64;
    while let DefKind::Computed(from, None) = scene.values.defs[id].kind {
        let Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            src: Operand::Imm(imm),
            ..
        } = insn(scene, id)
        else {
            break;
        };
        offset += i64::from(imm);
        id = scene.values.same(from);
    }
    (id, offset)
}

fn are_alike(scene: &Scene<'_>, one: DefId, other: DefId, left_pairs: &mut u32) -> bool {
    let (one, other) = (scene.values.same(one), scene.values.same(other));
    if one == other {
        return true;
    }
    let Some(pairs) = left_pairs.checked_sub(1) else {
        return false;
    };
    *left_pairs = pairs;
    let mut alike = |one, other| are_alike(scene, one, other, left_pairs);
    let (first, second) = (scene.values.defs[one], scene.values.defs[other]);
    match (first.kind, second.kind) {
        (DefKind::Immediate, DefKind::Immediate) => {
            let is_frame_pointer = |holder| matches!(holder, Holder::Reg { reg: 10, .. });
            let is_entry = is_frame_pointer(first.holder) || is_frame_pointer(second.holder);
            let constants = [constant(insn(scene, one)), constant(insn(scene, other))];
            !is_entry && constants[0].is_some() && constants[0] == constants[1]
        }
        (DefKind::Loaded(from), DefKind::Loaded(other_from)) => {
            let off = |id| insn(scene, id).access().map(|access| i64::from(access.off));
            let (Some(off), Some(other_off)) = (off(one), off(other)) else {
                return false;
            };
            let (base, added) = base_and_offset(scene, from);
            let (other_base, other_added) = base_and_offset(scene, other_from);
            added + off == other_added + other_off && alike(base, other_base)
        }
        (
            DefKind::StackBytes { frame, at, .. },
            DefKind::StackBytes {
                frame: other_frame,
                at: other_at,
                ..
            },
        ) => (frame, at) == (other_frame, other_at),
        (DefKind::Narrowed(from), DefKind::Narrowed(other_from)) => {
            is_same_operation(insn(scene, one), insn(scene, other)) && alike(from, other_from)
        }
        (DefKind::Computed(left, right), DefKind::Computed(other_left, other_right)) => {
            let operands = match (right, other_right) {
                (None, None) => true,
                (Some(right), Some(other_right)) => alike(right, other_right),
                _ => false,
            };
            operands
                && is_same_operation(insn(scene, one), insn(scene, other))
                && alike(left, other_left)
        }
        _ => false,
    }
}

/// The constant or address that an instruction puts into a register.
fn constant(insn: Insn) -> Option<Constant> {
    match insn {
        Insn::LoadImm64 { imm, .. } => Some(Constant::Address(imm)),
        Insn::Alu {
            op: AluOp::Mov,
            src: Operand::Imm(imm),
            ..
        } => Some(Constant::Number(imm)),
        _ => None,
    }
}

/// A constant of the program.
#[derive(PartialEq, Eq)]
enum Constant {
    Address(isa::ebpf::Imm64),
    Number(i32),
}

/// True if two instructions are the same arithmetic, of whatever registers.
fn is_same_operation(one: Insn, other: Insn) -> bool {
    let shape = |insn| match insn {
        Insn::Alu { op, width, src, .. } => Some(match src {
            Operand::Reg(_) => (op, width, None),
            Operand::Imm(imm) => (op, width, Some(imm)),
        }),
        _ => None,
    };
    shape(one).is_some() && shape(one) == shape(other)
}
