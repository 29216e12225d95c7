//! State equality: does an explored state cover the current one?
//!
//! Everything that the explored state's proof relied on must hold in the current state:
//! kinds of live registers and slots, ranges of precise scalars, identities up to
//! renaming, references and locks. Parts are compared in the order in which they are
//! cheap to refute; as the identities must form one partial bijection in the end, the
//! order does not change the answer.

use spec::behaviour::{Behaviour, Behaviours};

use super::checkpoint::Checkpoint;
use super::ids::IdMap;
use crate::analysis::Analysis;
use crate::state::{
    ADD_CONST, Frame, Reference, RegKind, RegState, SlotKind, StackObject, StackObjectKind,
    StackSlot, State,
};

/// Exactness of a comparison of states (kernel: `enum exact_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exactness {
    /// The explored state covers the current one.
    Covers,
    /// All known facts are equal.
    Exact,
    /// Ranges are within those of the explored state, precise or not.
    RangeWithin,
}

/// Input of a comparison beside the states.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    /// Live registers.
    pub analysis: &'a Analysis,
    /// Privilege: unwritten stack may be read, so it covers anything.
    pub allow_uninit_stack: bool,
    /// Last identity in use.
    pub last_id: u32,
    /// Every scalar counts as precise.
    pub all_precise: bool,
    /// What the kernel's verifier does.
    pub rules: Behaviours,
    /// Scalars must be equal, not only within the range.
    pub is_strict: bool,
}

