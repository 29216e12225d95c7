//! Random choices that follow from a seed.

use spec::SplitMix;

/// A generator of choices.
#[derive(Clone, Debug)]
pub(super) struct Chooser(SplitMix);

impl Chooser {
    /// Choices of a seed and of so many numbers beside it.
    pub(super) fn new(seed: u64, beside: &[u64]) -> Chooser {
        let mut mixed = SplitMix::new(seed).next_u64();
        for number in beside {
            mixed = SplitMix::new(mixed ^ *number).next_u64();
        }
        Chooser(SplitMix::new(mixed))
    }

    /// 64 random bits.
    #[inline]
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below this one; 0 if it is 0.
    #[inline]
    pub(super) fn below(&mut self, most: usize) -> usize {
        ((u128::from(self.bits()) * most as u128) >> 64) as usize
    }

    /// True once in so many calls.
    #[inline]
    pub(super) fn one_in(&mut self, calls: usize) -> bool {
        self.below(calls) == 0
    }

    /// One of these.
    #[inline]
    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Small numbers more often than large ones.
    pub(super) fn small(&mut self, most: usize) -> usize {
        let most = self.below(most + 1);
        self.below(most + 1)
    }
}
