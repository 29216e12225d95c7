//! The trie of IPv4 addresses: a level-compressed trie of intervals. Each node is an array that
//! some leading bits of the address index; the number of bits follows from the number of
//! intervals, so that arrays are small where intervals are few.

use crate::layout::IS_LEAF;

/// Most bits of a node.
const MOST_BITS: u32 = 15;
/// Intervals from which on nodes are small, so that memory stays proportional to them.
const MANY: usize = 1 << 15;

/// Appends the nodes of a trie to a table of numbers of 4 bytes; returns the first entry.
pub(crate) fn build(intervals: &[(u128, u32)], numbers: &mut Vec<u32>) -> u32 {
    let starts: Vec<(u64, u32)> = intervals.iter().map(|it| (it.0 as u64, it.1)).collect();
    let least = if starts.len() < MANY { 6 } else { 4 };
    let mut builder = Builder { numbers, least };
    let root_bits = (bits_for(starts.len()) + 2).clamp(8, MOST_BITS);
    builder.node(&starts, 0, 32, root_bits)
}

/// Bits that tell so many intervals apart.
fn bits_for(count: usize) -> u32 {
    count.next_power_of_two().ilog2()
}

struct Builder<'n> {
    numbers: &'n mut Vec<u32>,
    /// Least bits of a node below the first.
    least: u32,
}

impl Builder<'_> {
    /// The entry for the addresses from `first` on whose last `free` bits differ. The intervals
    /// are those that reach into them.
    fn node(&mut self, intervals: &[(u64, u32)], first: u64, free: u32, bits: u32) -> u32 {
        if let [(_, class)] = intervals {
            return class | IS_LEAF;
        }
        let bits = bits.min(free);
        let place = self.numbers.len();
        debug_assert!(place.is_multiple_of(2), "places have an even number");
        self.numbers.resize(place + (1 << bits), 0);
        let mut rest = intervals;
        for index in 0..1u64 << bits {
            let start = first + (index << (free - bits));
            let end = start + (1 << (free - bits));
            // The last interval that begins at or before the start reaches into this part.
            let before = rest.partition_point(|(from, _)| *from <= start);
            rest = &rest[before.saturating_sub(1)..];
            let count = rest.partition_point(|(from, _)| *from < end);
            let inside = &rest[..count];
            let next_bits = (bits_for(count) + 1).clamp(self.least, 10);
            self.numbers[place + index as usize] = self.node(inside, start, free - bits, next_bits);
        }
        (place as u32 / 2) << 4 | bits
    }
}
