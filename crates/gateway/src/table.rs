//! The table that the data plane reads, and the same lookup in Rust.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::compile::MOST_BYTES;
use crate::header::{Address, Header, Packet};
use crate::layout::*;
use crate::rules::Match;

/// The array that programs read, in numbers of 8 bytes; a power of two of them.
#[derive(Debug)]
pub struct Table {
    words: Vec<AtomicU64>,
    last: u64,
}

impl Table {
    pub(crate) fn new(words: Vec<u64>) -> Table {
        Table {
            last: words.len() as u64 - 1,
            words: words.into_iter().map(AtomicU64::new).collect(),
        }
    }

    /// The table of so many words of which these are the first, and all others zero; `None` if no
    /// table has them.
    pub(crate) fn of_used(len: usize, used: &[u8]) -> Option<Table> {
        let (used, rest) = used.as_chunks::<8>();
        let is_table = len.is_power_of_two() && (HEADER_WORDS..=MOST_BYTES / 8).contains(&len);
        if !is_table || !rest.is_empty() || used.len() > len {
            return None;
        }
        let mut words = vec![0; len];
        for (word, bytes) in words.iter_mut().zip(used) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(Table::new(words))
    }

    /// Its words up to the last one that is not zero.
    pub(crate) fn used(&self) -> impl ExactSizeIterator<Item = u64> {
        let last = self.words.iter().rposition(|word| word.load(Relaxed) != 0);
        let used = &self.words[..last.map_or(0, |last| last + 1)];
        used.iter().map(|word| word.load(Relaxed))
    }

    /// Its bytes, little-endian as the data plane is.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.words.iter().map(|word| word.load(Relaxed));
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Bytes of it.
    pub fn size(&self) -> usize {
        self.words.len() * 8
    }

    /// Index of the last number of 8 bytes: the variable `last_word` of the data plane.
    pub fn last_word(&self) -> u64 {
        self.last
    }

    /// Number of rules.
    pub fn rules(&self) -> usize {
        self.header(RULES) as usize
    }

    /// Sets the index of the first counter in the bytes of a table.
    pub fn set_counters_of(bytes: &mut [u8], first: u32) {
        bytes[4 * COUNTERS..4 * COUNTERS + 4].copy_from_slice(&first.to_le_bytes());
    }

    /// The rule of a packet, found as the data plane finds it.
    pub fn lookup(&self, header: &Header) -> Match {
        let rule = match header {
            Header::Ip(packet) => self.cached_rule(self.classes(packet)),
            Header::Other => self.header(RULES) + 1,
            Header::Malformed => self.header(RULES) + 2,
        };
        Match { rule }
    }

    #[inline(always)]
    fn word(&self, place: u64) -> u64 {
        self.words[(place & self.last) as usize].load(Relaxed)
    }

    #[inline(always)]
    fn number(&self, place: u64) -> u32 {
        (self.word(place / 2) >> (place % 2 * 32)) as u32
    }

    #[inline(always)]
    fn short(&self, place: u64) -> u16 {
        (self.word(place / 4) >> (place % 4 * 16)) as u16
    }

    #[inline(always)]
    fn header(&self, index: usize) -> u32 {
        self.number(index as u64)
    }

    /// The classes of the five fields of a packet.
    #[inline(always)]
    pub(crate) fn classes(&self, packet: &Packet) -> [u32; 5] {
        let [source, destination] =
            [(packet.source, 0), (packet.destination, 1)].map(|(address, side)| match address {
                Address::V4(address) => self.class_of_ipv4(self.header(TRIES + side), address),
                Address::V6(address) => self.class_of_ipv6(side, address),
            });
        let [from, to] =
            [(packet.source_port, 0), (packet.destination_port, 1)].map(|(port, side)| {
                let port = port.map_or(NO_PORT, u32::from);
                let pages = u64::from(self.header(PORTS + side)) * 2;
                let page = self.short(pages + u64::from(port / PAGE));
                let place = u64::from(page) * u64::from(PAGE) + u64::from(port % PAGE);
                u32::from(self.short(pages + PAGE_INDEX as u64 + place))
            });
        let protocol = u64::from(packet.header.value(packet.protocol));
        let protocol = self.number(u64::from(self.header(PROTOCOLS)) + protocol);
        [source, destination, protocol, from, to]
    }

