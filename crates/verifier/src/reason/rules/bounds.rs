//! Accesses outside of what a pointer points to, and comparisons that were meant to
//! prevent them.

use isa::ebpf::{Cond, Insn, Reg, Width};

use super::{Finding, arithmetic};
use crate::reason::cause::{BoundsFault, Cause, Check, PacketCheckFault, SizeFault};
use crate::reason::describe;
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::origin;
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind, Holder};
use crate::state::{PKT_AT_END, RegKind, RegState};
use crate::verdict::RefusalKind;

/// Variable offsets must stay below this.
const MAX_VAR_OFF: u64 = 1 << 29;
/// Offsets of packets must stay within this for comparisons to count.
const MAX_PACKET_OFF: u64 = 0xffff;
/// Bytes of stack of a frame.
const MAX_STACK: i64 = 512;

/// An access outside, through a pointer or as an argument of a call.
pub(super) fn outside(scene: &Scene<'_>) -> Option<Finding> {
    let insn = scene.insn()?;
    if matches!(insn, Insn::Alu { .. }) {
        return arithmetic::unbounded(scene);
    }
    let access = insn.access();
    let reg = match access {
        Some(access) => access.base,
        None => scene.named_register()?,
    };
    let state = *scene.reg(reg)?;
    if state.is_scalar() {
        return size_argument(scene, reg, &state);
    }
    let off = describe::fixed_offset(&state) + access.map_or(0, |access| access.off.into());
    let size = match access {
        Some(access) => access.size.bytes(),
        None => scene.argument_bytes(reg.number()).unwrap_or(0),
    };
    match state.kind {
        RegKind::Packet { range } | RegKind::PacketMeta { range } if state.num.smin >= 0 => {
            Some(packet(scene, reg, &state, off, size, range))
        }
        _ => Some(region(scene, reg, &state, off, size)),
    }
}

/// Bytes that may be accessed from the start of what a pointer points to.
fn limit(scene: &Scene<'_>, state: &RegState) -> Option<u32> {
    match state.kind {
        RegKind::MapValue { map, .. } => Some(scene.env.maps[map].value_size()),
        RegKind::MapKey { map, .. } => Some(scene.env.maps[map].key_size()),
        RegKind::Mem { size, .. } => Some(size),
        _ => None,
    }
}

