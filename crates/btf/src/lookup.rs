//! Lookup of types by name.
//!
//! An index is built on first use: a hash table of the ids of named types, keyed by the
//! name without its flavour suffix, so that it serves CO-RE relocations too. It has one
//! to two buckets for each name, so lookups take constant expected time. Functions, most
//! of a kernel's names and rarely looked up, have an index of their own. Building is
//! linear in the names and takes eight to twelve bytes for each.

use std::sync::OnceLock;

use crate::core::essential_name;
use crate::saved_index::{OtherIndex, Reader, Writer};
use crate::{Btf, Kind, Name, Shape, StrOffset, Type, TypeId};

/// Indexes of a blob by name, each built on first use, or read from a saved index.
#[derive(Default)]
pub(crate) struct NameIndexes {
    functions: OnceLock<NameIndex>,
    others: OnceLock<NameIndex>,
    /// Where a saved index has those of functions and of others.
    saved: Option<[Reader; 2]>,
}

impl NameIndexes {
    /// Indexes at these places of a saved index.
    pub(crate) fn saved(saved: [Reader; 2]) -> NameIndexes {
        NameIndexes {
            saved: Some(saved),
            ..NameIndexes::default()
        }
    }
}

/// Named types, by hash of their names.
pub(crate) struct NameIndex {
    /// End of each bucket in `ids`; a power of two of them.
    ends: Vec<u32>,
    ids: Vec<TypeId>,
}

impl<'a> Btf<'a> {
    /// First type with this kind and name (`btf_find_by_name_kind`).
    #[doc(alias = "btf_find_by_name_kind")]
    pub fn find<'b>(&'b self, kind: Kind, name: &'b str) -> Option<Type<'b>> {
        self.find_all(kind, name.as_bytes()).next()
    }

    /// All types with this kind and name, by id.
    pub fn find_all<'b>(
        &'b self,
        kind: Kind,
        name: &'b [u8],
    ) -> impl Iterator<Item = Type<'b>> + 'b {
        let hash = hash(essential_name(name));
        let in_one = move |btf: &'b Btf<'a>| btf.bucket(kind, hash);
        self.lineage()
            .flat_map(in_one)
            .filter(move |ty| ty.kind() == kind && ty.name().as_bytes() == name)
    }

    /// Types of one kind, by id.
    pub fn of_kind<'b>(&'b self, kind: Kind) -> impl Iterator<Item = Type<'b>> + 'b {
        let in_one =
            move |btf: &'b Btf<'a>| btf.own_names().filter(move |(_, other, _)| *other == kind);
        let all = self.lineage().flat_map(in_one);
        all.map(|(id, ..)| self.at(id))
    }

    /// Declaration tags of a type, or of one of its members or parameters (-1: of the type itself),
    /// by id (`btf_find_decl_tag_value`, `btf_find_next_decl_tag`). Linear in the types.
    #[doc(alias = "btf_find_decl_tag_value")]
    #[doc(alias = "btf_find_next_decl_tag")]
    pub fn decl_tags(&self, target: TypeId, component: i32) -> impl Iterator<Item = Name<'_>> {
        let tags = self.of_kind(Kind::DeclTag).filter(move |ty| {
            matches!(ty.shape(), Shape::DeclTag(tag)
                if tag.target == target && tag.component == component)
        });
        tags.map(|ty| ty.name())
    }

    /// Data sections, by id.
    pub fn datasecs(&self) -> impl Iterator<Item = Type<'_>> {
        let ids = self.lineage().flat_map(|btf| &btf.index.datasecs);
        ids.map(|&id| self.at(id))
    }

    /// Types of the blob itself with this name or a flavour of it, by id: functions if
    /// `kind` is one, else the other kinds (`bpf_core_find_cands`, `bpf_core_add_cands`).
    #[doc(alias = "bpf_core_find_cands")]
    #[doc(alias = "bpf_core_add_cands")]
    pub(crate) fn find_flavours<'b>(
        &'b self,
        kind: Kind,
        name: &'b [u8],
    ) -> impl Iterator<Item = Type<'b>> + 'b {
        self.bucket(kind, hash(name))
            .filter(move |ty| essential_name(ty.name().as_bytes()) == name)
    }

    /// Bases of the blob, from the first, then the blob itself.
    fn lineage(&self) -> impl Iterator<Item = &Btf<'a>> {
        let bases: Vec<_> = std::iter::successors(self.base(), |btf| btf.base()).collect();
        bases.into_iter().rev().chain([self])
    }

    fn bucket(&self, kind: Kind, hash: u32) -> impl Iterator<Item = Type<'_>> {
        let wants_functions = kind == Kind::Func;
        let index = match wants_functions {
            true => &self.names.functions,
            false => &self.names.others,
        };
        let index = index.get_or_init(|| {
            let saved = self
                .names
                .saved
                .map(|saved| saved[usize::from(!wants_functions)]);
            let saved = saved.and_then(|saved| NameIndex::saved(saved).ok());
            saved.unwrap_or_else(|| NameIndex::new(self, wants_functions))
        });
        index.bucket(hash).iter().map(|&id| self.at(id))
    }
}

impl NameIndex {
    /// Writes the index into a saved one.
    pub(crate) fn save(&self, index: &mut Writer) {
        index.words(self.ends.iter().copied());
        index.words(self.ids.iter().map(|id| id.0));
    }

    /// The next of a saved index.
    fn saved(mut index: Reader) -> Result<NameIndex, OtherIndex> {
        let ends = index.words()?.collect();
        let ids = index.words()?.map(TypeId).collect();
        Ok(NameIndex { ends, ids })
    }

    /// The place of the next of a saved index, which is passed over.
    pub(crate) fn skip(index: &mut Reader) -> Result<Reader, OtherIndex> {
        let place = *index;
        index.skip_words()?;
        index.skip_words()?;
        Ok(place)
    }

    pub(crate) fn new(btf: &Btf<'_>, of_functions: bool) -> NameIndex {
        let mut named = Vec::new();
        btf.own_names().for_each(|(id, kind, name)| {
            if name != StrOffset::EMPTY && (kind == Kind::Func) == of_functions {
                let text = btf.string(name);
                named.push((hash(essential_name(text.as_bytes())), id));
            }
        });
        let mut ends = vec![0; named.len().next_power_of_two()];
        let mask = ends.len() as u32 - 1;
        for (hash, _) in &named {
            ends[(hash & mask) as usize] += 1;
        }
        // Turns counts into starts of buckets; filling moves each start to its end.
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut ids = vec![TypeId::VOID; named.len()];
        for (hash, id) in named {
            let next = &mut ends[(hash & mask) as usize];
            ids[*next as usize] = id;
            *next += 1;
        }
        NameIndex { ends, ids }
    }

    fn bucket(&self, hash: u32) -> &[TypeId] {
        let bucket = hash as usize & (self.ends.len() - 1);
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ids[start as usize..self.ends[bucket] as usize]
    }
}

/// Hash of eight bytes at a time. It is not collision-resistant: an input with colliding
/// names only makes its own lookups slower.
fn hash(name: &[u8]) -> u32 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut chunks = name.chunks_exact(8);
    let words = chunks.by_ref().map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let hash = words.fold(name.len() as u64, mix);
    let rest = chunks
        .remainder()
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    (mix(hash, rest) >> 32) as u32
}