impl Comparison<'_> {
    /// True if the checkpoint covers the current state (`states_equal`, `func_states_equal`).
    /// On a difference in a register of the innermost frame the checkpoint's hint is set.
    #[doc(alias = "func_states_equal")]
    pub(super) fn states_equal(
        &self,
        old: &mut Checkpoint,
        cur: &State,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        let state = &old.state;
        if state.curframe != cur.curframe
            || state.speculative && !cur.speculative
            || state.in_sleepable != cur.in_sleepable
            || state.refs.len() != cur.refs.len()
            || state.active_locks != cur.active_locks
            || state.active_preempt_locks != cur.active_preempt_locks
            || state.active_rcu_locks != cur.active_rcu_locks
            || state.active_lock_owner != cur.active_lock_owner
        {
            return false;
        }
        ids.reset(self.last_id);
        let top = state.curframe;
        let hint = usize::from(old.hint);
        let live = self.live_regs(old, top, exact);
        if live & 1 << hint != 0 {
            if !self.is_reg_safe(old, cur, top, hint, ids, exact) {
                return false;
            }
            ids.reset(self.last_id);
        }
        let are_same = |(old, cur): (&Reference, &Reference)| old.id == cur.id;
        if !self.rules.has(Behaviour::IdentitiesCorrespond)
            && (!state.refs.iter().zip(&cur.refs).all(are_same)
                || state.active_lock_id != cur.active_lock_id)
        {
            return false;
        }
        if !is_ref_safe(state, cur, ids) {
            return false;
        }
        for number in (0..=top).rev() {
            let (old_frame, cur_frame) = (state.frame(number), cur.frame(number));
            if old_frame.callsite != cur_frame.callsite
                || old_frame.callback_depth > cur_frame.callback_depth
            {
                return false;
            }
            let mut live = self.live_regs(old, number, exact);
            while live != 0 {
                let reg = live.trailing_zeros() as usize;
                live &= live - 1;
                if !self.is_reg_safe(old, cur, number, reg, ids, exact) {
                    if number == top {
                        old.hint = reg as u8;
                    }
                    return false;
                }
            }
        }
        for number in (0..=top).rev() {
            let precise = old.precise.of(number).slots;
            let (old_frame, cur_frame) = (state.frame(number), cur.frame(number));
            let dead = match self.compares_dead(exact) {
                true => 0,
                false if self.rules.has(Behaviour::StackLiveness) => old.dead_slots(number),
                false => !old.reads.of(number).slots,
            };
            if !self.is_stack_safe(old_frame, dead, precise, cur_frame, ids, exact) {
                return false;
            }
        }
        true
    }

    /// True if what nothing reads counts, too: reads were not known before all paths were walked.
    fn compares_dead(&self, exact: Exactness) -> bool {
        exact != Exactness::Covers && !self.rules.has(Behaviour::LivenessBeforeWalk)
    }

    fn live_regs(&self, old: &Checkpoint, number: usize, exact: Exactness) -> u16 {
        if self.compares_dead(exact) {
            return 0x7ff;
        }
        if !self.rules.has(Behaviour::LivenessBeforeWalk) {
            return old.reads.of(number).regs;
        }
        let state = &old.state;
        self.analysis.insns[state.frame_insn_idx(number) as usize].live_regs & 0x7ff
    }

    fn is_reg_safe(
        &self,
        old: &Checkpoint,
        cur: &State,
        number: usize,
        reg: usize,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        let precise = self.all_precise || old.precise.has_reg(number, reg);
        let (old, cur) = (
            &old.state.frame(number).regs[reg],
            &cur.frame(number).regs[reg],
        );
        self.is_reg_state_safe(old, precise, cur, ids, exact)
    }

    /// Linux's `stacksafe`.
    #[doc(alias = "stacksafe")]
    fn is_stack_safe(
        &self,
        old: &Frame,
        dead: u64,
        precise: u64,
        cur: &Frame,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        let stack = &cur.stack;
        let same_kinds = match exact {
            Exactness::Covers => false,
            Exactness::Exact => true,
            Exactness::RangeWithin => !self.rules.has(Behaviour::LoopsWrite),
        };
        for (spi, slot) in old.stack.iter().enumerate() {
            let slot = if dead & 1 << spi != 0 {
                &StackSlot::INVALID
            } else {
                slot
            };
            let cur = stack.get(spi);
            if same_kinds && cur.is_none_or(|cur| !cur.has_kinds_of(slot)) {
                return false;
            }
            if slot.is_unwritten() {
                continue;
            }
            let precise = self.all_precise || precise & 1 << spi != 0;
            if !self.is_slot_safe(slot, precise, cur, ids, exact) {
                return false;
            }
            if slot.is_special() {
                let parts = old.stack.object_at(spi).zip(stack.object_at(spi));
                if !parts.is_some_and(|(old, cur)| is_part_safe(spi, old, cur, ids, self.rules)) {
                    return false;
                }
            }
        }
        true
    }

    /// True if a slot covers another (the loop body of `stacksafe`, slot by slot).
    fn is_slot_safe(
        &self,
        old: &StackSlot,
        precise: bool,
        cur: Option<&StackSlot>,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        let is_free =
            |kind: SlotKind| kind.is_empty() || kind == SlotKind::Misc && self.allow_uninit_stack;
        let by_load = self.rules.has(Behaviour::StackNumbersCover);
        let has_halves = self.rules.has(Behaviour::HalfSlots);
        let mut is_first = true;
        for (byte, &kind) in old.kinds.iter().enumerate() {
            if is_free(kind) {
                continue;
            }
            let Some(cur) = cur else { return false };
            let from = match has_halves {
                true => (byte % 4 == 0).then_some(byte),
                false => is_first.then_some(0),
            };
            is_first = false;
            if let Some(from) = from.filter(|_| by_load)
                && let Some(old_scalar) = self.scalar_of(old, from)
                && let Some(cur_scalar) = self.scalar_of(cur, from)
            {
                let precise = precise && old.kinds[from] == SlotKind::Spill;
                return self.is_reg_state_safe(old_scalar, precise, cur_scalar, ids, exact);
            }
            if kind == SlotKind::Misc && cur.kinds[byte] == SlotKind::Zero {
                continue;
            }
            if kind != cur.kinds[byte] {
                return false;
            }
            if byte == 7 {
                return self.is_content_safe(kind, old, precise, cur, ids, exact);
            }
        }
        true
    }

    /// The scalar that a load of the slot's bytes from one on gives, if it gives one
    /// (`scalar_reg_for_stack`, `is_spilled_scalar_after`, `is_stack_misc_after`,
    /// `is_stack_all_misc`).
    #[doc(alias = "scalar_reg_for_stack")]
    #[doc(alias = "is_spilled_scalar_after")]
    #[doc(alias = "is_stack_misc_after")]
    #[doc(alias = "is_stack_all_misc")]
    fn scalar_of<'s>(&self, slot: &'s StackSlot, from: usize) -> Option<&'s RegState> {
        if slot.kinds[from] == SlotKind::Spill && slot.reg.is_scalar() {
            return Some(&slot.reg);
        }
        let is_misc = slot.kinds[from..]
            .iter()
            .all(|&kind| kind == SlotKind::Misc || kind.is_empty() && self.allow_uninit_stack);
        is_misc.then_some(&RegState::UNKNOWN)
    }

    /// Compares what slots of the same kind hold.
    fn is_content_safe(
        &self,
        kind: SlotKind,
        old: &StackSlot,
        precise: bool,
        cur: &StackSlot,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        match kind {
            SlotKind::Spill => self.is_reg_state_safe(&old.reg, precise, &cur.reg, ids, exact),
            // What they are a part of is compared apart.
            SlotKind::Dynptr | SlotKind::Iter | SlotKind::IrqFlag => true,
            SlotKind::Misc | SlotKind::Zero | SlotKind::Invalid | SlotKind::Poison => true,
        }
    }

    /// True if what is safe with the one register is safe with the other.
    fn is_reg_state_safe(
        &self,
        old: &RegState,
        precise: bool,
        cur: &RegState,
        ids: &mut IdMap,
        exact: Exactness,
    ) -> bool {
        let are_scalars = old.is_scalar() && cur.is_scalar();
        if self.is_strict && are_scalars && exact != Exactness::Exact {
            return old.off == cur.off
                && old.residue == cur.residue
                && old.num == cur.num
                && ids.check_scalar(old.id, cur.id, self.rules);
        }
        is_reg_state_safe(old, precise, cur, ids, exact, self.rules)
    }
}

