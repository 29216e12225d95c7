//! From bytes to [`Btf`]: one pass that finds where each type starts and looks
//! whether everything that is referred to is there.
//!
//! What is kept is the blob as it came (borrowed or owned) and four bytes for
//! each type. References and names are not checked one by one: the pass keeps the
//! largest of each, and only when one is too large is the culprit searched for.
//! The checks are those that every reader needs, no more: what Linux asks of a
//! blob before it takes it is [`validate`](crate::validate).

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use crate::kind::Kind;
use crate::lookup::NameIndex;
use crate::wire::{
    HEADER_SIZE, Header, MAGIC, MAX_NAME_OFFSET, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE,
    Record, VALUE_SIZE, VALUE64_SIZE, word,
};
use crate::{Name, StrOffset, Type, TypeId};

/// The types of a program or a kernel.
pub struct Btf<'a> {
    pub(crate) blob: Cow<'a, [u8]>,
    /// Where the types start and end in the blob.
    pub(crate) types: (usize, usize),
    /// Where each type starts in the blob; `void`, which stands nowhere, has 0.
    pub(crate) starts: Vec<u32>,
    /// Where the strings start in the blob, and how many bytes they are.
    pub(crate) strings: (usize, usize),
    pub(crate) names: OnceLock<NameIndex>,
}

/// What is wrong with a blob that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParseError {
    /// It is too short to hold a header.
    NoHeader,
    /// It starts with something else.
    NotBtf {
        /// The first two bytes, little-endian.
        magic: u16,
    },
    /// It is for machines of the other byte order.
    ForeignByteOrder,
    /// The header says that it is longer than the blob.
    HeaderCut {
        /// What it says, in bytes.
        len: u32,
    },
    /// The sections do not stand one after the other inside the blob.
    Sections,
    /// The types do not start at a multiple of four bytes.
    Misaligned,
    /// The strings do not start and end with a NUL, or are too many.
    Strings,
    /// A type of a kind that nobody knows.
    UnknownKind {
        /// Which type.
        id: TypeId,
        /// The kind that it says it has.
        kind: u32,
    },
    /// The last type ends before it is complete.
    Cut {
        /// Which type.
        id: TypeId,
    },
    /// A name, its own or a member's, starts beyond the strings.
    NoString {
        /// Which type.
        id: TypeId,
        /// Where the name should start.
        offset: StrOffset,
    },
    /// It refers to a type that does not exist.
    NoType {
        /// Which type.
        id: TypeId,
        /// The type referred to.
        to: TypeId,
    },
    /// It is a function, but what it refers to is no prototype.
    NoPrototype {
        /// Which type.
        id: TypeId,
        /// The type referred to.
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
                    "no BTF: it starts with 0x{magic:04x} instead of 0x{MAGIC:04x}"
                )
            }
            ParseError::ForeignByteOrder => write!(f, "BTF of a big-endian machine"),
            ParseError::HeaderCut { len } => {
                write!(f, "the header says it has {len} bytes, more than there are")
            }
            ParseError::Sections => {
                write!(
                    f,
                    "types and strings do not follow each other inside the blob"
                )
            }
            ParseError::Misaligned => write!(f, "the types are not aligned to 4 bytes"),
            ParseError::Strings => write!(f, "the strings do not start and end with a NUL"),
            ParseError::UnknownKind { id, kind } => {
                write!(f, "type {id} has kind {kind}, which is unknown")
            }
            ParseError::Cut { id } => write!(f, "type {id} ends too early"),
            ParseError::NoString { id, offset } => {
                write!(
                    f,
                    "type {id} has a name at {}, beyond the strings",
                    offset.0
                )
            }
            ParseError::NoType { id, to } => {
                write!(f, "type {id} refers to type {to}, which does not exist")
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

impl<'a> Btf<'a> {
    /// Reads a blob: the contents of a section `.BTF`, or of
    /// `/sys/kernel/btf/vmlinux`. The bytes are kept as they are, so borrowing
    /// them (from a mapping, say) costs no memory but the index of types.
    pub fn parse(blob: impl Into<Cow<'a, [u8]>>) -> Result<Btf<'a>, ParseError> {
        let blob = blob.into();
        let (types, strings) = sections(&blob)?;
        let starts = index(&blob[..types.1], types.0, strings.1)?;
        Ok(Btf {
            blob,
            types,
            starts,
            strings,
            names: OnceLock::new(),
        })
    }

    /// The same types, with bytes of their own.
    pub fn into_owned(self) -> Btf<'static> {
        Btf {
            blob: Cow::Owned(self.blob.into_owned()),
            types: self.types,
            starts: self.starts,
            strings: self.strings,
            names: self.names,
        }
    }

    /// The bytes that it was read from, all of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.blob
    }

    /// How many types there are, `void` counted.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// The type with this number; `void` is one.
    pub fn get(&self, id: TypeId) -> Option<Type<'_>> {
        self.starts
            .get(id.index())
            .map(|&start| Type::at(self, id, start as usize))
    }

    /// The type that another type of this blob refers to; parsing saw that it is
    /// there, so for numbers from elsewhere it is `void` at worst.
    pub fn at(&self, id: TypeId) -> Type<'_> {
        let start = self.starts.get(id.index()).copied().unwrap_or(0);
        Type::at(self, id, start as usize)
    }

    /// All types but `void`, by number.
    pub fn types(&self) -> impl Iterator<Item = Type<'_>> + Clone {
        self.starts[1..]
            .iter()
            .zip(1..)
            .map(|(&start, id)| Type::at(self, TypeId(id), start as usize))
    }

    /// The string that starts there, empty beyond the end.
    pub fn string(&self, offset: StrOffset) -> Name<'_> {
        let strings = self.strings();
        let rest = strings.get(offset.0 as usize..).unwrap_or_default();
        let len = rest.iter().position(|&byte| byte == 0);
        Name::new(&rest[..len.unwrap_or(rest.len())])
    }

    /// The section of types.
    pub(crate) fn type_section(&self) -> &[u8] {
        &self.blob[self.types.0..self.types.1]
    }

    /// The section of strings.
    pub fn strings(&self) -> &[u8] {
        let (start, len) = self.strings;
        &self.blob[start..start + len]
    }
}

