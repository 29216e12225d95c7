//! A buffer of machine code with labels and branch relaxation.
//!
//! The length of a jump (two bytes, or five to six) depends on its distance, which depends on
//! the lengths of other jumps. The buffer keeps jumps, distances and alignments apart from
//! the other bytes, as fixups. When the code is complete, [`Buffer::relax_branches`] starts
//! with short jumps and lengthens those that do not reach until all do: the least fixpoint,
//! since a longer jump only moves others apart. [`Buffer::write`] then copies the bytes and
//! encodes the fixups.
//!
//! Cost: linear: each pass visits every fixup; after [`MAX_PASSES`] all jumps become long.

use super::reg::condition;
use crate::codegen::{Cc, Label, Layout};

/// Passes after which every short jump becomes long.
const MAX_PASSES: usize = 32;

/// Length of a short jump in bytes.
const SHORT_JUMP: u8 = 2;

/// A piece of the code whose bytes depend on the layout.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    kind: FixupKind,
    /// Offset in the bytes of the buffer, which do not include fixups.
    at: u32,
    /// Offset in the final code; valid after a layout.
    start: u32,
    /// Length in bytes.
    len: u8,
}

#[derive(Clone, Copy, Debug)]
enum FixupKind {
    /// No-operations up to a multiple of this many bytes, a power of two.
    Align(u8),
    /// A jump, unconditional without a condition code.
    Jump(Option<Cc>, Label),
    /// The last four bytes of an instruction: the distance from its end to a label.
    Distance(Label),
}

impl Fixup {
    fn end(&self) -> u32 {
        self.start + u32::from(self.len)
    }
}

/// A position: offset in the bytes of the buffer, and number of fixups before it.
#[derive(Clone, Copy, Debug)]
struct Position {
    at: u32,
    fixups: u32,
}

/// A table of distances, after the code.
#[derive(Debug)]
struct Table {
    label: Label,
    targets: Vec<Label>,
}

/// A buffer of machine code.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    fixups: Vec<Fixup>,
    /// Positions of labels: of slots, of functions, of others; `None` until bound.
    labels: Vec<Option<Position>>,
    /// Total length of the fixups; valid after a layout.
    fixup_len: u32,
    slots: usize,
    tables: Vec<Table>,
    /// Length of a table's entry in bytes: 2 or 4.
    entry_len: usize,
}

impl Layout for Buffer {
    /// A buffer for a program with this many slots and functions, all of which have labels.
    /// With `long_tables`, entries of tables hold any distance.
    fn new(slots: usize, functions: usize, long_tables: bool) -> Buffer {
        Buffer {
            bytes: Vec::with_capacity(8 * slots),
            fixups: Vec::with_capacity(slots / 4),
            labels: vec![None; slots + functions],
            fixup_len: 0,
            slots,
            tables: Vec::new(),
            entry_len: if long_tables { 4 } else { 2 },
        }
    }

    /// A new label, which is bound later.
    fn new_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    /// The label of a function.
    fn function(&self, index: usize) -> Label {
        Label::of_slot(self.slots + index)
    }