/// True if slots with parts of objects may be equal. The depth of an iterator does not count, nor
/// what RCU says of it (in `stacksafe`).
#[doc(alias = "stacksafe")]
fn is_part_safe(
    spi: usize,
    old: &StackObject,
    cur: &StackObject,
    ids: &mut IdMap,
    rules: Behaviours,
) -> bool {
    let is_first = old.first_slot == spi;
    if is_first != (cur.first_slot == spi) {
        return false;
    }
    match (old.kind, cur.kind) {
        (StackObjectKind::Dynptr(old_kind), StackObjectKind::Dynptr(kind)) => {
            let is_same = !rules.has(Behaviour::ReferencesByUse) || ids.check_ids(old.id, cur.id);
            old_kind == kind && is_same && ids.check_ids(old.ref_obj_id, cur.ref_obj_id)
        }
        (
            StackObjectKind::Iter {
                ty: old_ty,
                state: old_state,
                ..
            },
            StackObjectKind::Iter { ty, state, .. },
        ) => {
            // Only the first slot has state and reference.
            let mut is_same =
                || old_state == state && ids.check_ids(old.ref_obj_id, cur.ref_obj_id);
            old_ty == ty && (!is_first || is_same())
        }
        (StackObjectKind::IrqFlag(old_class), StackObjectKind::IrqFlag(class)) => {
            old_class == class && ids.check_ids(old.ref_obj_id, cur.ref_obj_id)
        }
        (
            StackObjectKind::Dynptr(_) | StackObjectKind::Iter { .. } | StackObjectKind::IrqFlag(_),
            _,
        ) => false,
    }
}

/// True if all known facts are equal, up to identities (`regs_exact`).
#[doc(alias = "regs_exact")]
pub(super) fn is_reg_exact(old: &RegState, cur: &RegState, ids: &mut IdMap) -> bool {
    old.kind == cur.kind
        && old.flags == cur.flags
        && old.off == cur.off
        && old.residue == cur.residue
        && old.num == cur.num
        && ids.check_ids(old.id, cur.id)
        && ids.check_ids(old.ref_obj_id, cur.ref_obj_id)
}

