//! Replacement of instructions by sequences of others, with the jumps over them adjusted.
//! Linear in the length of the program.

use isa::ebpf::{Callee, Insn};

use crate::jumps::jump_target;

/// Sequences that replace instructions.
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
    places: Vec<usize>,
}

impl Patches {
    /// Replaces the instruction at a slot behind those that are replaced already, both slots
    /// of a 64-bit immediate. Jumps to it go to the sequence, or to what follows an empty
    /// one. Jumps within the sequence stay as they are; the one behind its end is the next
    /// instruction. Local calls in it are at the distances from the slot.
    pub(crate) fn replace(&mut self, slot: usize, old: Insn, insns: Vec<Insn>) {
        let replaced = match old {
            Insn::LoadImm64 { .. } => 2,
            _ => 1,
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
        let mut patches = self.0.into_iter().peekable();
        let mut slot = 0;
        while slot < insns.len() {
            if let Some(patch) = patches.next_if(|patch| patch.slot == slot) {
                slot += patch.replaced;
                for insn in patch.insns {
                    let place = patched.insns.len();
                    let insn = match insn {
                        Insn::Call(Callee::Local(_)) => moved(insn, patch.slot, place, &places)?,
                        insn => insn,
                    };
                    patched.push(patch.slot, insn);
                }
                continue;
            }
            let insn = moved(insns[slot], slot, places[slot], &places)?;
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

    fn push(&mut self, origin: usize, insn: Insn) {
        self.origins.push(origin as u32);
        self.insns.push(insn);
    }
}

/// An instruction of a slot at a new place, with its target at its new place.
fn moved(mut insn: Insn, slot: usize, place: usize, places: &[usize]) -> Option<Insn> {
    let distance = |target: usize| places[target] as i64 - place as i64 - 1;
    if let Insn::Call(Callee::Local(off)) = &mut insn {
        let target = usize::try_from(slot as i64 + 1 + i64::from(*off)).ok()?;
        *off = i32::try_from(distance(target)).ok()?;
    }
    let Some(target) = jump_target(insn, slot) else {
        return Some(insn);
    };
    let distance = distance(target);
    match &mut insn {
        Insn::Goto { .. } if i16::try_from(distance).is_err() => {
            let off = i32::try_from(distance).ok()?;
            insn = Insn::GotoLong { off };
        }
        Insn::Goto { off } | Insn::Jump { off, .. } | Insn::MayGoto { off } => {
            *off = i16::try_from(distance).ok()?;
        }
        Insn::GotoLong { off } => *off = i32::try_from(distance).ok()?,
        _ => {}
    }
    Some(insn)
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
