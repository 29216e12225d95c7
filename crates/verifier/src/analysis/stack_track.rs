//! Where pointers to the stack point, before the walk: for each register and each slot of the
//! function's own stack, the frame and the offsets that it may hold.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg, Size, Width};

/// Offsets that are told apart; more are none that is known.
const MOST_OFFSETS: usize = 4;

/// Slots of eight bytes of a stack.
pub(super) const SLOTS: usize = 64;

/// What a register or slot may hold (`arg_track`).
#[doc(alias = "arg_track")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Track {
    /// The instruction was not reached (`arg_is_visited`).
    #[doc(alias = "arg_is_visited")]
    #[default]
    Unvisited,
    /// No pointer to a stack.
    Other,
    /// A pointer into one of these frames, one bit each.
    Frames(u16),
    /// A pointer into a frame, with these offsets, ascending; none: unknown.
    Frame {
        frame: u8,
        count: u8,
        offsets: [i16; MOST_OFFSETS],
    },
}

impl Track {
    /// A pointer with one offset (`arg_single`).
    #[doc(alias = "arg_single")]
    pub(super) fn at(frame: usize, offset: i16) -> Track {
        let mut offsets = [0; MOST_OFFSETS];
        offsets[0] = offset;
        Track::Frame {
            frame: frame as u8,
            count: 1,
            offsets,
        }
    }

    /// A pointer with an unknown offset.
    fn somewhere(frame: u8) -> Track {
        Track::Frame {
            frame,
            count: 0,
            offsets: [0; MOST_OFFSETS],
        }
    }

    /// True if it may be a pointer to a stack (`arg_is_fp`).
    #[doc(alias = "arg_is_fp")]
    pub(super) fn is_pointer(self) -> bool {
        matches!(self, Track::Frames(_) | Track::Frame { .. })
    }

    /// Its offsets; empty if they are not known.
    pub(super) fn offsets(&self) -> &[i16] {
        match self {
            Track::Frame { count, offsets, .. } => &offsets[..usize::from(*count)],
            _ => &[],
        }
    }

    /// The frame that it points into for certain.
    pub(super) fn frame(self) -> Option<usize> {
        match self {
            Track::Frame { frame, .. } => Some(frame.into()),
            _ => None,
        }
    }

    fn frames(self) -> u16 {
        match self {
            Track::Frames(frames) => frames,
            Track::Frame { frame, .. } => 1 << frame,
            Track::Unvisited | Track::Other => 0,
        }
    }

    fn of_offsets(frame: u8, mut all: Vec<i16>) -> Track {
        all.sort_unstable();
        all.dedup();
        if all.len() > MOST_OFFSETS {
            return Track::somewhere(frame);
        }
        let mut offsets = [0; MOST_OFFSETS];
        offsets[..all.len()].copy_from_slice(&all);
        Track::Frame {
            frame,
            count: all.len() as u8,
            offsets,
        }
    }

    /// What one or the other holds (`__arg_track_join`, `arg_merge_offsets`, `arg_join_imprecise`).
    #[doc(alias = "__arg_track_join")]
    #[doc(alias = "arg_merge_offsets")]
    #[doc(alias = "arg_join_imprecise")]
    pub(super) fn join(self, other: Track) -> Track {
        if self == other {
            return self;
        }
        match (self, other) {
            (Track::Unvisited, known) | (known, Track::Unvisited) => known,
            (Track::Frame { frame: a, .. }, Track::Frame { frame: b, .. }) if a == b => {
                match self.offsets().is_empty() || other.offsets().is_empty() {
                    true => Track::somewhere(a),
                    false => Track::of_offsets(a, [self.offsets(), other.offsets()].concat()),
                }
            }
            // A second offset keeps a write from being one to the slot for certain.
            (known @ Track::Frame { frame, .. }, Track::Other)
            | (Track::Other, known @ Track::Frame { frame, .. }) => match known.offsets() {
                [offset] => Track::of_offsets(frame, vec![*offset, 0]),
                _ => known,
            },
            _ => Track::Frames(self.frames() | other.frames()),
        }
    }

    /// The pointer moved by a constant (`arg_padd`, `arg_add`).
    #[doc(alias = "arg_padd")]
    #[doc(alias = "arg_add")]
    pub(super) fn moved(self, by: i64) -> Track {
        let Track::Frame { frame, .. } = self else {
            return self;
        };
        let by = i16::try_from(by).ok();
        let moved = self.offsets().iter().map(|offset| offset.checked_add(by?));
        let all: Option<Vec<i16>> = moved.collect();
        match all {
            Some(all) => Track::of_offsets(frame, all),
            None => Track::somewhere(frame),
        }
    }

