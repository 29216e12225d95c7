//! Where each type of a blob starts, in two bytes each.
//!
//! A kernel has more than a hundred thousand types, and whoever asks for one by its
//! number needs its place at once. Types stand one behind the other, at distances of
//! multiples of four bytes; so each is kept as how many words it starts behind the
//! first of its block. Where 16 bits do not hold that (types with tens of thousands
//! of members, headers of odd length), all places of the blob are kept in full
//! instead.

/// Types in a block: few enough that they are far from 256 KB, and as many as most
/// objects have.
const BLOCK: usize = 128;
/// The bits of a distance in bytes that are kept.
const KEPT: u32 = (u16::MAX as u32) * 4;

/// Places in a blob, in bytes, each behind the one before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Starts {
    /// How far behind the first of its block each is, in words.
    behind: Vec<u16>,
    /// Where the blocks start, from the second; the first counts from 0.
    firsts: Vec<u32>,
    /// Where the last block starts.
    first: u32,
    /// All places, if there is one that does not fit; nothing else is kept then.
    full: Vec<u32>,
}

impl Starts {
    /// Nothing yet, with room for so many.
    pub(crate) fn with_capacity(places: usize) -> Starts {
        Starts {
            behind: Vec::with_capacity(places),
            ..Starts::default()
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.behind.len() + self.full.len()
    }

    /// Place number `index`.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        let Some(&words) = self.behind.get(index) else {
            return self.full.get(index).copied();
        };
        let block = (index / BLOCK).wrapping_sub(1);
        let first = self.firsts.get(block).copied().unwrap_or(0);
        Some(first + u32::from(words) * 4)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|index| self.get(index).unwrap_or(0))
    }

    /// Adds a place, which is not before those that are there.
    #[inline]
    pub(crate) fn push(&mut self, at: u32) {
        let behind = at - self.first;
        if self.behind.len().is_multiple_of(BLOCK) || behind & !KEPT != 0 {
            self.push_first(at);
        } else {
            self.behind.push((behind / 4) as u16);
        }
    }

    /// Adds the first of a block, or what does not fit.
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
        // The last word that fits, and the first that does not.
        check(&[0, 24, 65_535 * 4], true);
        check(&[0, 24, 65_536 * 4, 65_536 * 4 + 12], false);
        check(&[65_536 * 4], false);
        // Behind a header of odd length, after `void`.
        check(&[0, 25, 37, 53], false);
        // Between blocks, any distance will do; in a later one, all are kept.
        let mut places = near[..128].to_vec();
        places.extend([1 << 30, (1 << 30) + 12]);
        check(&places, true);
        places.push(1 << 31);
        check(&places, false);
    }
}
