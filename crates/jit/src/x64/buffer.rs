//! A buffer of machine code with branch relaxation.
//!
//! A jump has two bytes or five to six, depending on its distance, which depends on other
//! jumps. Code is written with every gap (a jump, a distance, an alignment) at its least
//! length; a position is a number of bytes and a number of gaps before it. When the code is
//! complete, [`Buffer::relax_branches`] lengthens the jumps that do not reach until all do:
//! the least fixpoint, since a longer jump only moves others apart. [`Buffer::write`] then
//! copies the pieces between the gaps to their destination and fills the gaps.
//!
//! Cost: linear: each gap is visited once, and jumps that may still go out of reach at most
//! [`MOST_ROUNDS`] times; then the remaining ones become long.

use std::mem;
use std::ops::Range;

use super::reg::Cc;
use crate::spare::{Spare, bytes_of};

/// A place in the code that jumps and references name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

impl Label {
    /// Of a program's first slot.
    pub(crate) const FIRST: Label = Label(0);

    /// That of the slot so many behind the one that this is the label of.
    #[inline(always)]
    pub(crate) const fn plus(self, slots: usize) -> Label {
        Label(self.0 + slots as u32)
    }
}

/// Rounds after which every jump that may be out of reach becomes long.
const MOST_ROUNDS: usize = 32;

/// By how many bytes a jump grows at most.
const MOST_GROWTH: u32 = 4;

/// The opcode of a jump without condition, short and long.
const JUMP: u16 = 0xeb;
const LONG_JUMP: u16 = 0xe9;

/// What fills a gap, by its least length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Filling {
    /// No operation, up to a multiple of so many bytes as its head says.
    Align = 0,
    /// A jump, short or long.
    Jump = 2,
    /// The last four bytes of an instruction: a distance from its end.
    Distance = 4,
}

/// Sixteen bytes, so that it is written and read at once.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Bytes of code before it, with gaps of their least length.
    at: u32,
    label: Label,
    /// How much longer all gaps before it are; valid once it is settled.
    before: u32,
    /// What stands before the distance: a jump's opcode, as short or long as that is.
    head: u16,
    filling: Filling,
    /// Bytes of settled code in it.
    len: u8,
}

/// How many bits the head of a gap has, by the length of the gap.
const HEAD_BITS: [u8; 8] = [0, 0, 8, 0, 0, 8, 16, 0];

impl Gap {
    /// Its least length.
    #[inline(always)]
    fn least(&self) -> u32 {
        self.filling as u32
    }

    /// Bytes of code up to its end, with gaps of their least length.
    #[inline(always)]
    fn end(&self) -> u32 {
        self.at + self.least()
    }

    /// Bytes of settled code before it.
    #[inline(always)]
    fn start(&self) -> u32 {
        self.at + self.before
    }

    /// Bytes of settled code up to its end.
    #[inline(always)]
    fn relaxed_end(&self) -> u32 {
        self.start() + u32::from(self.len)
    }

    /// How much longer it is than at least.
    #[inline(always)]
    fn growth(&self) -> u32 {
        u32::from(self.len) - self.least()
    }

    /// Makes a short jump long.
    #[inline(always)]
    fn lengthen(&mut self) {
        (self.head, self.len) = match self.head {
            JUMP => (LONG_JUMP, 5),
            short => ((short + 0x10) << 8 | 0x0f, 6),
        };
    }

