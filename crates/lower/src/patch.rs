//! Replacement of instructions by sequences of others, with the jumps over them adjusted.
//! Linear in the length of the program.

use isa::ebpf::{Callee, Effect, Insn};

use crate::flow::{call_target, jump_target};

/// Sequences that replace instructions (`bpf_patch_insn_data`).
#[doc(alias = "bpf_patch_insn_data")]
#[derive(Debug, Default)]
pub(crate) struct Patches(Vec<Patch>);

#[derive(Debug)]
struct Patch {
    slot: usize,
    /// Slots that it replaces.
    replaced: usize,
    insns: Vec<Insn>,
}

/// A patched program.
#[derive(Debug)]
pub(crate) struct Patched {
    pub(crate) insns: Vec<Insn>,
    /// The slot that each instruction comes from.
    pub(crate) origins: Vec<u32>,
    /// The new place of each slot, and of the end.
    pub(crate) places: Vec<usize>,
}

impl Patches {
    /// Replaces the instruction at a slot behind those that are replaced already, both slots
    /// of a 64-bit immediate. Jumps to it go to the sequence, or to what follows an empty
    /// one. Jumps within the sequence stay as they are; the one behind its end is the next
    /// instruction. Local calls in it are at the distances from the slot.
    pub(crate) fn replace(&mut self, slot: usize, old: Insn, insns: Vec<Insn>) {
        let replaced = match old.effect() {
            Some(Effect::Wide) => 2,
            Some(
                Effect::Compute
                | Effect::Load
                | Effect::Store
                | Effect::Atomic
                | Effect::Packet
                | Effect::Branch
                | Effect::Goto
                | Effect::GotoLong
                | Effect::GotoReg
                | Effect::Call
                | Effect::Exit,
            )
            | None => 1,
        };
        self.0.push(Patch {
            slot,
            replaced,
            insns,
        });
    }

    /// The program with all replacements; `None` if a jump becomes too long.
    pub(crate) fn apply(self, insns: &[Insn]) -> Option<Patched> {
        let places = self.places(insns.len());
        let mut patched = Patched {
            insns: Vec::with_capacity(places[insns.len()]),
            origins: Vec::with_capacity(places[insns.len()]),
            places: Vec::new(),
        };
        let new_place = |slot: usize| places[slot] as u32;
        let mut patches = self.0.into_iter().peekable();
        let mut slot = 0;
        while slot < insns.len() {
            if let Some(patch) = patches.next_if(|patch| patch.slot == slot) {
                slot += patch.replaced;
                for insn in patch.insns {
                    let place = patched.insns.len();
                    let insn = match insn {
                        Insn::Call(Callee::Local(_)) => {
                            moved(insn, patch.slot, place as u32, new_place)?
                        }
                        insn => insn,
                    };
                    patched.push(patch.slot, insn);
                }
                continue;
            }
            let insn = moved(insns[slot], slot, places[slot] as u32, new_place)?;
            patched.push(slot, insn);
            slot += 1;
        }
        patched.places = places;
        Some(patched)
    }

    /// The new place of each slot, and of the end.
    fn places(&self, len: usize) -> Vec<usize> {
        let mut places = Vec::with_capacity(len + 1);
        let mut place = 0;
        for patch in &self.0 {
            while places.len() < patch.slot {
                places.push(place);
                place += 1;
            }
            places.resize(patch.slot + patch.replaced, place);
            place += patch.insns.len();
        }
        while places.len() <= len {
            places.push(place);
            place += 1;
        }
        places
    }
}

impl Patched {
    /// The new place of a slot.
    pub(crate) fn place(&self, slot: usize) -> usize {
        self.places[slot]
    }

    /// Sets the slots that the last instructions come from, one for each.
    pub(crate) fn set_last_origins(&mut self, origins: &[u32]) {
        let first = self.origins.len() - origins.len();
        self.origins[first..].copy_from_slice(origins);
    }

    pub(crate) fn push(&mut self, origin: usize, insn: Insn) {
        self.origins.push(origin as u32);
        self.insns.push(insn);
    }
}

/// An instruction of a slot at a new place, with its target at its new place; `None` if that
/// is too far.
pub(crate) fn moved(
    insn: Insn,
    slot: usize,
    place: u32,
    new_place: impl Fn(usize) -> u32,
) -> Option<Insn> {
    let called = call_target(&insn, slot);
    let Some(target) = called.or_else(|| jump_target(&insn, slot)) else {
        return Some(insn);
    };
    let distance = i64::from(new_place(target)) - i64::from(place) - 1;
    insn.with_distance(i32::try_from(distance).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    #[test]
    fn jumps_and_calls_find_their_targets() {
        let old = assemble(
            "r1 = 5 ll\nif r1 == 1 goto end\nr0 = 1\ncall f\ngoto end\nr0 = 9\nend:\nexit\n\
             f:\nif r2 == 0 goto f\nexit",
        );
        let old = old.expect("a program");
        let mut patches = Patches::default();
        let insns = |text: &str| assemble(text).expect(text);
        patches.replace(0, old[0], insns("r1 = 5"));
        let mut calls = insns("r0 = 1\nif r0 == 1 goto +2\nr0 = 2");
        calls.push(Insn::Call(Callee::Local(4)));
        patches.replace(3, old[3], calls);
        patches.replace(6, old[6], Vec::new());
        let patched = patches.apply(&old).expect("short jumps");
        let expected = insns(
            "r1 = 5\nif r1 == 1 goto end\nr0 = 1\nif r0 == 1 goto +2\nr0 = 2\ncall f\n\
             call f\ngoto end\nend:\nexit\nf:\nif r2 == 0 goto f\nexit",
        );
        assert_eq!(patched.insns, expected);
        assert_eq!(patched.origins, [0, 2, 3, 3, 3, 3, 4, 5, 7, 8, 9]);
    }

    #[test]
    fn a_jump_that_becomes_too_long_is_refused() {
        let mut insns = vec![Insn::Exit; 40_000];
        insns[0] = Insn::Goto { off: 30_000 };
        let mut patches = Patches::default();
        patches.replace(5, Insn::Exit, vec![Insn::Exit; 3_000]);
        let patched = patches.apply(&insns).expect("a long jump");
        assert_eq!(patched.insns[0], Insn::GotoLong { off: 32_999 });
        insns[0] = Insn::MayGoto { off: 30_000 };
        let mut patches = Patches::default();
        patches.replace(5, Insn::Exit, vec![Insn::Exit; 3_000]);
        assert!(patches.apply(&insns).is_none());
    }
}
