//! Compact array of the start offsets of types, two bytes each.
//!
//! A kernel has more than a hundred thousand types, looked up by id. Starts ascend in
//! multiples of four bytes, so each is stored as its distance in words from the first of
//! its block. If a distance exceeds 16 bits (types with tens of thousands of members,
//! headers of odd length), all starts of the blob are stored in full.

use crate::saved_index::{OtherIndex, Reader, Writer};

/// Number of types in a block: its types take far less than 256 KB, and most objects have
/// one block.
const BLOCK: usize = 128;
/// Maximum distance in bytes that is stored in 16 bits.
const KEPT: u32 = (u16::MAX as u32) * 4;

/// Ascending offsets in a blob, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starts {
    /// Distance of each from the first of its block, in words.
    behind: Vec<u16>,
    /// Starts of the blocks after the first, which starts at 0.
    firsts: Vec<u32>,
    /// Start of the last block.
    first: u32,
    /// All offsets, if one distance does not fit; the other fields are unused then.
    full: Vec<u32>,
}

impl Starts {
    /// Empty array with this capacity.
    pub(crate) fn with_capacity(places: usize) -> Starts {
        Starts {
            behind: Vec::with_capacity(places),
            ..Starts::default()
        }
    }

    /// Number of offsets.
    pub(crate) fn len(&self) -> usize {
        self.behind.len() + self.full.len()
    }

    /// Offset with this index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        let Some(&words) = self.behind.get(index) else {
            return self.full.get(index).copied();
        };
        let block = (index / BLOCK).wrapping_sub(1);
        let first = self.firsts.get(block).copied().unwrap_or(0);
        Some(first + u32::from(words) * 4)
    }

    /// Writes the array into a saved index.
    pub(crate) fn save(&self, index: &mut Writer) {
        index.halves(&self.behind);
        index.words(self.firsts.iter().copied());
        index.words(self.full.iter().copied());
    }

    /// The next array of a saved index.
    pub(crate) fn saved(index: &mut Reader) -> Result<Starts, OtherIndex> {
        let behind = index.halves()?.collect();
        let firsts: Vec<u32> = index.words()?.collect();
        Ok(Starts {
            behind,
            first: firsts.last().copied().unwrap_or(0),
            firsts,
            full: index.words()?.collect(),
        })
    }

    /// All offsets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|index| self.get(index).unwrap_or(0))
    }

    /// Appends an offset, which is not less than the last.
    #[inline]
    pub(crate) fn push(&mut self, at: u32) {
        let behind = at - self.first;
        if self.behind.len().is_multiple_of(BLOCK) || behind & !KEPT != 0 {
            self.push_first(at);
        } else {
            self.behind.push((behind / 4) as u16);
        }
    }

    /// Appends the first offset of a block, or one that does not fit.
    #[inline(never)]
    fn push_first(&mut self, at: u32) {
        let is_first = self.behind.len().is_multiple_of(BLOCK);
        if is_first && !self.behind.is_empty() {
            self.firsts.push(at);
            self.first = at;
        }
        let behind = at - self.first;
        if behind & !KEPT == 0 && self.full.is_empty() {
            self.behind.push((behind / 4) as u16);
            return;
        }
        if self.full.is_empty() {
            self.full = self.iter().collect();
            self.behind = Vec::new();
            self.firsts = Vec::new();
        }
        self.full.push(at);
    }
}

impl FromIterator<u32> for Starts {
    fn from_iter<I: IntoIterator<Item = u32>>(places: I) -> Starts {
        let places = places.into_iter();
        let mut starts = Starts::with_capacity(places.size_hint().0);
        places.for_each(|at| starts.push(at));
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(places: &[u32], fit: bool) {
        let starts: Starts = places.iter().copied().collect();
        assert_eq!(starts.iter().collect::<Vec<_>>(), places);
        let got: Vec<u32> = (0..).map_while(|index| starts.get(index)).collect();
        assert_eq!(got, places);
        assert_eq!(starts.len(), places.len());
        assert_eq!(starts.full.is_empty(), fit);
    }

    #[test]
    fn places_come_back() {
        check(&[], true);
        let near: Vec<u32> = (0..1000).map(|at| 24 + at * 16).collect();
        for count in [1, 127, 128, 129, 256, 257, 1000] {
            check(&near[..count], true);
        }
        // The last distance that fits, and the first that does not.
        check(&[0, 24, 65_535 * 4], true);
        check(&[0, 24, 65_536 * 4, 65_536 * 4 + 12], false);
        check(&[65_536 * 4], false);
        // After a header of odd length, after `void`.
        check(&[0, 25, 37, 53], false);
        // Between blocks any distance fits; inside a later block, all are stored in full.
        let mut places = near[..128].to_vec();
        places.extend([1 << 30, (1 << 30) + 12]);
        check(&places, true);
        places.push(1 << 31);
        check(&places, false);
    }
}
