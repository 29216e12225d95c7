//! String section that grows, with each string once: an open-addressing hash table of
//! offsets into the section.

use crate::StrOffset;

/// Marker of a free slot.
const FREE: u32 = u32::MAX;
/// Minimum number of slots.
const SMALLEST: usize = 64;

/// A string section that grows.
#[derive(Clone, Debug)]
pub(crate) struct Strings {
    section: Vec<u8>,
    /// Offsets by hash of the string, linear probing; the size is a power of two.
    table: Vec<u32>,
    count: usize,
}

impl Strings {
    /// Section with the empty string only.
    pub(crate) fn new() -> Strings {
        let mut strings = Strings {
            section: Vec::new(),
            table: vec![FREE; SMALLEST],
            count: 0,
        };
        strings.add(b"");
        strings
    }

    /// Section with the strings of a blob; of equal ones the first is found.
    pub(crate) fn of(section: &[u8]) -> Strings {
        let mut strings = Strings {
            section: section.to_vec(),
            table: vec![FREE; SMALLEST],
            count: 0,
        };
        let mut at = 0;
        for text in section.split_inclusive(|&byte| byte == 0) {
            let place = strings.place(&text[..text.len() - 1]);
            if strings.table[place] == FREE {
                strings.occupy(place, at);
            }
            at += text.len() as u32;
        }
        strings
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.section
    }

    /// Offset of a string without NULs, added if it is new.
    pub(crate) fn add(&mut self, text: &[u8]) -> StrOffset {
        let place = self.place(text);
        if self.table[place] == FREE {
            let at = self.section.len() as u32;
            self.section.extend_from_slice(text);
            self.section.push(0);
            self.occupy(place, at);
            return StrOffset(at);
        }
        StrOffset(self.table[place])
    }

    fn occupy(&mut self, place: usize, at: u32) {
        self.table[place] = at;
        self.count += 1;
        if self.count * 4 > self.table.len() * 3 {
            let size = self.table.len() * 2;
            let old = std::mem::replace(&mut self.table, vec![FREE; size]);
            for at in old.into_iter().filter(|&at| at != FREE) {
                let place = self.place(self.text(at));
                self.table[place] = at;
            }
        }
    }

    fn text(&self, at: u32) -> &[u8] {
        let rest = &self.section[at as usize..];
        let len = rest.iter().position(|&byte| byte == 0);
        &rest[..len.unwrap_or(rest.len())]
    }

    /// Slot of a string, or the free slot for it.
    fn place(&self, text: &[u8]) -> usize {
        let mask = self.table.len() - 1;
        let mut place = hash(text) as usize & mask;
        while self.table[place] != FREE && !self.is_at(self.table[place], text) {
            place = (place + 1) & mask;
        }
        place
    }

    fn is_at(&self, at: u32, text: &[u8]) -> bool {
        let rest = &self.section[at as usize..];
        rest.starts_with(text) && rest.get(text.len()) == Some(&0)
    }
}

fn hash(text: &[u8]) -> u64 {
    let mixed = text.chunks(8).fold(0u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    mixed ^ mixed >> 32
}
