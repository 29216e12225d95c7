//! The free pages of an arena as ranges, with best-fit search as Linux's
//! (`kernel/bpf/range_tree.c`).
//!
//! The smallest range that is long enough serves; among those of equal length the one that was
//! changed last. Ranges that touch are one. All operations are logarithmic in the number of
//! ranges, but for those that they remove.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Disjoint ranges of pages that do not touch each other.
#[derive(Debug, Default)]
pub(super) struct FreeRanges {
    /// Behind the last page and number of the last change, by first page.
    by_start: BTreeMap<u32, (u32, u64)>,
    /// Length, number of the last change, first page.
    by_len: BTreeSet<(u32, Reverse<u64>, u32)>,
    changes: u64,
}

impl FreeRanges {
    /// The first page of the range that serves so many pages (`range_tree_find`, `__find_range`).
    #[doc(alias = "range_tree_find")]
    #[doc(alias = "__find_range")]
    pub(super) fn find(&self, pages: u32) -> Option<u32> {
        let long_enough = (pages, Reverse(u64::MAX), 0)..;
        self.by_len.range(long_enough).next().map(|found| found.2)
    }

    /// True if all pages from one on are free (`is_range_tree_set`).
    #[doc(alias = "is_range_tree_set")]
    pub(super) fn contain(&self, start: u32, pages: u32) -> bool {
        let before = self.by_start.range(..=start).next_back();
        before.is_some_and(|(_, (end, _))| start + pages <= *end)
    }

    /// Adds pages, some of which may be free already (`range_tree_set`).
    #[doc(alias = "range_tree_set")]
    pub(super) fn add(&mut self, start: u32, pages: u32) {
        if pages == 0 || self.contain(start, pages) {
            return;
        }
        self.remove(start, pages);
        let (mut first, mut end) = (start, start + pages);
        let left = self.by_start.range(..start).next_back();
        let left = left.map(|(start, (end, _))| (*start, *end));
        if let Some((left, _)) = left.filter(|(_, end)| *end == start) {
            self.take(left);
            first = left;
        }
        if let Some(right) = self.take(end) {
            end = right;
        }
        self.insert(first, end);
    }

    /// Removes pages, some of which may not be free (`range_tree_clear`).
    #[doc(alias = "range_tree_clear")]
    pub(super) fn remove(&mut self, start: u32, pages: u32) {
        let end = start + pages;
        let before = self.by_start.range(..start).next_back();
        let before = before.map(|(start, (end, _))| (*start, *end));
        if let Some((first, last)) = before.filter(|(_, last)| *last > start) {
            self.take(first);
            self.insert(first, start);
            if last > end {
                self.insert(end, last);
            }
        }
        while let Some((&first, _)) = self.by_start.range(start..end).next() {
            if let Some(last) = self.take(first)
                && last > end
            {
                self.insert(end, last);
            }
        }
    }

    /// Takes a range out; behind its last page.
    fn take(&mut self, start: u32) -> Option<u32> {
        let (end, change) = self.by_start.remove(&start)?;
        self.by_len.remove(&(end - start, Reverse(change), start));
        Some(end)
    }

    fn insert(&mut self, start: u32, end: u32) {
        self.changes += 1;
        self.by_start.insert(start, (end, self.changes));
        (self.by_len).insert((end - start, Reverse(self.changes), start));
    }
}

#[cfg(test)]
mod tests {
    use spec::SplitMix;

    use super::*;

    #[test]
    fn ranges_are_those_of_a_set_of_pages() {
        const PAGES: u32 = 48;
        let mut random = SplitMix::new(5);
        let mut below = |end: u32| (random.next_u64() % u64::from(end)) as u32;
        let mut ranges = FreeRanges::default();
        let mut pages = [false; PAGES as usize];
        for _ in 0..20_000 {
            let start = below(PAGES);
            let len = below(PAGES - start) + 1;
            let part = start as usize..(start + len) as usize;
            assert_eq!(
                ranges.contain(start, len),
                pages[part.clone()].iter().all(|free| *free)
            );
            let adds = below(2) == 0;
            match adds {
                true => ranges.add(start, len),
                false => ranges.remove(start, len),
            }
            pages[part].fill(adds);
            // The ranges are the longest ones of free pages.
            let mut expected = Vec::new();
            for (page, free) in (0..).zip(pages) {
                match expected.last_mut() {
                    Some((_, end)) if free && *end == page => *end = page + 1,
                    _ if free => expected.push((page, page + 1)),
                    _ => {}
                }
            }
            let found = ranges.by_start.iter();
            let found: Vec<_> = found.map(|(start, (end, _))| (*start, *end)).collect();
            assert_eq!(found, expected);
            assert_eq!(ranges.by_len.len(), found.len());
            let lens = expected.iter().map(|(start, end)| end - start);
            let best = lens.filter(|found| *found >= len).min();
            let start = ranges.find(len);
            let found = start.map(|start| ranges.by_start[&start].0 - start);
            assert_eq!(found, best);
        }
    }

    #[test]
    fn the_latest_of_equal_ranges_serves() {
        let mut ranges = FreeRanges::default();
        ranges.add(0, 10);
        ranges.remove(2, 1);
        ranges.remove(5, 1);
        // 0-1, 3-4 and 6-9: the second one was shortened last.
        assert_eq!(ranges.find(2), Some(3));
        assert_eq!(ranges.find(3), Some(6));
        assert_eq!(ranges.find(5), None);
    }
}
