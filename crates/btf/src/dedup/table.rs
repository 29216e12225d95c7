//! Types that others may turn out to be equal to, by hash.
//!
//! Which of several candidates is met first decides about the result. libbpf
//! keeps them in chains: a new one comes first, and each time that the table
//! grows (to twice its size, when it would be more than three quarters full) the
//! chains are turned around. So it is here.

use std::collections::{HashMap, VecDeque};

use crate::TypeId;

#[derive(Default)]
pub(super) struct Candidates {
    chains: HashMap<u64, VecDeque<TypeId>>,
    len: usize,
    capacity: usize,
    /// Do the chains stand the other way around?
    is_turned: bool,
}

/// The smallest size of libbpf's table.
const SMALLEST: usize = 4;

impl Candidates {
    pub(super) fn add(&mut self, hash: u64, id: TypeId) {
        if self.capacity == 0 || (self.len + 1) * 4 / 3 > self.capacity {
            self.capacity = (self.capacity * 2).max(SMALLEST);
            self.is_turned = !self.is_turned;
        }
        self.len += 1;
        let chain = self.chains.entry(hash).or_default();
        match self.is_turned {
            true => chain.push_back(id),
            false => chain.push_front(id),
        }
    }

    /// The candidates with this hash, in the order in which they are tried.
    pub(super) fn with(&self, hash: u64) -> Vec<TypeId> {
        let Some(chain) = self.chains.get(&hash) else {
            return Vec::new();
        };
        match self.is_turned {
            true => chain.iter().rev().copied().collect(),
            false => chain.iter().copied().collect(),
        }
    }
}

/// A hash of words.
pub(super) fn hash(words: impl IntoIterator<Item = u32>) -> u64 {
    words
        .into_iter()
        .fold(0u64, |hash, word| mix(hash, word.into()))
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