/// True if what is safe with the one register is safe with the other (`regsafe`).
#[doc(alias = "regsafe")]
fn is_reg_state_safe(
    old: &RegState,
    precise: bool,
    cur: &RegState,
    ids: &mut IdMap,
    exact: Exactness,
    rules: Behaviours,
) -> bool {
    if exact == Exactness::Exact {
        return is_reg_exact(old, cur, ids);
    }
    if !rules.has(Behaviour::IdentitiesCorrespond) {
        return old == cur || is_reg_covered(old, precise, cur, ids, rules);
    }
    match (old.kind, cur.kind) {
        (RegKind::NotInit, RegKind::NotInit) => true,
        (RegKind::NotInit, _) => exact == Exactness::Covers || rules.has(Behaviour::LoopsWrite),
        (RegKind::Scalar, RegKind::Scalar) => {
            if !precise && exact == Exactness::Covers {
                return true;
            }
            if old.id != 0 || !rules.has(Behaviour::FreeNumbersCover) {
                if (old.id ^ cur.id) & ADD_CONST != 0 {
                    return false;
                }
                if old.id & ADD_CONST != 0 && old.off != cur.off {
                    return false;
                }
            }
            let corresponds = rules.has(Behaviour::NumbersCorrespond);
            old.num.contains(&cur.num) && (!corresponds || ids.check_scalar(old.id, cur.id, rules))
        }
        (
            RegKind::MapKey { .. }
            | RegKind::MapValue { .. }
            | RegKind::Mem { .. }
            | RegKind::Buf
            | RegKind::TpBuffer,
            _,
        ) => {
            is_same_kind(old.kind, cur.kind, ids, rules)
                && old.flags == cur.flags
                && covers_offset(old, cur, rules)
                && ids.check_ids(old.id, cur.id)
                && ids.check_ids(old.ref_obj_id, cur.ref_obj_id)
        }
        (RegKind::PacketMeta { range: old_range }, RegKind::PacketMeta { range: cur_range })
        | (RegKind::Packet { range: old_range }, RegKind::Packet { range: cur_range }) => {
            covers_range(old_range, cur_range, rules)
                && old.flags == cur.flags
                && ids.check_ids(old.id, cur.id)
                && has_same_distance(old, cur, rules)
                && covers_offset(old, cur, rules)
        }
        (RegKind::Arena, RegKind::Arena) => old.flags == cur.flags,
        (RegKind::Insn { .. }, _) => {
            old.kind == cur.kind && old.flags == cur.flags && covers_offset(old, cur, rules)
        }
        (
            RegKind::Scalar
            | RegKind::Ctx
            | RegKind::MapPtr { .. }
            | RegKind::Stack { .. }
            | RegKind::PacketMeta { .. }
            | RegKind::Packet { .. }
            | RegKind::PacketEnd
            | RegKind::FlowKeys
            | RegKind::Socket
            | RegKind::SockCommon
            | RegKind::TcpSock
            | RegKind::XdpSock
            | RegKind::BtfId { .. }
            | RegKind::Arena
            | RegKind::Func { .. }
            | RegKind::ConstDynptr { .. },
            _,
        ) => is_reg_exact(old, cur, ids),
    }
}

/// True if both are of one kind: memory of dynptrs, if those correspond or, before
/// [`Behaviour::ReferencesByUse`], are the same.
fn is_same_kind(old: RegKind, cur: RegKind, ids: &mut IdMap, rules: Behaviours) -> bool {
    match (old, cur) {
        (
            RegKind::Mem {
                size: old_size,
                dynptr_id: old_id,
            },
            RegKind::Mem { size, dynptr_id },
        ) if rules.has(Behaviour::ReferencesByUse) => {
            old_size == size && ids.check_ids(old_id, dynptr_id)
        }
        _ => old == cur,
    }
}

