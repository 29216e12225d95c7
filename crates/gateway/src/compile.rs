//! From rules to the table of the data plane.

use std::error::Error;
use std::fmt;

use crate::bitmap::Blocks;
use crate::classes::{Classes, Field};
use crate::header::{Address, Packet};
use crate::layout::*;
use crate::rules::{Action, RuleSet};
use crate::table::Table;
use crate::{ports, trie};

/// Most rules.
pub(crate) const MOST_RULES: usize = 1 << 16;
/// Most classes of source ports and of destination ports.
pub(crate) const MOST_PORT_CLASSES: u32 = 1 << 16;
/// Most bytes of a table.
pub(crate) const MOST_BYTES: usize = 256 << 20;
/// Bits that choose a set of the cache, if the key is short enough: 16,384 entries.
const SET_BITS: u32 = 13;

/// A set of rules that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapacityExceeded {
    /// Too many rules.
    Rules(usize),
    /// A field of ports would have so many classes.
    Ports(u32),
    /// The table would have so many bytes.
    Table(usize),
    /// The index of an interface does not fit.
    Interface(String),
}

impl fmt::Display for CapacityExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityExceeded::Rules(count) => {
                write!(f, "{count} rules; a set has at most {MOST_RULES}")
            }
            CapacityExceeded::Ports(count) => write!(
                f,
                "{count} classes of ports; a set has at most {MOST_PORT_CLASSES}"
            ),
            CapacityExceeded::Table(bytes) => write!(
                f,
                "the table would have {} MiB; a table has at most {} MiB",
                bytes >> 20,
                MOST_BYTES >> 20
            ),
            CapacityExceeded::Interface(name) => write!(
                f,
                "interface {name}: no interface of this name is known; name one that exists, or give its index"
            ),
        }
    }
}

impl Error for CapacityExceeded {}

/// Sizes of a compiled set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Rules.
    pub rules: usize,
    /// By field the number of classes.
    pub classes: [u32; 5],
    /// Different blocks of 512 rules.
    pub blocks: usize,
    /// Bytes that are used of the table.
    pub used: usize,
    /// Bytes of the table.
    pub table: usize,
    /// Bits of the key of the cache; none if it is too long for the cache.
    pub key_bits: Option<u32>,
}

/// A set of rules with the classes of its fields and its table.
#[derive(Debug)]
pub struct Compiled {
    classes: [Classes; 5],
    blocks: Blocks,
    table: Table,
    sizes: Sizes,
}

impl Compiled {
    /// Compiles a set of rules. Names of interfaces stand for index 0.
    ///
    /// # Errors
    /// [`CapacityExceeded`] if there are too many rules or classes.
    pub fn new(set: &RuleSet) -> Result<Compiled, CapacityExceeded> {
        Compiled::with_interfaces(set, &|name| Some(name.parse().unwrap_or(0)))
    }

