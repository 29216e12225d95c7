//! Sets of bytes of a stack frame.

use crate::mem::STACK_END;

/// Bytes of a stack frame, one bit each. Bit 0 is the byte that ends at the frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::insn_facts) struct FrameBytes([u64; 8]);

impl FrameBytes {
    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; 8]
    }

    pub(super) fn insert(&mut self, offset: i32) {
        let bit = (-offset - 1) as usize;
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// The bytes at the offsets from the frame pointer from `min` on, before `end`.
    pub(super) fn of_range(min: i32, end: i32) -> FrameBytes {
        let mut bytes = FrameBytes::default();
        (min.max(STACK_END)..end.min(0)).for_each(|offset| bytes.insert(offset));
        bytes
    }

    pub(super) fn zip(
        &self,
        other: &FrameBytes,
        operation: impl Fn(u64, u64) -> u64,
    ) -> FrameBytes {
        FrameBytes(std::array::from_fn(|word| {
            operation(self.0[word], other.0[word])
        }))
    }

    pub(super) fn union(&self, other: &FrameBytes) -> FrameBytes {
        self.zip(other, |own, other| own | other)
    }

    pub(super) fn intersection(&self, other: &FrameBytes) -> FrameBytes {
        self.zip(other, |own, other| own & other)
    }

    pub(super) fn without(&self, other: &FrameBytes) -> FrameBytes {
        self.zip(other, |own, other| own & !other)
    }
}
