//! From bytes to the index of a [`Btf`]: one pass that finds where each type starts
//! and looks whether everything that is referred to is there.
//!
//! References and names are not checked one by one: the pass keeps the largest of
//! each, and only when one is too large is the culprit searched for. The checks are
//! those that every reader needs, no more: what Linux asks of a blob before it
//! takes it is [`validate`](crate::validate).

use std::fmt;

use crate::kind::Kind;
use crate::starts::Starts;
use crate::wire::{
    HEADER_SIZE, Header, MAGIC, MAX_NAME_OFFSET, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE,
    Record, VALUE_SIZE, VALUE64_SIZE, word,
};
use crate::{Btf, StrOffset, TypeId};

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

/// Where things are in a blob.
#[derive(Clone)]
pub(crate) struct Index {
    /// Where the types start and end.
    pub(crate) types: (usize, usize),
    /// Where the strings start, and how many bytes they are.
    pub(crate) strings: (usize, usize),
    /// Where each type starts, from the first that is the blob's own. `void`, which
    /// stands nowhere, has 0.
    pub(crate) starts: Starts,
    /// The types that describe sections: there are few, and loaders want them again
    /// and again.
    pub(crate) datasecs: Vec<TypeId>,
}

impl Index {
    /// Looks at a blob that continues `base`, or stands alone.
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
        [0] | [0, .., 0] if header.str_len - 1 <= MAX_NAME_OFFSET => {}
        _ => return Err(ParseError::Strings),
    }
    let types = from + header.type_off as usize;
    Ok(((types, types + header.type_len as usize), strings))
}

/// One pass over the types of a blob.
struct Pass<'p> {
    /// The blob up to where its types end.
    blob: &'p [u8],
    base: Option<&'p Btf<'p>>,
    /// The number of the first type here: 0, which is `void`, without a base.
    first: usize,
    /// Where the strings end, the base's counted.
    strings: usize,
}

impl Pass<'_> {
    /// Finds where the types start, the first of them at `from`, and which of them
    /// describe sections.
    fn starts(&self, from: usize) -> Result<(Starts, Vec<TypeId>), ParseError> {
        let blob = self.blob;
        // A type takes 12 bytes at least and 25 on average.
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

    /// Is a type a prototype, as far as types were seen?
    #[inline]
    fn is_prototype(&self, id: TypeId, seen: &Prototypes) -> bool {
        match id.index().checked_sub(self.first) {
            Some(own) => seen.has(own),
            None => self
                .base
                .is_some_and(|base| base.at(id).kind() == Kind::FuncProto),
        }
    }

    /// Which type is the first to name or refer to what does not exist.
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

/// Which types are prototypes, one bit each: functions refer to them, most of a
/// kernel's types are functions, and what they refer to is far away in the blob.
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
