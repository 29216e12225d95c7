//! The types of a program, a kernel or a module, read where they stand.
//!
//! What is kept is the blob as it came (borrowed or owned) and two bytes for each
//! type; indexes by name are made when somebody asks.
//!
//! The types of a module continue those of its kernel: numbers and offsets of
//! strings go on where the kernel's end. Such a blob keeps its base, and every
//! question about a smaller number or offset is passed on, so whoever asks need
//! not know.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::kind::Kind;
use crate::lookup::NameIndexes;
use crate::parse::{Index, ParseError};
use crate::starts::Starts;
use crate::wire::{HEADER_SIZE, Record};
use crate::write::write_blob;
use crate::{Name, StrOffset, Type, TypeId};

/// The types of a program, a kernel or a module.
pub struct Btf<'a> {
    pub(crate) blob: Cow<'a, [u8]>,
    /// Where the blob's own types and strings are.
    pub(crate) index: Index,
    base: Option<Base<'a>>,
    pub(crate) names: NameIndexes,
    pub(crate) pointer_size: OnceLock<u32>,
}

/// What the types of a module continue.
struct Base<'a> {
    btf: Arc<Btf<'a>>,
    /// The number of the first type that is the module's own.
    first: usize,
    /// The offset of the first string that is.
    first_string: usize,
}

impl<'a> Btf<'a> {
    /// Reads a blob: the contents of a section `.BTF`, or of
    /// `/sys/kernel/btf/vmlinux`. The bytes are kept as they are, so borrowing
    /// them (from a mapping, say) costs no memory but the index of types.
    pub fn parse(blob: impl Into<Cow<'a, [u8]>>) -> Result<Btf<'a>, ParseError> {
        let blob = blob.into();
        let index = Index::new(&blob, None)?;
        Ok(Btf::from_parts(blob, index, None))
    }

    /// Reads the blob of a module, which continues the types of its kernel: the
    /// contents of a file in `/sys/kernel/btf`.
    pub fn parse_module(
        blob: impl Into<Cow<'a, [u8]>>,
        kernel: Arc<Btf<'a>>,
    ) -> Result<Btf<'a>, ParseError> {
        let blob = blob.into();
        let index = Index::new(&blob, Some(&kernel))?;
        let base = Base {
            first: kernel.len(),
            first_string: kernel.strings_end(),
            btf: kernel,
        };
        Ok(Btf::from_parts(blob, index, Some(base)))
    }

