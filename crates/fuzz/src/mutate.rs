//! Mutator: small random changes of an input.

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

    /// One to eight changes of `input`; `other` lends pieces. Half of the time all of
    /// them keep every other byte where it is: binary formats point at places by
    /// offset, and what lies deep in them is not reached once these are off.
    pub fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        let in_place = self.below(2) == 0;
        for _ in 0..=self.below(8) {
            if bytes.is_empty() {
                bytes.push(self.random.next_u64() as u8);
            } else if in_place {
                self.change_in_place(&mut bytes, other);
            } else {
                self.change(&mut bytes, other);
            }
            bytes.truncate(LONGEST);
        }
        bytes
    }

    /// Changes bytes where they are.
    fn change_in_place(&mut self, bytes: &mut [u8], other: &[u8]) {
        let at = self.below(bytes.len());
        match self.below(7) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.random.next_u64() as u8,
            2 => bytes[at] = bytes[at].wrapping_add(self.below(9) as u8).wrapping_sub(4),
            3 | 4 => self.overwrite_with_edge(bytes, at),
            // What stands elsewhere is often of the same shape: numbers of types and
            // sections, whole records.
            5 => {
                let len = 1 + self.below(32);
                let lender = match self.below(2) {
                    0 if !other.is_empty() => other,
                    _ => &*bytes,
                };
                let from = self.below(lender.len());
                let piece = lender[from..].iter().copied().take(len);
                let piece: Vec<u8> = piece.collect();
                for (byte, new) in bytes[at..].iter_mut().zip(piece) {
                    *byte = new;
                }
            }
            _ if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                for (byte, new) in bytes[at..].iter_mut().zip(word.bytes()) {
                    *byte = new;
                }
            }
            _ => bytes[at] = 0,
        }
    }

    /// Changes what the bytes are and where they lie.
    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len());
        let range = at..(at + 1 + self.below(32)).min(bytes.len());
        match self.below(8) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => self.overwrite_with_edge(bytes, at),
            2 => drop(bytes.drain(range)),
            3 => {
                let copy = bytes[range].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.truncate(at),
            5 if !other.is_empty() => {
                let from = self.below(other.len());
                let to = (from + 1 + self.below(128)).min(other.len());
                bytes.splice(range, other[from..to].iter().copied());
            }
            6 if !self.words.is_empty() => {
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
