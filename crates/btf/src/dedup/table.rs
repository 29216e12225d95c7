//! Hash table of canonical types.
//!
//! The order of candidates decides about the result, so it is that of libbpf's table:
//! chains with insertion at the front, rehashed in order when the table doubles at a load
//! of three quarters.

use crate::TypeId;

/// End of a chain.
const END: u32 = u32::MAX;
/// Initial size of the table.
const SMALLEST: usize = 4;

#[derive(Default)]
pub(super) struct Candidates {
    /// First entry of each chain.
    chains: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    id: TypeId,
    next: u32,
}

impl Candidates {
    pub(super) fn add(&mut self, hash: u64, id: TypeId) {
        if (self.entries.len() + 1) * 4 / 3 > self.chains.len() {
            self.grow();
        }
        let chain = slot(hash, self.chains.len());
        let next = self.chains[chain];
        self.chains[chain] = self.entries.len() as u32;
        self.entries.push(Entry { hash, id, next });
    }

    fn grow(&mut self) {
        let size = (self.chains.len() * 2).max(SMALLEST);
        let old = std::mem::replace(&mut self.chains, vec![END; size]);
        for first in old {
            let mut at = first;
            while at != END {
                let entry = &mut self.entries[at as usize];
                let chain = &mut self.chains[slot(entry.hash, size)];
                let next = entry.next;
                entry.next = std::mem::replace(chain, at);
                at = next;
            }
        }
    }

    /// First candidate with this hash.
    pub(super) fn first(&self, hash: u64) -> Option<Candidate> {
        if self.chains.is_empty() {
            return None;
        }
        self.from(self.chains[slot(hash, self.chains.len())], hash)
    }

    /// Next candidate with the same hash.
    pub(super) fn after(&self, candidate: Candidate) -> Option<Candidate> {
        let entry = self.entries[candidate.at as usize];
        self.from(entry.next, entry.hash)
    }

    fn from(&self, at: u32, hash: u64) -> Option<Candidate> {
        let mut at = at;
        while at != END {
            let entry = self.entries[at as usize];
            if entry.hash == hash {
                return Some(Candidate { at, id: entry.id });
            }
            at = entry.next;
        }
        None
    }

    /// First candidate with this hash that satisfies `fits`.
    pub(super) fn find(&self, hash: u64, fits: impl Fn(TypeId) -> bool) -> Option<TypeId> {
        let mut candidate = self.first(hash);
        while let Some(found) = candidate {
            if fits(found.id) {
                return Some(found.id);
            }
            candidate = self.after(found);
        }
        None
    }
}

/// A type and its position in its chain.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    at: u32,
    pub(super) id: TypeId,
}

/// Slot of a hash: its upper bits. Equal hashes share a chain at every size.
fn slot(hash: u64, size: usize) -> usize {
    (hash >> (64 - size.trailing_zeros())) as usize
}

/// Hash of words.
pub(super) fn hash(words: impl IntoIterator<Item = u32>) -> u64 {
    words.into_iter().fold(0, |hash: u64, word| {
        (hash.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