    /// Pads to a multiple of so many bytes.
    fn pad(&mut self) {
        self.len = (self.start().wrapping_neg() & (u32::from(self.head) - 1)) as u8;
    }
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

/// Whether a gap's least length reaches its label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// However much others grow.
    Sure,
    /// As things stand.
    Open,
    /// It does not.
    Short,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Buffer {
    room: Room,
    /// Bytes that are written.
    len: usize,
    /// How much longer all gaps are than at least.
    growth: u32,
    /// How many bytes alignment may take.
    padding: u32,
    slots: usize,
    /// The label of the first slot in a second version of the code.
    second: Option<Label>,
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

/// The vectors of a buffer.
#[derive(Debug, Default)]
struct Room {
    /// Longer than what is written, so that an instruction is two plain stores.
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    /// Of type `Place`: of slots, of functions, of what is labelled on the way.
    places: Vec<u64>,
    /// Jumps that may become long yet.
    open: Vec<u32>,
}

thread_local! {
    static ROOM: Spare<Room> = const { Spare::none() };
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let room = mem::take(&mut self.room);
        let held = bytes_of(&room.bytes)
            + bytes_of(&room.gaps)
            + bytes_of(&room.places)
            + bytes_of(&room.open);
        ROOM.with(|spare| spare.give_back(room, held));
    }
}

/// Room for the two stores that write an instruction and more than counts.
const SLACK: usize = 16;

/// Bytes that are copied at once: most pieces between jumps are shorter.
const CHUNK: usize = 32;

impl Buffer {
    /// A buffer to be emptied by [`Buffer::reserve`].
    pub(crate) fn new() -> Buffer {
        Buffer {
            room: ROOM.with(Spare::take),
            len: 0,
            growth: 0,
            padding: 0,
            slots: 0,
            second: None,
            tables: Vec::new(),
            entry_len: 2,
        }
    }

    /// Makes room for a program of so many slots and functions, whose labels are
    /// there from the beginning.
    pub(crate) fn reserve(&mut self, slots: usize, functions: usize) {
        // Most programs take three bytes for a slot, few more than five.
        self.make_room(8 * slots + 256);
        self.room.gaps.clear();
        self.room.gaps.reserve(slots / 4 + 8);
        self.room.places.clear();
        self.room.places.resize(slots + functions, 0);
        self.slots = slots;
    }

    /// Lets tables hold any distance.
    pub(crate) fn lengthen_tables(&mut self) {
        self.entry_len = 4;
    }

    /// Makes room for so many bytes, as [`Buffer::wanted_room`] counts them.
    pub(crate) fn make_room(&mut self, bytes: usize) {
        let room = self.room.bytes.len().max(bytes);
        self.room.bytes.resize(room, 0);
    }

    /// Room that is enough for the code that was put here.
    pub(crate) fn wanted_room(&self) -> usize {
        self.len + SLACK
    }

    /// Whether there was room for all code. Where there is none, instructions are only
    /// counted, as the longest, and the code is to be generated again: who writes one
    /// has no call to make in the middle of it, and so no registers to save.
    pub(crate) fn is_complete(&self) -> bool {
        self.wanted_room() <= self.room.bytes.len()
    }

    /// Appends `head_len` (at most 7) bytes of `head` and `tail_len` of `tail`.
    #[inline(always)]
    pub(super) fn put(&mut self, head: u64, head_len: usize, tail: u64, tail_len: usize) {
        let Some(room) = self.free() else {
            self.len += SLACK;
            return;
        };
        room[..8].copy_from_slice(&head.to_le_bytes());
        let tail_at = head_len & 7;
        room[tail_at..tail_at + 8].copy_from_slice(&tail.to_le_bytes());
        self.len += head_len + tail_len;
    }

    /// Appends up to eight bytes.
    #[inline(always)]
    pub(super) fn put_short(&mut self, bytes: u64, len: usize) {
        let Some(room) = self.free() else {
            self.len += SLACK;
            return;
        };
        room[..8].copy_from_slice(&bytes.to_le_bytes());
        self.len += len;
    }

    /// Where the next instruction goes, if there is room.
    #[inline(always)]
    fn free(&mut self) -> Option<&mut [u8; SLACK]> {
        window_mut(&mut self.room.bytes, self.len as u32)
    }

    /// A label for a place that is bound later.
    pub(crate) fn new_label(&mut self) -> Label {
        self.room.places.push(0);
        Label(self.room.places.len() as u32 - 1)
    }

    /// The label of a function.
    pub(crate) fn function(&self, index: usize) -> Label {
        Label::FIRST.plus(self.slots + index)
    }

    /// Labels for all slots once more, the only time; the first of them.
    pub(crate) fn new_version(&mut self) -> Label {
        let first = Label(self.room.places.len() as u32);
        self.room
            .places
            .resize(self.room.places.len() + self.slots, 0);
        self.second = Some(first);
        first
    }

