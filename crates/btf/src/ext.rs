//! `.BTF.ext`: func_info, line_info and CO-RE relocations of each code section.
//!
//! Like [`Btf`], a [`BtfExt`] is a blob read in place; names in it are offsets into the
//! strings of its `.BTF`.

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

/// Size of a header without CO-RE relocations in bytes.
const SHORT_HEADER: usize = 24;
/// Size of a header in bytes.
const HEADER: usize = 32;
/// Size of the name and record count of a section in bytes.
const GROUP: usize = 8;

/// A `.BTF.ext` blob.
#[derive(Clone)]
pub struct BtfExt<'a> {
    blob: Cow<'a, [u8]>,
    tables: [Table; 3],
}

/// One of the three tables in the blob.
#[derive(Clone, Copy, Debug, Default)]
struct Table {
    /// Start of its sections.
    start: usize,
    end: usize,
    /// Size of a record in bytes.
    each: usize,
}

/// Malformed `.BTF.ext`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtError {
    /// The blob is shorter than a header, or its header states that.
    NoHeader,
    /// The magic number is wrong.
    NotBtf {
        /// First two bytes, little-endian.
        magic: u16,
    },
    /// The blob has the other byte order.
    ForeignByteOrder,
    /// The version or the flags are unknown.
    Version,
    /// Nothing follows the header.
    Empty,
    /// A table is not aligned to four bytes, or not inside the blob.
    Placement(TableKind),
    /// The stated size of records is invalid.
    RecordSize(TableKind, u32),
    /// A table is truncated, or a section in it has no records.
    Records(TableKind),
}

/// Table of `.BTF.ext`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// func_info.
    FuncInfo,
    /// line_info.
    LineInfo,
    /// CO-RE relocations.
    CoreRelo,
}

impl TableKind {
    const ALL: [TableKind; 3] = [
        TableKind::FuncInfo,
        TableKind::LineInfo,
        TableKind::CoreRelo,
    ];

    /// Minimum size of a record in bytes; there may be more.
    fn record_size(self) -> usize {
        match self {
            TableKind::FuncInfo => 8,
            TableKind::LineInfo | TableKind::CoreRelo => 16,
        }
    }

    fn name(self) -> &'static str {
        match self {
            TableKind::FuncInfo => "func_info",
            TableKind::LineInfo => "line_info",
            TableKind::CoreRelo => "core_relo",
        }
    }
}

impl fmt::Display for ExtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtError::NoHeader => write!(f, "too short for a BTF.ext header"),
            ExtError::NotBtf { magic } => write!(f, "no BTF.ext: magic number is 0x{magic:04x}"),
            ExtError::ForeignByteOrder => write!(f, "BTF.ext is big-endian, not little-endian"),
            ExtError::Version => write!(f, "BTF.ext has an unknown version or flags"),
            ExtError::Empty => write!(f, "BTF.ext has no table"),
            ExtError::Placement(table) => {
                write!(
                    f,
                    "table of {} is unaligned or not inside BTF.ext",
                    table.name()
                )
            }
            ExtError::RecordSize(table, size) => {
                write!(
                    f,
                    "invalid record size {size} in the table of {}",
                    table.name()
                )
            }
            ExtError::Records(table) => write!(
                f,
                "table of {} is truncated or has a section without records",
                table.name()
            ),
        }
    }
}

impl std::error::Error for ExtError {}

/// Records of one code section (libbpf's `struct btf_ext_info_sec`).
#[derive(Clone, Copy, Debug)]
pub struct ExtSection<'b, T> {
    /// Name of the section.
    pub section: StrOffset,
    records: &'b [u8],
    each: usize,
    read: fn(&[u8]) -> T,
}

impl<'b, T: 'b> ExtSection<'b, T> {
    /// Records, in order.
    pub fn records(self) -> impl ExactSizeIterator<Item = T> + 'b {
        self.records.chunks_exact(self.each).map(self.read)
    }

    /// Record with this index.
    pub fn get(&self, index: usize) -> Option<T> {
        let from = index.checked_mul(self.each)?;
        let raw = self.records.get(from..from.checked_add(self.each)?)?;
        Some((self.read)(raw))
    }
}