    /// Binds a label to the current position.
    fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(Position {
            at: self.bytes.len() as u32,
            fixups: self.fixups.len() as u32,
        });
    }

    /// `jmp label`.
    fn jump(&mut self, label: Label) {
        self.fixup(FixupKind::Jump(None, label), SHORT_JUMP);
    }

    /// `jcc label`.
    fn jump_if(&mut self, cc: Cc, label: Label) {
        self.fixup(FixupKind::Jump(Some(cc), label), SHORT_JUMP);
    }

    /// `call label`.
    fn call(&mut self, label: Label) {
        self.put(&[0xe8]);
        self.distance(label);
    }

    /// Adds a table with the distances of labels from the table; returns the length of an
    /// entry in bytes.
    fn add_table(&mut self, label: Label, targets: Vec<Label>) -> usize {
        self.tables.push(Table { label, targets });
        self.entry_len
    }

    /// Reserves the space of all tables at the current position.
    fn place_tables(&mut self) {
        for index in 0..self.tables.len() {
            self.bind(self.tables[index].label);
            let len = self.entry_len * self.tables[index].targets.len();
            self.bytes.resize(self.bytes.len() + len, 0);
        }
    }

    /// No-operations up to a multiple of `to` bytes, a power of two up to 64.
    fn align(&mut self, to: u8) {
        self.fixup(FixupKind::Align(to), 0);
    }

    /// Determines the length of every fixup; returns the length of the code in bytes.
    fn relax_branches(&mut self) -> usize {
        self.lay_out();
        for pass in 0.. {
            if !self.lengthen_jumps(pass >= MAX_PASSES) {
                break;
            }
            self.lay_out();
        }
        self.final_len()
    }

    /// The offset of a label in the code after a layout.
    fn offset(&self, label: Label) -> u32 {
        let position = self.labels[label.0 as usize].expect("a label that is used is bound");
        let next = self.fixups.get(position.fixups as usize);
        position.at + next.map_or(self.fixup_len, |fixup| fixup.start - fixup.at)
    }

    /// The code map: offsets of pieces in ascending order, each with its slot, or `u32::MAX`
    /// for pieces that belong to none. Empty pieces are omitted.
    fn code_map(&self) -> Vec<(u32, u32)> {
        let mut pieces: Vec<_> = (0..self.labels.len())
            .filter(|&label| self.labels[label].is_some())
            .map(|label| (self.offset(Label(label as u32)), label, self.slot(label)))
            .collect();
        pieces.sort_unstable();
        pieces.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            // Of several slots at one offset, the last one has the bytes.
            if same && later.2 != u32::MAX {
                earlier.2 = later.2;
            }
            same
        });
        pieces.iter().map(|&(at, _, slot)| (slot, at)).collect()
    }

    /// True if the entries of all tables hold their distances.
    fn tables_reach(&self) -> bool {
        let mut entries = self.tables.iter().flat_map(|table| self.entries(table));
        self.entry_len > 2 || entries.all(|entry| i16::try_from(entry).is_ok())
    }

    /// Writes the code into memory of exactly its length.
    fn write(&self, out: &mut [u8]) {
        let mut from = 0;
        let mut to = 0;
        for fixup in &self.fixups {
            let (start, end) = (fixup.start as usize, fixup.end() as usize);
            out[to..start].copy_from_slice(&self.bytes[from..fixup.at as usize]);
            self.write_fixup(&mut out[start..end], *fixup);
            (from, to) = (fixup.at as usize, end);
        }
        out[to..].copy_from_slice(&self.bytes[from..]);
        for table in &self.tables {
            let entries = out[self.offset(table.label) as usize..].chunks_exact_mut(self.entry_len);
            for (bytes, entry) in entries.zip(self.entries(table)) {
                bytes.copy_from_slice(&entry.to_le_bytes()[..self.entry_len]);
            }
        }
    }
}

impl Buffer {
    /// Appends bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the low `len` bytes of a little-endian number.
    pub(super) fn put_number(&mut self, bits: u128, len: usize) {
        let end = self.bytes.len() + len;
        self.bytes.extend_from_slice(&bits.to_le_bytes());
        self.bytes.truncate(end);
    }

    /// The slot of a label; `u32::MAX` for other labels.
    fn slot(&self, label: usize) -> u32 {
        if label < self.slots {
            label as u32
        } else {
            u32::MAX
        }
    }

    fn fixup(&mut self, kind: FixupKind, len: u8) {
        self.fixups.push(Fixup {
            kind,
            at: self.bytes.len() as u32,
            start: 0,
            len,
        });
    }

    /// The distance from the end of these four bytes to the label.
    pub(super) fn distance(&mut self, label: Label) {
        self.fixup(FixupKind::Distance(label), 4);
    }

    /// Computes the offsets of all fixups from their lengths, and the lengths of alignments.
    fn lay_out(&mut self) {
        let mut before = 0;
        for fixup in &mut self.fixups {
            fixup.start = fixup.at + before;
            if let FixupKind::Align(to) = fixup.kind {
                fixup.len = (fixup.start.wrapping_neg() & (u32::from(to) - 1)) as u8;
            }
            before += u32::from(fixup.len);
        }
        self.fixup_len = before;
    }

    /// Lengthens the short jumps that do not reach, or all of them; true if there were any.
    fn lengthen_jumps(&mut self, all: bool) -> bool {
        let mut changed = false;
        for index in 0..self.fixups.len() {
            let fixup = self.fixups[index];
            if let FixupKind::Jump(cc, label) = fixup.kind
                && fixup.len == SHORT_JUMP
                && (all || i8::try_from(self.distance_from(fixup, label)).is_err())
            {
                self.fixups[index].len = if cc.is_some() { 6 } else { 5 };
                changed = true;
            }
        }
        changed
    }

    /// The length of the code after a layout.
    fn final_len(&self) -> usize {
        self.bytes.len() + self.fixup_len as usize
    }

    /// The distance from the end of a fixup to a label.
    fn distance_from(&self, fixup: Fixup, label: Label) -> i32 {
        self.offset(label).wrapping_sub(fixup.end()) as i32
    }

    /// The distances of a table's targets from the table.
    fn entries(&self, table: &Table) -> impl Iterator<Item = i32> {
        let start = self.offset(table.label) as i32;
        let targets = table.targets.iter();
        targets.map(move |&target| self.offset(target) as i32 - start)
    }

