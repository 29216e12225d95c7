//! Rules of a set that may have packets in common with a product: an index of intervals for each
//! field of addresses and ports. A query takes the field in which the fewest rules overlap, so that
//! two sets of n rules for different networks are compared in about n log n steps.

use crate::space::{Region, Regions};

/// Fields of a product that have an index: addresses of each family, and ports.
const FIELDS: [Field; 6] = {
    const fn field(kinds: &'static [usize], at: usize) -> Field {
        Field { kinds, at }
    }
    [
        field(&[0, 1, 2], 0),
        field(&[0, 1, 2], 1),
        field(&[3, 4, 5], 0),
        field(&[3, 4, 5], 1),
        field(&[0, 3], 3),
        field(&[0, 3], 4),
    ]
};

/// Rules that each field may have in the first search.
const LEAST: usize = 16;

struct Field {
    /// Kinds of packets in which a rule has the same values of the field.
    kinds: &'static [usize],
    at: usize,
}

/// Indexes of the rules of a set.
pub(crate) struct Overlaps([Intervals; FIELDS.len()]);

impl Overlaps {
    /// Indexes of some rules of a set.
    pub(crate) fn of(regions: &Regions, rules: impl Iterator<Item = u32> + Clone) -> Overlaps {
        let of_field = |field: &Field| {
            let mut intervals = Vec::new();
            for rule in rules.clone() {
                let of_rule = regions.of_rule(rule);
                let own = field.kinds.iter().find_map(|kind| of_rule[*kind]);
                let ranges = own.iter().flat_map(|own| own.field(field.at));
                intervals.extend(ranges.map(|&(first, last)| (first, last, rule)));
            }
            Intervals::new(intervals)
        };
        Overlaps(FIELDS.each_ref().map(of_field))
    }

    /// Adds the rules that may have packets in common with a product of this kind, of
    /// [`Kind::ALL`](crate::space::Kind::ALL).
    pub(crate) fn add(&self, region: &Region, kind: usize, found: &mut Vec<u32>) {
        let start = found.len();
        let mut most = LEAST;
        // A field in which many overlap is left as soon as another one has fewer.
        loop {
            let fields = FIELDS.iter().zip(&self.0);
            for (field, index) in fields.filter(|(field, _)| field.kinds.contains(&kind)) {
                let mut ranges = region.field(field.at).iter();
                if ranges.all(|range| index.add(*range, start + most, found)) {
                    return;
                }
                found.truncate(start);
            }
            most *= 4;
        }
    }
}

/// Intervals in ascending order, as a balanced tree in a list: the middle of a part is its root.
struct Intervals {
    /// The first value, the last, and the rule.
    list: Vec<(u128, u128, u32)>,
    /// The last value of all intervals in the part whose root is at this place.
    last: Vec<u128>,
}

impl Intervals {
    fn new(mut list: Vec<(u128, u128, u32)>) -> Intervals {
        list.sort_unstable();
        let mut intervals = Intervals {
            last: vec![0; list.len()],
            list,
        };
        intervals.set_last(0, intervals.list.len());
        intervals
    }

    fn set_last(&mut self, start: usize, end: usize) -> u128 {
        if start == end {
            return 0;
        }
        let root = start.midpoint(end);
        let below = self.set_last(start, root).max(self.set_last(root + 1, end));
        self.last[root] = below.max(self.list[root].1);
        self.last[root]
    }

    /// Adds the rules of intervals that a range overlaps; false as soon as there are more than `most`
    /// rules.
    fn add(&self, range: (u128, u128), most: usize, rules: &mut Vec<u32>) -> bool {
        let mut parts = vec![(0usize, self.list.len())];
        while let Some((start, end)) = parts.pop() {
            let root = start.midpoint(end);
            if start == end || self.last[root] < range.0 {
                continue;
            }
            let (first, last, rule) = self.list[root];
            if first <= range.1 {
                parts.push((root + 1, end));
                if last >= range.0 {
                    rules.push(rule);
                }
            }
            parts.push((start, root));
            if rules.len() > most {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_overlap_are_found() {
        let list: Vec<(u128, u128, u32)> = (0..200u32)
            .map(|rule| {
                let first = u128::from(rule * 37 % 101);
                (first, first + u128::from(rule % 9), rule)
            })
            .collect();
        let index = Intervals::new(list.clone());
        for start in 0..110 {
            for len in [0, 1, 7] {
                let range = (start, start + len);
                let mut found = Vec::new();
                assert!(index.add(range, usize::MAX, &mut found));
                found.sort_unstable();
                let overlaps = |it: &&(u128, u128, u32)| it.0 <= range.1 && it.1 >= range.0;
                let expected = list.iter().filter(overlaps).map(|it| it.2);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{range:?}");
                let fewer = found.len().checked_sub(1);
                assert!(fewer.is_none_or(|most| !index.add(range, most, &mut Vec::new())));
                assert!(index.add(range, found.len(), &mut Vec::new()));
            }
        }
    }
}
