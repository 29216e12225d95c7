//! `.BTF.ext`: what the instructions of an object have to do with its types. For
//! each section of code: where functions start and which type they have, which
//! source line an instruction comes from, and which instructions depend on the
//! layout of types (relocations that are done once the kernel is known, CO-RE).
//!
//! Like [`Btf`], a [`BtfExt`] is the blob as it came; names in it are
//! offsets into the strings of the `.BTF` beside it.

mod check;
mod write;

pub use check::ExtFault;
pub use write::ExtBuilder;

use std::borrow::Cow;
use std::fmt;

#[cfg(doc)]
use crate::Btf;
use crate::wire::{MAGIC, VERSION, word};
use crate::{StrOffset, TypeId};

/// Bytes of a header without relocations.
const SHORT_HEADER: usize = 24;
/// Bytes of a header.
const HEADER: usize = 32;
/// Bytes of the name and count that the records of a section start with.
const GROUP: usize = 8;

/// What `.BTF.ext` says.
#[derive(Clone)]
pub struct BtfExt<'a> {
    blob: Cow<'a, [u8]>,
    tables: [Table; 3],
}

/// One of the three tables, in the blob.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// Where its sections start.
    start: usize,
    end: usize,
    /// Bytes of each record.
    each: usize,
}

/// What is wrong with a blob that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtError {
    /// It is too short, or its header says that it is.
    NoHeader,
    /// It starts with something else.
    NotBtf {
        /// The first two bytes, little-endian.
        magic: u16,
    },
    /// It is for machines of the other byte order.
    ForeignByteOrder,
    /// A version or flags that nobody knows.
    Version,
    /// There is nothing after the header.
    Empty,
    /// A table is not aligned to four bytes, or not inside the blob.
    Placement(TableKind),
    /// A table says that its records have this size, which can't be.
    RecordSize(TableKind, u32),
    /// A table is cut, or a section in it has no records.
    Records(TableKind),
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// Functions.
    Functions,
    /// Source lines.
    Lines,
    /// Relocations.
    Relocations,
}

impl TableKind {
    const ALL: [TableKind; 3] = [
        TableKind::Functions,
        TableKind::Lines,
        TableKind::Relocations,
    ];

    /// The bytes of a record that everybody knows; there may be more.
    fn record_size(self) -> usize {
        match self {
            TableKind::Functions => 8,
            TableKind::Lines | TableKind::Relocations => 16,
        }
    }

    fn name(self) -> &'static str {
        match self {
            TableKind::Functions => "functions",
            TableKind::Lines => "lines",
            TableKind::Relocations => "relocations",
        }
    }
}

impl fmt::Display for ExtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtError::NoHeader => write!(f, "too short for a BTF.ext header"),
            ExtError::NotBtf { magic } => write!(f, "no BTF.ext: it starts with 0x{magic:04x}"),
            ExtError::ForeignByteOrder => write!(f, "BTF.ext of a big-endian machine"),
            ExtError::Version => write!(f, "BTF.ext of an unknown version"),
            ExtError::Empty => write!(f, "BTF.ext without anything in it"),
            ExtError::Placement(table) => {
                write!(f, "the table of {} is not inside BTF.ext", table.name())
            }
            ExtError::RecordSize(table, size) => {
                write!(
                    f,
                    "records of {size} bytes in the table of {}",
                    table.name()
                )
            }
            ExtError::Records(table) => write!(f, "the table of {} is cut", table.name()),
        }
    }
}

impl std::error::Error for ExtError {}

/// The records of one section of code.
#[derive(Clone, Copy, Debug)]
pub struct Group<'b, T> {
    /// The name of the section.
    pub section: StrOffset,
    records: &'b [u8],
    each: usize,
    read: fn(&[u8]) -> T,
}

impl<'b, T: 'b> Group<'b, T> {
    /// Its records, in order.
    pub fn records(self) -> impl ExactSizeIterator<Item = T> + 'b {
        self.records.chunks_exact(self.each).map(self.read)
    }

    /// Record number `index`.
    pub fn get(&self, index: usize) -> Option<T> {
        let from = index.checked_mul(self.each)?;
        let raw = self.records.get(from..from.checked_add(self.each)?)?;
        Some((self.read)(raw))
    }
}