    fn write_fixup(&self, out: &mut [u8], fixup: Fixup) {
        let distance = |label| self.distance_from(fixup, label).to_le_bytes();
        match fixup.kind {
            FixupKind::Align(_) => fill_with_nops(out),
            FixupKind::Distance(label) => out.copy_from_slice(&distance(label)),
            FixupKind::Jump(cc, label) => {
                let distance = distance(label);
                let (opcode, operand) =
                    out.split_at_mut(out.len() - if fixup.len == SHORT_JUMP { 1 } else { 4 });
                match (cc, fixup.len) {
                    (None, SHORT_JUMP) => opcode.copy_from_slice(&[0xeb]),
                    (None, _) => opcode.copy_from_slice(&[0xe9]),
                    (Some(cc), SHORT_JUMP) => opcode.copy_from_slice(&[0x70 | condition(cc)]),
                    (Some(cc), _) => opcode.copy_from_slice(&[0x0f, 0x80 | condition(cc)]),
                }
                operand.copy_from_slice(&distance[..operand.len()]);
            }
        }
    }
}

/// The recommended no-operations of one to nine bytes.
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

fn fill_with_nops(mut out: &mut [u8]) {
    while !out.is_empty() {
        let nop = NOPS[out.len().min(NOPS.len()) - 1];
        let (now, rest) = out.split_at_mut(nop.len());
        now.copy_from_slice(nop);
        out = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Buffer {
        Buffer::new(0, 0, false)
    }

    fn written(mut buffer: Buffer) -> Vec<u8> {
        let len = buffer.relax_branches();
        let mut out = vec![0; len];
        buffer.write(&mut out);
        out
    }

    #[test]
    fn jumps_are_short_if_they_reach() {
        for (distance, short) in [(127, true), (128, false)] {
            let mut buffer = empty();
            let end = buffer.new_label();
            buffer.jump(end);
            for _ in 0..distance {
                buffer.put(&[0x90]);
            }
            buffer.bind(end);
            let code = written(buffer);
            assert_eq!(code[0], if short { 0xeb } else { 0xe9 });
            assert_eq!(code.len(), distance + if short { 2 } else { 5 });
        }
    }

    #[test]
    fn lengthening_one_jump_lengthens_another() {
        let mut buffer = empty();
        let (a, b) = (buffer.new_label(), buffer.new_label());
        buffer.jump_if(Cc::Equal, a);
        for _ in 0..125 {
            buffer.put(&[0x90]);
        }
        buffer.jump(b);
        buffer.bind(a);
        for _ in 0..200 {
            buffer.put(&[0x90]);
        }
        buffer.bind(b);
        let code = written(buffer);
        assert_eq!(code[..2], [0x0f, 0x84]);
        assert_eq!(i32::from_le_bytes(code[2..6].try_into().unwrap()), 130);
        assert_eq!(code[131], 0xe9);
        assert_eq!(code.len(), 6 + 125 + 5 + 200);
    }

    #[test]
    fn alignment_and_tables_depend_on_the_layout() {
        for long in [false, true] {
            let mut buffer = Buffer::new(0, 0, long);
            let (head, table) = (buffer.new_label(), buffer.new_label());
            buffer.put(&[0xc3]);
            buffer.align(16);
            buffer.bind(head);
            buffer.jump(head);
            let len = buffer.add_table(table, vec![head, table]);
            buffer.place_tables();
            buffer.put(&[0xc3]);
            let code = written(buffer);
            assert_eq!(code[16..18], [0xeb, 0xfe]);
            let entries = [(-2i32).to_le_bytes(), [0; 4]].map(|entry| entry[..len].to_vec());
            assert_eq!(code[18..18 + 2 * len], entries.concat());
            assert_eq!(code.len(), 19 + 2 * len);
        }
    }

    #[test]
    fn table_entries_have_a_reach() {
        for (bytes, reaches) in [(1 << 15, true), ((1 << 15) + 1, false)] {
            let mut buffer = empty();
            let (head, table) = (buffer.new_label(), buffer.new_label());
            buffer.bind(head);
            for _ in 0..bytes {
                buffer.put(&[0x90]);
            }
            buffer.add_table(table, vec![head]);
            buffer.place_tables();
            buffer.relax_branches();
            assert_eq!(buffer.tables_reach(), reaches);
        }
    }

    #[test]
    fn many_jumps_are_relaxed() {
        let mut buffer = empty();
        let labels: Vec<_> = (0..2000).map(|_| buffer.new_label()).collect();
        for index in 0..2000 {
            buffer.bind(labels[index]);
            buffer.jump(labels[(index + 42) % 2000]);
            buffer.put(&[0x90]);
        }
        assert!(!written(buffer).is_empty());
    }
}