    /// The slot that a label stands for, in either version; `u32::MAX` for others.
    fn slot(&self, label: usize) -> u32 {
        let versions = [Some(Label::FIRST), self.second].into_iter().flatten();
        let mut slots = versions.map(|first| label.wrapping_sub(first.0 as usize));
        let slot = slots.find(|slot| (0..self.slots).contains(slot));
        slot.map_or(u32::MAX, |slot| slot as u32)
    }

    /// The label stands for the place reached now.
    #[inline(always)]
    pub(crate) fn bind(&mut self, label: Label) {
        self.room.places[label.0 as usize] = Place::new(self.len, self.room.gaps.len()).0;
    }

    fn place(&self, label: Label) -> Place {
        Place(self.room.places[label.0 as usize])
    }

    #[inline(always)]
    fn gap(&mut self, filling: Filling, head: u16, label: Label) {
        // The last call, so that there is nothing to save for it.
        if self.room.gaps.len() == self.room.gaps.capacity() {
            return self.gap_in_more(filling, head, label);
        }
        self.room.gaps.push(Gap {
            at: self.len as u32,
            label,
            before: 0,
            head,
            filling,
            len: filling as u8,
        });
        self.len += filling as usize;
    }

    #[cold]
    fn gap_in_more(&mut self, filling: Filling, head: u16, label: Label) {
        self.room.gaps.reserve(1);
        self.gap(filling, head, label);
    }

    /// `jmp label`.
    pub(crate) fn jump(&mut self, label: Label) {
        self.gap(Filling::Jump, JUMP, label);
    }

    /// `jcc label`.
    pub(crate) fn jump_if(&mut self, cc: Cc, label: Label) {
        self.gap(Filling::Jump, 0x70 | cc as u16, label);
    }

    /// `call label`.
    pub(crate) fn call(&mut self, label: Label) {
        self.put(0, 0, 0xe8, 1);
        self.distance(label);
    }

    /// The distance from the end of these four bytes to the label.
    pub(super) fn distance(&mut self, label: Label) {
        self.gap(Filling::Distance, 0, label);
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
        self.padding += u32::from(to);
        self.gap(Filling::Align, to.into(), Label(0));
    }

    /// Chooses the length of every gap; the length of the code in bytes.
    pub(crate) fn relax_branches(&mut self) -> usize {
        let mut open = mem::take(&mut self.room.open);
        open.clear();
        self.lengthen_all(&mut open);
        for round in 0.. {
            let mut grown = false;
            open.retain(|&gap| {
                let reach = self.lengthen(gap as usize, round >= MOST_ROUNDS);
                grown |= reach == Reach::Short;
                reach == Reach::Open
            });
            if !grown {
                break;
            }
            self.lay_out();
        }
        self.room.open = open;
        self.relaxed_len()
    }

    /// The length of the settled code in bytes.
    fn relaxed_len(&self) -> usize {
        self.len + self.growth as usize
    }

    /// Makes those jumps long that cannot reach, and sums how much longer gaps are than
    /// at least; lists those that may become long yet. Of what lies ahead, the least is
    /// taken, so that one pass does both.
    fn lengthen_all(&mut self, open: &mut Vec<u32>) {
        let (gaps, places) = (&mut self.room.gaps[..], &self.room.places[..]);
        let mut before = 0;
        for index in 0..gaps.len() {
            let gap = &mut gaps[index];
            gap.before = before;
            let end = gap.end();
            match gap.filling {
                Filling::Distance => {}
                Filling::Align => gap.pad(),
                Filling::Jump => {
                    let place = Place(places[gap.label.0 as usize]);
                    let label = place.at() as i32;
                    let ahead = place.gaps() > index;
                    let less = if ahead {
                        0
                    } else {
                        before - gaps[place.gaps()].before
                    };
                    let distance = label - end as i32 - less as i32;
                    match reach(distance, place.gaps().abs_diff(index), self.padding) {
                        Reach::Sure => {}
                        Reach::Open => open.push(index as u32),
                        Reach::Short => gaps[index].lengthen(),
                    }
                }
            }
            before += gaps[index].growth();
        }
        self.growth = before;
    }

