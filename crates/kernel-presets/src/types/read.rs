//! Reads a difference.

use super::columns::{Column, Reader};
use super::table::{self, Head, STRUCT, Table, UNION, Word, last_word, words};
use super::{NONE, mapped};

/// The types that differences are to.
pub(crate) struct Base {
    table: Table<'static>,
    by_name: std::sync::OnceLock<Vec<u32>>,
}

impl Base {
    /// Of a blob; `None` if it is not of the form that kernels write.
    pub(crate) fn new(blob: &'static [u8]) -> Option<Base> {
        Some(Base {
            table: Table::read(blob)?,
            by_name: std::sync::OnceLock::new(),
        })
    }

    /// The blob that differs from this one by these bytes; `None` if they are not as
    /// [`difference`](super::difference) writes them.
    pub(crate) fn apply(&self, difference: &[u8]) -> Option<Vec<u8>> {
        let base = &self.table;
        let (mut columns, text) = Reader::new(difference)?;
        let strings = Strings::read(base, &mut columns, text)?;
        let is_by_name = columns.get(Column::Types)? == 1;
        let by_id;
        let order = match is_by_name {
            true => self.by_name.get_or_init(|| base.order(true)),
            false => {
                by_id = base.order(false);
                &by_id
            }
        };
        let count = columns.get(Column::Types)?;
        let from = origins(order, &mut columns, count)?;
        let mut map = vec![NONE; base.heads.len()];
        map[0] = 0;
        for (id, &of) in (0..).zip(&from) {
            if let Some(place) = map.get_mut(of as usize) {
                *place = id;
            }
        }
        let mut writing = Writing {
            base,
            strings: &strings,
            map: &map,
            columns,
            out: Vec::with_capacity(base.all_words.len() + 4 * base.heads.len()),
            name: 0,
        };
        let mut next_changed = writing.columns.get(Column::Changed)?;
        for (id, &of) in (0..).zip(&from).skip(1) {
            let is_changed = id == next_changed;
            if is_changed {
                next_changed = id + writing.columns.get(Column::Changed)?;
            }
            match of {
                NONE => writing.literal(id, None)?,
                of if is_changed => writing.literal(id, Some(of))?,
                of => writing.same(of)?,
            }
        }
        Some(table::blob(&writing.out, &strings.bytes))
    }
}

/// The strings of the kernel.
struct Strings {
    bytes: Vec<u8>,
    /// Where each is in `bytes`.
    offsets: Vec<u32>,
    /// Numbers of the other kernel's.
    map: Vec<u32>,
}

impl Strings {
    fn read(base: &Table<'_>, columns: &mut Reader<'_>, text: &[u8]) -> Option<Strings> {
        let mut strings = Strings {
            bytes: Vec::with_capacity(3 << 20),
            offsets: Vec::with_capacity(base.strings.len()),
            map: vec![NONE; base.strings.len()],
        };
        let mut new = text.split(|&byte| byte == 0);
        let mut expected = 0;
        while let Some(run) = columns.get(Column::Strings) {
            if run & 1 == 1 {
                for _ in 0..run >> 1 {
                    strings.push(new.next()?);
                }
                continue;
            }
            let first = columns.get_from(Column::Strings, expected)?;
            expected = first.checked_add(run >> 1)?;
            for number in first..expected {
                *strings.map.get_mut(number as usize)? = strings.offsets.len() as u32;
                strings.push(base.strings.get(number as usize)?);
            }
        }
        Some(strings)
    }

    fn push(&mut self, string: &[u8]) {
        self.offsets.push(self.bytes.len() as u32);
        self.bytes.extend(string);
        self.bytes.push(0);
    }
}

/// For each type the one of the other kernel that it is, or [`NONE`].
fn origins(order: &[u32], columns: &mut Reader<'_>, count: u32) -> Option<Vec<u32>> {
    let mut from = vec![NONE];
    let mut expected = 0;
    while from.len() < count as usize {
        let run = columns.get(Column::Types)?;
        if run & 1 == 1 {
            from.resize(from.len() + (run >> 1) as usize, NONE);
            continue;
        }
        let first = columns.get_from(Column::Types, expected)?;
        expected = first.checked_add(run >> 1)?;
        from.extend(order.get(first as usize..expected as usize)?);
    }
    Some(from)
}

/// Types that are being written.
struct Writing<'r> {
    base: &'r Table<'static>,
    strings: &'r Strings,
    map: &'r [u32],
    columns: Reader<'r>,
    out: Vec<u32>,
    /// Number of the name that was written last.
    name: u32,
}