fn region(scene: &Scene<'_>, reg: Reg, state: &RegState, off: i64, size: u32) -> Finding {
    let limit = limit(scene, state);
    let is_stack = matches!(state.kind, RegKind::Stack { .. });
    let num = state.num;
    let (first, end) = match is_stack {
        true => (-MAX_STACK, 0),
        false => (0, limit.map_or(i64::MAX, i64::from)),
    };
    let least = off.saturating_add(num.smin);
    let greatest = off.saturating_add_unsigned(num.umax);
    let greatest = greatest.saturating_add(size.into());
    let fault = if num.is_const() {
        BoundsFault::Constant
    } else if least < first {
        BoundsFault::Below
    } else if num.umax >= MAX_VAR_OFF {
        BoundsFault::Unbounded
    } else if greatest > end {
        BoundsFault::Above
    } else {
        BoundsFault::Variable
    };
    let variable = origin::variable_part(scene, scene.def(reg));
    let (check, notes) = match (fault, variable) {
        (BoundsFault::Constant, _) | (_, None) => (Check::NotApplicable, Vec::new()),
        (_, Some((id, _))) => check(scene, id, fault),
    };
    let index = (!num.is_const()).then(|| (variable.map(|(_, reg)| reg.number()), num));
    let cause = Cause::Bounds {
        reg: reg.number(),
        kind: describe::pointer_kind(scene.env, scene.frame(), state),
        limit,
        off,
        size,
        index,
        fault,
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    if let Some((id, _)) = variable {
        // The index is the offending value; of the pointer, the last step is enough.
        let pointer = finding.notes.pop();
        finding.notes = origin::of(scene, id);
        pointer.into_iter().for_each(|note| finding.add(note));
    }
    notes.into_iter().for_each(|note| finding.add(note));
    add_size_register(scene, &mut finding, reg);
    finding
}

/// Of an argument that points to memory, the size argument behind it.
fn add_size_register(scene: &Scene<'_>, finding: &mut Finding, reg: Reg) {
    let next = Reg::new(reg.number() + 1);
    if let Some(next) = next.filter(|_| scene.prototype().is_some())
        && scene.reg(next).is_some_and(RegState::is_scalar)
    {
        finding.subjects.push(next);
    }
}

/// The size argument of a helper.
fn size_argument(scene: &Scene<'_>, reg: Reg, state: &RegState) -> Option<Finding> {
    let num = state.num;
    let is_zero_refused = scene.refusal.kind == RefusalKind::Argument;
    let fault = if num.smin < 0 {
        SizeFault::Negative
    } else if is_zero_refused && num.umin == 0 {
        SizeFault::Zero
    } else if num.umax >= MAX_VAR_OFF {
        SizeFault::Unbounded
    } else {
        return None;
    };
    let bounds_fault = match fault {
        SizeFault::Unbounded => BoundsFault::Unbounded,
        SizeFault::Negative | SizeFault::Zero => BoundsFault::Below,
    };
    let (check, notes) = match num.is_const() {
        true => (Check::NotApplicable, Vec::new()),
        false => check(scene, scene.def(reg), bounds_fault),
    };
    let cause = Cause::ArgumentSize {
        callee: scene.callee()?,
        number: reg.number(),
        fault,
        value: num,
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    notes.into_iter().for_each(|note| finding.add(note));
    Some(finding)
}

/// As a rule of its own, for the class of arguments.
pub(super) fn size(scene: &Scene<'_>, reg: Reg) -> Option<Finding> {
    let state = *scene.reg(reg)?;
    size_argument(scene, reg, &state)
}

/// The comparison of the path that was meant to bound a number.
pub(super) fn check(scene: &Scene<'_>, id: DefId, fault: BoundsFault) -> (Check, Vec<Note>) {
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
            let is_reread = is_same_read(scene, base, scene.values.base(compared));
            let is_related =
                scene.values.base(compared) == base || made_of_compared.is_some() || is_reread;
            if !is_related || !is_number(scene, branch.step, reg) {
                continue;
            }
            let insn = scene.env.insns[scene.trace.steps()[branch.step].insn as usize];
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
            let leaves_negative = match width {
                Width::W64 => after.num.smin < 0,
                Width::W32 => after.num.s32_min < 0,
            };
            let found = if cond.is_signed() && leaves_negative && !is_reread {
                Check::Signed
            } else if compared_value == own {
                let needs_signed = fault == BoundsFault::Below;
                match width {
                    Width::W32 if is_wide(scene, id) => Check::Low32,
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
                match (made_of_compared, scene.values.made_of(compared, own)) {
                    (Some(true), _) => Check::Before,
                    (Some(false), _) if width == Width::W32 => Check::Low32,
                    (Some(false), _) => Check::Loose,
                    (None, Some(false)) => Check::Low32,
                    (None, _) => Check::Copy,
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

/// True if two values were read from the same address by different instructions.
fn is_same_read(scene: &Scene<'_>, one: DefId, other: DefId) -> bool {
    let read = |id: DefId| {
        let def = scene.values.defs[id];
        let DefKind::Loaded(base) = def.kind else {
            return None;
        };
        let insn = scene.env.insns[scene.trace.steps()[def.step].insn as usize];
        Some((scene.values.same(base), insn.access()?.off))
    };
    one != other && read(one).is_some() && read(one) == read(other)
}

/// True if more than the low 32 bits of a value may be set.
fn is_wide(scene: &Scene<'_>, id: DefId) -> bool {
    let reg = scene.defined(id);
    reg.is_none_or(|reg| reg.num.umax > u32::MAX.into())
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

fn packet(
    scene: &Scene<'_>,
    reg: Reg,
    state: &RegState,
    off: i64,
    size: u32,
    proven: i32,
) -> Finding {
    let comparisons = packet_comparisons(scene);
    let mut note = None;
    let check = if proven <= PKT_AT_END {
        note = { comparisons.iter().rev() }
            .find(|(_, pointer, ..)| pointer.id == state.id)
            .map(|(step, ..)| scene.note(*step, NoteKind::PacketCheck { range: 0 }));
        PacketCheckFault::Beyond
    } else if state.num.umax > MAX_PACKET_OFF {
        PacketCheckFault::OffsetTooWide {
            max: state.num.umax,
        }
    } else if proven > 0 {
        note = { comparisons.iter().rev() }
            .find(|(_, pointer, ..)| pointer.id == state.id)
            .map(|(step, ..)| scene.note(*step, NoteKind::PacketCheck { range: proven }));
        PacketCheckFault::TooShort
    } else {
        match comparisons.last() {
            None => PacketCheckFault::Missing,
            Some((step, pointer, frame, register)) => {
                let after = scene
                    .trace
                    .reg(step + 1, register.index())
                    .unwrap_or(pointer);
                let value = describe::value(scene.env, *frame, after);
                note = Some(scene.note(*step, NoteKind::OtherPacketCheck { value }));
                match pointer.id == state.id {
                    true => PacketCheckFault::TooShort,
                    false => PacketCheckFault::OtherPointer,
                }
            }
        }
    };
    let cause = Cause::Packet {
        reg: reg.number(),
        off,
        size,
        proven: proven.max(0),
        is_meta: matches!(state.kind, RegKind::PacketMeta { .. }),
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    if state.num.umax > MAX_PACKET_OFF
        && let Some((id, _)) = origin::variable_part(scene, scene.def(reg))
    {
        origin::of(scene, id)
            .into_iter()
            .for_each(|note| finding.add(note));
    }
    note.into_iter().for_each(|note| finding.add(note));
    add_size_register(scene, &mut finding, reg);
    finding
}

/// The comparisons of the path with the end of the packet: step, pointer before it, frame,
/// register of the pointer.
fn packet_comparisons(scene: &Scene<'_>) -> Vec<(usize, RegState, usize, Reg)> {
    let mut found = Vec::new();
    for branch in &scene.values.branches {
        let Some((dst_reg, Some(src_reg))) = scene.compared(branch) else {
            continue;
        };
        let reg = |reg: Reg| scene.trace.reg(branch.step, reg.index());
        let (Some(dst), Some(src)) = (reg(dst_reg), reg(src_reg)) else {
            continue;
        };
        let pair = [(dst, src, dst_reg), (src, dst, src_reg)];
        let pointer = pair.into_iter().find(|(pointer, end, _)| {
            pointer.kind.is_packet() && (end.kind == RegKind::PacketEnd || end.kind.is_packet())
        });
        if let Some((pointer, _, register)) = pointer {
            let frame = usize::from(scene.trace.steps()[branch.step].frame);
            found.push((branch.step, *pointer, frame, register));
        }
    }
    found
}
