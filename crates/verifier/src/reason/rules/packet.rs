//! Accesses to the packet that no comparison with its end proves.

use isa::ebpf::Reg;

use super::Finding;
use super::bounds::add_size_register;
use super::memory;
use crate::flow::MAX_PACKET_OFF;
use crate::reason::cause::{Cause, PacketBase, PacketCheckFault, PacketExtent, PacketLoop};
use crate::reason::explanation::NoteKind;
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind};
use crate::reason::{describe, extent, loops, origin};
use crate::state::{PKT_AT_END, RegKind, RegState};

/// An access to the packet, or to the metadata before it, beyond what is proven.
pub(super) fn outside(
    scene: &Scene<'_>,
    reg: Reg,
    state: &RegState,
    off: i64,
    size: u32,
    proven: i32,
) -> Finding {
    let comparisons = packet_comparisons(scene);
    let mut note = None;
    let end = off.saturating_add(size.into());
    let is_beyond = state.num.is_const() && end > MAX_PACKET_OFF as i64;
    let check = if is_beyond {
        PacketCheckFault::BeyondLimit
    } else if proven <= PKT_AT_END {
        note = { comparisons.iter().rev() }
            .find(|(_, pointer, ..)| pointer.id == state.id)
            .map(|(step, ..)| scene.note(*step, NoteKind::PacketCheck { range: 0 }));
        PacketCheckFault::Beyond
    } else if state.num.umax > MAX_PACKET_OFF
        || proven == 0 && !state.num.is_const() && is_far(state, end)
    {
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
            None if compares_difference(scene) => PacketCheckFault::Difference,
            None => PacketCheckFault::Missing,
            Some((step, pointer, frame, register)) => {
                let after = scene
                    .trace
                    .reg(step + 1, register.index())
                    .unwrap_or(pointer);
                let value = describe::value(scene.input, *frame, after);
                note = Some(scene.note(*step, NoteKind::OtherPacketCheck { value }));
                match pointer.id == state.id {
                    true => PacketCheckFault::TooShort,
                    false => PacketCheckFault::OtherPointer,
                }
            }
        }
    };
    let is_wide = matches!(check, PacketCheckFault::OffsetTooWide { .. });
    let own = PacketExtent {
        first: off,
        next: end,
        end,
    };
    let variable_base = match state.num.is_const() {
        true => None,
        false => origin::variable_base(scene, scene.def(reg)),
    };
    let cause = Cause::Packet {
        reg: reg.number(),
        access: memory::access_kind(scene, reg),
        off,
        size,
        proven: proven.max(0),
        is_meta: matches!(state.kind, RegKind::PacketMeta { .. }),
        base: match state.num.is_const() {
            true => PacketBase::Start,
            false => PacketBase::Variable,
        },
        extent: extent::of(scene, reg, own).from(variable_base.unwrap_or(0)),
        in_loop: packet_loop(scene, reg, state),
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    if is_wide && let Some((id, _)) = origin::variable_part(scene, scene.def(reg)) {
        origin::of(scene, id)
            .into_iter()
            .for_each(|note| finding.add(note));
    }
    note.into_iter().for_each(|note| finding.add(note));
    add_size_register(scene, &mut finding, reg);
    finding
}

/// True if a variable offset and the constant one behind it may be too large for comparisons.
fn is_far(state: &RegState, end: i64) -> bool {
    state.num.umax.saturating_add_signed(end) > MAX_PACKET_OFF
}

/// The loop around the refused instruction, if the pointer moves in it.
fn packet_loop(scene: &Scene<'_>, reg: Reg, state: &RegState) -> Option<PacketLoop> {
    let last = scene.last()?;
    let steps = scene.trace.steps();
    let insn = steps[last].insn;
    let frame = scene.trace.frame(last, scene.frame())?;
    let is_callback = frame.in_callback_fn && !state.num.is_const();
    let is_moved = loops::moves(scene, insn, reg);
    if !is_callback && !is_moved {
        return None;
    }
    let same = |step: &usize| steps[*step].insn == insn && steps[*step].frame == steps[last].frame;
    let before = (0..last).rev().find(same);
    let offset = |reg: &RegState| i64::from(reg.off).saturating_add_unsigned(reg.num.umax);
    let before = before.and_then(|step| scene.trace.reg(step, reg.index()));
    let growth = before.map(|before| offset(state).saturating_sub(offset(before)));
    let growth = growth.and_then(|growth| u64::try_from(growth).ok());
    Some(PacketLoop {
        is_callback: !is_moved,
        most: growth.and_then(|growth| MAX_PACKET_OFF.checked_div(growth)),
    })
}

/// True if a comparison of the path is of the difference of pointers into the packet.
fn compares_difference(scene: &Scene<'_>) -> bool {
    let is_packet = |id: DefId| {
        let reg = scene.defined(id);
        reg.is_some_and(|reg| reg.kind.is_packet() || matches!(reg.kind, RegKind::PacketEnd))
    };
    let is_difference = |id: DefId| {
        let mut id = scene.values.same(id);
        while let DefKind::Narrowed(from) | DefKind::Computed(from, None) =
            scene.values.defs[id].kind
        {
            id = scene.values.same(from);
        }
        matches!(scene.values.defs[id].kind, DefKind::Computed(left, Some(right))
            if is_packet(left) && is_packet(right))
    };
    let mut branches = scene.values.branches.iter();
    branches.any(|branch| is_difference(branch.dst) || branch.src.is_some_and(is_difference))
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