impl fmt::Debug for Btf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Btf({} types, {} bytes)",
            self.len() - 1,
            self.blob.len()
        )
    }
}

/// Start and end of the types, start and length of the strings, in the blob.
type Sections = ((usize, usize), (usize, usize));

fn sections(blob: &[u8]) -> Result<Sections, ParseError> {
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
        [0] | [0, .., 0] if header.str_len - 1 <= MAX_NAME_OFFSET => {}
        _ => return Err(ParseError::Strings),
    }
    let types = from + header.type_off as usize;
    Ok(((types, types + header.type_len as usize), strings))
}

/// Finds where the types of `blob[from..]` start.
fn index(blob: &[u8], from: usize, strings: usize) -> Result<Vec<u32>, ParseError> {
    // A type takes 12 bytes at least and 30 on average.
    let mut starts = Vec::with_capacity((blob.len() - from) / 28 + 2);
    starts.push(0);
    let mut far = Furthest::default();
    let mut early_functions = Vec::new();
    let mut at = from;
    while at < blob.len() {
        let id = TypeId(starts.len() as u32);
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
        if kind == Kind::Func {
            let to = TypeId(record.payload);
            match starts.get(to.index()) {
                Some(&start) => expect_prototype(blob, start, id, to)?,
                None => early_functions.push((id, to)),
            }
        }
        starts.push(at as u32);
        at = end;
    }
    if far.name as usize >= strings || far.id as usize >= starts.len() {
        check_reach(blob, &starts, strings)?;
    }
    for (id, to) in early_functions {
        expect_prototype(blob, starts[to.index()], id, to)?;
    }
    Ok(starts)
}

fn expect_prototype(blob: &[u8], start: u32, id: TypeId, to: TypeId) -> Result<(), ParseError> {
    let record = Record::read(blob, start as usize);
    if start != 0 && record.kind() == Kind::FuncProto as u32 {
        Ok(())
    } else {
        Err(ParseError::NoPrototype { id, to })
    }
}

/// The largest string offset and the largest type number that were seen.
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

    /// What starts with a name and a type.
    #[inline(always)]
    fn see_pairs<const SIZE: usize>(&mut self, tail: &[u8]) {
        for pair in tail.chunks_exact(SIZE) {
            self.name = self.name.max(word(pair, 0));
            self.id = self.id.max(word(pair, 4));
        }
    }

    /// What starts with a name.
    #[inline(always)]
    fn see_names<const SIZE: usize>(&mut self, tail: &[u8]) {
        for value in tail.chunks_exact(SIZE) {
            self.name = self.name.max(word(value, 0));
        }
    }
}

/// Which type is the first to name or refer to what does not exist.
#[cold]
fn check_reach(blob: &[u8], starts: &[u32], strings: usize) -> Result<(), ParseError> {
    for (id, &start) in starts.iter().enumerate().skip(1) {
        let record = Record::read(blob, start as usize);
        let Some(kind) = Kind::from_number(record.kind()) else {
            continue;
        };
        let (fixed, each) = kind.tail();
        let from = start as usize + RECORD_SIZE;
        let tail = &blob[from..from + fixed + each * record.count()];
        let mut far = Furthest::default();
        far.see(kind, record, tail);
        let id = TypeId(id as u32);
        if far.name as usize >= strings {
            return Err(ParseError::NoString {
                id,
                offset: StrOffset(far.name),
            });
        }
        if far.id as usize >= starts.len() {
            return Err(ParseError::NoType {
                id,
                to: TypeId(far.id),
            });
        }
    }
    Ok(())
}
