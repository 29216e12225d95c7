//! Classes of a field: values that the same rules match.
//!
//! A sweep over the values in ascending order inverts the bits of the rules whose ranges begin
//! or end, and looks up the bitmap between two bounds among those that were there before.
//! Time and memory are proportional to the number of ranges and of classes.

use std::collections::HashMap;

use crate::bitmap::{Bitmap, Blocks};
use crate::rules::{RuleSet, protocol_values};

/// A field that rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Protocol, and what there is of its header.
    Protocol,
    /// Source port or type of ICMP.
    SourcePort,
    /// Destination port or code of ICMP.
    DestinationPort,
}

impl Field {
    /// All fields, in the order of the table.
    pub const ALL: [Field; 5] = [
        Field::Source,
        Field::Destination,
        Field::Protocol,
        Field::SourcePort,
        Field::DestinationPort,
    ];

    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Field::Source => "source address",
            Field::Destination => "destination address",
            Field::Protocol => "protocol",
            Field::SourcePort => "source port",
            Field::DestinationPort => "destination port",
        }
    }
}

/// First values of intervals, ascending from 0, with the class of each.
pub(crate) type Intervals = Vec<(u128, u32)>;

/// The classes of a field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// Intervals of values; of addresses those of IPv4.
    pub(crate) intervals: Intervals,
    /// Intervals of IPv6 addresses.
    pub(crate) intervals_v6: Intervals,
    /// By class the numbers of its blocks, one after the other.
    pub(crate) blocks: Vec<u32>,
    /// Number of classes.
    pub(crate) count: u32,
    by_signature: HashMap<u64, Vec<u32>>,
}

impl Classes {
    /// The classes of a field of a set of rules.
    pub(crate) fn of(field: Field, set: &RuleSet, blocks: &mut Blocks) -> Classes {
        let mut classes = Classes::default();
        let count = set.rules.len();
        let ranges = |range: &dyn Fn(usize) -> Vec<(u128, u128)>| {
            let of_rule = |rule| range(rule).into_iter().map(move |it| (it, rule as u32));
            (0..count).flat_map(of_rule).collect::<Vec<_>>()
        };
        let rules = &set.rules;
        match field {
            Field::Source | Field::Destination => {
                let of = |rule: usize, is_v6| match field {
                    Field::Source => rules[rule].source.ranges(is_v6),
                    _ => rules[rule].destination.ranges(is_v6),
                };
                let v4 = ranges(&|rule| of(rule, false));
                classes.intervals = classes.sweep(v4, count, blocks);
                let v6 = ranges(&|rule| of(rule, true));
                classes.intervals_v6 = classes.sweep(v6, count, blocks);
            }
            Field::Protocol => {
                let protocols = ranges(&|rule| protocol_values(&rules[rule]));
                classes.intervals = classes.sweep(protocols, count, blocks);
            }
            Field::SourcePort => {
                let ports = ranges(&|rule| rules[rule].source_ports.values());
                classes.intervals = classes.sweep(ports, count, blocks);
            }
            Field::DestinationPort => {
                let ports = ranges(&|rule| rules[rule].destination_ports.values());
                classes.intervals = classes.sweep(ports, count, blocks);
            }
        }
        classes.by_signature = HashMap::new();
        classes
    }

    /// The intervals of ranges, each with its rule.
    fn sweep(
        &mut self,
        ranges: Vec<((u128, u128), u32)>,
        rules: usize,
        blocks: &mut Blocks,
    ) -> Intervals {
        let mut bitmap = Bitmap::new(rules);
        let mut bounds: Vec<(u128, u32)> = Vec::with_capacity(2 * ranges.len());
        for ((first, last), rule) in ranges {
            match first {
                0 => bitmap.flip(rule),
                _ => bounds.push((first, rule)),
            }
            if let Some(next) = last.checked_add(1) {
                bounds.push((next, rule));
            }
        }
        bounds.sort_unstable();
        let mut intervals = vec![(0, self.class(&mut bitmap, blocks))];
        for group in bounds.chunk_by(|a, b| a.0 == b.0) {
            for (_, rule) in group {
                bitmap.flip(*rule);
            }
            let class = self.class(&mut bitmap, blocks);
            if intervals.last().map(|(_, class)| *class) != Some(class) {
                intervals.push((group[0].0, class));
            }
        }
        intervals
    }

    /// The class of a bitmap.
    fn class(&mut self, bitmap: &mut Bitmap, blocks: &mut Blocks) -> u32 {
        let (numbers, signature) = bitmap.numbers(blocks);
        let len = numbers.len();
        let known = self.by_signature.entry(signature).or_default();
        let blocks = &self.blocks;
        let found = known
            .iter()
            .find(|class| blocks[**class as usize * len..][..len] == *numbers);
        if let Some(class) = found {
            return *class;
        }
        let class = self.count;
        known.push(class);
        self.blocks.extend_from_slice(numbers);
        self.count += 1;
        class
    }

    /// The class of a value among intervals.
    pub(crate) fn find(intervals: &Intervals, value: u128) -> u32 {
        let after = intervals.partition_point(|(first, _)| *first <= value);
        intervals[after - 1].1
    }
}
