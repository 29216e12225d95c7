//! Reachability of uncovered scalars: a forward may-analysis over the control-flow graph.
//!
//! Its facts are registers and slots of the function's own frame, one bit each. It starts
//! where paths were pruned, with the scalars that their checkpoints do not cover, and
//! follows copies, arithmetic, spills, fills, calls, returns and comparisons, which refine
//! both operands and what is linked with them. Call contexts are merged. Slots of other
//! frames are one fact for all: stores of uncovered scalars there give up on every slot,
//! loads from there see every slot.
//!
//! Complexity: linear in the instructions for each round; rounds end at the fixpoint, as
//! bits are only added.

use isa::ebpf::properties::Halves;
use isa::ebpf::{Callee, Insn, Operand, Reg, Size};
use spec::behaviour::Behaviours;

use super::collect::Proof;
use crate::analysis::Analysis;
use crate::explore::{Checkpoint, IdMap};
use crate::input::Input;
use crate::mem::MAX_STACK;
use crate::state::{Frame, MAX_CALL_FRAMES, RegKind, RegState, State};

/// Registers and slots that hold uncovered scalars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mask {
    pub(super) regs: u16,
    pub(super) slots: u64,
}

/// The masks before and after an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tainted {
    pub(super) before: Mask,
    pub(super) after: Mask,
}

/// Uncovered scalars where a path was pruned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uncovered {
    insn: u32,
    mask: Mask,
}

/// Data flow of an instruction, as the walk saw it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// Slots of the function's own frame that it accesses.
    own_slots: u64,
    /// It overwrites or reads exactly one slot, on every visit the same.
    is_whole_slot: bool,
    /// It accesses the stack of another frame.
    other_stack: bool,
    /// The walk was here.
    is_noted: bool,
    /// Registers that a comparison refines beside its operands.
    pub(super) linked_regs: u16,
    /// Slots likewise.
    pub(super) linked_slots: u64,
    /// Its refinement reaches other frames, too.
    pub(super) links_elsewhere: bool,
    /// Slots that hold the key of a call.
    pub(super) key_slots: u64,
}

impl Flow {
    /// Notes an access of `size` bytes at `off` behind `base`.
    pub(super) fn note_stack(&mut self, base: &RegState, off: i16, size: u32, curframe: usize) {
        let RegKind::Stack { frame } = base.kind else {
            return;
        };
        if frame as usize != curframe {
            self.other_stack = true;
            return;
        }
        let (first, last) = accessed(base, off, size);
        let slots = slots_between(first, last);
        let is_whole = size == 8 && first % 8 == 0 && last - first == 8;
        self.is_whole_slot = is_whole && (!self.is_noted || self.own_slots == slots);
        self.is_noted = true;
        self.own_slots |= slots;
    }
}

/// The first and the end of the offsets from the frame pointer that an access of `size` bytes at
/// `off` behind a pointer to the stack may reach.
fn accessed(base: &RegState, off: i16, size: u32) -> (i64, i64) {
    let fixed = i64::from(base.off) + i64::from(off);
    let first = base.num.smin.saturating_add(fixed).max(-MAX_STACK);
    let last = base.num.smax.saturating_add(fixed);
    (first, last.saturating_add(size.into()).min(0))
}

/// The slots with bytes between two offsets from the frame pointer, the second excluded.
fn slots_between(first: i64, last: i64) -> u64 {
    let slots = (first..last).map(|at| ((-at - 1) / 8).clamp(0, 63));
    slots.fold(0, |slots, slot| slots | 1 << slot)
}

/// The slots that an access of `size` bytes at `off` behind a pointer to the stack may reach.
pub(super) fn slots_accessed(base: &RegState, off: i16, size: u32) -> u64 {
    let (first, last) = accessed(base, off, size);
    slots_between(first, last)
}

/// Result of a comparison with a checkpoint.
pub(super) struct Compared {
    pub(super) uncovered: Vec<Uncovered>,
    /// Proofs of packet pointers of the checkpoint, and of the path.
    pub(super) covered: Vec<(Proof, Proof)>,
}

/// Registers that a caller keeps over a call.
const CALLEE_SAVED: u16 = 0b11_1100_0000;
const ARGUMENTS: u16 = 0b11_1110;

/// What holds of linked numbers, whatever a kernel compares of them.
const RULES: Behaviours = Behaviours::LINUX_6_18;

