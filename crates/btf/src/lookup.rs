//! Types by name.
//!
//! The index is made the first time that somebody asks: the numbers of all named
//! types, those of one bucket after the other, by a hash of the name without its
//! flavour (so that it serves relocations, too). There are as many buckets as
//! names or up to twice as many, so a question looks at one or two types. Making
//! it costs two walks over the names; it takes eight to twelve bytes for each.

use crate::core::essential_name;
use crate::{Btf, Kind, StrOffset, Type, TypeId};

/// Named types, by hash of their names.
pub(crate) struct NameIndex {
    /// Where each bucket ends in `ids`, and the next begins; a power of two of them.
    ends: Vec<u32>,
    ids: Vec<TypeId>,
}

impl Btf<'_> {
    /// The first type of this kind and name.
    pub fn find<'b>(&'b self, kind: Kind, name: &'b str) -> Option<Type<'b>> {
        self.find_all(kind, name.as_bytes()).next()
    }

    /// All types of this kind and name, by number.
    pub fn find_all<'b>(
        &'b self,
        kind: Kind,
        name: &'b [u8],
    ) -> impl Iterator<Item = Type<'b>> + 'b {
        self.bucket(hash(essential_name(name)))
            .filter(move |ty| ty.kind() == kind && ty.name().as_bytes() == name)
    }

    /// All types of this name or of a flavour of it, by number.
    pub(crate) fn find_flavours<'b>(
        &'b self,
        name: &'b [u8],
    ) -> impl Iterator<Item = Type<'b>> + 'b {
        self.bucket(hash(name))
            .filter(move |ty| essential_name(ty.name().as_bytes()) == name)
    }

    fn bucket(&self, hash: u32) -> impl Iterator<Item = Type<'_>> {
        let index = self.names.get_or_init(|| NameIndex::new(self));
        index.bucket(hash).iter().map(|&id| self.at(id))
    }
}

impl NameIndex {
    fn new(btf: &Btf<'_>) -> NameIndex {
        let named = || {
            btf.types()
                .filter(|ty| ty.name_offset() != StrOffset::EMPTY)
        };
        let hashes: Vec<u32> = named()
            .map(|ty| hash(essential_name(ty.name().as_bytes())))
            .collect();
        let mut ends = vec![0; hashes.len().next_power_of_two()];
        let mask = ends.len() as u32 - 1;
        for hash in &hashes {
            ends[(hash & mask) as usize] += 1;
        }
        // From counts to where each bucket starts; filling it moves that to its end.
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut ids = vec![TypeId::VOID; hashes.len()];
        for (ty, hash) in named().zip(&hashes) {
            let next = &mut ends[(hash & mask) as usize];
            ids[*next as usize] = ty.id();
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

/// Eight bytes at a time. Whoever makes names collide has short chains to gain
/// nothing from but slowness of his own.
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