    /// Sums how much longer gaps are than at least.
    fn lay_out(&mut self) {
        let mut before = 0;
        for gap in &mut self.room.gaps {
            gap.before = before;
            if gap.filling == Filling::Align {
                gap.pad();
            }
            before += gap.growth();
        }
        self.growth = before;
    }

    /// Makes a short jump long if it does not reach; how far it reached.
    fn lengthen(&mut self, index: usize, always: bool) -> Reach {
        let gap = self.room.gaps[index];
        let between = self.place(gap.label).gaps().abs_diff(index);
        let reach = match always {
            true => Reach::Short,
            false => reach(self.distance_of(gap), between, self.padding),
        };
        if reach == Reach::Short {
            self.room.gaps[index].lengthen();
        }
        reach
    }

    /// From the gap's end to its label.
    #[inline(always)]
    fn distance_of(&self, gap: Gap) -> i32 {
        self.offset(gap.label).wrapping_sub(gap.relaxed_end()) as i32
    }

    /// Where a label lies in the settled code, in bytes from its start.
    #[inline(always)]
    pub(crate) fn offset(&self, label: Label) -> u32 {
        let place = self.place(label);
        // Code would be entered anywhere.
        assert!(place.is_bound(), "a label that is used is bound");
        let next = self.room.gaps.get(place.gaps());
        place.at() + next.map_or(self.growth, |gap| gap.before)
    }

    /// Where pieces of the settled code begin, in ascending order, each with its
    /// slot, or `u32::MAX` for what comes from none. Empty pieces are left out.
    pub(crate) fn places(&self) -> Vec<(u32, u32)> {
        let bound = |label: &usize| Place(self.room.places[*label]).is_bound();
        let mut places: Vec<_> = (0..self.room.places.len())
            .filter(bound)
            .map(|label| (self.offset(Label(label as u32)), label, self.slot(label)))
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
        let all = i16::try_from(self.relaxed_len()).is_ok() || self.entry_len > 2;
        let mut entries = self.tables.iter().flat_map(|table| self.entries(table));
        all || entries.all(|entry| i16::try_from(entry).is_ok())
    }

    /// Writes the settled code into memory of exactly its length.
    pub(crate) fn write(&self, out: &mut [u8]) {
        let bytes = &self.room.bytes[..];
        let mut from = 0;
        for gap in &self.room.gaps {
            copy(bytes, from..gap.at, out, gap.before);
            self.fill(out, gap);
            from = gap.end();
        }
        copy(bytes, from..self.len as u32, out, self.growth);
        for table in &self.tables {
            let room = &mut out[self.offset(table.label) as usize..];
            match self.entry_len {
                2 => self.write_table(table, room, |entry| (entry as i16).to_le_bytes()),
                _ => self.write_table(table, room, i32::to_le_bytes),
            }
        }
    }

    fn write_table<const N: usize>(
        &self,
        table: &Table,
        room: &mut [u8],
        bytes: impl Fn(i32) -> [u8; N],
    ) {
        let room = room.as_chunks_mut().0;
        for (room, entry) in room.iter_mut().zip(self.entries(table)) {
            *room = bytes(entry);
        }
    }

