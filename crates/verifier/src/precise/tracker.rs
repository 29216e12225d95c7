//! The walk of one request: back over the history of the current state, then over that of the
//! checkpoints above it, with a mark in each checkpoint that it passes.

use isa::ebpf::Insn;
use spec::behaviour::Behaviour;

use super::backtrack::{self, Backtrack, Step};
use super::{ARGS, PrecisionCounts, bits, force_all_precise, note_marks};
use crate::Result;
use crate::analysis::Analysis;
use crate::explore::Explorer;
use crate::input::Input;
use crate::log::{self, Sink};
use crate::state::{MAIN_CALLSITE, State, StateId};

/// One request, carried from a state up to the checkpoints that need no more marks.
pub(super) struct Tracker<'w, 'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) analysis: &'a Analysis,
    pub(super) explorer: &'w mut Explorer,
    pub(super) counts: &'w mut PrecisionCounts,
    pub(super) sink: &'w mut Sink<'a>,
}

impl Tracker<'_, '_> {
    /// Marks what the requested registers and slots come from; true if a mark is new
    /// (`__mark_chain_precision`, `bpf_mark_chain_precision`, `get_jmp_hist_entry`,
    /// `get_insn_hist_entry`, `get_prev_insn_idx`).
    #[doc(alias = "__mark_chain_precision")]
    #[doc(alias = "bpf_mark_chain_precision")]
    #[doc(alias = "get_jmp_hist_entry")]
    #[doc(alias = "get_insn_hist_entry")]
    #[doc(alias = "get_prev_insn_idx")]
    pub(super) fn mark(&mut self, start: &State, bt: Backtrack) -> Result<bool> {
        if bt.is_empty() {
            return Ok(false);
        }
        if let Some(walk) = &mut self.sink.walk {
            walk.begin_request(&(bt.regs, bt.slots));
        }
        let changed = self.walk_back(start, bt);
        if let Some(walk) = &mut self.sink.walk {
            walk.end_request();
        }
        changed
    }

    fn walk_back(&mut self, start: &State, mut bt: Backtrack) -> Result<bool> {
        let mut changed = false;
        let insns = &self.input.insns;
        let follows = self.input.rules.has(Behaviour::FramesBacktracked);
        let mut last_idx = start.insn_idx as i32;
        let mut first_idx = start.first_insn_idx;
        let mut subseq_idx = -1;
        let mut at: Option<StateId> = None;
        loop {
            if self.sink.is_full() {
                let frame = bt.frame;
                self.sink.write(format_args!(
                    "mark_precise: frame{frame}: last_idx {last_idx} first_idx {first_idx} subseq_idx {subseq_idx} \n"
                ));
            }
            if last_idx < 0 {
                return self
                    .mark_entry(at, start, &bt)
                    .map(|marked| changed | marked);
            }
            let state = match at {
                Some(id) => self.explorer.state(id),
                None => start,
            };
            let (parent, first) = (state.parent, state.first_insn_idx);
            // Where frames are not followed, states that were passed already keep what they have.
            let unfollowed = match follows {
                true => start.parent,
                false => parent,
            };
            let mut history = state.history.backward();
            let mut idx = last_idx as u32;
            loop {
                let entry = history.last().filter(|entry| entry.idx == idx);
                let concerned = self.analysis.insns[idx as usize].concerned_regs;
                let is_first = subseq_idx < 0;
                self.counts.insns += u64::from(!is_first);
                let passes = !self.sink.is_full() && bt.passes(concerned, entry);
                debug_assert!(
                    is_first || !passes || {
                        let (input, analysis) = (self.input, self.analysis);
                        let mut after = bt;
                        let step = after.step(input, analysis, self.sink, idx, subseq_idx, entry);
                        matches!(step, Step::Done) && after == bt
                    }
                );
                if !is_first && !passes {
                    let asked = self.sink.walk.is_some().then_some(bt);
                    match bt.step(self.input, self.analysis, self.sink, idx, subseq_idx, entry) {
                        Step::Done => {}
                        Step::Unsupported => {
                            let frame = start.curframe;
                            force_all_precise(self.explorer, self.sink, frame, unfollowed);
                            return Ok(changed);
                        }
                        Step::Bug(message) => {
                            return Err(refuse!(self.sink => Flow::Backtracking { message }));
                        }
                    }
                    if let Some(asked) = asked {
                        note_carried(self.sink, (idx, insns[idx as usize]), &asked, &bt);
                    }
                    if bt.is_empty() {
                        return Ok(changed);
                    }
                } else if !is_first && self.sink.walk.is_some() {
                    note_carried(self.sink, (idx, insns[idx as usize]), &bt, &bt);
                }
                subseq_idx = idx as i32;
                if idx == first && history.len() <= 1 && (history.is_empty() || entry.is_some()) {
                    break;
                }
                match entry {
                    Some(entry) => {
                        idx = entry.prev_idx();
                        history.pass();
                    }
                    None => idx = idx.wrapping_sub(1),
                }
                if idx as usize >= self.input.insns.len() {
                    let idx = idx as i32;
                    return Err(refuse!(self.sink => Flow::BacktrackIdx { idx }));
                }
            }
            let Some(id) = parent else { break };
            at = Some(id);
            let is_new = self.mark_checkpoint(id, &mut bt)?;
            changed |= is_new;
            if bt.is_empty() || !follows && !is_new {
                return Ok(changed);
            }
            let state = self.explorer.state(id);
            subseq_idx = first_idx as i32;
            last_idx = state.last_insn_idx;
            first_idx = state.first_insn_idx;
        }
        if !bt.is_empty() && follows {
            force_all_precise(self.explorer, self.sink, start.curframe, start.parent);
        }
        Ok(changed)
    }

