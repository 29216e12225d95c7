//! The kernel's form of a program beside the instructions that the kernel has of it (`xlated`
//! of `bpf_prog_info`).
//!
//! Both sequences are aligned: instructions must be equal and in the same order, those that
//! the form leaves open must each be as many instructions as the form says, up to 64 where it
//! does not say, and every jump must lead to the same instruction. Aligning is a depth-first
//! search over pairs of positions, each visited once for each set of targets of jumps that are
//! still ahead.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use isa::ebpf::{Flow, Op, RawInsn};
use verifier::{FormSlot, KernelCode};

/// Most instructions that one becomes.
const MOST_REWRITTEN: usize = 64;

/// Compares the kernel's form of a program with the kernel's instructions: the number of
/// instructions that were compared one by one, or the first one of ours from which on the two
/// cannot be aligned.
pub fn compare(form: &KernelCode, kernel: &[RawInsn]) -> Result<usize, usize> {
    let ours = &form.slots;
    let is_kept = |slot: &&FormSlot| kind(slot) == Kind::Kept;
    let kept = ours.iter().filter(is_kept).count();
    let align = |kernel| Search::new(form, kernel).align().map(|()| kept);
    align(kernel).or_else(|slot| {
        // To programs that throw and have no exception callback the kernel adds one.
        let ends = kernel
            .iter()
            .rev()
            .take(2)
            .map(|insn| insn.row().map(|row| row.op));
        match ends.collect::<Vec<_>>()[..] {
            [Some(Op::Exit), Some(Op::MovReg64)] => {
                align(&kernel[..kernel.len() - 2]).map_err(|_| slot)
            }
            _ => Err(slot),
        }
    })
}

/// How far an instruction of ours says what the kernel's is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is the same.
    Kept,
    /// It is the same, but for its distance.
    Jump,
    /// It is the same, but for its immediate: an address.
    Address,
    /// It may be several others.
    Open,
}

fn kind(slot: &FormSlot) -> Kind {
    let insn = slot.insn;
    match insn.opcode_flow() {
        _ if slot.is_open => Kind::Open,
        // The second slot of a wide load has the opcode 0.
        Flow::SkipOne | Flow::Call(_) => Kind::Address,
        Flow::Next if !insn.has_opcode() => Kind::Address,
        Flow::Next | Flow::Exit | Flow::Nowhere => Kind::Kept,
        Flow::Branch(_) | Flow::Goto(_) | Flow::GotoReg(_) => Kind::Jump,
    }
}

struct Search<'c> {
    ours: &'c [FormSlot],
    kernel: &'c [RawInsn],
    /// The first instruction of the program.
    begin: usize,
    /// Instructions that the kernel puts before it.
    prologue: usize,
    /// The instructions that are aligned.
    path: Vec<Step>,
    /// By instruction of ours, where the kernel's jumps say that it is.
    wanted: Vec<Option<usize>>,
    /// Targets of jumps backwards.
    heads: BTreeSet<usize>,
    /// Hash of what the rest depends on beside the place that is reached: places that are
    /// wanted of instructions ahead, and those of the heads of loops.
    ahead: u64,
    refuted: HashSet<(usize, usize, u64)>,
}

/// One instruction of ours that has a place in the kernel's.
struct Step {
    place: usize,
    /// Other places of it.
    choices: Vec<usize>,
    /// The instruction ahead whose place its jump says first.
    target: Option<usize>,
}

