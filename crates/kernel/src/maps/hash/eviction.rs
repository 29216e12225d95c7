//! Second-chance (clock) eviction: elements are visited in a circle; the mark of a visited
//! one is cleared, and the first element without it is chosen.

use std::sync::Arc;

use vm::sync::atomic::Ordering::Relaxed;
use vm::sync::atomic::{AtomicBool, AtomicU32};

/// The hand of the clock, and a mark for each element.
#[derive(Debug)]
pub(super) struct Clock {
    hand: AtomicU32,
    marks: Arc<[AtomicBool]>,
}

impl Clock {
    /// A clock for so many elements.
    pub(super) fn new(elements: u32) -> Clock {
        Clock {
            hand: AtomicU32::new(0),
            marks: (0..elements).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Notes that an element was looked up.
    #[inline(always)]
    pub(super) fn mark(&self, index: u32) {
        let mark = &self.marks[index as usize];
        if !mark.load(Relaxed) {
            mark.store(true, Relaxed);
        }
    }

    /// The marks, for who notes a lookup by itself.
    pub(super) fn marks(&self) -> Arc<[AtomicBool]> {
        self.marks.clone()
    }

    /// Elements without a mark, in the order in which the hand finds them: the first round
    /// may only clear marks, and other threads may take what the second finds.
    pub(super) fn candidates(&self) -> impl Iterator<Item = u32> {
        let count = self.marks.len() as u32;
        (0..count.saturating_mul(4)).filter_map(move |_| {
            let index = self.hand.fetch_add(1, Relaxed) % count;
            let mark = &self.marks[index as usize];
            match mark.load(Relaxed) {
                true => {
                    mark.store(false, Relaxed);
                    None
                }
                false => Some(index),
            }
        })
    }
}
