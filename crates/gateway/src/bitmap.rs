//! Bitmaps of rules in blocks, each different block once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::layout::BLOCK_WORDS;

/// 512 rules.
pub(crate) type Block = [u64; BLOCK_WORDS];

/// Blocks by number, each once. Number 0 is the empty one.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    numbers: HashMap<Block, u32>,
}

impl Blocks {
    pub(crate) fn new() -> Blocks {
        Blocks {
            blocks: vec![[0; BLOCK_WORDS]],
            numbers: HashMap::from([([0; BLOCK_WORDS], 0)]),
        }
    }

    /// The number of a block.
    pub(crate) fn number(&mut self, block: &Block) -> u32 {
        match self.numbers.entry(*block) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let number = self.blocks.len() as u32;
                self.blocks.push(*block);
                *entry.insert(number)
            }
        }
    }

    /// All blocks by number.
    pub(crate) fn all(&self) -> &[Block] {
        &self.blocks
    }
}

/// A bitmap that changes bit by bit, and the numbers of its blocks.
#[derive(Clone, Debug)]
pub(crate) struct Bitmap {
    blocks: Vec<Block>,
    numbers: Vec<u32>,
    changed: Vec<usize>,
    /// Exclusive or of a number for each set bit: equal bitmaps have equal ones.
    signature: u64,
}

impl Bitmap {
    /// An empty bitmap of so many rules.
    pub(crate) fn new(rules: usize) -> Bitmap {
        let count = rules.div_ceil(64 * BLOCK_WORDS);
        Bitmap {
            blocks: vec![[0; BLOCK_WORDS]; count],
            numbers: vec![0; count],
            changed: Vec::new(),
            signature: 0,
        }
    }

    /// Inverts the bit of a rule, counted from 0.
    pub(crate) fn flip(&mut self, rule: u32) {
        let (word, bit) = (rule as usize / 64, rule % 64);
        let block = word / BLOCK_WORDS;
        self.blocks[block][word % BLOCK_WORDS] ^= 1 << bit;
        if self.changed.last() != Some(&block) {
            self.changed.push(block);
        }
        // The output function of SplitMix64.
        let mut mixed = u64::from(rule).wrapping_add(1);
        mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.signature ^= mixed ^ mixed >> 31;
    }

    /// The numbers of its blocks, with those that changed entered.
    pub(crate) fn numbers(&mut self, all: &mut Blocks) -> (&[u32], u64) {
        for block in self.changed.drain(..) {
            self.numbers[block] = all.number(&self.blocks[block]);
        }
        (&self.numbers, self.signature)
    }
}
