//! Which parts of the regions are free: best fit over holes that merge again.
//!
//! Everything is counted in whole granules, so a program never shares a cache
//! line with another: writing one does not disturb a thread that runs its
//! neighbour, and loops keep the alignment that the compiler chose. Taking and
//! putting cost the logarithm of the number of holes, and no hole has a free
//! neighbour, so `n` programs leave at most `n + r` holes in `r` regions.

use std::collections::{BTreeMap, BTreeSet};

use spec::Random;

/// Bytes of the smallest part: a cache line.
pub(super) const GRANULE: usize = 64;

/// A part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of its region.
    pub(super) region: u32,
    /// Bytes from the start of the region.
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// The free parts, by place and by size.
#[derive(Debug, Default)]
pub(super) struct Holes {
    by_place: BTreeMap<(u32, usize), usize>,
    by_size: BTreeSet<(usize, u32, usize)>,
}

impl Holes {
    /// Frees a part, which becomes one with what is free beside it. Answers with
    /// the hole that it is in now.
    pub(super) fn put(&mut self, part: Part) -> Part {
        let Part {
            region,
            mut offset,
            mut len,
        } = part;
        let before = self.by_place.range(..(region, offset)).next_back();
        if let Some((&(other, start), &size)) = before
            && other == region
            && start + size == offset
        {
            self.remove(region, start, size);
            offset = start;
            len += size;
        }
        if let Some(&size) = self.by_place.get(&(region, offset + len)) {
            self.remove(region, offset + len, size);
            len += size;
        }
        self.insert(region, offset, len);
        Part {
            region,
            offset,
            len,
        }
    }

    /// Takes `len` bytes (whole granules) at a multiple of `align` from the
    /// smallest hole that has them.
    pub(super) fn take(&mut self, len: usize, align: usize) -> Option<Part> {
        // A hole of `len + align` has them wherever it starts, so only the few
        // sizes below that are ever looked at in vain.
        let &(size, region, start) = self
            .by_size
            .range((len, 0, 0)..)
            .find(|&&(size, _, start)| start.next_multiple_of(align) + len <= start + size)?;
        let offset = start.next_multiple_of(align);
        Some(self.carve(region, start, size, offset, len))
    }

    /// Takes `len` bytes at a multiple of `align`, any place where they fit as
    /// likely as any other. It looks at all holes that are large enough.
    pub(super) fn take_anywhere(
        &mut self,
        len: usize,
        align: usize,
        random: &mut dyn Random,
    ) -> Option<Part> {
        let step = align.max(GRANULE);
        let places = |size: usize, start: usize| {
            let first = start.next_multiple_of(step);
            let slack = (start + size).checked_sub(first + len);
            slack.map_or(0, |slack| slack / step + 1)
        };
        let fitting = || self.by_size.range((len, 0, 0)..);
        let all: usize = fitting().map(|&(size, _, start)| places(size, start)).sum();
        if all == 0 {
            return None;
        }
        let draw = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let mut chosen = (draw % all as u64) as usize;
        for &(size, region, start) in fitting() {
            let here = places(size, start);
            if chosen < here {
                let offset = start.next_multiple_of(step) + chosen * step;
                return Some(self.carve(region, start, size, offset, len));
            }
            chosen -= here;
        }
        None
    }

    /// Whether a region of `len` bytes is one hole.
    pub(super) fn is_whole(&self, region: u32, len: usize) -> bool {
        self.by_place.get(&(region, 0)) == Some(&len)
    }

    /// Forgets a region of `len` bytes, which is one hole.
    pub(super) fn forget(&mut self, region: u32, len: usize) {
        self.remove(region, 0, len);
    }

    /// Takes a part out of one hole and leaves the rest on both sides.
    fn carve(&mut self, region: u32, start: usize, size: usize, offset: usize, len: usize) -> Part {
        self.remove(region, start, size);
        if offset > start {
            self.insert(region, start, offset - start);
        }
        if offset + len < start + size {
            self.insert(region, offset + len, start + size - offset - len);
        }
        Part {
            region,
            offset,
            len,
        }
    }

