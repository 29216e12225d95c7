//! Turns one input into another that is a little different.

use spec::SplitMix;

/// Inputs longer than this are cut: faults of parsers show on short inputs, and
/// short ones run faster.
const LONGEST: usize = 64 * 1024;

/// Values at the edges of what fields hold.
const EDGES: &[u32] = &[
    0,
    1,
    2,
    15,
    16,
    31,
    32,
    63,
    64,
    255,
    256,
    4095,
    4096,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_f000,
    0xffff_ffff,
];

/// A source of mutations that repeats for the same seed.
pub struct Mutator {
    random: SplitMix,
    words: &'static [&'static str],
}

impl Mutator {
    /// A source that starts at `seed` and knows some words of the language.
    pub fn new(seed: u64, words: &'static [&'static str]) -> Mutator {
        Mutator {
            random: SplitMix::new(seed),
            words,
        }
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.random.next_u64() % limit as u64) as usize
    }

    /// One to eight changes of `input`; `other` lends pieces.
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(8) {
            self.change(&mut bytes, other);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        if bytes.is_empty() {
            bytes.push(self.random.next_u64() as u8);
            return;
        }
        let at = self.below(bytes.len());
        let range = at..(at + 1 + self.below(32)).min(bytes.len());
        match self.below(10) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.random.next_u64() as u8,
            2 => bytes[at] = bytes[at].wrapping_add(self.below(9) as u8).wrapping_sub(4),
            3 => self.overwrite_with_edge(bytes, at),
            4 => drop(bytes.drain(range)),
            5 => {
                let copy = bytes[range].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            6 => bytes.truncate(at),
            7 if !other.is_empty() => {
                let from = self.below(other.len());
                let to = (from + 1 + self.below(128)).min(other.len());
                bytes.splice(range, other[from..to].iter().copied());
            }
            8 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                let end = if self.below(2) == 0 { at } else { range.end };
                bytes.splice(at..end, word.bytes());
            }
            _ => {
                let digits = EDGES[self.below(EDGES.len())].to_string();
                if bytes[at].is_ascii_digit() {
                    bytes.splice(at..=at, digits.bytes());
                } else {
                    self.overwrite_with_edge(bytes, at);
                }
            }
        }
    }

    fn overwrite_with_edge(&mut self, bytes: &mut [u8], at: usize) {
        let edge = EDGES[self.below(EDGES.len())];
        let encoded: &[u8] = match self.below(4) {
            0 => &edge.to_le_bytes(),
            1 => &edge.to_be_bytes(),
            2 => &(edge as u16).to_le_bytes(),
            _ => &(edge as u16).to_be_bytes(),
        };
        for (byte, new) in bytes[at..].iter_mut().zip(encoded) {
            *byte = *new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, &["word"]);
            (0..100)
                .map(|_| mutator.mutate(b"ld [12]\nret #0", b"jeq"))
                .collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn nothing_is_ever_too_long_or_out_of_bounds() {
        let mut mutator = Mutator::new(3, &[]);
        let mut bytes = Vec::new();
        for _ in 0..5_000 {
            bytes = mutator.mutate(&bytes, &[7; LONGEST]);
            assert!(bytes.len() <= LONGEST);
        }
    }
}