    /// The result of an operation with another register (`arg_track_alu64`).
    #[doc(alias = "arg_track_alu64")]
    fn combined(self, other: Track) -> Track {
        match (self, other) {
            (Track::Frame { frame, .. }, Track::Other)
            | (Track::Other, Track::Frame { frame, .. }) => Track::somewhere(frame),
            (Track::Frame { frame: a, .. }, Track::Frame { frame: b, .. }) if a == b => {
                Track::somewhere(a)
            }
            (Track::Other, Track::Other) => Track::Other,
            _ => Track::Frames(self.frames() | other.frames()),
        }
    }
}

/// Registers, r10 among them, and slots of the function's own stack before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracks {
    pub(super) regs: [Track; 11],
    pub(super) slots: [Track; SLOTS],
}

impl Tracks {
    /// Before an instruction that was not reached.
    pub(super) const UNVISITED: Tracks = Tracks {
        regs: [Track::Unvisited; 11],
        slots: [Track::Unvisited; SLOTS],
    };

    /// Joins them with those of another way; true if they change (`arg_track_join`).
    #[doc(alias = "arg_track_join")]
    pub(super) fn join(&mut self, other: &Tracks) -> bool {
        let mut changed = false;
        let regs = self.regs.iter_mut().zip(&other.regs);
        for (old, new) in regs.chain(self.slots.iter_mut().zip(&other.slots)) {
            let joined = old.join(*new);
            changed |= joined != *old;
            *old = joined;
        }
        changed
    }

