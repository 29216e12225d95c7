//! The sixteen 32-bit words of `struct seccomp_data` that a filter can load.

use std::fmt;

use classic::SeccompData;
use spec::context::SECCOMP_DATA_SIZE;

use crate::arch::ByteOrder;

/// One aligned word of `struct seccomp_data`: number, architecture, then instruction
/// pointer and arguments, each with its low half first. On a big-endian machine the high
/// half stands first in memory ([`Word::at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(u8);

impl Word {
    /// Number of entries.
    pub const COUNT: usize = SECCOMP_DATA_SIZE / 4;
    /// The system call number.
    pub const NR: Word = Word(0);
    /// The architecture.
    pub const ARCH: Word = Word(1);

    /// The word at a byte offset, if a filter may load there.
    pub const fn at_offset(offset: u32) -> Option<Word> {
        if offset < SECCOMP_DATA_SIZE as u32 && offset.is_multiple_of(4) {
            Some(Word((offset / 4) as u8))
        } else {
            None
        }
    }

    /// The word at a byte offset on a machine of a byte order.
    pub const fn at(offset: u32, order: ByteOrder) -> Option<Word> {
        match (Word::at_offset(offset), order) {
            (Some(Word(at @ 2..)), ByteOrder::Big) => Some(Word(at ^ 1)),
            (word, _) => word,
        }
    }

    /// Its byte offset on a machine of a byte order.
    pub const fn offset_in(self, order: ByteOrder) -> u32 {
        match (self.0, order) {
            (2.., ByteOrder::Big) => (self.0 ^ 1) as u32 * 4,
            _ => self.offset(),
        }
    }

    /// The low half of an argument (0 to 5).
    pub const fn arg_low(index: u8) -> Word {
        assert!(index < 6);
        Word(4 + 2 * index)
    }

    /// The high half of an argument (0 to 5).
    pub const fn arg_high(index: u8) -> Word {
        assert!(index < 6);
        Word(5 + 2 * index)
    }

    /// Index, 0 to 15.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its byte offset.
    pub const fn offset(self) -> u32 {
        self.0 as u32 * 4
    }

    /// Its value in a system call's data.
    pub fn of(self, data: &SeccompData) -> u32 {
        data.word(self.offset()).unwrap_or(0)
    }

    /// Sets its value in a system call's data.
    pub fn set(self, data: &mut SeccompData, value: u32) {
        let wide = match self.0 {
            0 => return data.nr = value as i32,
            1 => return data.arch = value,
            2 | 3 => &mut data.instruction_pointer,
            at => &mut data.args[usize::from(at - 4) / 2],
        };
        let value = u64::from(value);
        *wide = if self.0.is_multiple_of(2) {
            *wide >> 32 << 32 | value
        } else {
            *wide & 0xffff_ffff | value << 32
        };
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("nr"),
            1 => f.write_str("arch"),
            2 => f.write_str("(u32)ip"),
            3 => f.write_str("(ip >> 32)"),
            at if at.is_multiple_of(2) => write!(f, "(u32)arg{}", (at - 4) / 2),
            at => write!(f, "(arg{} >> 32)", (at - 4) / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_was_set() {
        let mut data = SeccompData::default();
        let words: Vec<Word> = (0..64).step_by(4).filter_map(Word::at_offset).collect();
        assert_eq!(words.len(), Word::COUNT);
        for (value, word) in (7..).zip(&words) {
            word.set(&mut data, value);
        }
        for (value, word) in (7..).zip(&words) {
            assert_eq!(word.of(&data), value, "{word}");
        }
        assert_eq!(data.args[1], 0xe_0000_000d);
        assert_eq!(Word::at_offset(2), None);
        assert_eq!(Word::at_offset(64), None);
    }
}
