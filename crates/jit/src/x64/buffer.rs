//! Machine code as it grows: bytes, and gaps whose length is not known yet.
//!
//! A jump is two bytes or five to six, depending on a distance that depends on
//! other jumps. So code is written without them: each leaves a gap, and a place
//! in the code is a number of bytes and a number of gaps before it. When all is
//! written, [`Buffer::settle`] begins with every jump short and makes those long
//! that do not reach, until none is left: the least fixed point, since a jump
//! that grows only moves others apart. [`Buffer::write`] then copies the pieces
//! to where they will run.
//!
//! Cost: settling takes a few rounds over the gaps (each makes at least one jump
//! long; after [`MOST_ROUNDS`] all that remain become long, so the time is linear
//! in the program); writing is one copy.

use std::mem;

use super::reg::Cc;
use crate::spare::Spare;

/// A place in the code that jumps and references name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

impl Label {
    /// The label of a program's slot; slots come before all other labels.
    pub(crate) const fn of_slot(slot: usize) -> Label {
        Label(slot as u32)
    }
}

/// Rounds after which every jump becomes long.
const MOST_ROUNDS: usize = 32;

/// What fills a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    Jump,
    JumpIf(Cc),
    Call,
    /// The last four bytes of an instruction: a distance from its end.
    Distance,
    /// No operation, up to a multiple of this many bytes.
    Align(u8),
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Bytes of code before it, gaps not counted.
    at: u32,
    label: Label,
    filling: Filling,
    len: u8,
    /// Bytes of all gaps before it; valid after a round of settling.
    before: u32,
}

/// A place: bytes before it and 1, and above 32 bits, gaps before it. Zero is no
/// place, so that a program's labels cost nothing until they are bound.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

impl Place {
    fn new(at: usize, gaps: usize) -> Place {
        Place((at as u64 + 1) | (gaps as u64) << 32)
    }

    fn is_bound(self) -> bool {
        self.0 != 0
    }

    fn at(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }

    fn gaps(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Longer than what is written, so that an instruction is two plain stores.
    bytes: Vec<u8>,
    len: usize,
    gaps: Vec<Gap>,
    /// Of type `Place`.
    places: Vec<u64>,
    tables: Vec<Table>,
    /// Bytes of an entry.
    entry_len: usize,
}

/// A table of distances, behind the code.
#[derive(Debug)]
struct Table {
    label: Label,
    targets: Vec<Label>,
}

thread_local! {
    static BYTES: Spare<u8> = const { Spare::none() };
    static GAPS: Spare<Gap> = const { Spare::none() };
    static PLACES: Spare<u64> = const { Spare::none() };
}

impl Drop for Buffer {
    fn drop(&mut self) {
        BYTES.with(|spare| spare.give_back(mem::take(&mut self.bytes)));
        GAPS.with(|spare| spare.give_back(mem::take(&mut self.gaps)));
        PLACES.with(|spare| spare.give_back(mem::take(&mut self.places)));
    }
}

/// Room for the two stores that write an instruction and more than counts.
const SLACK: usize = 16;

impl Buffer {
    /// An empty buffer for a program of so many slots, with labels that are
    /// there from the beginning.
    pub(crate) fn new(slots: usize, labels: usize) -> Buffer {
        let mut buffer = Buffer {
            bytes: BYTES.with(Spare::take),
            len: 0,
            gaps: GAPS.with(Spare::take),
            places: PLACES.with(Spare::take),
            tables: Vec::new(),
            entry_len: 2,
        };
        let room = buffer.bytes.len().max(5 * slots + 256);
        buffer.bytes.resize(room, 0);
        buffer.gaps.clear();
        buffer.gaps.reserve(slots / 4 + 8);
        buffer.places.clear();
        buffer.places.resize(labels, 0);
        buffer
    }

    /// Lets tables hold any distance.
    pub(crate) fn with_long_tables(mut self) -> Buffer {
        self.entry_len = 4;
        self
    }