/// Finds the scalars of a state that a checkpoint covers only because they are imprecise.
pub(super) fn compare(
    analysis: &Analysis,
    checkpoint: &Checkpoint,
    cur: &State,
    last_id: u32,
) -> Compared {
    let old = checkpoint.state();
    let mut ids = IdMap::default();
    ids.reset(last_id);
    let mut compared = Compared {
        uncovered: Vec::new(),
        covered: Vec::new(),
    };
    for number in 0..=old.curframe.min(MAX_CALL_FRAMES - 1) {
        let (old_frame, cur_frame) = (old.frame(number), cur.frame(number));
        let insn = old.frame_insn_idx(number);
        let live = analysis.insns[insn as usize].live_regs & 0x3ff;
        let mut mask = Mask::default();
        for reg in (0..10).filter(|reg| live >> reg & 1 != 0) {
            let (old, cur) = (&old_frame.regs[reg], &cur_frame.regs[reg]);
            if !compared.is_covered(old, cur, &mut ids) {
                mask.regs |= 1 << reg;
            }
        }
        for spi in 0..old_frame.stack.len() {
            let is_dead = checkpoint.dead_slots(number) >> spi & 1 != 0;
            if !is_dead && !compared.is_slot_covered(old_frame, cur_frame, spi, &mut ids) {
                mask.slots |= 1 << spi;
            }
        }
        if number == old.curframe {
            compared.add(insn, mask);
        } else {
            // The caller goes on behind the call; a helper may call its callback again.
            mask.regs &= CALLEE_SAVED;
            compared.add(insn, mask);
            compared.add(insn + 1, mask);
        }
    }
    compared
}

impl Compared {
    fn add(&mut self, insn: u32, mask: Mask) {
        if mask != Mask::default() {
            self.uncovered.push(Uncovered { insn, mask });
        }
    }

    fn is_covered(&mut self, old: &RegState, cur: &RegState, ids: &mut IdMap) -> bool {
        // Pruning compared the kinds, and all that facts say of other kinds.
        if let Some((range, cur_range)) = old.kind.packet_range().zip(cur.kind.packet_range())
            && range > 0
        {
            self.covered.push(((old.id, range), (cur.id, cur_range)));
        }
        let are_scalars = old.is_scalar() && cur.is_scalar();
        !are_scalars || old.num.contains(&cur.num) && ids.check_scalar(old.id, cur.id, RULES)
    }

    fn is_slot_covered(&mut self, old: &Frame, cur: &Frame, spi: usize, ids: &mut IdMap) -> bool {
        let old = &old.stack[spi];
        let Some(cur) = cur.stack.get(spi) else {
            return !old.is_spilled_scalar();
        };
        if !old.is_spilled() {
            return true;
        }
        if old.is_spilled_scalar() && (!cur.is_spilled_scalar() || old.kinds != cur.kinds) {
            return false;
        }
        self.is_covered(&old.reg, &cur.reg, ids)
    }
}

/// The masks of every instruction.
pub(super) fn propagate(
    input: &Input<'_>,
    analysis: &Analysis,
    flows: &[&Flow],
    uncovered: &[Uncovered],
) -> Vec<Tainted> {
    let mut spread = Spread {
        input,
        analysis,
        flows,
        tainted: vec![Tainted::default(); input.insns.len()],
        returned: vec![0; analysis.subprogs.len()],
        all_slots: false,
        changed: true,
    };
    for seed in uncovered {
        spread.reach(seed.insn, seed.mask);
    }
    while std::mem::take(&mut spread.changed) {
        for insn in 0..input.insns.len() {
            spread.step(insn);
        }
    }
    if spread.all_slots {
        for tainted in &mut spread.tainted {
            tainted.before.slots = u64::MAX;
        }
    }
    spread.tainted
}

/// The state of the data flow.
struct Spread<'a> {
    input: &'a Input<'a>,
    analysis: &'a Analysis,
    flows: &'a [&'a Flow],
    tainted: Vec<Tainted>,
    /// By subprogram, bit 0: its result is uncovered.
    returned: Vec<u16>,
    /// An uncovered scalar was stored at an unknown place.
    all_slots: bool,
    changed: bool,
}