/// Where a function starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FuncInfo {
    /// Bytes from the start of the section.
    pub offset: u32,
    /// The function.
    pub func: TypeId,
}

/// Which source line the instructions from here on come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineInfo {
    /// Bytes from the start of the section.
    pub offset: u32,
    /// The name of the file.
    pub file: StrOffset,
    /// The text of the line.
    pub text: StrOffset,
    /// Its number, from 1; 22 bits.
    pub line: u32,
    /// The column, from 1; 10 bits.
    pub column: u32,
}

/// An instruction that depends on the layout of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreRelo {
    /// Bytes from the start of the section.
    pub offset: u32,
    /// What its number depends on.
    pub question: CoreQuestion,
}

/// What an instruction asks about the layout of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreQuestion {
    /// The type that is accessed.
    pub ty: TypeId,
    /// How, as numbers with colons between.
    pub access: StrOffset,
    /// What is asked about it.
    pub kind: CoreKind,
}

/// The kind of a question; numbers that are not here are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreKind(pub u32);

impl CoreKind {
    /// Where a field starts, in bytes.
    pub const FIELD_BYTE_OFFSET: CoreKind = CoreKind(0);
    /// How many bytes a field has.
    pub const FIELD_BYTE_SIZE: CoreKind = CoreKind(1);
    /// Is there such a field?
    pub const FIELD_EXISTS: CoreKind = CoreKind(2);
    /// Is a field signed?
    pub const FIELD_SIGNED: CoreKind = CoreKind(3);
    /// How far to shift a bit field left before shifting it right.
    pub const FIELD_LEFT_SHIFT: CoreKind = CoreKind(4);
    /// How far to shift a bit field right.
    pub const FIELD_RIGHT_SHIFT: CoreKind = CoreKind(5);
    /// The number of the type in the object.
    pub const TYPE_ID_LOCAL: CoreKind = CoreKind(6);
    /// The number of the type in the kernel.
    pub const TYPE_ID_TARGET: CoreKind = CoreKind(7);
    /// Is there such a type?
    pub const TYPE_EXISTS: CoreKind = CoreKind(8);
    /// How many bytes a type has.
    pub const TYPE_SIZE: CoreKind = CoreKind(9);
    /// Has an enumeration such a value?
    pub const ENUM_VALUE_EXISTS: CoreKind = CoreKind(10);
    /// What is the value?
    pub const ENUM_VALUE: CoreKind = CoreKind(11);
    /// Does a type look alike?
    pub const TYPE_MATCHES: CoreKind = CoreKind(12);

    /// Its name in the documentation of the kernel and in the messages of libbpf.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: &[&str] = &[
            "byte_off",
            "byte_sz",
            "field_exists",
            "signed",
            "lshift_u64",
            "rshift_u64",
            "local_type_id",
            "target_type_id",
            "type_exists",
            "type_size",
            "enumval_exists",
            "enumval_value",
            "type_matches",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl<'a> BtfExt<'a> {
    /// Reads a blob: the contents of a section `.BTF.ext`.
    pub fn parse(blob: impl Into<Cow<'a, [u8]>>) -> Result<BtfExt<'a>, ExtError> {
        let blob = blob.into();
        if blob.len() < 8 {
            return Err(ExtError::NoHeader);
        }
        let magic = u16::from_le_bytes([blob[0], blob[1]]);
        if magic == MAGIC.swap_bytes() {
            return Err(ExtError::ForeignByteOrder);
        }
        if magic != MAGIC {
            return Err(ExtError::NotBtf { magic });
        }
        if blob[2] != VERSION || blob[3] != 0 {
            return Err(ExtError::Version);
        }
        let header = word(&blob, 4) as usize;
        if blob.len() < header {
            return Err(ExtError::NoHeader);
        }
        if blob.len() == header {
            return Err(ExtError::Empty);
        }
        if header < SHORT_HEADER {
            return Err(ExtError::NoHeader);
        }
        let mut tables = [Table::default(); 3];
        for (index, kind) in TableKind::ALL.into_iter().enumerate() {
            let field = 8 + 8 * index;
            if field + 8 <= header {
                let (offset, len) = (word(&blob, field), word(&blob, field + 4));
                tables[index] = table(&blob, kind, header, offset, len)?;
            }
        }
        Ok(BtfExt { blob, tables })
    }

    /// The bytes that it was read from.
    pub fn as_bytes(&self) -> &[u8] {
        &self.blob
    }

    /// The functions of each section.
    pub fn functions(&self) -> impl Iterator<Item = Group<'_, FuncInfo>> {
        self.groups(TableKind::Functions, |raw| FuncInfo {
            offset: word(raw, 0),
            func: TypeId(word(raw, 4)),
        })
    }

    /// The lines of each section.
    pub fn lines(&self) -> impl Iterator<Item = Group<'_, LineInfo>> {
        self.groups(TableKind::Lines, |raw| {
            let place = word(raw, 12);
            LineInfo {
                offset: word(raw, 0),
                file: StrOffset(word(raw, 4)),
                text: StrOffset(word(raw, 8)),
                line: place >> 10,
                column: place & 0x3ff,
            }
        })
    }

