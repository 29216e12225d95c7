//! Jump targets.

use isa::ebpf::Insn;

/// The target of a jump at `slot`; `None` for other instructions and for targets before the
/// program.
pub fn jump_target(insn: Insn, slot: usize) -> Option<usize> {
    let distance = match insn {
        Insn::Jump { off, .. } | Insn::Goto { off } | Insn::MayGoto { off } => i64::from(off),
        Insn::GotoLong { off } => i64::from(off),
        _ => return None,
    };
    usize::try_from(slot as i64 + 1 + distance).ok()
}

/// True if the instruction falls through to the next slot.
pub fn falls_through(insn: Insn) -> bool {
    !matches!(
        insn,
        Insn::Exit | Insn::Goto { .. } | Insn::GotoLong { .. } | Insn::GotoReg { .. }
    )
}

/// The jumps of a program, and the number of jumps to each slot. Calls are not counted.
#[derive(Clone, Debug)]
pub struct IncomingJumps {
    counts: Vec<u32>,
    jumps: Vec<u32>,
}

impl IncomingJumps {
    /// Finds and counts the jumps of a program.
    pub fn of(insns: &[Insn]) -> IncomingJumps {
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
        IncomingJumps::of_jumps(insns, jumps)
    }

    /// Counts the jumps of a program, given the slots of all jumps in ascending order.
    pub fn of_jumps(insns: &[Insn], jumps: Vec<u32>) -> IncomingJumps {
        let mut counts = vec![0; insns.len()];
        for &slot in &jumps {
            let slot = slot as usize;
            let target = jump_target(insns[slot], slot);
            if let Some(count) = target.and_then(|target| counts.get_mut(target)) {
                *count += 1;
            }
        }
        IncomingJumps { counts, jumps }
    }

    /// The slots of the jumps, in ascending order.
    pub fn jumps(&self) -> impl Iterator<Item = usize> {
        self.jumps.iter().map(|&slot| slot as usize)
    }

    /// Number of jumps.
    pub(crate) fn jump_count(&self) -> usize {
        self.jumps.len()
    }

    /// Number of jumps to a slot.
    pub fn count(&self, slot: usize) -> u32 {
        self.counts[slot]
    }

    /// True if the slot is a jump target.
    pub fn is_target(&self, slot: usize) -> bool {
        self.counts[slot] != 0
    }

    /// True if none of the `count` slots after `slot` is a jump target.
    pub fn none_within(&self, slot: usize, count: usize) -> bool {
        (slot + 1..=slot + count).all(|slot| !self.is_target(slot))
    }
}