    /// Appends `head_len` (at most 7) bytes of `head` and `tail_len` of `tail`.
    #[inline(always)]
    pub(super) fn put(&mut self, head: u64, head_len: usize, tail: u64, tail_len: usize) {
        let Some(room) = self.room() else {
            return self.put_in_more(head, head_len, tail, tail_len);
        };
        room[..8].copy_from_slice(&head.to_le_bytes());
        let tail_at = head_len & 7;
        room[tail_at..tail_at + 8].copy_from_slice(&tail.to_le_bytes());
        self.len += head_len + tail_len;
    }

    /// Appends up to eight bytes.
    #[inline(always)]
    pub(super) fn put_short(&mut self, bytes: u64, len: usize) {
        let Some(room) = self.room() else {
            return self.put_in_more(0, 0, bytes, len);
        };
        room[..8].copy_from_slice(&bytes.to_le_bytes());
        self.len += len;
    }

    /// Where the next instruction goes, if there is room. A place is less than 32 bits,
    /// so that it and its end take one comparison.
    #[inline(always)]
    fn room(&mut self) -> Option<&mut [u8; SLACK]> {
        let at = self.len as u32 as usize;
        let room = self.bytes.get_mut(at..at + SLACK)?;
        room.first_chunk_mut()
    }

    #[cold]
    fn put_in_more(&mut self, head: u64, head_len: usize, tail: u64, tail_len: usize) {
        let len = self.bytes.len();
        self.bytes.resize(2 * len + SLACK, 0);
        self.put(head, head_len, tail, tail_len);
    }

    /// A label for a place that is bound later.
    pub(crate) fn new_label(&mut self) -> Label {
        self.places.push(0);
        Label(self.places.len() as u32 - 1)
    }

    /// The label stands for the place reached now.
    #[inline(always)]
    pub(crate) fn bind(&mut self, label: Label) {
        self.places[label.0 as usize] = Place::new(self.len, self.gaps.len()).0;
    }

    fn place(&self, label: Label) -> Place {
        Place(self.places[label.0 as usize])
    }

    fn gap(&mut self, filling: Filling, label: Label, len: u8) {
        self.gaps.push(Gap {
            at: self.len as u32,
            label,
            filling,
            len,
            before: 0,
        });
    }

    /// `jmp label`.
    pub(crate) fn jump(&mut self, label: Label) {
        self.gap(Filling::Jump, label, 2);
    }

    /// `jcc label`.
    pub(crate) fn jump_if(&mut self, cc: Cc, label: Label) {
        self.gap(Filling::JumpIf(cc), label, 2);
    }

    /// `call label`.
    pub(crate) fn call(&mut self, label: Label) {
        self.gap(Filling::Call, label, 5);
    }

    /// The distance from the end of these four bytes to the label.
    pub(super) fn distance(&mut self, label: Label) {
        self.gap(Filling::Distance, label, 4);
    }

    /// Announces a table that says for each index how far from the table a label is;
    /// how many bytes an entry takes.
    pub(super) fn add_table(&mut self, label: Label, targets: Vec<Label>) -> usize {
        self.tables.push(Table { label, targets });
        self.entry_len
    }

    /// Places all tables here.
    pub(super) fn place_tables(&mut self) {
        for index in 0..self.tables.len() {
            self.bind(self.tables[index].label);
            for _ in 0..self.tables[index].targets.len() {
                self.put(0, 0, 0, self.entry_len);
            }
        }
    }

    /// No operation up to a multiple of `to` bytes, a power of two up to 64.
    pub(crate) fn align(&mut self, to: u8) {
        self.gap(Filling::Align(to), Label(0), 0);
    }

    /// Chooses the length of every gap; the length of the code in bytes.
    pub(crate) fn settle(&mut self) -> usize {
        for round in 0.. {
            let total = self.lay_out();
            if !self.lengthen(round >= MOST_ROUNDS) {
                return self.len + total as usize;
            }
        }
        unreachable!("jumps only grow")
    }

    /// Sums the lengths of gaps.
    fn lay_out(&mut self) -> u32 {
        let mut before = 0;
        for gap in &mut self.gaps {
            gap.before = before;
            if let Filling::Align(to) = gap.filling {
                gap.len = ((gap.at + before).wrapping_neg() & (u32::from(to) - 1)) as u8;
            }
            before += u32::from(gap.len);
        }
        before
    }