    #[inline(always)]
    fn class_of_ipv4(&self, root: u32, address: u32) -> u32 {
        let mut entry = root;
        let mut address = u64::from(address) << 32;
        while entry & IS_LEAF == 0 {
            let bits = entry & 15;
            entry = self.number(u64::from(entry >> 4) * 2 + (address >> (64 - bits)));
            address <<= bits;
        }
        entry & !IS_LEAF
    }

    fn class_of_ipv6(&self, side: usize, address: u128) -> u32 {
        let bounds = u64::from(self.header(BOUNDS + side));
        let mut count = u64::from(self.header(BOUND_COUNTS + side));
        let mut low = 0;
        while count >= 2 {
            let middle = low + count / 2;
            let upper = u128::from(self.word(bounds + middle * 2));
            let bound = upper << 64 | u128::from(self.word(bounds + middle * 2 + 1));
            if bound <= address {
                low = middle;
                count -= count / 2;
            } else {
                count /= 2;
            }
        }
        self.number(u64::from(self.header(BOUND_CLASSES + side)) + low) & !IS_LEAF
    }

    #[inline(always)]
    fn cached_rule(&self, classes: [u32; 5]) -> u32 {
        let set_bits = self.header(CACHE_SET_BITS);
        let key_bits = self.header(KEY_BITS);
        let mask = (1u64 << (key_bits & 63)) - 1;
        let mut key = u64::from(classes[0]);
        for (field, class) in classes[1..].iter().enumerate() {
            key |= u64::from(*class) << (self.header(KEY_SHIFTS + field) & 63);
        }
        key = key.wrapping_mul(SPREAD[0]) & mask;
        key ^= key >> (key_bits / 2);
        key = key.wrapping_mul(SPREAD[1]) & mask;
        let rest = (key_bits - set_bits) & 63;
        let place = u64::from(self.header(CACHE)) + (key >> rest) * 2;
        let tag = (key & ((1 << rest) - 1)) << RULE_BITS;
        let first = self.word(place);
        let limit = (1 << RULE_BITS) - 1;
        if set_bits != 0 {
            for entry in [first, self.word(place + 1)] {
                if (entry ^ tag).wrapping_sub(1) < limit {
                    return (entry & limit) as u32 - 1;
                }
            }
        }
        let rule = self.first_rule(classes);
        self.words[((place + 1) & self.last) as usize].store(first, Relaxed);
        let entry = tag | u64::from(rule + 1);
        self.words[(place & self.last) as usize].store(entry, Relaxed);
        rule
    }

    fn first_rule(&self, classes: [u32; 5]) -> u32 {
        let summary_words = self.header(SUMMARY_WORDS);
        let blocks = self.header(BLOCKS);
        let bitmaps = u64::from(self.header(BITMAPS));
        let place = |table: usize, field: usize, size: u32| {
            u64::from(self.header(table + field)) + u64::from(classes[field]) * u64::from(size)
        };
        let summaries: [u64; 5] = std::array::from_fn(|it| place(SUMMARIES, it, summary_words));
        let directories: [u64; 5] = std::array::from_fn(|it| place(DIRECTORIES, it, blocks));
        for group in 0..u64::from(summary_words) {
            let mut left = summaries
                .iter()
                .fold(u64::MAX, |left, summary| left & self.word(summary + group));
            while left != 0 {
                let word = group * 64 + u64::from(left.trailing_zeros());
                left &= left - 1;
                let rules = directories.iter().fold(u64::MAX, |rules, directory| {
                    let block = u64::from(self.number(directory + word / 8));
                    rules & self.word(bitmaps + block * 8 + word % 8)
                });
                if rules != 0 {
                    return (word * 64) as u32 + rules.trailing_zeros() + 1;
                }
            }
        }
        0
    }
}
