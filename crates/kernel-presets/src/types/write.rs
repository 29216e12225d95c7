//! Writes a difference.
//!
//! Types correspond by what they are: kind, name and content, in which a type that is referred to counts
//! by its name, and by its own content if it has none. What is left over corresponds by kind and name.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use super::columns::{Column, Writer};
use super::table::{Head, STRUCT, Table, UNION, Word, last_word, words};
use super::{NONE, mapped};

/// Elements of the other kernel's type among which the next one is searched.
const SEARCHED: usize = 64;

/// The difference of the types of a kernel to those of another one; `None` if one of the blobs is not of
/// the form that kernels write.
pub fn difference(base: &[u8], blob: &[u8]) -> Option<Vec<u8>> {
    let (base, target) = (&Table::read(base)?, &Table::read(blob)?);
    let mut writer = Writer::default();
    let (strings, text) = write_strings(base, target, &mut writer);
    let from = correspond(base, target);
    let named = (1..target.heads.len() as u32).map(|id| target.name(id));
    let is_by_name = named.is_sorted();
    writer.put(Column::Types, is_by_name.into());
    writer.put(Column::Types, target.heads.len() as u32);
    let mut rank = vec![NONE; base.heads.len()];
    for (place, id) in (0..).zip(base.order(is_by_name)) {
        rank[id as usize] = place;
    }
    write_runs(
        &mut writer,
        Column::Types,
        from[1..].iter().map(|&of| mapped(&rank, of)),
    );
    let mut map = vec![NONE; base.heads.len()];
    map[0] = 0;
    for (id, &of) in (0..).zip(&from).skip(1) {
        if of != NONE {
            map[of as usize] = id;
        }
    }
    let mut writing = Writing {
        base,
        target,
        strings: &strings,
        map: &map,
        writer,
        name: 0,
    };
    let is_changed = |&(id, &of): &(u32, &u32)| of != NONE && !writing.is_same(of, id);
    let changed: Vec<u32> = (0..)
        .zip(&from)
        .skip(1)
        .filter(is_changed)
        .map(|(id, _)| id)
        .collect();
    let mut last = 0;
    for &id in changed.iter().chain([&NONE]) {
        writing.writer.put(Column::Changed, id - last);
        last = id;
    }
    for (id, &of) in (0..).zip(&from).skip(1) {
        if of == NONE || changed.binary_search(&id).is_ok() {
            writing.literal(id, Some(of).filter(|&of| of != NONE));
        }
    }
    Some(writing.writer.finish(&text))
}

/// Writes the strings: for each of the base's its number here, and the text of new ones.
fn write_strings(base: &Table<'_>, target: &Table<'_>, writer: &mut Writer) -> (Vec<u32>, Vec<u8>) {
    let numbers: HashMap<&[u8], u32> = base.strings.iter().copied().zip(0..).collect();
    let mut map = vec![NONE; base.strings.len()];
    let mut text = Vec::new();
    let from = target.strings.iter().zip(0..).map(|(string, number)| {
        let of = numbers.get(string).copied().unwrap_or(NONE);
        match map.get_mut(of as usize) {
            Some(place) => *place = number,
            None => {
                text.extend(*string);
                text.push(0);
            }
        }
        of
    });
    let from: Vec<u32> = from.collect();
    write_runs(writer, Column::Strings, from.into_iter());
    (map, text)
}

/// Writes numbers as runs that ascend by one, and the numbers of those between them that are [`NONE`].
fn write_runs(writer: &mut Writer, column: Column, numbers: impl Iterator<Item = u32>) {
    let mut numbers = numbers.peekable();
    let mut expected = 0;
    while let Some(first) = numbers.next() {
        let mut len = 1;
        let follows = |len: u32| if first == NONE { NONE } else { first + len };
        while numbers.next_if(|&next| next == follows(len)).is_some() {
            len += 1;
        }
        writer.put(column, len << 1 | u32::from(first == NONE));
        if first != NONE {
            writer.put_from(column, expected, first);
            expected = first + len;
        }
    }
}

