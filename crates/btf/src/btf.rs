//! A BTF blob, read in place.
//!
//! The blob is borrowed or owned; two bytes for each type index it. Indexes by name are
//! built on first use.
//!
//! Split BTF (the BTF of a module) continues the type ids and string offsets of its base,
//! which it keeps: lookups of smaller ids and offsets go to the base.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::kind::Kind;
use crate::lookup::NameIndexes;
use crate::parse::{Index, ParseError};
use crate::saved_index::Reader;
use crate::starts::Starts;
use crate::wire::{HEADER_SIZE, Record};
use crate::write::write_blob;
use crate::{Name, StrOffset, Type, TypeId};

/// BTF of a program, a kernel or a module.
pub struct Btf<'a> {
    pub(crate) blob: Cow<'a, [u8]>,
    /// Offsets of the types and strings of the blob itself.
    pub(crate) index: Index,
    base: Option<Base<'a>>,
    pub(crate) names: NameIndexes,
    pub(crate) pointer_size: OnceLock<u32>,
}

/// Base of split BTF.
struct Base<'a> {
    btf: Arc<Btf<'a>>,
    /// Id of the first type of the module itself.
    first: usize,
    /// Offset of the first string of the module itself.
    first_string: usize,
}

impl<'a> Btf<'a> {
    /// Parses a blob: the contents of a section `.BTF` or of `/sys/kernel/btf/vmlinux`
    /// (`btf_parse`). The bytes are borrowed or owned as given; only the index of types takes
    /// memory.
    #[doc(alias = "btf_parse")]
    pub fn parse(blob: impl Into<Cow<'a, [u8]>>) -> Result<Btf<'a>, ParseError> {
        let blob = blob.into();
        let index = Index::new(&blob, None)?;
        Ok(Btf::from_parts(blob, index, None))
    }

    /// Parses split BTF on that of a kernel: the contents of a module's file in `/sys/kernel/btf`
    /// (`btf_parse_module`).
    #[doc(alias = "btf_parse_module")]
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

    /// Blob without a base whose indexes by name are saved.
    pub(crate) fn with_saved_names(
        blob: Cow<'a, [u8]>,
        index: Index,
        names: [Reader; 2],
    ) -> Btf<'a> {
        Btf {
            names: NameIndexes::saved(names),
            ..Btf::from_parts(blob, index, None)
        }
    }

    /// Converts into BTF that owns its bytes.
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

    /// Copy that owns its bytes.
    pub fn to_owned(&self) -> Btf<'static> {
        self.duplicate()
    }

    /// Copy of blob and index.
    fn duplicate(&self) -> Btf<'static> {
        let base = self.base.as_ref().map(|base| Base {
            btf: Arc::new(base.btf.duplicate()),
            first: base.first,
            first_string: base.first_string,
        });
        let blob = Cow::Owned(self.blob.to_vec());
        Btf::from_parts(blob, self.index.clone(), base)
    }

    /// Merges the base into the blob; ids and offsets are unchanged.
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

    /// Start of every type in a blob whose types start at `from`.
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

    /// Drops the indexes by name after a change of types.
    pub(crate) fn clear_indexes(&mut self) {
        self.names = NameIndexes::default();
        self.pointer_size = OnceLock::new();
    }

    /// Bytes of the blob, without the base.
    pub fn as_bytes(&self) -> &[u8] {
        &self.blob
    }

    /// Base of split BTF (`btf_base_btf`).
    #[doc(alias = "btf_base_btf")]
    pub fn base(&self) -> Option<&Btf<'a>> {
        self.base.as_ref().map(|base| &*base.btf)
    }

    /// Number of types, `void` and those of the base included (`btf_nr_types`).
    #[doc(alias = "btf_nr_types")]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.first() + self.index.starts.len()
    }

    /// Id of the first type of the blob itself (`btf_start_id`).
    #[doc(alias = "btf_start_id")]
    fn first(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.first)
    }

    /// Type with this id; id 0 is `void` (`btf_type_by_id`).
    #[doc(alias = "btf_type_by_id")]
    pub fn get(&self, id: TypeId) -> Option<Type<'_>> {
        (id.index() < self.len()).then(|| self.at(id))
    }

    /// Type with an id that occurs in this blob, which parsing has checked; `void` for
    /// other ids beyond the end.
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

    /// All types but `void`, by id, those of the base first.
    pub fn types(&self) -> impl Iterator<Item = Type<'_>> + Clone {
        (1..self.len() as u32).map(|id| self.at(TypeId(id)))
    }

    /// Types without those of the base, by id, without `void`.
    pub fn own_types(&self) -> impl Iterator<Item = Type<'_>> + Clone {
        let first = self.first().max(1) as u32;
        (first..self.len() as u32).map(|id| self.at(TypeId(id)))
    }

    /// True if the name of each type without those of the base begins where a string does. Names
    /// of split BTF that continues another base begin anywhere.
    pub fn has_whole_names(&self) -> bool {
        self.own_names().all(|(.., name)| self.begins_string(name))
    }

    /// True if a string begins at this offset.
    fn begins_string(&self, offset: StrOffset) -> bool {
        let own = match &self.base {
            None => offset.0 as usize,
            Some(base) => match (offset.0 as usize).checked_sub(base.first_string) {
                Some(own) => own,
                None => return base.btf.begins_string(offset),
            },
        };
        let before = own
            .checked_sub(1)
            .map(|before| self.index.strings.0 + before);
        before.is_none_or(|before| self.blob.get(before) == Some(&0))
    }

    /// Types without those of the base, with the fields of an index by name.
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

    /// String at this offset; empty beyond the end (`btf_name_by_offset`, `__btf_name_by_offset`,
    /// `btf_str_by_offset`).
    #[doc(alias = "btf_name_by_offset")]
    #[doc(alias = "__btf_name_by_offset")]
    #[doc(alias = "btf_str_by_offset")]
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

    /// Type section, without the base's.
    pub(crate) fn type_section(&self) -> &[u8] {
        &self.blob[self.index.types.0..self.index.types.1]
    }

    /// String section, without the base's.
    pub fn strings(&self) -> &[u8] {
        let (start, len) = self.index.strings;
        &self.blob[start..start + len]
    }

    /// Type sections of the base and the blob.
    pub(crate) fn all_types(&self) -> Cow<'_, [u8]> {
        match self.base() {
            Some(base) => [&base.all_types(), self.type_section()].concat().into(),
            None => self.type_section().into(),
        }
    }

    /// String sections of the base and the blob.
    pub(crate) fn all_strings(&self) -> Cow<'_, [u8]> {
        match self.base() {
            Some(base) => [&base.all_strings(), self.strings()].concat().into(),
            None => self.strings().into(),
        }
    }

    /// Offset after the last string.
    pub fn strings_end(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.first_string) + self.index.strings.1
    }
}

/// Equality of the bytes, base included.
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

/// Bytes before the first NUL.
#[inline]
fn until_nul(bytes: &[u8]) -> &[u8] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut len = 0;
    // Subtracting one from each byte borrows at the first zero byte.
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
