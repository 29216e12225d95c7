//! A blob of BTF as a table: a head for each type, the words behind it, and the strings by number.

use std::collections::HashMap;

/// Bytes of the header of a blob.
const HEADER: usize = 24;

/// What a word of a type is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Number of a string.
    Name,
    /// Id of a type.
    Type,
    /// Anything else.
    Plain,
}

/// The words behind the head of a type of a kind: those of one element, and whether there is one for each
/// of the elements that the head counts.
pub(super) fn words(kind: u32) -> (&'static [Word], bool) {
    use Word::{Name, Plain, Type};
    match kind {
        INT | VAR | DECL_TAG => (&[Plain], false),
        ARRAY => (&[Type, Type, Plain], false),
        STRUCT | UNION => (&[Name, Type, Plain], true),
        ENUM => (&[Name, Plain], true),
        ENUM64 => (&[Name, Plain, Plain], true),
        PROTO => (&[Name, Type], true),
        DATASEC => (&[Type, Plain, Plain], true),
        _ => (&[], false),
    }
}

/// What the last word of the head of a type of a kind is.
pub(super) const fn last_word(kind: u32) -> Word {
    match kind {
        INT | ARRAY | STRUCT | UNION | ENUM | FWD | DATASEC | FLOAT | ENUM64 => Word::Plain,
        _ => Word::Type,
    }
}

pub(super) const INT: u32 = 1;
pub(super) const ARRAY: u32 = 3;
pub(super) const STRUCT: u32 = 4;
pub(super) const UNION: u32 = 5;
pub(super) const ENUM: u32 = 6;
pub(super) const FWD: u32 = 7;
pub(super) const PROTO: u32 = 13;
pub(super) const VAR: u32 = 14;
pub(super) const DATASEC: u32 = 15;
pub(super) const FLOAT: u32 = 16;
pub(super) const DECL_TAG: u32 = 17;
pub(super) const ENUM64: u32 = 19;

/// The head of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Number of its name.
    pub(super) name: u32,
    /// Kind, flag and number of elements, as the blob has them.
    pub(super) info: u32,
    /// Size, or a type.
    pub(super) last: u32,
    /// Place of the words behind it.
    pub(super) first: u32,
}

impl Head {
    pub(super) const fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    pub(super) const fn elements(self) -> u32 {
        self.info & 0xffff
    }

    /// Number of words behind it.
    pub(super) fn len(self) -> usize {
        let (words, is_repeated) = words(self.kind());
        match is_repeated {
            true => words.len() * self.elements() as usize,
            false => words.len(),
        }
    }
}

/// A blob as a table. Type 0 is `void`, string 0 the empty one.
pub(super) struct Table<'a> {
    pub(super) heads: Vec<Head>,
    pub(super) all_words: Vec<u32>,
    pub(super) strings: Vec<&'a [u8]>,
}

impl<'a> Table<'a> {
    /// Reads a blob without a base; `None` if it is not of the form that kernels write.
    pub(super) fn read(blob: &'a [u8]) -> Option<Table<'a>> {
        let word = |at: usize| Some(u32::from_le_bytes(blob.get(at..at + 4)?.try_into().ok()?));
        let (types, strings) = (word(12)? as usize, word(20)? as usize);
        let is_usual = word(4)? as usize == HEADER
            && word(8)? == 0
            && word(16)? as usize == types
            && HEADER + types + strings == blob.len();
        let text = blob.get(HEADER + types..).filter(|_| is_usual)?;
        let mut numbers = HashMap::with_capacity(text.len() / 16);
        let mut all_strings = Vec::new();
        let mut at = 0;
        for string in text.strip_suffix(&[0])?.split(|&byte| byte == 0) {
            numbers.insert(at as u32, all_strings.len() as u32);
            all_strings.push(string);
            at += string.len() + 1;
        }
        let end = HEADER + types;
        let void = Head {
            name: 0,
            info: 0,
            last: 0,
            first: 0,
        };
        let (mut heads, mut all_words) = (vec![void], Vec::with_capacity(types / 4));
        let mut at = HEADER;
        while at < end {
            let head = Head {
                name: *numbers.get(&word(at)?)?,
                info: word(at + 4)?,
                last: word(at + 8)?,
                first: all_words.len() as u32,
            };
            at += 12;
            let (of_one, _) = words(head.kind());
            for index in 0..head.len() {
                let value = word(at)?;
                all_words.push(match of_one[index % of_one.len()] {
                    Word::Name => *numbers.get(&value)?,
                    Word::Type | Word::Plain => value,
                });
                at += 4;
            }
            heads.push(head);
        }
        Some(Table {
            heads,
            all_words,
            strings: all_strings,
        })
    }

    /// The words behind the head of a type.
    pub(super) fn words(&self, id: u32) -> &[u32] {
        let head = self.heads[id as usize];
        &self.all_words[head.first as usize..head.first as usize + head.len()]
    }

    pub(super) fn name(&self, id: u32) -> &'a [u8] {
        self.strings[self.heads[id as usize].name as usize]
    }

    /// Types in the order in which those of another kernel are like them: by id, or, as kernels since
    /// Linux 7.2 have them, those without a name and then the others by name.
    pub(super) fn order(&self, is_by_name: bool) -> Vec<u32> {
        let mut ids: Vec<u32> = (1..self.heads.len() as u32).collect();
        if is_by_name {
            ids.sort_by_key(|&id| self.name(id));
        }
        ids
    }
}

/// Writes the blob of these types: words of heads and those behind them, as a blob has them, and strings.
pub(super) fn blob(types: &[u32], strings: &[u8]) -> Vec<u8> {
    let (types_len, strings_len) = (4 * types.len() as u32, strings.len() as u32);
    let mut blob = Vec::with_capacity(HEADER + 4 * types.len() + strings.len());
    // Magic number and version.
    blob.extend([0x9f, 0xeb, 1, 0]);
    for word in [HEADER as u32, 0, types_len, types_len, strings_len] {
        blob.extend(word.to_le_bytes());
    }
    blob.extend(types.iter().flat_map(|word| word.to_le_bytes()));
    blob.extend(strings);
    blob
}