    fn from_parts(blob: Cow<'a, [u8]>, index: Index, base: Option<Base<'a>>) -> Btf<'a> {
        Btf {
            blob,
            index,
            base,
            names: NameIndexes::default(),
            pointer_size: OnceLock::new(),
        }
    }

    /// The same types, with bytes of their own.
    pub fn into_owned(self) -> Btf<'static> {
        let base = self.base.map(|base| Base {
            btf: Arc::new(match Arc::try_unwrap(base.btf) {
                Ok(btf) => btf.into_owned(),
                Err(shared) => shared.duplicate(),
            }),
            first: base.first,
            first_string: base.first_string,
        });
        let blob = Cow::Owned(self.blob.into_owned());
        Btf::from_parts(blob, self.index, base)
    }

    /// Copy of the types with bytes of its own.
    pub fn to_owned(&self) -> Btf<'static> {
        self.duplicate()
    }

    /// The same types once more.
    fn duplicate(&self) -> Btf<'static> {
        let base = self.base.as_ref().map(|base| Base {
            btf: Arc::new(base.btf.duplicate()),
            first: base.first,
            first_string: base.first_string,
        });
        let blob = Cow::Owned(self.blob.to_vec());
        Btf::from_parts(blob, self.index.clone(), base)
    }

    /// Lets the blob stand alone: the types and strings of its base come into it,
    /// and keep their numbers and offsets.
    pub(crate) fn stand_alone(&mut self) {
        if self.base.is_none() {
            return;
        }
        let types = self.all_types();
        let strings = self.all_strings();
        let index = Index {
            types: (HEADER_SIZE, HEADER_SIZE + types.len()),
            strings: (HEADER_SIZE + types.len(), strings.len()),
            starts: self.starts_behind(HEADER_SIZE),
            datasecs: self.datasecs().map(|ty| ty.id()).collect(),
        };
        let blob = write_blob(&types, &strings);
        *self = Btf::from_parts(blob.into(), index, None);
    }

    /// Where all types start in a blob whose types start at `from`.
    fn starts_behind(&self, from: usize) -> Starts {
        let (base, own) = match self.base() {
            Some(base) => (base.starts_behind(from), from + base.all_types().len()),
            None => (Starts::default(), from),
        };
        let old = self.index.types.0;
        let moved = self.index.starts.iter().map(|start| match start {
            0 => 0,
            start => (start as usize - old + own) as u32,
        });
        base.iter().chain(moved).collect()
    }

    /// Forgets what was found out about types that have changed since.
    pub(crate) fn forget_indexes(&mut self) {
        self.names = NameIndexes::default();
        self.pointer_size = OnceLock::new();
    }

    /// The bytes that it was read from, all of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.blob
    }

    /// The types that it continues, if it is a module's.
    pub fn base(&self) -> Option<&Btf<'a>> {
        self.base.as_ref().map(|base| &*base.btf)
    }

    /// How many types there are, `void` and those of the base counted.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.first() + self.index.starts.len()
    }

    /// The number of the first type of the blob itself.
    fn first(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.first)
    }

    /// The type with this number; `void` is one.
    pub fn get(&self, id: TypeId) -> Option<Type<'_>> {
        (id.index() < self.len()).then(|| self.at(id))
    }

    /// The type that another type of this blob refers to; parsing saw that it is
    /// there, so for numbers from elsewhere it is `void` at worst.
    #[inline]
    pub fn at(&self, id: TypeId) -> Type<'_> {
        if let Some(base) = &self.base {
            return match id.index().checked_sub(base.first) {
                Some(own) => self.own(id, own),
                None => base.btf.at(id),
            };
        }
        self.own(id, id.index())
    }

    #[inline]
    fn own(&self, id: TypeId, index: usize) -> Type<'_> {
        let start = self.index.starts.get(index).unwrap_or(0);
        Type::at(self, id, start as usize)
    }

    /// All types but `void`, by number; those of the base come first.
    pub fn types(&self) -> impl Iterator<Item = Type<'_>> + Clone {
        (1..self.len() as u32).map(|id| self.at(TypeId(id)))
    }

    /// The types that are not the base's, by number, without `void`.
    pub fn own_types(&self) -> impl Iterator<Item = Type<'_>> + Clone {
        let first = self.first().max(1) as u32;
        (first..self.len() as u32).map(|id| self.at(TypeId(id)))
    }

    /// The types that are not the base's, as far as an index by name needs them.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = (TypeId, Kind, StrOffset)> {
        let first = self.first();
        let starts = self.index.starts.iter().enumerate();
        starts
            .filter(|&(_, start)| start != 0)
            .map(move |(index, start)| {
                let id = TypeId((first + index) as u32);
                let record = Record::read(&self.blob, start as usize);
                let kind = Kind::from_number(record.kind()).unwrap_or(Kind::Void);
                (id, kind, StrOffset(record.name))
            })
    }

    /// The string that starts there, empty beyond the end.
    #[inline]
    pub fn string(&self, offset: StrOffset) -> Name<'_> {
        let mut own = offset.0 as usize;
        if let Some(base) = &self.base {
            match own.checked_sub(base.first_string) {
                Some(behind) => own = behind,
                None => return base.btf.string(offset),
            }
        }
        Name::new(until_nul(self.strings().get(own..).unwrap_or_default()))
    }

    /// The section of types, without the base's.
    pub(crate) fn type_section(&self) -> &[u8] {
        &self.blob[self.index.types.0..self.index.types.1]
    }

    /// The section of strings, without the base's.
    pub fn strings(&self) -> &[u8] {
        let (start, len) = self.index.strings;
        &self.blob[start..start + len]
    }

    /// The types of the base, then the blob's own.
    pub(crate) fn all_types(&self) -> Cow<'_, [u8]> {
        match self.base() {
            Some(base) => [&base.all_types(), self.type_section()].concat().into(),
            None => self.type_section().into(),
        }
    }

    /// The strings of the base, then the blob's own.
    pub(crate) fn all_strings(&self) -> Cow<'_, [u8]> {
        match self.base() {
            Some(base) => [&base.all_strings(), self.strings()].concat().into(),
            None => self.strings().into(),
        }
    }

    /// The offset behind the last string.
    pub(crate) fn strings_end(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.first_string) + self.index.strings.1
    }
}

/// Equality of the bytes, those of the base included.
impl PartialEq for Btf<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.blob == other.blob && self.base() == other.base()
    }
}

impl Eq for Btf<'_> {}

impl fmt::Debug for Btf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own_types().count();
        write!(f, "Btf({own} types, {} bytes)", self.blob.len())
    }
}

/// What stands before the first NUL.
#[inline]
fn until_nul(bytes: &[u8]) -> &[u8] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut len = 0;
    // Subtracting one from each byte borrows from the first that is 0.
    while let Some(chunk) = bytes.get(len..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let nuls = word.wrapping_sub(ONES) & !word & ONES << 7;
        if nuls != 0 {
            return &bytes[..len + nuls.trailing_zeros() as usize / 8];
        }
        len += 8;
    }
    let rest = bytes[len..].iter().position(|&byte| byte == 0);
    &bytes[..rest.map_or(bytes.len(), |rest| len + rest)]
}