    /// Compiles a set of rules. `interface` finds the index of an interface by its name.
    pub fn with_interfaces(
        set: &RuleSet,
        interface: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<Compiled, CapacityExceeded> {
        let count = set.rules.len();
        if count > MOST_RULES {
            return Err(CapacityExceeded::Rules(count));
        }
        let mut blocks = Blocks::new();
        let classes = Field::ALL.map(|field| Classes::of(field, set, &mut blocks));
        for ports in &classes[Field::SourcePort as usize..] {
            if ports.count > MOST_PORT_CLASSES {
                return Err(CapacityExceeded::Ports(ports.count));
            }
        }
        let mut image = Image::default();
        image.put_bitmaps(&classes, &blocks, count);
        image.put_lookups(&classes);
        let actions = image.put_actions(set, interface)?;
        image.set(ACTIONS, actions);
        image.set(RULES, count as u32);
        let counts = classes.each_ref().map(|classes| classes.count);
        let key_bits = image.put_cache(counts);
        let used = image.numbers.len() * 4;
        let table = used.next_power_of_two();
        if table > MOST_BYTES {
            return Err(CapacityExceeded::Table(table));
        }
        Ok(Compiled {
            sizes: Sizes {
                rules: count,
                classes: counts,
                blocks: blocks.all().len(),
                used,
                table,
                key_bits,
            },
            classes,
            blocks,
            table: Table::new(image.into_words(table / 8)),
        })
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The table alone.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// Sizes of the set.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// By field the numbers of the blocks of the packet's class.
    fn block_numbers(&self, packet: &Packet) -> [&[u32]; 5] {
        let value = |field| match field {
            Field::Source | Field::Destination => {
                let address = if field == Field::Source {
                    packet.source
                } else {
                    packet.destination
                };
                match address {
                    Address::V4(address) => (u128::from(address), false),
                    Address::V6(address) => (address, true),
                }
            }
            Field::Protocol => (packet.header.value(packet.protocol).into(), false),
            Field::SourcePort => (port(packet.source_port), false),
            Field::DestinationPort => (port(packet.destination_port), false),
        };
        Field::ALL.map(|field| {
            let classes = &self.classes[field as usize];
            let (value, is_v6) = value(field);
            let intervals = match is_v6 {
                true => &classes.intervals_v6,
                false => &classes.intervals,
            };
            let class = Classes::find(intervals, value) as usize;
            let per_class = self.sizes.rules.div_ceil(64 * BLOCK_WORDS);
            &classes.blocks[class * per_class..][..per_class]
        })
    }

    /// The rules, from 1 in ascending order, that match the packet.
    pub(crate) fn rules_of(&self, packet: &Packet) -> impl Iterator<Item = u32> + '_ {
        let fields = self.block_numbers(packet);
        let all = self.blocks.all();
        (0..fields[0].len()).flat_map(move |at| {
            let blocks = fields.map(|numbers| &all[numbers[at] as usize]);
            (0..BLOCK_WORDS).flat_map(move |word| {
                let both = blocks
                    .iter()
                    .fold(u64::MAX, |both, block| both & block[word]);
                let set = (0..64).filter(move |bit| both >> bit & 1 != 0);
                set.map(move |bit| ((at * BLOCK_WORDS + word) * 64 + bit + 1) as u32)
            })
        })
    }

    /// By field the rules, from 1, whose field matches the packet.
    pub fn matching(&self, packet: &Packet) -> [Vec<u32>; 5] {
        self.block_numbers(packet).map(|numbers| {
            let words = numbers
                .iter()
                .flat_map(|number| self.blocks.all()[*number as usize]);
            let bits = words.enumerate().flat_map(|(at, word)| {
                let set = (0..64).filter(move |bit| word >> bit & 1 != 0);
                set.map(move |bit| at as u32 * 64 + bit + 1)
            });
            bits.collect()
        })
    }
}

fn port(port: Option<u16>) -> u128 {
    port.map_or(NO_PORT, u32::from).into()
}

/// A table that is being written, in numbers of 4 bytes.
struct Image {
    numbers: Vec<u32>,
}

impl Default for Image {
    fn default() -> Image {
        Image {
            numbers: vec![0; HEADER_WORDS * 2],
        }
    }
}

impl Image {
    fn set(&mut self, index: usize, value: u32) {
        self.numbers[index] = value;
    }

    /// Rounds up to whole cache lines; returns the place of what follows.
    fn align(&mut self) -> u32 {
        let len = self.numbers.len().next_multiple_of(16);
        self.numbers.resize(len, 0);
        len as u32
    }

    fn push_word(&mut self, word: u64) {
        self.numbers.extend([word as u32, (word >> 32) as u32]);
    }

    fn put_bitmaps(&mut self, classes: &[Classes; 5], blocks: &Blocks, rules: usize) {
        let summary_words = rules.div_ceil(64 * 64);
        let per_class = rules.div_ceil(64 * BLOCK_WORDS);
        self.set(SUMMARY_WORDS, summary_words as u32);
        self.set(BLOCKS, per_class as u32);
        for (field, classes) in classes.iter().enumerate() {
            let place = self.align() / 2;
            self.set(SUMMARIES + field, place);
            for class in 0..classes.count as usize {
                let numbers = &classes.blocks[class * per_class..][..per_class];
                for group in 0..summary_words {
                    let part = &numbers[group * 8..per_class.min(group * 8 + 8)];
                    let words = part.iter().flat_map(|it| blocks.all()[*it as usize]);
                    let summary = words.enumerate().fold(0, |summary, (at, word)| {
                        summary | u64::from(word != 0) << at
                    });
                    self.push_word(summary);
                }
            }
            let place = self.align();
            self.set(DIRECTORIES + field, place);
            self.numbers.extend_from_slice(&classes.blocks);
        }
        let place = self.align() / 2;
        self.set(BITMAPS, place);
        for word in blocks.all().iter().flatten() {
            self.push_word(*word);
        }
    }