    /// The relocations of each section.
    pub fn relocations(&self) -> impl Iterator<Item = Group<'_, CoreRelo>> {
        self.groups(TableKind::Relocations, |raw| CoreRelo {
            offset: word(raw, 0),
            question: CoreQuestion {
                ty: TypeId(word(raw, 4)),
                access: StrOffset(word(raw, 8)),
                kind: CoreKind(word(raw, 12)),
            },
        })
    }

    fn groups<T>(
        &self,
        kind: TableKind,
        read: fn(&[u8]) -> T,
    ) -> impl Iterator<Item = Group<'_, T>> {
        let Table { start, end, each } = self.tables[kind as usize];
        let mut rest = self.blob.get(start..end).unwrap_or_default();
        std::iter::from_fn(move || {
            if rest.len() < GROUP {
                return None;
            }
            let len = (word(rest, 4) as usize).checked_mul(each)?;
            let section = StrOffset(word(rest, 0));
            let records = rest.get(GROUP..GROUP.checked_add(len)?)?;
            rest = &rest[GROUP + len..];
            Some(Group {
                section,
                records,
                each,
                read,
            })
        })
    }
}

impl fmt::Debug for BtfExt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BtfExt({} bytes)", self.blob.len())
    }
}

/// Looks whether a table holds together.
fn table(
    blob: &[u8],
    kind: TableKind,
    header: usize,
    offset: u32,
    len: u32,
) -> Result<Table, ExtError> {
    if len == 0 {
        return Ok(Table::default());
    }
    let start = header + offset as usize;
    let end = start + len as usize;
    if !offset.is_multiple_of(4) || end > blob.len() {
        return Err(ExtError::Placement(kind));
    }
    let table = &blob[start..end];
    if table.len() < 4 {
        return Err(ExtError::Records(kind));
    }
    let each = word(table, 0);
    if (each as usize) < kind.record_size() || !each.is_multiple_of(4) {
        return Err(ExtError::RecordSize(kind, each));
    }
    let mut rest = &table[4..];
    if rest.is_empty() {
        return Err(ExtError::Records(kind));
    }
    while !rest.is_empty() {
        let count = u64::from(word(rest, 4));
        let len = GROUP as u64 + count * u64::from(each);
        if rest.len() < GROUP || count == 0 || (rest.len() as u64) < len {
            return Err(ExtError::Records(kind));
        }
        rest = &rest[len as usize..];
    }
    Ok(Table {
        start: start + 4,
        end,
        each: each as usize,
    })
}

/// A path into a type, as a relocation gives it: which element, then which member
/// of a member, and so on.
pub fn parse_access(text: &str) -> Option<Vec<u32>> {
    if text.is_empty() {
        return None;
    }
    text.split(':')
        .map(|number| {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| number.parse().ok())?
        })
        .collect()
}