impl Writing<'_> {
    fn push_name(&mut self, number: u32) -> Option<()> {
        self.out.push(*self.strings.offsets.get(number as usize)?);
        Some(())
    }

    /// A type that is the other kernel's.
    fn same(&mut self, of: u32) -> Option<()> {
        let base = self.base;
        let head = *base.heads.get(of as usize)?;
        self.push_name(mapped(&self.strings.map, head.name))?;
        let last = match last_word(head.kind()) {
            Word::Type => mapped(self.map, head.last),
            Word::Name | Word::Plain => head.last,
        };
        self.out.extend([head.info, last]);
        let (of_one, _) = words(head.kind());
        if of_one.is_empty() {
            return Some(());
        }
        for (&word, kind) in base.words(of).iter().zip(of_one.iter().cycle()) {
            match kind {
                Word::Name => self.push_name(mapped(&self.strings.map, word))?,
                Word::Type => self.out.push(mapped(self.map, word)),
                Word::Plain => self.out.push(word),
            }
        }
        Some(())
    }

    /// A type that is written, beside the other kernel's.
    fn literal(&mut self, id: u32, of: Option<u32>) -> Option<()> {
        let heads = Column::Heads;
        let differs = match of {
            Some(_) => self.columns.get(heads)?,
            None => 0b1111,
        };
        let base = match of {
            Some(of) => self.base.heads.get(of as usize).copied(),
            None => None,
        };
        let info = match base.filter(|_| differs & 1 == 0) {
            Some(base) => base.info,
            None => self.columns.get(heads)?.rotate_right(8),
        };
        let name = match base.filter(|_| differs & 2 == 0) {
            Some(base) => mapped(&self.strings.map, base.name),
            None => {
                self.name = self.columns.get_from(heads, self.name)?;
                self.name
            }
        };
        let head = Head {
            info,
            name,
            last: 0,
            first: 0,
        };
        let last = match (base.filter(|_| differs & 4 == 0), last_word(head.kind())) {
            (Some(base), Word::Type) => mapped(self.map, base.last),
            (Some(base), _) => base.last,
            (None, Word::Type) => self.columns.get_from(heads, id)?,
            (None, _) => self.columns.get(heads)?,
        };
        self.push_name(name)?;
        self.out.extend([info, last]);
        let of_base = of.map_or(&[][..], |of| self.base.words(of));
        match words(head.kind()) {
            (_, true) => self.elements(head, of_base),
            (of_one, false) => {
                for (index, kind) in of_one.iter().enumerate() {
                    let word = match (of_base.get(index).filter(|_| differs & 8 == 0), kind) {
                        (Some(&word), Word::Type) => mapped(self.map, word),
                        (Some(&word), _) => word,
                        (None, Word::Type) => self.columns.get_from(Column::Referred, id)?,
                        (None, _) => self.columns.get(Column::Numbers)?,
                    };
                    self.out.push(word);
                }
                Some(())
            }
        }
    }

    /// The elements of a type, beside the other kernel's.
    fn elements(&mut self, head: Head, of_base: &[u32]) -> Option<()> {
        let (of_one, _) = words(head.kind());
        let mut others = of_base.chunks_exact(of_one.len());
        // Of each word of an element the last one, and how far it is from the other kernel's.
        let (mut before, mut shifts) = ([0; 3], [0u32; 3]);
        for _ in 0..head.elements() {
            let code = self.columns.get(Column::Elements)?;
            let other = match code.checked_sub(1) {
                None => None,
                Some(code) => Some(others.nth((code >> 2) as usize)?),
            };
            let differs = code.wrapping_sub(1) & 3;
            for (index, kind) in of_one.iter().enumerate() {
                let differs = index > 0 && differs >> (index - 1) & 1 == 1;
                let value = match (kind, other) {
                    (Word::Name, Some(other)) => mapped(&self.strings.map, other[index]),
                    (Word::Name, None) => self.columns.get_from(Column::Elements, self.name)?,
                    (Word::Type, Some(other)) if !differs => mapped(self.map, other[index]),
                    (Word::Type, _) => self.columns.get(Column::Referred)?,
                    (Word::Plain, Some(other)) => {
                        let expected = other[index].wrapping_add(shifts[index]);
                        match differs {
                            false => expected,
                            true => self.columns.get_from(Column::Numbers, expected)?,
                        }
                    }
                    (Word::Plain, None) => self.columns.get_from(Column::Numbers, before[index])?,
                };
                if let (Word::Plain, Some(other)) = (kind, other) {
                    shifts[index] = match head.kind() {
                        STRUCT | UNION => value.wrapping_sub(other[index]),
                        _ => 0,
                    };
                }
                before[index] = value;
                match kind {
                    Word::Name => {
                        self.name = value;
                        self.push_name(value)?;
                    }
                    Word::Type | Word::Plain => self.out.push(value),
                }
            }
        }
        Some(())
    }
}