    fn insert(&mut self, region: u32, offset: usize, len: usize) {
        self.by_place.insert((region, offset), len);
        self.by_size.insert((len, region, offset));
    }

    fn remove(&mut self, region: u32, offset: usize, len: usize) {
        self.by_place.remove(&(region, offset));
        self.by_size.remove(&(len, region, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::SplitMix;

    fn region(number: u32, len: usize) -> Part {
        Part {
            region: number,
            offset: 0,
            len,
        }
    }

    #[test]
    fn the_smallest_hole_that_fits_is_taken() {
        let mut holes = Holes::default();
        holes.put(region(0, 4096));
        let taken: Vec<Part> = [256, 64, 128, 64, 1024, 64]
            .iter()
            .map(|&len| holes.take(len, 16).unwrap())
            .collect();
        for large in [0, 2, 4] {
            holes.put(taken[large]);
        }
        assert_eq!(holes.take(128, 16), Some(taken[2]));
        assert_eq!(holes.take(192, 16).unwrap().offset, taken[0].offset);
        assert_eq!(holes.take(1024, 16), Some(taken[4]));
    }

    #[test]
    fn neighbours_become_one_hole_but_regions_do_not() {
        let mut holes = Holes::default();
        holes.put(region(0, 256));
        holes.put(region(1, 256));
        assert_eq!(holes.take(512, 16), None);
        let parts: Vec<Part> = (0..8).map(|_| holes.take(64, 16).unwrap()).collect();
        assert_eq!(holes.take(64, 16), None);
        for index in [1, 3, 0, 2, 5, 7, 4, 6] {
            let hole = holes.put(parts[index]);
            assert!(hole.offset <= parts[index].offset && hole.len <= 256);
        }
        assert_eq!(holes.by_place.len(), 2);
        assert_eq!(holes.by_size.len(), 2);
    }

    #[test]
    fn nothing_overlaps_and_everything_comes_back() {
        for seed in 0..200 {
            let mut random = SplitMix::new(seed);
            let mut holes = Holes::default();
            let sizes = [4096, 8192, 16384];
            for (number, &size) in sizes.iter().enumerate() {
                holes.put(region(number as u32, size));
            }
            let mut held: Vec<Part> = Vec::new();
            for _ in 0..300 {
                let draw = random.next_u64() as usize;
                if draw % 5 < 3 {
                    let len = (draw >> 8) % 20 * GRANULE + GRANULE;
                    let align = 1 << ((draw >> 32) % 13);
                    let part = match draw % 2 {
                        0 => holes.take(len, align),
                        _ => holes.take_anywhere(len, align, &mut random),
                    };
                    let Some(part) = part else { continue };
                    assert!(part.len == len && part.offset.is_multiple_of(align));
                    assert!(part.offset + part.len <= sizes[part.region as usize]);
                    let apart = |other: &Part| {
                        other.region != part.region
                            || other.offset + other.len <= part.offset
                            || part.offset + part.len <= other.offset
                    };
                    assert!(held.iter().all(apart), "{part:?} overlaps one of {held:?}");
                    held.push(part);
                } else if !held.is_empty() {
                    let part = held.swap_remove((draw >> 8) % held.len());
                    holes.put(part);
                }
                assert!(holes.by_place.len() <= held.len() + sizes.len());
            }
            for part in held {
                holes.put(part);
            }
            let whole: Vec<_> = holes.by_place.values().copied().collect();
            assert_eq!(whole, sizes);
        }
    }

    #[test]
    fn random_places_are_all_taken_in_the_end() {
        let mut random = SplitMix::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..2000 {
            let mut holes = Holes::default();
            holes.put(region(0, 4096));
            seen.insert(holes.take_anywhere(100, 128, &mut random).unwrap().offset);
        }
        assert_eq!(seen.len(), 4096 / 128);
    }
}
