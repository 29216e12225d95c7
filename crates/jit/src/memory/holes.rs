//! Free memory of the regions: a best-fit allocator with coalescing.
//!
//! Sizes are multiples of [`GRANULE`], a cache line: writing one program does not disturb a
//! thread that runs its neighbour, and loops keep their alignment. Adjacent holes are
//! merged, so `n` programs leave at most `n + r` holes in `r` regions. Cost: logarithmic in
//! the number of holes.
//!
//! The last hole is kept outside the trees, so that replacing a program by one of the same
//! size leaves them unchanged.

use std::collections::{BTreeMap, BTreeSet};

/// Size of the smallest block in bytes: a cache line.
pub(super) const GRANULE: usize = 64;

/// A block of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Index of its region.
    pub(super) region: u32,
    /// Offset in bytes from the start of the region.
    pub(super) offset: usize,
    pub(super) len: usize,
}

impl Block {
    fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// The free blocks.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// The hole that was made last, if it is still free.
    last: Option<Block>,
    /// All other holes, by offset and by size.
    by_place: BTreeMap<(u32, usize), usize>,
    by_size: BTreeSet<(usize, u32, usize)>,
}

impl Holes {
    /// Frees a block and merges it with adjacent holes; returns the resulting hole.
    pub(super) fn put(&mut self, block: Block) -> Block {
        let mut hole = block;
        if let Some(before) = self.ending_at(block.region, block.offset) {
            self.remove(before);
            hole.offset = before.offset;
            hole.len += before.len;
        }
        if let Some(behind) = self.starting_at(block.region, block.end()) {
            self.remove(behind);
            hole.len += behind.len;
        }
        self.insert(hole);
        hole
    }

    /// Allocates `len` bytes (a multiple of [`GRANULE`]), aligned to `align`, from the
    /// smallest hole that fits.
    pub(super) fn take(&mut self, len: usize, align: usize) -> Option<Block> {
        let has_room = |hole: &Block| hole.offset.next_multiple_of(align) + len <= hole.end();
        let last = self.last.filter(has_room);
        let hole = match last {
            // No hole can be smaller.
            Some(last) if last.len == len => last,
            // A hole of `len + align` bytes always fits, so only smaller ones are tried in
            // vain.
            _ => {
                let other = self.others_of_at_least(len).find(has_room);
                last.into_iter().chain(other).min_by_key(|hole| hole.len)?
            }
        };
        Some(self.carve(hole, hole.offset.next_multiple_of(align), len))
    }

    /// Removes a hole whose region is unmapped.
    pub(super) fn forget(&mut self, hole: Block) {
        self.remove(hole);
    }

    /// True if the block is exactly one hole.
    pub(super) fn has(&self, block: Block) -> bool {
        self.starting_at(block.region, block.offset) == Some(block)
    }

    /// The hole that ends at an offset.
    fn ending_at(&self, region: u32, end: usize) -> Option<Block> {
        let ends_there = |hole: &Block| hole.region == region && hole.end() == end;
        self.last.filter(ends_there).or_else(|| {
            let mut before = self.by_place.range(..(region, end));
            let (&(region, offset), &len) = before.next_back()?;
            Some(Block {
                region,
                offset,
                len,
            })
            .filter(ends_there)
        })
    }

    /// The hole that starts at an offset.
    fn starting_at(&self, region: u32, offset: usize) -> Option<Block> {
        let starts_there = |hole: &Block| hole.region == region && hole.offset == offset;
        self.last.filter(starts_there).or_else(|| {
            let &len = self.by_place.get(&(region, offset))?;
            Some(Block {
                region,
                offset,
                len,
            })
        })
    }

    /// The holes of at least `len` bytes in ascending order of size, without the last hole.
    fn others_of_at_least(&self, len: usize) -> impl Iterator<Item = Block> {
        let range = self.by_size.range((len, 0, 0)..);
        range.map(|&(len, region, offset)| Block {
            region,
            offset,
            len,
        })
    }

    /// Splits a block off a hole; the rest on both sides stays free.
    fn carve(&mut self, hole: Block, offset: usize, len: usize) -> Block {
        let block = Block {
            offset,
            len,
            ..hole
        };
        self.remove(hole);
        if block.offset > hole.offset {
            self.insert(Block {
                len: block.offset - hole.offset,
                ..hole
            });
        }
        if block.end() < hole.end() {
            self.insert(Block {
                offset: block.end(),
                len: hole.end() - block.end(),
                ..hole
            });
        }
        block
    }

    fn insert(&mut self, hole: Block) {
        if let Some(other) = self.last.replace(hole) {
            self.by_place
                .insert((other.region, other.offset), other.len);
            self.by_size.insert((other.len, other.region, other.offset));
        }
    }

    fn remove(&mut self, hole: Block) {
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

    fn region(number: u32, len: usize) -> Block {
        Block {
            region: number,
            offset: 0,
            len,
        }
    }

    /// All holes by offset.
    fn all(holes: &Holes) -> Vec<Block> {
        let others = holes.by_place.iter();
        let others = others.map(|(&(region, offset), &len)| Block {
            region,
            offset,
            len,
        });
        let mut all: Vec<Block> = others.chain(holes.last).collect();
        all.sort_by_key(|hole| (hole.region, hole.offset));
        all
    }

    #[test]
    fn the_smallest_hole_that_fits_is_taken() {
        let mut holes = Holes::default();
        holes.put(region(0, 4096));
        let reservation: Vec<Block> = [256, 64, 128, 64, 1024, 64]
            .iter()
            .map(|&len| holes.take(len, 16).unwrap())
            .collect();
        for large in [0, 2, 4] {
            holes.put(reservation[large]);
        }
        assert_eq!(holes.take(128, 16), Some(reservation[2]));
        assert_eq!(holes.take(192, 16).unwrap().offset, reservation[0].offset);
        assert_eq!(holes.take(1024, 16), Some(reservation[4]));
    }

    #[test]
    fn neighbours_become_one_hole_but_regions_do_not() {
        let mut holes = Holes::default();
        holes.put(region(0, 256));
        holes.put(region(1, 256));
        assert_eq!(holes.take(512, 16), None);
        let parts: Vec<Block> = (0..8).map(|_| holes.take(64, 16).unwrap()).collect();
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
            let mut held: Vec<Block> = Vec::new();
            for _ in 0..300 {
                let draw = random.next_u64() as usize;
                if draw % 5 < 3 {
                    let len = (draw >> 8) % 20 * GRANULE + GRANULE;
                    let align = 1 << ((draw >> 32) % 13);
                    let Some(block) = holes.take(len, align) else {
                        continue;
                    };
                    assert!(block.len == len && block.offset.is_multiple_of(align));
                    assert!(block.offset + block.len <= sizes[block.region as usize]);
                    let apart = |other: &Block| {
                        other.region != block.region
                            || other.offset + other.len <= block.offset
                            || block.offset + block.len <= other.offset
                    };
                    assert!(held.iter().all(apart), "{block:?} overlaps one of {held:?}");
                    held.push(block);
                } else if !held.is_empty() {
                    let block = held.swap_remove((draw >> 8) % held.len());
                    holes.put(block);
                }
                assert!(all(&holes).len() <= held.len() + sizes.len());
            }
            for block in held {
                holes.put(block);
            }
            let whole: Vec<_> = all(&holes).iter().map(|hole| hole.len).collect();
            assert_eq!(whole, sizes);
        }
    }
}