    /// Makes short jumps long that do not reach; says whether there were any.
    fn lengthen(&mut self, all: bool) -> bool {
        let mut changed = false;
        for index in 0..self.gaps.len() {
            let gap = self.gaps[index];
            if gap.len != 2 {
                continue;
            }
            let long = match gap.filling {
                Filling::Jump => 5,
                Filling::JumpIf(_) => 6,
                _ => continue,
            };
            if all || i8::try_from(self.distance_of(gap)).is_err() {
                self.gaps[index].len = long;
                changed = true;
            }
        }
        changed
    }

    /// From the gap's end to its label.
    fn distance_of(&self, gap: Gap) -> i32 {
        let end = gap.at + gap.before + u32::from(gap.len);
        self.offset(gap.label) as i32 - end as i32
    }

    /// Where a label lies in the settled code, in bytes from its start.
    pub(crate) fn offset(&self, label: Label) -> u32 {
        let place = self.place(label);
        // Code would be entered anywhere.
        assert!(place.is_bound(), "a label that is used is bound");
        let before = match self.gaps.get(place.gaps()) {
            Some(gap) => gap.before,
            None => self
                .gaps
                .last()
                .map_or(0, |gap| gap.before + u32::from(gap.len)),
        };
        place.at() + before
    }

    /// Where pieces of the settled code begin, in ascending order, each with its
    /// slot: the first labels stand for two versions of so many slots, those after
    /// them for what comes from none. Empty pieces are left out.
    pub(crate) fn places(&self, slots: usize) -> Vec<(u32, u32)> {
        let bound = |label: &usize| Place(self.places[*label]).is_bound();
        let mut places: Vec<_> = (0..self.places.len())
            .filter(bound)
            .map(|label| {
                let slot = if label < 2 * slots {
                    (label % slots) as u32
                } else {
                    u32::MAX
                };
                (self.offset(Label(label as u32)), label, slot)
            })
            .collect();
        places.sort_unstable();
        places.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            // Of slots, what begins last there is what has the bytes; what comes
            // from none and begins there too leads to it.
            if same && later.2 != u32::MAX {
                earlier.2 = later.2;
            }
            same
        });
        places.iter().map(|&(at, _, slot)| (slot, at)).collect()
    }

    /// How far the labels of a table's entries are from it.
    fn entries(&self, table: &Table) -> impl Iterator<Item = i32> {
        let start = self.offset(table.label) as i32;
        let targets = table.targets.iter();
        targets.map(move |&target| self.offset(target) as i32 - start)
    }

    /// Whether the entries of tables hold their distances in the settled code.
    pub(crate) fn tables_reach(&self) -> bool {
        let mut entries = self.tables.iter().flat_map(|table| self.entries(table));
        self.entry_len > 2 || entries.all(|entry| i16::try_from(entry).is_ok())
    }

    /// Writes the settled code into memory of exactly its length.
    pub(crate) fn write(&self, out: &mut [u8]) {
        let mut from = 0;
        let mut to = 0;
        for gap in &self.gaps {
            let at = gap.at as usize;
            out[to..to + at - from].copy_from_slice(&self.bytes[from..at]);
            to += at - from;
            from = at;
            let room = &mut out[to..to + gap.len as usize];
            self.fill(room, *gap);
            to += gap.len as usize;
        }
        out[to..].copy_from_slice(&self.bytes[from..self.len]);
        for table in &self.tables {
            let room = &mut out[self.offset(table.label) as usize..];
            let entries = room.chunks_exact_mut(self.entry_len);
            for (room, entry) in entries.zip(self.entries(table)) {
                room.copy_from_slice(&entry.to_le_bytes()[..self.entry_len]);
            }
        }
    }

    fn fill(&self, room: &mut [u8], gap: Gap) {
        if let Filling::Align(_) = gap.filling {
            return fill_with_nops(room);
        }
        let distance = self.distance_of(gap);
        let long = distance.to_le_bytes();
        match (gap.filling, room) {
            (Filling::Jump, [op, to]) => (*op, *to) = (0xeb, distance as u8),
            (Filling::JumpIf(cc), [op, to]) => (*op, *to) = (0x70 | cc as u8, distance as u8),
            (Filling::Jump, [op, to @ ..]) => {
                *op = 0xe9;
                to.copy_from_slice(&long);
            }
            (Filling::JumpIf(cc), [escape, op, to @ ..]) => {
                (*escape, *op) = (0x0f, 0x80 | cc as u8);
                to.copy_from_slice(&long);
            }
            (Filling::Call, [op, to @ ..]) => {
                *op = 0xe8;
                to.copy_from_slice(&long);
            }
            (_, to) => to.copy_from_slice(&long),
        }
    }
}