/// For each type the one of the other kernel that it is, or [`NONE`].
fn correspond(base: &Table<'_>, target: &Table<'_>) -> Vec<u32> {
    let mut from = vec![NONE; target.heads.len()];
    from[0] = 0;
    let mut is_taken = vec![false; base.heads.len()];
    let keys: [fn(&Table<'_>) -> Vec<u64>; 2] = [contents, names];
    for keys in keys {
        let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
        for (id, key) in (0..).zip(keys(base)).skip(1) {
            if !is_taken[id as usize] && key != 0 {
                by_key.entry(key).or_default().push(id);
            }
        }
        by_key.values_mut().for_each(|ids| ids.reverse());
        for (id, key) in (0..).zip(keys(target)).skip(1) {
            let Some(ids) = by_key.get_mut(&key).filter(|_| from[id] == NONE) else {
                continue;
            };
            // The one behind that of the type before, if it is one of them, else the first.
            let behind = from[id - 1].wrapping_add(1);
            let place = ids.iter().rposition(|&of| of == behind);
            let place = place.or(ids.len().checked_sub(1));
            if let Some(place) = place {
                from[id] = ids.remove(place);
                is_taken[from[id] as usize] = true;
            }
        }
    }
    from
}

/// Keys by kind and name; 0 for types without a name.
fn names(table: &Table<'_>) -> Vec<u64> {
    let ids = 0..table.heads.len() as u32;
    let key = |id| match table.name(id) {
        b"" => 0,
        name => hash((table.heads[id as usize].kind(), name)),
    };
    ids.map(key).collect()
}

/// Keys by content.
fn contents(table: &Table<'_>) -> Vec<u64> {
    let mut labels = vec![0; table.heads.len()];
    let ids = 0..table.heads.len() as u32;
    ids.map(|id| content(table, id, &mut labels)).collect()
}

/// The content of a type, with the types that it refers to by their labels.
fn content(table: &Table<'_>, id: u32, labels: &mut Vec<u64>) -> u64 {
    let head = table.heads[id as usize];
    let mut hasher = DefaultHasher::new();
    (head.info, table.name(id)).hash(&mut hasher);
    match last_word(head.kind()) {
        Word::Type => label(table, head.last, labels).hash(&mut hasher),
        Word::Name | Word::Plain => head.last.hash(&mut hasher),
    }
    let (of_one, _) = words(head.kind());
    for (&word, kind) in table.words(id).iter().zip(of_one.iter().cycle()) {
        match kind {
            Word::Name => table.strings[word as usize].hash(&mut hasher),
            Word::Type => label(table, word, labels).hash(&mut hasher),
            Word::Plain => word.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// A type that is referred to: kind and name, or its content.
fn label(table: &Table<'_>, id: u32, labels: &mut Vec<u64>) -> u64 {
    let Some(&known) = labels.get(id as usize).filter(|&&known| known != 0) else {
        let label = match table.name(id) {
            b"" if id != 0 => content(table, id, labels),
            name => hash((table.heads[id as usize].kind(), name)),
        };
        labels[id as usize] = label;
        return label;
    };
    known
}

fn hash(what: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish() | 1
}

/// Types that are being written.
struct Writing<'r> {
    base: &'r Table<'r>,
    target: &'r Table<'r>,
    strings: &'r [u32],
    map: &'r [u32],
    writer: Writer,
    /// Number of the name that was written last.
    name: u32,
}

impl Writing<'_> {
    /// What a word of the other kernel's type is here.
    fn expected(&self, kind: Word, word: u32) -> u32 {
        match kind {
            Word::Name => mapped(self.strings, word),
            Word::Type => mapped(self.map, word),
            Word::Plain => word,
        }
    }

    fn is_same(&self, of: u32, id: u32) -> bool {
        let (other, head) = (self.base.heads[of as usize], self.target.heads[id as usize]);
        let (of_one, _) = words(head.kind());
        other.info == head.info
            && self.expected(Word::Name, other.name) == head.name
            && self.expected(last_word(head.kind()), other.last) == head.last
            && (self.base.words(of).iter())
                .zip(of_one.iter().cycle())
                .map(|(&word, &kind)| self.expected(kind, word))
                .eq(self.target.words(id).iter().copied())
    }

    /// Writes a type, beside the other kernel's.
    fn literal(&mut self, id: u32, of: Option<u32>) {
        let heads = Column::Heads;
        let head = self.target.heads[id as usize];
        let (of_one, is_repeated) = words(head.kind());
        let last_kind = last_word(head.kind());
        let mut differs = 0b1111;
        if let Some(of) = of {
            let other = self.base.heads[of as usize];
            let is_same_kind = other.kind() == head.kind();
            let others = self.base.words(of).iter().zip(of_one);
            let others = others.map(|(&word, &kind)| self.expected(kind, word));
            let words_differ = !is_repeated && !others.eq(self.target.words(id).iter().copied());
            differs = u32::from(other.info != head.info)
                | u32::from(self.expected(Word::Name, other.name) != head.name) << 1
                | u32::from(!is_same_kind || self.expected(last_kind, other.last) != head.last)
                    << 2
                | u32::from(!is_same_kind || words_differ) << 3;
            self.writer.put(heads, differs);
        }
        if differs & 1 != 0 {
            self.writer.put(heads, head.info.rotate_left(8));
        }
        if differs & 2 != 0 {
            self.writer.put_from(heads, self.name, head.name);
            self.name = head.name;
        }
        if differs & 4 != 0 {
            match last_kind {
                Word::Type => self.writer.put_from(heads, id, head.last),
                Word::Name | Word::Plain => self.writer.put(heads, head.last),
            }
        }
        if is_repeated {
            let of_base = of.map_or(&[][..], |of| self.base.words(of));
            self.elements(id, head, of_base);
        } else if differs & 8 != 0 {
            for (&word, kind) in self.target.words(id).iter().zip(of_one) {
                match kind {
                    Word::Type => self.writer.put_from(Column::Referred, id, word),
                    Word::Name | Word::Plain => self.writer.put(Column::Numbers, word),
                }
            }
        }
    }

    /// Writes the elements of a type, beside the other kernel's.
    fn elements(&mut self, id: u32, head: Head, of_base: &[u32]) {
        let (of_one, _) = words(head.kind());
        let mut others = of_base.chunks_exact(of_one.len());
        let (mut before, mut shifts) = ([0; 3], [0u32; 3]);
        let target = self.target;
        for element in target.words(id).chunks_exact(of_one.len()) {
            let is_like = |other: &[u32]| self.expected(of_one[0], other[0]) == element[0];
            let found = others.clone().take(SEARCHED).position(is_like);
            let other = found.and_then(|skipped| others.nth(skipped));
            let mut differs = 0;
            for (index, kind) in of_one.iter().enumerate().skip(1) {
                let expected = other.map(|other| match kind {
                    Word::Plain => other[index].wrapping_add(shifts[index]),
                    Word::Name | Word::Type => self.expected(*kind, other[index]),
                });
                differs |= u32::from(expected != Some(element[index])) << (index - 1);
            }
            let code = found.map_or(0, |skipped| 1 + ((skipped as u32) << 2 | differs));
            self.writer.put(Column::Elements, code);
            for (index, kind) in of_one.iter().enumerate() {
                let value = element[index];
                let differs = index > 0 && differs >> (index - 1) & 1 == 1;
                match (kind, other) {
                    (Word::Name, Some(_)) => {}
                    (Word::Name, None) => {
                        self.writer.put_from(Column::Elements, self.name, value);
                    }
                    (Word::Type, Some(_)) if !differs => {}
                    (Word::Type, _) => self.writer.put(Column::Referred, value),
                    (Word::Plain, Some(other)) => {
                        let expected = other[index].wrapping_add(shifts[index]);
                        if differs {
                            self.writer.put_from(Column::Numbers, expected, value);
                        }
                    }
                    (Word::Plain, None) => {
                        self.writer.put_from(Column::Numbers, before[index], value);
                    }
                }
                if let (Word::Plain, Some(other)) = (kind, other) {
                    shifts[index] = match head.kind() {
                        STRUCT | UNION => value.wrapping_sub(other[index]),
                        _ => 0,
                    };
                }
                before[index] = value;
                if *kind == Word::Name {
                    self.name = value;
                }
            }
        }
    }
}