    /// Writes what fills a gap, and perhaps something behind it.
    #[inline(always)]
    fn fill(&self, out: &mut [u8], gap: &Gap) {
        if gap.filling == Filling::Align {
            return fill_with_nops(out, gap);
        }
        let distance = self.distance_of(*gap) as u32;
        let head_bits = HEAD_BITS[usize::from(gap.len & 7)];
        let bytes = (u64::from(gap.head) | u64::from(distance) << head_bits).to_le_bytes();
        match window_mut(out, gap.start()) {
            Some(room) => *room = bytes,
            None => copy_exactly(&bytes[..usize::from(gap.len)], out, gap.start()),
        }
    }
}

/// Whether a short jump over this distance reaches, with so many gaps between.
#[inline(always)]
fn reach(distance: i32, between: usize, padding: u32) -> Reach {
    let farthest = distance.unsigned_abs() + MOST_GROWTH * between as u32 + padding;
    if i8::try_from(distance).is_err() {
        Reach::Short
    } else if farthest <= i8::MAX as u32 {
        Reach::Sure
    } else {
        Reach::Open
    }
}

/// So many bytes from a place on, if they are there. A place is less than 32 bits, so
/// that it and its end take one comparison.
#[inline(always)]
fn window<const N: usize>(bytes: &[u8], at: u32) -> Option<&[u8; N]> {
    let at = at as usize;
    bytes.get(at..at + N)?.first_chunk()
}

/// The same, to be written.
#[inline(always)]
fn window_mut<const N: usize>(bytes: &mut [u8], at: u32) -> Option<&mut [u8; N]> {
    let at = at as usize;
    bytes.get_mut(at..at + N)?.first_chunk_mut()
}

/// Copies a piece to where it lies so many bytes further, and perhaps some behind it. It
/// is short, so that to call what copies any number takes longer than to copy it.
#[inline(always)]
fn copy(bytes: &[u8], piece: Range<u32>, out: &mut [u8], further: u32) {
    let mut at = piece.start;
    while at < piece.end {
        let chunk = window::<CHUNK>(bytes, at);
        let (Some(chunk), Some(room)) = (chunk, window_mut(out, at + further)) else {
            return copy_exactly(&bytes[at as usize..piece.end as usize], out, at + further);
        };
        *room = *chunk;
        at += CHUNK as u32;
    }
}

#[cold]
fn copy_exactly(piece: &[u8], out: &mut [u8], to: u32) {
    out[to as usize..][..piece.len()].copy_from_slice(piece);
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

#[cold]
fn fill_with_nops(out: &mut [u8], gap: &Gap) {
    let mut room = &mut out[gap.start() as usize..][..usize::from(gap.len)];
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

    fn empty() -> Buffer {
        let mut buffer = Buffer::new();
        buffer.reserve(0, 0);
        buffer.make_room(1 << 16);
        buffer
    }

    fn written(mut buffer: Buffer) -> Vec<u8> {
        assert!(buffer.is_complete());
        let len = buffer.relax_branches();
        let mut out = vec![0; len];
        buffer.write(&mut out);
        out
    }

    #[test]
    fn jumps_are_short_exactly_when_they_reach() {
        for (distance, short) in [(127, true), (128, false)] {
            let mut buffer = empty();
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
        let mut buffer = empty();
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
            let mut buffer = empty();
            if long {
                buffer.lengthen_tables();
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
            let mut buffer = empty();
            let (head, table) = (buffer.new_label(), buffer.new_label());
            buffer.bind(head);
            for _ in 0..bytes {
                buffer.put(0x90, 1, 0, 0);
            }
            buffer.add_table(table, vec![head]);
            buffer.place_tables();
            buffer.relax_branches();
            assert_eq!(buffer.tables_reach(), reaches);
        }
    }

    #[test]
    fn code_that_finds_no_room_is_written_when_there_is_enough() {
        let mut buffer = Buffer::new();
        buffer.reserve(0, 0);
        let count = buffer.room.bytes.len();
        let code = |buffer: &mut Buffer| {
            for _ in 0..count {
                buffer.put(0x90, 1, 0, 0);
                buffer.put_short(0xc3, 1);
            }
        };
        code(&mut buffer);
        assert!(!buffer.is_complete());
        let mut again = Buffer::new();
        again.make_room(buffer.wanted_room());
        again.reserve(0, 0);
        code(&mut again);
        assert_eq!(written(again), [0x90, 0xc3].repeat(count));
    }

    #[test]
    fn many_jumps_settle() {
        let mut buffer = empty();
        let labels: Vec<_> = (0..2000).map(|_| buffer.new_label()).collect();
        for index in 0..2000 {
            buffer.bind(labels[index]);
            buffer.jump(labels[(index + 42) % 2000]);
            buffer.put(0x90, 1, 0, 0);
        }
        assert!(!written(buffer).is_empty());
    }
}