/// The recommended instructions of one to nine bytes that do nothing.
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

fn fill_with_nops(mut room: &mut [u8]) {
    while !room.is_empty() {
        let nop = NOPS[room.len().min(NOPS.len()) - 1];
        let (now, rest) = room.split_at_mut(nop.len());
        now.copy_from_slice(nop);
        room = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mut buffer: Buffer) -> Vec<u8> {
        let len = buffer.settle();
        let mut out = vec![0; len];
        buffer.write(&mut out);
        out
    }

    #[test]
    fn jumps_are_short_exactly_when_they_reach() {
        for (distance, short) in [(127, true), (128, false)] {
            let mut buffer = Buffer::new(0, 0);
            let end = buffer.new_label();
            buffer.jump(end);
            for _ in 0..distance {
                buffer.put(0x90, 1, 0, 0);
            }
            buffer.bind(end);
            let code = written(buffer);
            assert_eq!(code[0], if short { 0xeb } else { 0xe9 });
            assert_eq!(code.len(), distance + if short { 2 } else { 5 });
        }
    }

    #[test]
    fn growing_one_jump_makes_another_grow() {
        let mut buffer = Buffer::new(0, 0);
        let (a, b) = (buffer.new_label(), buffer.new_label());
        buffer.jump_if(Cc::E, a);
        for _ in 0..125 {
            buffer.put(0x90, 1, 0, 0);
        }
        buffer.jump(b);
        buffer.bind(a);
        for _ in 0..200 {
            buffer.put(0x90, 1, 0, 0);
        }
        buffer.bind(b);
        let code = written(buffer);
        assert_eq!(code[..2], [0x0f, 0x84]);
        assert_eq!(i32::from_le_bytes(code[2..6].try_into().unwrap()), 130);
        assert_eq!(code[131], 0xe9);
        assert_eq!(code.len(), 6 + 125 + 5 + 200);
    }

    #[test]
    fn alignment_and_tables_know_what_lies_before() {
        for long in [false, true] {
            let mut buffer = Buffer::new(0, 0);
            if long {
                buffer = buffer.with_long_tables();
            }
            let (head, table) = (buffer.new_label(), buffer.new_label());
            buffer.put(0xc3, 1, 0, 0);
            buffer.align(16);
            buffer.bind(head);
            buffer.jump(head);
            let len = buffer.add_table(table, vec![head, table]);
            buffer.place_tables();
            buffer.put(0xc3, 1, 0, 0);
            let code = written(buffer);
            assert_eq!(code[16..18], [0xeb, 0xfe]);
            let entries = [(-2i32).to_le_bytes(), [0; 4]].map(|entry| entry[..len].to_vec());
            assert_eq!(code[18..18 + 2 * len], entries.concat());
            assert_eq!(code.len(), 19 + 2 * len);
        }
    }

    #[test]
    fn a_table_reaches_as_far_as_its_entries_hold() {
        for (bytes, reaches) in [(1 << 15, true), ((1 << 15) + 1, false)] {
            let mut buffer = Buffer::new(0, 0);
            let (head, table) = (buffer.new_label(), buffer.new_label());
            buffer.bind(head);
            for _ in 0..bytes {
                buffer.put(0x90, 1, 0, 0);
            }
            buffer.add_table(table, vec![head]);
            buffer.place_tables();
            buffer.settle();
            assert_eq!(buffer.tables_reach(), reaches);
        }
    }

    #[test]
    fn many_jumps_settle() {
        let mut buffer = Buffer::new(0, 0);
        let labels: Vec<_> = (0..2000).map(|_| buffer.new_label()).collect();
        for index in 0..2000 {
            buffer.bind(labels[index]);
            buffer.jump(labels[(index + 42) % 2000]);
            buffer.put(0x90, 1, 0, 0);
        }
        assert!(!written(buffer).is_empty());
    }
}
