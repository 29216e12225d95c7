//! Which parts of the regions are free: best fit over holes that merge again.
//!
//! Everything is counted in whole granules, so a program never shares a cache
//! line with another: writing one does not disturb a thread that runs its
//! neighbour, and loops keep the alignment that the compiler chose. Taking and
//! putting cost the logarithm of the number of holes, and no hole has a free
//! neighbour, so `n` programs leave at most `n + r` holes in `r` regions.
//!
//! The hole that was made last is kept apart, so that replacing a program by one of the
//! same size leaves the trees unchanged.

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

impl Part {
    fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// The free parts.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The one that was made last, if it is still there.
    last: Option<Part>,
    /// All others, by place and by size.
    by_place: BTreeMap<(u32, usize), usize>,
    by_size: BTreeSet<(usize, u32, usize)>,
}

impl Holes {
    /// Frees a part, which becomes one with what is free beside it. Answers with
    /// the hole that it is in now.
    #[inline(always)]
    pub(super) fn put(&mut self, part: Part) -> Part {
        let mut hole = part;
        if let Some(before) = self.ending_at(part.region, part.offset) {
            self.remove(before);
            hole.offset = before.offset;
            hole.len += before.len;
        }
        if let Some(behind) = self.starting_at(part.region, part.end()) {
            self.remove(behind);
            hole.len += behind.len;
        }
        self.insert(hole);
        hole
    }

    /// Takes `len` bytes (whole granules) at a multiple of `align` from the
    /// smallest hole that has them.
    #[inline(always)]
    pub(super) fn take(&mut self, len: usize, align: usize) -> Option<Part> {
        let has_room = |hole: &Part| hole.offset.next_multiple_of(align) + len <= hole.end();
        let last = self.last.filter(has_room);
        let hole = match last {
            // There is none smaller.
            Some(last) if last.len == len => last,
            // A hole of `len + align` has them wherever it starts, so only the few
            // sizes below that are ever looked at in vain.
            _ => {
                let other = self.others_of_at_least(len).find(has_room);
                last.into_iter().chain(other).min_by_key(|hole| hole.len)?
            }
        };
        Some(self.carve(hole, hole.offset.next_multiple_of(align), len))
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
        let places = |hole: &Part| {
            let first = hole.offset.next_multiple_of(step);
            let slack = hole.end().checked_sub(first + len);
            slack.map_or(0, |slack| slack / step + 1)
        };
        let fitting = || self.last.into_iter().chain(self.others_of_at_least(len));
        let all: usize = fitting().map(|hole| places(&hole)).sum();
        if all == 0 {
            return None;
        }
        let draw = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let mut chosen = (draw % all as u64) as usize;
        let chosen = fitting().find_map(|hole| {
            let here = places(&hole);
            if chosen < here {
                let first = hole.offset.next_multiple_of(step);
                return Some((hole, first + chosen * step));
            }
            chosen -= here;
            None
        });
        chosen.map(|(hole, offset)| self.carve(hole, offset, len))
    }

    /// Forgets a hole.
    pub(super) fn forget(&mut self, hole: Part) {
        self.remove(hole);
    }

    /// Whether a part is all of a hole.
    pub(super) fn has(&self, part: Part) -> bool {
        self.starting_at(part.region, part.offset) == Some(part)
    }

    /// The hole that ends there.
    #[inline(always)]
    fn ending_at(&self, region: u32, end: usize) -> Option<Part> {
        let ends_there = |hole: &Part| hole.region == region && hole.end() == end;
        self.last.filter(ends_there).or_else(|| {
            let mut before = self.by_place.range(..(region, end));
            let (&(region, offset), &len) = before.next_back()?;
            Some(Part {
                region,
                offset,
                len,
            })
            .filter(ends_there)
        })
    }

    /// The hole that starts there.
    #[inline(always)]
    fn starting_at(&self, region: u32, offset: usize) -> Option<Part> {
        let starts_there = |hole: &Part| hole.region == region && hole.offset == offset;
        self.last.filter(starts_there).or_else(|| {
            let &len = self.by_place.get(&(region, offset))?;
            Some(Part {
                region,
                offset,
                len,
            })
        })
    }

    /// The holes of `len` bytes and more but for the last, from small to large.
    fn others_of_at_least(&self, len: usize) -> impl Iterator<Item = Part> {
        let range = self.by_size.range((len, 0, 0)..);
        range.map(|&(len, region, offset)| Part {
            region,
            offset,
            len,
        })
    }

    /// Takes a part out of a hole and leaves the rest on both sides.
    #[inline(always)]
    fn carve(&mut self, hole: Part, offset: usize, len: usize) -> Part {
        let part = Part {
            offset,
            len,
            ..hole
        };
        self.remove(hole);
        if part.offset > hole.offset {
            self.insert(Part {
                len: part.offset - hole.offset,
                ..hole
            });
        }
        if part.end() < hole.end() {
            self.insert(Part {
                offset: part.end(),
                len: hole.end() - part.end(),
                ..hole
            });
        }
        part
    }

    #[inline(always)]
    fn insert(&mut self, hole: Part) {
        if let Some(other) = self.last.replace(hole) {
            self.by_place
                .insert((other.region, other.offset), other.len);
            self.by_size.insert((other.len, other.region, other.offset));
        }
    }

    #[inline(always)]
    fn remove(&mut self, hole: Part) {
        if self.last == Some(hole) {
            self.last = None;
        } else {
            self.by_place.remove(&(hole.region, hole.offset));
            self.by_size.remove(&(hole.len, hole.region, hole.offset));
        }
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

    /// All holes by place.
    fn all(holes: &Holes) -> Vec<Part> {
        let others = holes.by_place.iter();
        let others = others.map(|(&(region, offset), &len)| Part {
            region,
            offset,
            len,
        });
        let mut all: Vec<Part> = others.chain(holes.last).collect();
        all.sort_by_key(|hole| (hole.region, hole.offset));
        all
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
        assert_eq!(all(&holes), [region(0, 256), region(1, 256)]);
        assert_eq!(holes.by_size.len(), holes.by_place.len());
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
                assert!(all(&holes).len() <= held.len() + sizes.len());
            }
            for part in held {
                holes.put(part);
            }
            let whole: Vec<_> = all(&holes).iter().map(|hole| hole.len).collect();
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