/// func_info record (`struct bpf_func_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtFuncInfo {
    /// Offset in bytes from the start of the section.
    pub offset: u32,
    /// BTF id of the function.
    pub func: TypeId,
}

/// line_info record: source line of the instructions up to the next record (`struct
/// bpf_line_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtLineInfo {
    /// Offset in bytes from the start of the section.
    pub offset: u32,
    /// File name.
    pub file: StrOffset,
    /// Text of the line.
    pub text: StrOffset,
    /// Line number from 1; 22 bits.
    pub line: u32,
    /// Column from 1; 10 bits.
    pub column: u32,
}

/// CO-RE relocation of an instruction (`struct bpf_core_relo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreRelo {
    /// Offset in bytes from the start of the section.
    pub offset: u32,
    /// Type, access and kind of the relocation.
    pub spec: CoreSpec,
}

/// Type, access string and kind of a CO-RE relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreSpec {
    /// Root type of the access.
    pub ty: TypeId,
    /// Access string: indices separated by colons.
    pub access: StrOffset,
    /// Kind of relocation.
    pub kind: CoreKind,
}

/// Kind of CO-RE relocation (`enum bpf_core_relo_kind`). Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreKind(pub u32);

impl CoreKind {
    /// Byte offset of a field.
    pub const FIELD_BYTE_OFFSET: CoreKind = CoreKind(0);
    /// Size of a field in bytes.
    pub const FIELD_BYTE_SIZE: CoreKind = CoreKind(1);
    /// 1 if the field exists.
    pub const FIELD_EXISTS: CoreKind = CoreKind(2);
    /// 1 if the field is signed.
    pub const FIELD_SIGNED: CoreKind = CoreKind(3);
    /// Left shift of a bit field before the right shift.
    pub const FIELD_LEFT_SHIFT: CoreKind = CoreKind(4);
    /// Right shift of a bit field.
    pub const FIELD_RIGHT_SHIFT: CoreKind = CoreKind(5);
    /// BTF id of the type in the object.
    pub const TYPE_ID_LOCAL: CoreKind = CoreKind(6);
    /// BTF id of the type in the kernel.
    pub const TYPE_ID_TARGET: CoreKind = CoreKind(7);
    /// 1 if the type exists.
    pub const TYPE_EXISTS: CoreKind = CoreKind(8);
    /// Size of a type in bytes.
    pub const TYPE_SIZE: CoreKind = CoreKind(9);
    /// 1 if the enumerator exists.
    pub const ENUM_VALUE_EXISTS: CoreKind = CoreKind(10);
    /// Value of an enumerator.
    pub const ENUM_VALUE: CoreKind = CoreKind(11);
    /// 1 if a type matches.
    pub const TYPE_MATCHES: CoreKind = CoreKind(12);

    /// Name in the kernel's documentation and in libbpf's messages.
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
    /// Parses a blob: the contents of a section `.BTF.ext`.
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

    /// Bytes of the blob.
    pub fn as_bytes(&self) -> &[u8] {
        &self.blob
    }

    /// func_info records by section.
    pub fn functions(&self) -> impl Iterator<Item = ExtSection<'_, ExtFuncInfo>> {
        self.groups(TableKind::FuncInfo, |raw| ExtFuncInfo {
            offset: word(raw, 0),
            func: TypeId(word(raw, 4)),
        })
    }

    /// line_info records by section.
    pub fn lines(&self) -> impl Iterator<Item = ExtSection<'_, ExtLineInfo>> {
        self.groups(TableKind::LineInfo, |raw| {
            let place = word(raw, 12);
            ExtLineInfo {
                offset: word(raw, 0),
                file: StrOffset(word(raw, 4)),
                text: StrOffset(word(raw, 8)),
                line: place >> 10,
                column: place & 0x3ff,
            }
        })
    }

    /// CO-RE relocations by section.
    pub fn relocations(&self) -> impl Iterator<Item = ExtSection<'_, CoreRelo>> {
        self.groups(TableKind::CoreRelo, |raw| CoreRelo {
            offset: word(raw, 0),
            spec: CoreSpec {
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
    ) -> impl Iterator<Item = ExtSection<'_, T>> {
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
            Some(ExtSection {
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

/// Checks the structure of a table.
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

/// Parses an access string: index of the element, then indices of members.
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
