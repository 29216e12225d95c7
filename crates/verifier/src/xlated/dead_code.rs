//! Dead code removal, in the form that Linux would keep: what a program is when instructions that
//! are never reached are gone (`opt_hard_wire_dead_code_branches`, `opt_remove_dead_code`,
//! `opt_remove_nops`).
//!
//! A conditional jump with one reached successor becomes unconditional. Then unreached
//! instructions are removed, and jumps to the next instruction, in one pass: a jump that
//! becomes one only because another was removed stays, as in the kernel, unless a
//! `may_goto` behind it goes. Linear in the instructions.

use std::ops::Range;

use isa::ebpf::{Callee, Imm64, Insn};

/// A program without its dead code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCode {
    /// The instructions that are left, one for each slot, with their jumps, calls and
    /// addresses of functions adjusted.
    pub insns: Vec<Insn>,
    /// By slot of the whole program, the slot of the instruction in `insns`; `None` if it
    /// was removed.
    pub new_slots: Vec<Option<u32>>,
}

/// Instructions to remove from a program (`opt_remove_dead_code`, `bpf_opt_remove_dead_code`,
/// `verifier_remove_insns`).
#[doc(alias = "opt_remove_dead_code")]
#[doc(alias = "bpf_opt_remove_dead_code")]
#[doc(alias = "verifier_remove_insns")]
#[derive(Clone, Debug)]
pub(super) struct Removal {
    /// The instructions, with branches of one outcome made unconditional.
    insns: Vec<Insn>,
    is_removed: Vec<bool>,
    /// Places of the slots, and of the end, when the removal begins: loops are inlined before it.
    starts: Vec<u32>,
    /// Ranges that are removed, in the kernel's order, each in the numbering that is
    /// valid when its pass begins: unreached instructions, then jumps to the next one.
    passes: [Vec<Range<u32>>; 2],
}

impl Removal {
    /// Dead code of these instructions. A dropped instruction counts as a jump to
    /// the next one; `length` is how many instructions one is when the removal begins.
    pub(super) fn of(
        insns: &[Insn],
        is_reached: impl Fn(usize) -> bool,
        is_dropped: impl Fn(usize) -> bool,
        length: impl Fn(usize) -> u32,
    ) -> Removal {
        let mut insns = insns.to_vec();
        for (slot, insn) in insns.iter_mut().enumerate() {
            if is_dropped(slot) {
                *insn = Insn::Goto { off: 0 };
            } else {
                decide_branch(insn, slot, &is_reached);
            }
        }
        let mut is_removed: Vec<bool> = (0..insns.len()).map(|slot| !is_reached(slot)).collect();
        for (slot, insn) in insns.iter().enumerate() {
            // The second slot of a load is reached with the first.
            if matches!(insn, Insn::LoadImm64 { .. })
                && let Some(second) = is_removed.get_mut(slot + 1)
            {
                *second = !is_reached(slot);
            }
        }
        let mut starts = vec![0];
        let mut end = 0;
        for slot in 0..insns.len() {
            end += length(slot);
            starts.push(end);
        }
        let place = |slot: u32| starts[slot as usize];
        let dead = ranges(&is_removed).into_iter();
        let dead = dead.map(|range| place(range.start)..place(range.end));
        let dead = dead.collect();
        let mut kept: Vec<usize> = Vec::with_capacity(insns.len());
        let mut nops = Vec::new();
        let mut position = 0;
        for slot in 0..insns.len() {
            if is_removed[slot] {
                continue;
            }
            kept.push(slot);
            position += length(slot);
            while let Some(&last) = kept.last()
                && leads_to_next(&insns[last], last, &is_removed)
            {
                is_removed[last] = true;
                kept.pop();
                nops.push(position - 1..position);
                if !matches!(insns[last], Insn::MayGoto { .. }) {
                    break;
                }
            }
        }
        Removal {
            insns,
            is_removed,
            starts,
            passes: [dead, nops],
        }
    }

    /// Target of an address of a function, as the kernel adjusts it when the ranges have been
    /// removed, one after the other: an address inside a range stays as it was
    /// (`bpf_adj_delta_to_imm`).
    #[doc(alias = "bpf_adj_delta_to_imm")]
    pub(super) fn place_of(&self, address: u32) -> u32 {
        let address = self.starts[address as usize];
        self.passes.iter().fold(address, |address, ranges| {
            let (mut place, mut removed) = (address, 0);
            for range in ranges {
                let len = range.end - range.start;
                if place >= range.end - removed {
                    place -= len;
                }
                removed += len;
            }
            place
        })
    }