    fn put_lookups(&mut self, classes: &[Classes; 5]) {
        for side in [Field::Source, Field::Destination] {
            let classes = &classes[side as usize];
            let side = side as usize;
            let place = self.align() / 2;
            self.set(BOUNDS + side, place);
            self.set(BOUND_COUNTS + side, classes.intervals_v6.len() as u32);
            for (first, _) in &classes.intervals_v6 {
                self.push_word((first >> 64) as u64);
                self.push_word(*first as u64);
            }
            let place = self.align();
            self.set(BOUND_CLASSES + side, place);
            let bounds = classes.intervals_v6.iter();
            self.numbers.extend(bounds.map(|(_, class)| class));
            self.align();
            let root = trie::build(&classes.intervals, &mut self.numbers);
            self.set(TRIES + side, root);
        }
        let place = self.align();
        self.set(PROTOCOLS, place);
        let protocols = &classes[Field::Protocol as usize].intervals;
        let values = PROTOCOL_VALUES.into();
        let classes_of = (0..values).map(|value| Classes::find(protocols, value));
        self.numbers.extend(classes_of);
        for (side, field) in [Field::SourcePort, Field::DestinationPort]
            .iter()
            .enumerate()
        {
            let place = self.align();
            self.set(PORTS + side, place);
            let pages = ports::build(&classes[*field as usize].intervals);
            let pairs = pages.chunks_exact(2);
            let pairs = pairs.map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16);
            self.numbers.extend(pairs);
        }
    }

    fn put_actions(
        &mut self,
        set: &RuleSet,
        interface: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<u32, CapacityExceeded> {
        let place = self.align();
        let rules = set.rules.iter().map(|rule| &rule.action);
        let all = [&set.default].into_iter().chain(rules);
        for action in all.chain([&set.other, &set.malformed]) {
            let number = match action {
                Action::Pass => 0,
                Action::Drop => 1,
                Action::Redirect(name) => {
                    let unknown = || CapacityExceeded::Interface(name.clone());
                    let index = interface(name).ok_or_else(unknown)?;
                    2 | index.checked_mul(8).ok_or_else(unknown)?
                }
                Action::Count => 3,
                Action::Sample(rate) => 4 | rate << 3,
            };
            self.numbers.push(number);
        }
        Ok(place)
    }

    /// The cache, if the five classes and a rule fit an entry: returns the bits of the key.
    fn put_cache(&mut self, counts: [u32; 5]) -> Option<u32> {
        let widths = counts.map(|count| count.next_power_of_two().ilog2());
        let total: u32 = widths.iter().sum();
        let set_bits = SET_BITS.max((total + RULE_BITS).saturating_sub(64));
        let place = self.align() / 2;
        self.set(CACHE, place);
        if total > 63 || set_bits > SET_BITS + 4 {
            // A set to which all keys lead; it is written, and never read.
            self.push_word(0);
            self.push_word(0);
            return None;
        }
        let mut shift = widths[0];
        for (field, width) in widths[1..].iter().enumerate() {
            self.set(KEY_SHIFTS + field, shift);
            shift += width;
        }
        let key_bits = total.max(set_bits);
        self.set(CACHE_SET_BITS, set_bits);
        self.set(KEY_BITS, key_bits);
        let len = self.numbers.len() + (4 << set_bits);
        self.numbers.resize(len, 0);
        Some(key_bits)
    }

    /// The numbers in pairs, and zeros up to `count` words, which take no memory until they are
    /// written.
    fn into_words(self, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        for (word, pair) in words.iter_mut().zip(self.numbers.chunks(2)) {
            let high = pair.get(1).copied().unwrap_or(0);
            *word = u64::from(pair[0]) | u64::from(high) << 32;
        }
        words
    }
}
