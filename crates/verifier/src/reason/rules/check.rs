//! Comparisons of the path that were meant to bound a number, and what they miss.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Width};

use crate::reason::cause::{BoundsFault, Check};
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::places;
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind, Holder};
use crate::state::RegState;

/// The comparison of the path that was meant to bound a number.
pub(super) fn find_check(scene: &Scene<'_>, id: DefId, fault: BoundsFault) -> (Check, Vec<Note>) {
    let base = scene.values.base(id);
    let own = scene.values.same(id);
    for branch in scene.values.branches.iter().rev() {
        let Some((dst, src)) = scene.compared(branch) else {
            continue;
        };
        let sides = [(Some(branch.dst), Some(dst)), (branch.src, src)];
        for (compared, reg) in sides {
            let (Some(compared), Some(reg)) = (compared, reg) else {
                continue;
            };
            let compared_value = scene.values.same(compared);
            let made_of_compared = scene.values.made_of(id, compared_value);
            let is_reread = places::is_reread(scene, base, scene.values.base(compared));
            let is_related =
                scene.values.base(compared) == base || made_of_compared.is_some() || is_reread;
            if !is_related || !is_number(scene, branch.step, reg) {
                continue;
            }
            let insn = scene.input.insns[scene.trace.steps()[branch.step].insn as usize];
            let Insn::Jump { cond, width, .. } = insn else {
                continue;
            };
            let after = scene.trace.reg(branch.step + 1, reg.index());
            let Some(after) = after else {
                return (Check::Loose, Vec::new());
            };
            let note = scene.note(
                branch.step,
                NoteKind::Compared {
                    value: scene.value(after),
                },
            );
            let is_unequal = matches!(cond, Cond::Eq | Cond::Ne | Cond::Set);
            if let Some(bits) = low_bits(scene, id, compared, width)
                && (!is_unequal || shows_value(after, bits))
            {
                return (Check::LowBits(bits), vec![note]);
            }
            let leaves_negative = match width {
                Width::W64 => after.num.smin < 0,
                Width::W32 => after.num.s32_min < 0,
            };
            let found = if cond.is_signed() && leaves_negative && !is_reread {
                Check::Signed
            } else if compared_value == own {
                let needs_signed = fault == BoundsFault::Below;
                match width {
                    _ if is_unequal => continue,
                    _ if cond.is_signed() != needs_signed => Check::Signed,
                    _ if lost(scene, id, compared, branch.step) => Check::Copy,
                    _ => Check::Loose,
                }
            } else if is_unequal {
                continue;
            } else if is_reread {
                Check::Reread
            } else {
                match made_of_compared {
                    Some(true) => Check::Before,
                    Some(false) => Check::Loose,
                    None => Check::Copy,
                }
            };
            return (found, vec![note]);
        }
    }
    (Check::Missing, Vec::new())
}

fn is_number(scene: &Scene<'_>, step: usize, reg: Reg) -> bool {
    let reg = scene.trace.reg(step, reg.index());
    reg.is_none_or(RegState::is_scalar)
}

/// Low bits of a number that a comparison is of, if it leaves bits above them that are used
/// and may be set.
fn low_bits(scene: &Scene<'_>, used: DefId, compared: DefId, width: Width) -> Option<u32> {
    let base = scene.values.base(used);
    let of_width = match width {
        Width::W32 => 32,
        Width::W64 => 64,
    };
    let bits = kept_bits(scene, compared, base, Purity::Narrowed)?.min(of_width);
    let used_bits = kept_bits(scene, used, base, Purity::Any)?;
    let greatest = scene.defined(base)?.num.umax;
    (bits < used_bits && greatest >> bits != 0).then_some(bits)
}

/// Arithmetic between a number and what was made of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purity {
    /// Bits were cut off, and nothing else.
    Narrowed,
    /// Any.
    Any,
}

/// Low bits of a number that another was made of, `None` if it was not made of it so.
fn kept_bits(scene: &Scene<'_>, made: DefId, base: DefId, purity: Purity) -> Option<u32> {
    let mut bits = 64;
    let mut id = scene.values.same(made);
    // Bits that a shift to the right moved out of the way of one to the left.
    let mut shifted = 0;
    while id != base {
        let def = scene.values.defs[id];
        let (DefKind::Narrowed(from) | DefKind::Computed(from, None)) = def.kind else {
            return None;
        };
        let (kept, is_narrowing) =
            match scene.input.insns[scene.trace.steps()[def.step].insn as usize] {
                Insn::Alu { op, width, src, .. } => {
                    let of_width = match width {
                        Width::W32 => 32,
                        Width::W64 => 64,
                    };
                    let imm = match src {
                        Operand::Imm(imm) => imm,
                        Operand::Reg(_) => 0,
                    };
                    let (kept, is_narrowing) = match op {
                        AluOp::Mov => (of_width, true),
                        AluOp::And if imm > 0 => (32 - imm.leading_zeros(), true),
                        AluOp::Lsh => (of_width - imm as u32 % of_width, shifted == imm),
                        AluOp::Rsh | AluOp::Arsh => {
                            shifted = imm;
                            (64, true)
                        }
                        _ => (64, false),
                    };
                    (kept.min(of_width), is_narrowing)
                }
                Insn::MovSx { from, .. } => (8 * from.bytes(), true),
                Insn::Load { size, .. } => (8 * size.bytes(), true),
                _ => (64, false),
            };
        if purity == Purity::Narrowed && !is_narrowing {
            return None;
        }
        bits = bits.min(kept);
        id = scene.values.same(from);
    }
    Some(bits)
}

/// True if the low bits of a number are known.
fn shows_value(reg: &RegState, bits: u32) -> bool {
    reg.num.var_off.mask & (u64::MAX >> (64 - bits)) == 0
}

/// True if the comparison was of another holder than the number came from, and did not
/// reach it.
fn lost(scene: &Scene<'_>, id: DefId, compared: DefId, step: usize) -> bool {
    let at_use = scene.defined(id);
    let bounded = scene.values.defs[compared];
    let checked = match bounded.holder {
        Holder::Reg { .. } => scene.holder(step + 1, bounded.holder),
        Holder::Slot { .. } => None,
    };
    match (at_use, checked) {
        (Some(used), Some(checked)) => {
            let is_later = scene.values.defs[id].step > step;
            is_later && used.num.umax > checked.num.umax
        }
        _ => false,
    }
}
