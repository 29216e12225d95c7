//! Types by name and kind.
//!
//! The index is made the first time that somebody asks: the numbers of all named
//! types in the order of a hash of name and kind, and of the number itself where
//! that is equal. A question is then a binary search over eight-byte entries.

use std::hash::Hasher;

use crate::{Btf, Kind, Type, TypeId};

/// Named types, by hash of name and kind.
pub(crate) struct NameIndex {
    entries: Vec<(u32, TypeId)>,
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
        let wanted = hash(kind, name);
        let entries = &self.names.get_or_init(|| NameIndex::new(self)).entries;
        let first = entries.partition_point(|&(hash, _)| hash < wanted);
        entries[first..]
            .iter()
            .take_while(move |&&(hash, _)| hash == wanted)
            .map(|&(_, id)| self.at(id))
            .filter(move |ty| ty.kind() == kind && ty.name().as_bytes() == name)
    }
}

impl NameIndex {
    fn new(btf: &Btf<'_>) -> NameIndex {
        let mut entries: Vec<(u32, TypeId)> = btf
            .types()
            .filter(|ty| ty.name_offset().0 != 0)
            .map(|ty| (hash(ty.kind(), ty.name().as_bytes()), ty.id()))
            .collect();
        entries.sort_unstable();
        NameIndex { entries }
    }
}

fn hash(kind: Kind, name: &[u8]) -> u32 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(name);
    hasher.write(&[kind as u8]);
    let wide = hasher.finish();
    (wide ^ wide >> 32) as u32
}

/// Fowler, Noll and Vo's hash (1a): short names, no attacker that a binary search
/// would mind.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