    /// Marks requested scalars in a checkpoint, and drops requests for what is no scalar, and, where frames
    /// are followed, for what is precise already; true if a mark is new.
    fn mark_checkpoint(&mut self, id: StateId, bt: &mut Backtrack) -> Result<bool> {
        let ends = self.input.rules.has(Behaviour::FramesBacktracked);
        let (mut changed, mut is_unmade) = (false, false);
        for number in (0..=bt.frame).rev() {
            let checkpoint = self.explorer.checkpoint_mut(id);
            let frame = checkpoint.state().frame(number);
            let mut mask = checkpoint.precise().of(number);
            for reg in bits(u64::from(bt.regs[number])) {
                let is_precise = mask.regs & 1 << reg != 0;
                if !frame.regs[reg].is_scalar() || is_precise && ends {
                    bt.regs[number] &= !(1 << reg);
                } else {
                    mask.regs |= 1 << reg;
                    changed |= !is_precise;
                }
            }
            let total = frame.stack.len();
            for spi in bits(bt.slots[number]) {
                let Some(slot) = frame.stack.get(spi) else {
                    refuse_if!(ends, self.sink => Flow::BacktrackSlot { spi, total });
                    // A store through another register made it, which the walk took for none.
                    is_unmade = true;
                    break;
                };
                let is_precise = mask.slots & 1 << spi != 0;
                if !slot.is_spilled_scalar() || is_precise && ends {
                    bt.slots[number] &= !(1 << spi);
                } else {
                    mask.slots |= 1 << spi;
                    changed |= !is_precise;
                }
            }
            note_marks(self.sink, checkpoint, number, mask);
            checkpoint.set_precise(number, mask);
            if self.sink.is_full() {
                let (regs, slots) = (
                    backtrack::format_regs(bt.regs[number]),
                    backtrack::format_slots(bt.slots[number]),
                );
                self.sink.write(format_args!(
                    "mark_precise: frame{number}: parent state regs={regs} stack={slots}: "
                ));
                let checkpoint = self.explorer.checkpoint(id);
                log::print_checkpoint(self.input, self.sink, checkpoint, number);
            }
        }
        if is_unmade {
            let state = self.explorer.state(id);
            let (frame, above) = (state.curframe, state.parent);
            force_all_precise(self.explorer, self.sink, frame, above);
            *bt = Backtrack::new(bt.frame);
        }
        Ok(changed)
    }

    /// Ends at the entry of a function that is verified on its own: its arguments may be
    /// requested.
    fn mark_entry(&mut self, at: Option<StateId>, start: &State, bt: &Backtrack) -> Result<bool> {
        let (regs, slots) = (bt.regs[bt.frame], bt.slots[bt.frame]);
        let Some(id) = at else {
            let subprog = start.frame(0).subprogno;
            return Err(refuse!(self.sink => Flow::BacktrackEntry { subprog, regs, slots }));
        };
        let checkpoint = self.explorer.checkpoint_mut(id);
        let state = checkpoint.state();
        let frame = state.frame(0);
        let subprog = frame.subprogno;
        let is_entry = state.curframe == 0 && subprog > 0 && frame.callsite == MAIN_CALLSITE;
        if !is_entry || slots != 0 || regs & !ARGS != 0 {
            return Err(refuse!(self.sink => Flow::BacktrackEntry { subprog, regs, slots }));
        }
        let scalars = bits(u64::from(regs)).filter(|&reg| frame.regs[reg].is_scalar());
        let mask = scalars.fold(0u16, |mask, reg| mask | 1 << reg);
        let mut precise = checkpoint.precise().of(0);
        precise.regs |= mask;
        note_marks(self.sink, checkpoint, 0, precise);
        checkpoint.set_precise(0, precise);
        Ok(mask != 0)
    }
}

/// Notes in a recorded walk that a request was carried back over an instruction that changes it, or
/// computes what is asked for.
fn note_carried(sink: &mut Sink<'_>, (idx, insn): (u32, Insn), asked: &Backtrack, bt: &Backtrack) {
    let mut is_computed = false;
    if let Insn::Alu { dst, .. } | Insn::Neg { dst, .. } | Insn::Endian { dst, .. } = insn {
        is_computed = asked.regs[asked.frame] >> dst.number() & 1 != 0;
    }
    if let Some(walk) = &mut sink.walk
        && (is_computed || asked != bt)
    {
        walk.carry_request(idx, bt.frame, bt.regs[bt.frame], bt.slots[bt.frame]);
    }
}
