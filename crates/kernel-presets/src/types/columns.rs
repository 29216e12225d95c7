//! Columns of numbers, which a difference of types consists of. A number takes seven bits a byte.

/// Number of columns.
const COLUMNS: usize = 7;

/// A column: what its numbers are about.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// Runs of strings of the other kernel, and of new ones.
    Strings,
    /// Runs of types of the other kernel, and of new ones.
    Types,
    /// Types of the other kernel whose content is another.
    Changed,
    /// Heads of types that are written.
    Heads,
    /// Elements: which of the other kernel's they are.
    Elements,
    /// Elements: types.
    Referred,
    /// Elements: other numbers.
    Numbers,
}

/// Columns that are being written.
#[derive(Default)]
pub(super) struct Writer([Vec<u8>; COLUMNS]);

impl Writer {
    pub(super) fn put(&mut self, column: Column, mut number: u32) {
        let column = &mut self.0[column as usize];
        while number >= 0x80 {
            column.push(number as u8 | 0x80);
            number >>= 7;
        }
        column.push(number as u8);
    }

    /// A number by its distance from another one.
    pub(super) fn put_from(&mut self, column: Column, from: u32, number: u32) {
        let distance = number.wrapping_sub(from) as i32;
        self.put(column, (distance << 1 ^ distance >> 31) as u32);
    }

    /// All columns, each behind its length, and text behind them.
    pub(super) fn finish(self, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for column in &self.0 {
            bytes.extend((column.len() as u32).to_le_bytes());
        }
        self.0.iter().for_each(|column| bytes.extend(column));
        bytes.extend(text);
        bytes
    }
}

/// Columns that are being read.
pub(super) struct Reader<'a>([&'a [u8]; COLUMNS]);

impl<'a> Reader<'a> {
    /// The columns, and the text behind them.
    pub(super) fn new(bytes: &'a [u8]) -> Option<(Reader<'a>, &'a [u8])> {
        let (lengths, mut rest) = bytes.split_at_checked(4 * COLUMNS)?;
        let mut columns = [&[][..]; COLUMNS];
        for (column, len) in columns.iter_mut().zip(lengths.chunks_exact(4)) {
            let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
            (*column, rest) = rest.split_at_checked(len)?;
        }
        Some((Reader(columns), rest))
    }

    /// The next number of a column; `None` at its end.
    pub(super) fn get(&mut self, column: Column) -> Option<u32> {
        let column = &mut self.0[column as usize];
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let (&byte, rest) = column.split_first()?;
            *column = rest;
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Some(number)
    }

    /// The next number of a column, which is written by its distance from another one.
    pub(super) fn get_from(&mut self, column: Column, from: u32) -> Option<u32> {
        let number = self.get(column)?;
        Some(from.wrapping_add((number >> 1) ^ (number & 1).wrapping_neg()))
    }
}