impl Spread<'_> {
    /// Adds bits before an instruction.
    fn reach(&mut self, insn: u32, mask: Mask) {
        let Some(tainted) = self.tainted.get_mut(insn as usize) else {
            return;
        };
        let before = &mut tainted.before;
        let new = Mask {
            regs: before.regs | mask.regs,
            slots: before.slots | mask.slots,
        };
        self.changed |= new != *before;
        *before = new;
    }

    fn step(&mut self, index: usize) {
        let before = self.tainted[index].before;
        let insn = self.input.insns[index];
        let after = self.transfer(index, insn, before);
        self.tainted[index].after = after;
        if let Insn::Call(Callee::Local(off)) = insn {
            let start = (index as u32 + 1).wrapping_add_signed(off);
            let arguments = Mask {
                regs: before.regs & ARGUMENTS,
                slots: 0,
            };
            self.reach(start, arguments);
        }
        if insn == Insn::Exit {
            let subprog = self.analysis.subprog_containing(index as u32);
            let new = self.returned[subprog] | before.regs & 1;
            self.changed |= new != self.returned[subprog];
            self.returned[subprog] = new;
        }
        let analysis = self.analysis;
        for next in analysis.next(index as u32) {
            self.reach(next, after);
        }
    }

    fn transfer(&mut self, index: usize, insn: Insn, before: Mask) -> Mask {
        let flow = self.flows[index];
        let has = |reg: Reg| before.regs >> reg.number() & 1 != 0;
        let of = |operand: Operand| match operand {
            Operand::Reg(reg) => has(reg),
            Operand::Imm(_) => false,
        };
        let mut after = before;
        let mut set = |reg: Reg, is_tainted: bool| {
            after.regs &= !(1 << reg.number());
            after.regs |= u16::from(is_tainted) << reg.number();
        };
        match insn {
            Insn::Alu { op, dst, src, .. } => {
                let reads_dst = op.reads_of_dst() != Halves::Neither;
                set(dst, reads_dst && has(dst) || of(src));
            }
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => set(dst, has(src)),
            Insn::LoadImm64 { dst, .. } => set(dst, false),
            Insn::Load { dst, .. } | Insn::LoadAcquire { dst, .. } => {
                set(dst, self.is_loaded_tainted(flow, before));
            }
            Insn::Store { size, src, .. } => self.store(flow, size, of(src), &mut after),
            Insn::StoreRelease { size, src, .. } => self.store(flow, size, has(src), &mut after),
            Insn::Atomic { op, src, .. } => {
                // What it leaves in a slot is any number.
                let is_tainted = self.is_loaded_tainted(flow, before);
                if op.fetches_into_src() {
                    set(src, is_tainted);
                } else if op.fetches_into_r0() {
                    set(Reg::R0, is_tainted);
                }
            }
            Insn::Jump { dst, src, .. } => {
                if has(dst) || of(src) {
                    set(dst, true);
                    if let Operand::Reg(src) = src {
                        set(src, true);
                    }
                    after.regs |= flow.linked_regs;
                    after.slots |= flow.linked_slots;
                    if flow.links_elsewhere {
                        self.give_up_frames();
                    }
                }
            }
            Insn::Call(Callee::Local(off)) => {
                let start = (index as u32 + 1).wrapping_add_signed(off);
                after.regs &= CALLEE_SAVED;
                if let Some(subprog) = self.analysis.subprog_at(start) {
                    after.regs |= self.returned[subprog] & 1;
                }
            }
            // Results of helpers depend on precise arguments only.
            Insn::Call(_)
            | Insn::CallReg { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. } => after.regs &= CALLEE_SAVED,
            Insn::Neg { .. }
            | Insn::Endian { .. }
            | Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => {}
        }
        after
    }

    fn is_loaded_tainted(&self, flow: &Flow, before: Mask) -> bool {
        let is_stack = flow.own_slots != 0 || flow.other_stack;
        is_stack && self.all_slots
            || before.slots & flow.own_slots != 0
            || flow.other_stack && self.tainted.iter().any(|tainted| tainted.before.slots != 0)
    }

    fn store(&mut self, flow: &Flow, size: Size, is_tainted: bool, after: &mut Mask) {
        if is_tainted {
            after.slots |= flow.own_slots;
            if flow.other_stack {
                self.give_up_slots();
            }
        } else if flow.is_whole_slot && !flow.other_stack && size == Size::DW {
            after.slots &= !flow.own_slots;
        }
    }

    /// Every slot of every frame may hold an uncovered scalar.
    fn give_up_slots(&mut self) {
        self.changed |= !self.all_slots;
        self.all_slots = true;
    }

    /// So may every register that a caller keeps.
    fn give_up_frames(&mut self) {
        self.give_up_slots();
        for index in 0..self.tainted.len() {
            let mask = Mask {
                regs: CALLEE_SAVED,
                slots: 0,
            };
            self.reach(index as u32, mask);
        }
    }
}
