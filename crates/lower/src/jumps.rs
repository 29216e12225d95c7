//! Where jumps lead, and which slots they lead to.

use isa::ebpf::Insn;

/// Where a jump at `slot` leads; `None` for what does not jump, and for a target
/// before the program.
pub fn jump_target(insn: Insn, slot: usize) -> Option<usize> {
    let distance = match insn {
        Insn::Jump { off, .. } | Insn::Goto { off } | Insn::MayGoto { off } => i64::from(off),
        Insn::GotoLong { off } => i64::from(off),
        _ => return None,
    };
    usize::try_from(slot as i64 + 1 + distance).ok()
}

/// Whether control can go from this instruction to the next slot.
pub fn falls_through(insn: Insn) -> bool {
    !matches!(
        insn,
        Insn::Exit | Insn::Goto { .. } | Insn::GotoLong { .. } | Insn::GotoReg { .. }
    )
}

/// Where the jumps of a program stand, and how often each slot is jumped to.
/// Calls are not counted.
#[derive(Clone, Debug)]
pub struct Arrivals {
    counts: Vec<u32>,
    jumps: Vec<u32>,
}

impl Arrivals {
    /// Counts the arrivals in a program.
    pub fn of(insns: &[Insn]) -> Arrivals {
        let mut jumps = Vec::with_capacity(insns.len());
        for (slot, insn) in (0..).zip(insns) {
            if let Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::MayGoto { .. } = insn
            {
                jumps.push(slot);
            }
        }
        Arrivals::of_jumps(insns, jumps)
    }

    /// Counts the arrivals in a program whose jumps stand at these slots, in ascending
    /// order, and nowhere else.
    pub fn of_jumps(insns: &[Insn], jumps: Vec<u32>) -> Arrivals {
        let mut counts = vec![0; insns.len()];
        for &slot in &jumps {
            let slot = slot as usize;
            let target = jump_target(insns[slot], slot);
            if let Some(count) = target.and_then(|target| counts.get_mut(target)) {
                *count += 1;
            }
        }
        Arrivals { counts, jumps }
    }

    /// The slots of the jumps, in ascending order.
    pub fn jumps(&self) -> impl Iterator<Item = usize> {
        self.jumps.iter().map(|&slot| slot as usize)
    }

    /// How many jumps there are.
    pub(crate) fn jump_count(&self) -> usize {
        self.jumps.len()
    }

    /// How many jumps lead there.
    pub fn count(&self, slot: usize) -> u32 {
        self.counts[slot]
    }

    /// Whether some jump leads there.
    pub fn any(&self, slot: usize) -> bool {
        self.counts[slot] != 0
    }

    /// Whether `count` slots after `slot` are only reached by falling through.
    pub fn none_within(&self, slot: usize, count: usize) -> bool {
        (slot + 1..=slot + count).all(|slot| !self.any(slot))
    }
}