    /// Applies an instruction in a frame of that depth; `outer` are the slots of a caller's frame at
    /// its call (`arg_track_xfer`).
    #[doc(alias = "arg_track_xfer")]
    pub(super) fn apply<'s>(
        &mut self,
        insn: Insn,
        depth: usize,
        outer: impl Fn(usize) -> Option<&'s [Track; SLOTS]>,
    ) {
        match insn {
            Insn::Alu {
                op,
                width: Width::W64,
                dst,
                src,
            } => {
                let old = self.regs[dst.index()];
                self.regs[dst.index()] = match (op, src) {
                    (AluOp::Mov, Operand::Imm(_)) => Track::Other,
                    (AluOp::Mov, Operand::Reg(src)) => self.regs[src.index()],
                    (AluOp::Add, Operand::Imm(imm)) => old.moved(imm.into()),
                    (AluOp::Sub, Operand::Imm(imm)) => old.moved(-i64::from(imm)),
                    (_, Operand::Imm(_)) => match old {
                        Track::Frame { frame, .. } => Track::somewhere(frame),
                        old => old,
                    },
                    (_, Operand::Reg(src)) => old.combined(self.regs[src.index()]),
                };
            }
            Insn::Neg {
                width: Width::W64,
                dst,
            } => {
                if let Track::Frame { frame, .. } = self.regs[dst.index()] {
                    self.regs[dst.index()] = Track::somewhere(frame);
                }
            }
            Insn::Alu { dst, .. }
            | Insn::Neg { dst, .. }
            | Insn::Endian { dst, .. }
            | Insn::MovSx { dst, .. }
            | Insn::Cast { dst, .. }
            | Insn::LoadImm64 { dst, .. }
            | Insn::LoadAcquire { dst, .. } => self.regs[dst.index()] = Track::Other,
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. } | Callee::Local(_)) => {
                self.regs[..6].fill(Track::Other);
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let is_whole = size == Size::DW && !signed;
                self.regs[dst.index()] = match is_whole {
                    true => self.filled(base, off, depth, outer),
                    false => Track::Other,
                };
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } if self.is_local(base, depth) => match src {
                Operand::Reg(src) => self.spill(base, off, size, self.regs[src.index()]),
                Operand::Imm(_) => self.clear(base, off, size),
            },
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => {
                if self.is_local(base, depth) {
                    self.clear(base, off, size);
                }
                let written = Insn::Atomic {
                    op,
                    size,
                    base,
                    off,
                    src,
                }
                .writes()
                .bits();
                for (number, reg) in self.regs.iter_mut().enumerate() {
                    if written & 1 << number != 0 {
                        *reg = Track::Other;
                    }
                }
            }
            Insn::StoreRelease {
                size, base, off, ..
            } if self.is_local(base, depth) => self.clear(base, off, size),
            Insn::Store { .. }
            | Insn::StoreRelease { .. }
            | Insn::Imm64High
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::CallReg { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => {}
        }
    }

    /// True if the register may point to the function's own stack (`can_be_local_fp`).
    #[doc(alias = "can_be_local_fp")]
    fn is_local(&self, reg: Reg, depth: usize) -> bool {
        reg == Reg::R10 || self.regs[reg.index()].frames() & 1 << depth != 0
    }

    /// What a load of eight bytes gives (`fill_from_stack`).
    #[doc(alias = "fill_from_stack")]
    fn filled<'s>(
        &self,
        base: Reg,
        off: i16,
        depth: usize,
        outer: impl Fn(usize) -> Option<&'s [Track; SLOTS]>,
    ) -> Track {
        let pointer = self.regs[base.index()];
        if self.is_local(base, depth) {
            let filled = fill(pointer, off, &self.slots, depth);
            // The frame pointer itself names one slot.
            return match base == Reg::R10 || !filled.is_pointer() {
                true => filled,
                false => Track::Other.join(filled),
            };
        }
        match pointer {
            Track::Frame { frame, .. } => match outer(frame.into()) {
                Some(slots) => Track::Other.join(fill(pointer, off, slots, frame.into())),
                None => Track::Frames((1 << (frame + 1)) - 1),
            },
            Track::Frames(frames) if frames != 0 => pointer,
            _ => Track::Other,
        }
    }

    /// A store of a register (`spill_to_stack`).
    #[doc(alias = "spill_to_stack")]
    fn spill(&mut self, base: Reg, off: i16, size: Size, value: Track) {
        let value = match size {
            Size::DW => value,
            _ => Track::Other,
        };
        let pointer = self.regs[base.index()];
        if pointer.offsets().is_empty() {
            for slot in &mut self.slots {
                *slot = slot.join(value);
            }
            return;
        }
        let is_certain = pointer.offsets().len() == 1;
        for offset in pointer.offsets() {
            let slot = offset.checked_add(off).and_then(slot_of);
            if let Some(slot) = slot {
                self.slots[slot] = match is_certain {
                    true => value,
                    false => self.slots[slot].join(value),
                };
            }
        }
    }

    /// A store of something else (`clear_stack_for_all_offs`, `clear_overlapping_stack_slots`).
    #[doc(alias = "clear_stack_for_all_offs")]
    #[doc(alias = "clear_overlapping_stack_slots")]
    fn clear(&mut self, base: Reg, off: i16, size: Size) {
        let pointer = self.regs[base.index()];
        let offsets = pointer
            .offsets()
            .iter()
            .map(|offset| offset.checked_add(off));
        let offsets: Option<Vec<i16>> = offsets.collect();
        let offsets = offsets.unwrap_or_default();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let start = -8 * (index as i32 + 1);
            let is_hit = |offset: &i16| {
                let offset = i32::from(*offset);
                start < offset + size.bytes() as i32 && start + 8 > offset
            };
            match offsets.len() {
                0 => *slot = slot.join(Track::Other),
                1 if is_hit(&offsets[0]) => *slot = Track::Other,
                _ if offsets.iter().any(is_hit) => *slot = slot.join(Track::Other),
                _ => {}
            }
        }
    }
}

/// The aligned slot at an offset (`fp_off_to_slot`).
#[doc(alias = "fp_off_to_slot")]
fn slot_of(offset: i16) -> Option<usize> {
    let is_slot = offset < 0 && offset >= -8 * SLOTS as i16 && offset % 8 == 0;
    is_slot.then(|| usize::from(offset.unsigned_abs()) / 8 - 1)
}

fn fill(pointer: Track, off: i16, slots: &[Track; SLOTS], depth: usize) -> Track {
    let anywhere = Track::Frames(((1u32 << (depth + 1)) - 1) as u16);
    let mut filled = Track::Unvisited;
    for offset in pointer.offsets() {
        match offset.checked_add(off).and_then(slot_of) {
            Some(slot) => filled = filled.join(slots[slot]),
            None => return anywhere,
        }
    }
    match pointer.offsets() {
        [] => anywhere,
        _ => filled,
    }
}
