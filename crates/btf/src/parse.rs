//! Parser of BTF: one pass that finds the start of each type and checks that references
//! and names are in range.
//!
//! The pass tracks the maximum type id and the maximum string offset; only if one is out
//! of range does a second pass find the culprit. These are the checks that every reader
//! needs; Linux's check is [`validate`](crate::validate). Linear in the blob.

use std::fmt;

use crate::kind::Kind;
use crate::starts::Starts;
use crate::wire::{
    HEADER_SIZE, Header, MAGIC, MAX_STRING_OFFSET, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE,
    RECORD_SIZE, Record, VALUE_SIZE, VALUE64_SIZE, word,
};
use crate::{Btf, StrOffset, TypeId};

/// Malformed blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// The blob is shorter than a header.
    NoHeader,
    /// The magic number is wrong.
    NotBtf {
        /// First two bytes, little-endian.
        magic: u16,
    },
    /// The blob has the other byte order.
    ForeignByteOrder,
    /// The header states more bytes than the blob has.
    HeaderCut {
        /// Stated length of the header in bytes.
        len: u32,
    },
    /// Types and strings are not consecutive sections inside the blob.
    Sections,
    /// The type section is not aligned to four bytes.
    Misaligned,
    /// The strings do not start and end with a NUL, or exceed the maximum.
    Strings,
    /// A type has an unknown kind.
    UnknownKind {
        /// Type id.
        id: TypeId,
        /// Number of the kind.
        kind: u32,
    },
    /// The last type is truncated.
    Cut {
        /// Type id.
        id: TypeId,
    },
    /// The name of a type, member, enumerator or parameter is beyond the strings.
    NoString {
        /// Type id.
        id: TypeId,
        /// Offset of the name.
        offset: StrOffset,
    },
    /// A type refers to a missing type.
    NoType {
        /// Type id.
        id: TypeId,
        /// Missing type id.
        to: TypeId,
    },
    /// A function refers to a type that is no prototype.
    NoPrototype {
        /// Type id.
        id: TypeId,
        /// Type id of the reference.
        to: TypeId,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ParseError::NoHeader => write!(f, "too short for a BTF header"),
            ParseError::NotBtf { magic } => {
                write!(
                    f,
                    "no BTF: magic number is 0x{magic:04x} instead of 0x{MAGIC:04x}"
                )
            }
            ParseError::ForeignByteOrder => write!(f, "BTF is big-endian, not little-endian"),
            ParseError::HeaderCut { len } => {
                write!(f, "header states {len} bytes, more than the blob has")
            }
            ParseError::Sections => {
                write!(f, "types and strings are not consecutive inside the blob")
            }
            ParseError::Misaligned => write!(f, "type section is not aligned to 4 bytes"),
            ParseError::Strings => write!(
                f,
                "string section does not start and end with a NUL, or exceeds 2 GiB"
            ),
            ParseError::UnknownKind { id, kind } => {
                write!(f, "type {id} has unknown kind {kind}")
            }
            ParseError::Cut { id } => write!(f, "type {id} is truncated"),
            ParseError::NoString { id, offset } => {
                write!(
                    f,
                    "type {id} has a name at offset {}, beyond the strings",
                    offset.0
                )
            }
            ParseError::NoType { id, to } => {
                write!(f, "type {id} refers to missing type {to}")
            }
            ParseError::NoPrototype { id, to } => {
                write!(
                    f,
                    "function {id} refers to type {to}, which is no prototype"
                )
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// Index of a blob.
#[derive(Clone)]
pub(crate) struct Index {
    /// Start and end of the types.
    pub(crate) types: (usize, usize),
    /// Start and length of the strings.
    pub(crate) strings: (usize, usize),
    /// Start of each type of the blob itself; 0 for `void`, which has no record.
    pub(crate) starts: Starts,
    /// Ids of the data sections, which loaders look up repeatedly.
    pub(crate) datasecs: Vec<TypeId>,
}

impl Index {
    /// Index of a blob, split BTF on `base` or without a base.
    pub(crate) fn new(blob: &[u8], base: Option<&Btf<'_>>) -> Result<Index, ParseError> {
        let (types, strings) = sections(blob, base.is_some())?;
        let pass = Pass {
            blob: &blob[..types.1],
            base,
            first: base.map_or(0, Btf::len),
            strings: base.map_or(0, Btf::strings_end) + strings.1,
        };
        let (starts, datasecs) = pass.starts(types.0)?;
        Ok(Index {
            types,
            strings,
            starts,
            datasecs,
        })
    }
}

/// Start and end of the types, start and length of the strings, in the blob.
type Sections = ((usize, usize), (usize, usize));

fn sections(blob: &[u8], has_base: bool) -> Result<Sections, ParseError> {
    let header = Header::read(blob);
    if blob.len() < HEADER_SIZE {
        return Err(ParseError::NoHeader);
    }
    if header.magic == MAGIC.swap_bytes() {
        return Err(ParseError::ForeignByteOrder);
    }
    if header.magic != MAGIC {
        return Err(ParseError::NotBtf {
            magic: header.magic,
        });
    }
    let after_header = (blob.len() as u64)
        .checked_sub(header.len.into())
        .ok_or(ParseError::HeaderCut { len: header.len })?;
    let strings_end = u64::from(header.str_off) + u64::from(header.str_len);
    let types_end = u64::from(header.type_off) + u64::from(header.type_len);
    if strings_end > after_header || types_end > u64::from(header.str_off) {
        return Err(ParseError::Sections);
    }
    if !header.type_off.is_multiple_of(4) {
        return Err(ParseError::Misaligned);
    }
    let from = header.len as usize;
    let strings = (from + header.str_off as usize, header.str_len as usize);
    let bytes = &blob[strings.0..strings.0 + strings.1];
    match bytes {
        [] if has_base => {}
        [.., 0] if has_base => {}
        [0] | [0, .., 0] if header.str_len - 1 <= MAX_STRING_OFFSET => {}
        _ => return Err(ParseError::Strings),
    }
    let types = from + header.type_off as usize;
    Ok(((types, types + header.type_len as usize), strings))
}

/// Pass over the types of a blob.
struct Pass<'p> {
    /// Blob up to the end of its types.
    blob: &'p [u8],
    base: Option<&'p Btf<'p>>,
    /// Id of the first type here: 0, which is `void`, without a base.
    first: usize,
    /// End of the strings, base included.
    strings: usize,
}

impl Pass<'_> {
    /// Start of each type, the first at `from`, and the ids of data sections.
    fn starts(&self, from: usize) -> Result<(Starts, Vec<TypeId>), ParseError> {
        let blob = self.blob;
        // A type takes at least 12 bytes, 25 on average.
        let mut starts = Starts::with_capacity((blob.len() - from) / 24 + 2);
        if self.base.is_none() {
            starts.push(0);
        }
        let mut far = Furthest::default();
        let mut prototypes = Prototypes::default();
        let mut early_functions = Vec::new();
        let mut datasecs = Vec::new();
        let mut at = from;
        while at < blob.len() {
            let id = TypeId((self.first + starts.len()) as u32);
            if blob.len() - at < RECORD_SIZE {
                return Err(ParseError::Cut { id });
            }
            let record = Record::read(blob, at);
            let kind = record.kind();
            let kind = Kind::from_number(kind).ok_or(ParseError::UnknownKind { id, kind })?;
            let (fixed, each) = kind.tail();
            let end = at + RECORD_SIZE + fixed + each * record.count();
            let Some(tail) = blob.get(at + RECORD_SIZE..end) else {
                return Err(ParseError::Cut { id });
            };
            far.see(kind, record, tail);
            match kind {
                Kind::FuncProto => prototypes.add(starts.len()),
                Kind::Datasec => datasecs.push(id),
                Kind::Func => {
                    let to = TypeId(record.payload);
                    match self.is_prototype(to, &prototypes) {
                        true => {}
                        false if to < id => return Err(ParseError::NoPrototype { id, to }),
                        false => early_functions.push((id, to)),
                    }
                }
                _ => {}
            }
            starts.push(at as u32);
            at = end;
        }
        if far.name as usize >= self.strings || far.id as usize >= self.first + starts.len() {
            self.check_reach(&starts)?;
        }
        for (id, to) in early_functions {
            if !self.is_prototype(to, &prototypes) {
                return Err(ParseError::NoPrototype { id, to });
            }
        }
        Ok((starts, datasecs))
    }

    /// True if a type seen so far is a prototype.
    #[inline]
    fn is_prototype(&self, id: TypeId, seen: &Prototypes) -> bool {
        match id.index().checked_sub(self.first) {
            Some(own) => seen.has(own),
            None => self
                .base
                .is_some_and(|base| base.at(id).kind() == Kind::FuncProto),
        }
    }

    /// Error of the first type with a name or reference out of range.
    #[cold]
    fn check_reach(&self, starts: &Starts) -> Result<(), ParseError> {
        let ids = (self.first as u32..).map(TypeId);
        for (id, start) in ids.zip(starts.iter()).filter(|&(_, start)| start != 0) {
            let record = Record::read(self.blob, start as usize);
            let Some(kind) = Kind::from_number(record.kind()) else {
                continue;
            };
            let (fixed, each) = kind.tail();
            let from = start as usize + RECORD_SIZE;
            let tail = &self.blob[from..from + fixed + each * record.count()];
            let mut far = Furthest::default();
            far.see(kind, record, tail);
            if far.name as usize >= self.strings {
                let offset = StrOffset(far.name);
                return Err(ParseError::NoString { id, offset });
            }
            if far.id as usize >= self.first + starts.len() {
                let to = TypeId(far.id);
                return Err(ParseError::NoType { id, to });
            }
        }
        Ok(())
    }
}