    /// Instructions that the one at a slot is when the removal begins.
    pub(super) fn length(&self, slot: usize) -> u32 {
        self.starts[slot + 1] - self.starts[slot]
    }

    /// Slots of the whole program that are left.
    pub(super) fn left(&self) -> impl Iterator<Item = usize> {
        let slots = self.is_removed.iter().enumerate();
        slots
            .filter(|(_, is_removed)| !**is_removed)
            .map(|(slot, _)| slot)
    }

    /// The program that is left. Every function whose address it takes is left, too.
    pub(super) fn finish(self) -> LiveCode {
        let mut before = Vec::with_capacity(self.insns.len() + 1);
        let mut count = 0;
        for removed in &self.is_removed {
            before.push(count);
            count += u32::from(!removed);
        }
        before.push(count);
        let slots = self.insns.iter().zip(&self.is_removed).enumerate();
        let left = slots.filter(|(_, (_, is_removed))| !**is_removed);
        let insns = left.map(|(slot, (insn, _))| adjusted(*insn, slot, &before));
        LiveCode {
            insns: insns.collect(),
            new_slots: (self.is_removed.iter().zip(&before))
                .map(|(is_removed, slot)| (!is_removed).then_some(*slot))
                .collect(),
        }
    }
}

/// Makes a conditional jump with one reached successor unconditional
/// (`opt_hard_wire_dead_code_branches`, `bpf_opt_hard_wire_dead_code_branches`,
/// `insn_is_cond_jump`, `bpf_insn_is_cond_jump`).
#[doc(alias = "opt_hard_wire_dead_code_branches")]
#[doc(alias = "bpf_opt_hard_wire_dead_code_branches")]
#[doc(alias = "insn_is_cond_jump")]
#[doc(alias = "bpf_insn_is_cond_jump")]
fn decide_branch(insn: &mut Insn, slot: usize, is_reached: impl Fn(usize) -> bool) {
    let (Insn::Jump { off, .. } | Insn::MayGoto { off }) = *insn else {
        return;
    };
    if !is_reached(slot + 1) {
        *insn = Insn::Goto { off };
    } else if !target(slot, off.into()).is_some_and(is_reached) {
        *insn = Insn::Goto { off: 0 };
    }
}

fn target(slot: usize, distance: i32) -> Option<usize> {
    (slot + 1).checked_add_signed(distance as isize)
}

/// True for `goto` and `may_goto` to the next instruction that is left (`opt_remove_nops`,
/// `bpf_opt_remove_nops`).
#[doc(alias = "opt_remove_nops")]
#[doc(alias = "bpf_opt_remove_nops")]
fn leads_to_next(insn: &Insn, slot: usize, is_removed: &[bool]) -> bool {
    let (Insn::Goto { off } | Insn::MayGoto { off }) = *insn else {
        return false;
    };
    let Some(target) = target(slot, off.into()).filter(|&target| target > slot) else {
        return false;
    };
    let between = is_removed.get(slot + 1..target);
    between.is_some_and(|between| between.iter().all(|is_removed| *is_removed))
}

fn ranges(is_removed: &[bool]) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for (slot, is_removed) in (0u32..).zip(is_removed) {
        match ranges.last_mut() {
            Some(last) if *is_removed && last.end == slot => last.end += 1,
            _ if *is_removed => ranges.push(slot..slot + 1),
            _ => {}
        }
    }
    ranges
}

/// The instruction with its distance in the program that is left; `before` has the number of
/// instructions left before each slot (`bpf_adj_branches`).
#[doc(alias = "bpf_adj_branches")]
fn adjusted(insn: Insn, slot: usize, before: &[u32]) -> Insn {
    let adjust = |distance: i32| {
        let count = |slot: usize| before.get(slot).copied().map_or(0, |count| count as i32);
        target(slot, distance).map_or(distance, |target| count(target) - count(slot) - 1)
    };
    let short = |off: i16| adjust(off.into()) as i16;
    match insn {
        Insn::Goto { off } => Insn::Goto { off: short(off) },
        Insn::MayGoto { off } => Insn::MayGoto { off: short(off) },
        Insn::GotoLong { off } => Insn::GotoLong { off: adjust(off) },
        Insn::Call(Callee::Local(off)) => Insn::Call(Callee::Local(adjust(off))),
        Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        } => Insn::Jump {
            cond,
            width,
            dst,
            src,
            off: short(off),
        },
        Insn::LoadImm64 {
            dst,
            imm: Imm64::Func { off, high },
        } => Insn::LoadImm64 {
            dst,
            imm: Imm64::Func {
                off: adjust(off),
                high,
            },
        },
        other => other,
    }
}
