//! Random numbers of runs, which follow from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

use spec::{Random, SplitMix};

/// The generator of a loaded object, from which runs draw one after the other: what
/// [`SplitMix`] of the same seed gives.
#[derive(Debug)]
pub(super) struct SharedRandom {
    seed: u64,
    drawn: AtomicU64,
}

/// Distance of the states of [`SplitMix`].
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Distance of the seeds of CPUs.
const APART: u64 = 0xd1b5_4a32_d192_ed03;

impl SharedRandom {
    pub(super) fn new(seed: u64) -> SharedRandom {
        let drawn = AtomicU64::new(0);
        SharedRandom { seed, drawn }
    }

    fn next_u32(&self) -> u32 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        SplitMix::new(self.seed.wrapping_add(drawn.wrapping_mul(STEP))).next_u32()
    }

    /// A seed for another generator.
    pub(super) fn next_seed(&self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }

    /// Random numbers of a CPU, which do not depend on what others draw.
    pub(super) fn of_cpu(&self, cpu: u32) -> SplitMix {
        let apart = (u64::from(cpu) + 1).wrapping_mul(APART);
        SplitMix::new(self.seed.wrapping_add(apart))
    }
}

/// The random numbers of the runs of a program.
#[derive(Debug)]
pub(super) enum RunRandom<'o> {
    /// Those of the object, in turn with its other programs.
    Shared(&'o SharedRandom),
    /// Its own.
    Own(SplitMix),
}

impl Random for RunRandom<'_> {
    fn next_u32(&mut self) -> u32 {
        match self {
            RunRandom::Shared(shared) => shared.next_u32(),
            RunRandom::Own(own) => own.next_u32(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_numbers_are_those_of_the_seed() {
        let shared = SharedRandom::new(7);
        let mut own = SplitMix::new(7);
        for _ in 0..5 {
            assert_eq!(shared.next_u32(), own.next_u32());
        }
    }
}