/// Bit set of the prototypes, since most types of a kernel are functions, and the
/// prototypes that they refer to are far away in the blob.
#[derive(Default)]
struct Prototypes(Vec<u64>);

impl Prototypes {
    #[inline]
    fn add(&mut self, index: usize) {
        let word = index / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (index % 64);
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        let word = self.0.get(index / 64);
        word.is_some_and(|word| word >> (index % 64) & 1 != 0)
    }
}

/// Maximum string offset and maximum type id seen.
#[derive(Default)]
struct Furthest {
    name: u32,
    id: u32,
}

impl Furthest {
    #[inline(always)]
    fn see(&mut self, kind: Kind, record: Record, tail: &[u8]) {
        self.name = self.name.max(record.name);
        if !kind.has_size() && !matches!(kind, Kind::Array | Kind::Fwd) {
            self.id = self.id.max(record.payload);
        }
        match kind {
            Kind::Struct | Kind::Union => self.see_pairs::<MEMBER_SIZE>(tail),
            Kind::FuncProto => self.see_pairs::<PARAM_SIZE>(tail),
            Kind::Enum => self.see_names::<VALUE_SIZE>(tail),
            Kind::Enum64 => self.see_names::<VALUE64_SIZE>(tail),
            Kind::Datasec => {
                for placed in tail.chunks_exact(PLACED_SIZE) {
                    self.id = self.id.max(word(placed, 0));
                }
            }
            Kind::Array => self.id = self.id.max(word(tail, 0)).max(word(tail, 4)),
            _ => {}
        }
    }

    /// Updates the maxima with items that start with a name and a type.
    #[inline(always)]
    fn see_pairs<const SIZE: usize>(&mut self, tail: &[u8]) {
        for pair in tail.chunks_exact(SIZE) {
            self.name = self.name.max(word(pair, 0));
            self.id = self.id.max(word(pair, 4));
        }
    }

    /// Updates the maxima with items that start with a name.
    #[inline(always)]
    fn see_names<const SIZE: usize>(&mut self, tail: &[u8]) {
        for value in tail.chunks_exact(SIZE) {
            self.name = self.name.max(word(value, 0));
        }
    }
}