/// True if a pointer's offset is among those of the other's.
fn covers_offset(old: &RegState, cur: &RegState, rules: Behaviours) -> bool {
    if old.off == cur.off {
        return old.num.contains(&cur.num);
    }
    rules.has(Behaviour::UnitedOffsets)
        && (old.whole_offset(rules)).contains(&cur.whole_offset(rules))
}

/// True if a packet pointer may cover the other: with an identity, the offsets of both begin alike.
fn has_same_distance(old: &RegState, cur: &RegState, rules: Behaviours) -> bool {
    let base = |reg: &RegState| reg.whole_offset(rules).r64().base;
    old.id == 0 || !rules.has(Behaviour::PacketDistances) || base(old) == base(cur)
}

/// True if a packet pointer with one range, negative at or beyond the end, covers one with another.
fn covers_range(old: i32, cur: i32, rules: Behaviours) -> bool {
    match rules.has(Behaviour::BeyondEndApart) && (old < 0 || cur < 0) {
        true => old == cur,
        false => old <= cur,
    }
}

/// True if what is safe with the one register is safe with the other that is not the same (`regsafe`
/// before [`Behaviour::IdentitiesCorrespond`]).
fn is_reg_covered(
    old: &RegState,
    precise: bool,
    cur: &RegState,
    ids: &mut IdMap,
    rules: Behaviours,
) -> bool {
    let is_same = old.kind == cur.kind && old.flags == cur.flags && old.off == cur.off;
    match (old.kind, cur.kind) {
        (RegKind::Stack { .. }, _) => false,
        (RegKind::NotInit, _) => true,
        (RegKind::Scalar, RegKind::Scalar) => !precise || old.num.contains(&cur.num),
        (RegKind::MapKey { .. } | RegKind::MapValue { .. }, _) if old.may_be_null() => {
            is_same && ids.leads_to(old.id, cur.id)
        }
        (RegKind::MapKey { .. } | RegKind::MapValue { .. }, _) => {
            is_same && old.num.contains(&cur.num)
        }
        (RegKind::PacketMeta { range: old_range }, RegKind::PacketMeta { range })
        | (RegKind::Packet { range: old_range }, RegKind::Packet { range }) => {
            covers_range(old_range, range, rules)
                && old.off == cur.off
                && (old.id == 0 || ids.leads_to(old.id, cur.id))
                && old.num.contains(&cur.num)
        }
        (
            RegKind::Scalar
            | RegKind::Ctx
            | RegKind::MapPtr { .. }
            | RegKind::PacketMeta { .. }
            | RegKind::Packet { .. }
            | RegKind::PacketEnd
            | RegKind::FlowKeys
            | RegKind::Socket
            | RegKind::SockCommon
            | RegKind::TcpSock
            | RegKind::TpBuffer
            | RegKind::XdpSock
            | RegKind::BtfId { .. }
            | RegKind::Mem { .. }
            | RegKind::Arena
            | RegKind::Buf
            | RegKind::Func { .. }
            | RegKind::Insn { .. }
            | RegKind::ConstDynptr { .. },
            _,
        ) => false,
    }
}

/// True if references and locks correspond (`refsafe`).
#[doc(alias = "refsafe")]
fn is_ref_safe(old: &State, cur: &State, ids: &mut IdMap) -> bool {
    ids.check_ids(old.active_irq_id, cur.active_irq_id)
        && ids.check_ids(old.active_lock_id, cur.active_lock_id)
        && old.refs.iter().zip(&cur.refs).all(|(old, cur)| {
            old.kind == cur.kind
                && ids.check_ids(old.id, cur.id)
                && (!old.kind.is_lock() || old.owner == cur.owner)
        })
}

/// True if the registers of the innermost frames are identical, identities included
/// (`states_maybe_looping`).
#[doc(alias = "states_maybe_looping")]
pub(super) fn may_be_looping(old: &State, cur: &State) -> bool {
    old.curframe == cur.curframe && old.cur().regs == cur.cur().regs
}