impl<'c> Search<'c> {
    fn new(form: &'c KernelCode, kernel: &'c [RawInsn]) -> Search<'c> {
        let ours = &form.slots;
        let backwards = ours.iter().enumerate().filter_map(|(slot, own)| {
            let target = led(slot, &own.insn).filter(|&target| target <= slot)?;
            (kind(own) == Kind::Jump).then_some(target)
        });
        Search {
            ours,
            kernel,
            begin: form.begin as usize,
            prologue: form.prologue as usize,
            heads: backwards.collect(),
            path: Vec::new(),
            wanted: vec![None; ours.len()],
            ahead: 0,
            refuted: HashSet::new(),
        }
    }

    /// Gives every instruction a place; the first one that none can be found for.
    fn align(&mut self) -> Result<(), usize> {
        let mut deepest = 0;
        let mut choices = vec![self.place(0, 0)];
        loop {
            let slot = self.path.len();
            let Some(place) = choices.pop() else {
                choices = self.leave().ok_or(deepest)?;
                continue;
            };
            deepest = deepest.max(slot);
            if slot == self.ours.len() {
                if place == self.kernel.len() {
                    return Ok(());
                }
                continue;
            }
            let ends = self.ends(slot, place);
            if ends.is_empty() || !self.enter(slot, place, &mut choices) {
                continue;
            }
            let ends = ends.into_iter().rev();
            choices = ends.map(|end| self.place(slot + 1, end)).collect();
        }
    }

    /// Gives an instruction a place, and keeps the other choices; false if that place is
    /// refuted.
    fn enter(&mut self, slot: usize, place: usize, choices: &mut Vec<usize>) -> bool {
        let own = self.wanted[slot];
        if own.is_some_and(|own| own != place) {
            return false;
        }
        let ahead = self.ahead ^ own.map_or(0, |own| hash(slot, own));
        if !self.refuted.insert((slot, place, ahead)) {
            return false;
        }
        let mut step = Step {
            place,
            choices: Vec::new(),
            target: None,
        };
        let jump = &self.ours[slot];
        if kind(jump) == Kind::Jump {
            let target = led(slot, &jump.insn).filter(|&target| target < self.ours.len());
            let (Some(target), Some(found)) = (target, led(place, &self.kernel[place])) else {
                return false;
            };
            let is_start = target == self.begin;
            if target <= slot {
                let begin = self.path.get(target).map_or(place, |step| step.place);
                let before = begin.checked_sub(found);
                let most = if is_start { self.prologue } else { 0 };
                if before.is_none_or(|before| before > most) {
                    return false;
                }
            } else if !is_start {
                match self.wanted[target] {
                    Some(wanted) if wanted != found => return false,
                    Some(_) => {}
                    None => step.target = Some(target),
                }
                if step.target.is_some() {
                    self.wanted[target] = Some(found);
                    self.ahead ^= hash(target, found);
                }
            }
        }
        self.ahead ^= own.map_or(0, |own| hash(slot, own)) ^ self.head(slot, place);
        step.choices = std::mem::take(choices);
        self.path.push(step);
        true
    }

    /// Hash of the place of the head of a loop.
    fn head(&self, slot: usize, place: usize) -> u64 {
        match self.heads.contains(&slot) {
            true => hash(slot, place).rotate_left(1),
            false => 0,
        }
    }

    /// Takes the place of the last instruction back; its other choices.
    fn leave(&mut self) -> Option<Vec<usize>> {
        let step = self.path.pop()?;
        let slot = self.path.len();
        self.ahead ^= self.wanted[slot].map_or(0, |own| hash(slot, own));
        self.ahead ^= self.head(slot, step.place);
        if let Some(target) = step.target
            && let Some(found) = self.wanted[target].take()
        {
            self.ahead ^= hash(target, found);
        }
        Some(step.choices)
    }

    /// The place at which an instruction begins if the one before it ends there.
    fn place(&self, slot: usize, end: usize) -> usize {
        let before = if slot == self.begin { self.prologue } else { 0 };
        end + before
    }

    /// Ends that an instruction may have which begins at a place, nearest first.
    fn ends(&self, slot: usize, place: usize) -> Vec<usize> {
        let own = &self.ours[slot];
        let Some(kernel) = self.kernel.get(place) else {
            return Vec::new();
        };
        let insn = &own.insn;
        let same = insn.code == kernel.code && insn.regs == kernel.regs;
        let one = |is_same: bool| match is_same {
            true => vec![place + 1],
            false => Vec::new(),
        };
        match kind(own) {
            Kind::Kept => one(insn == kernel),
            Kind::Jump => one(same && (insn.imm == kernel.imm || insn.is_long_goto())),
            Kind::Address => one(insn.code == kernel.code && insn.dst() == kernel.dst()),
            Kind::Open => {
                let most = self.kernel.len().saturating_sub(place).min(MOST_REWRITTEN);
                let lengths = match own.insns {
                    Some(insns) => insns as usize..=insns as usize,
                    None => 1..=MOST_REWRITTEN,
                };
                let lengths = lengths.filter(|&insns| insns <= most);
                lengths.map(|insns| place + insns).collect()
            }
        }
    }
}

/// Target of a jump.
fn led(slot: usize, insn: &RawInsn) -> Option<usize> {
    let distance = match insn.is_long_goto() {
        true => insn.imm,
        false => insn.off.into(),
    };
    (slot + 1).checked_add_signed(distance as isize)
}

fn hash(slot: usize, place: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (slot, place).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::compare;
    use isa::ebpf::{assemble, encode};
    use verifier::{FormSlot, KernelCode};

    /// A form in which loads are left open.
    fn form(text: &str) -> KernelCode {
        let insns = encode(&assemble(text).unwrap()).unwrap();
        let slots = insns.iter().map(|&insn| FormSlot {
            insn,
            is_open: insn.is_of_load_class(),
            insns: (!insn.is_of_load_class()).then_some(1),
        });
        KernelCode {
            slots: slots.collect(),
            new_slots: (0..insns.len() as u32).map(Some).collect(),
            begin: 0,
            prologue: 0,
        }
    }

    fn answer(ours: &str, kernel: &str) -> Result<usize, usize> {
        compare(&form(ours), &encode(&assemble(kernel).unwrap()).unwrap())
    }

    const LOADED: &str = "r2 = *(u32 *)(r1 + 0)\nif r2 > 5 goto +1\nr2 = 1\nr0 = r2\nexit\n";

    #[test]
    fn rewritten_instructions_may_become_several() {
        let kernel = LOADED.replace("r2 = *(u32 *)(r1 + 0)", "r2 = *(u64 *)(r1 + 8)\nr2 += 4");
        assert_eq!(answer(LOADED, &kernel), Ok(3));
        assert_eq!(answer(LOADED, LOADED), Ok(3));
    }

    #[test]
    fn known_numbers_of_instructions_are_compared() {
        let kernel = LOADED.replace("r2 = *(u32 *)(r1 + 0)", "r2 = *(u64 *)(r1 + 8)\nr2 += 4");
        let kernel = encode(&assemble(&kernel).unwrap()).unwrap();
        let mut known = form(LOADED);
        known.slots[0].insns = Some(2);
        assert_eq!(compare(&known, &kernel), Ok(3));
        known.slots[0].insns = Some(3);
        assert!(compare(&known, &kernel).is_err());
    }

    #[test]
    fn other_instructions_and_jumps_must_be_the_same() {
        let other = LOADED.replace("r2 = 1", "r2 = 2");
        assert_eq!(answer(LOADED, &other), Err(2));
        let farther = LOADED.replace("goto +1", "goto +2");
        assert_eq!(answer(LOADED, &farther), Err(3));
        let shorter = LOADED.replace("r0 = r2\n", "");
        assert_eq!(answer(LOADED, &shorter), Err(3));
    }
}
