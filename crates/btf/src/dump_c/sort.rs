//! bpftool's stable order of types: by rank of the kind, then name, then a hash of the
//! contents.

use std::cmp::Ordering;

use crate::{Btf, Name, Shape, TypeId};

/// Rank of the last group.
const LAST: u8 = 10;
/// Maximum length of a chain of references.
const MAX_CHAIN: usize = 256;

/// Ids of all types, sorted; `void` included.
pub(super) fn sorted(btf: &Btf<'_>) -> Vec<TypeId> {
    let mut keys: Vec<Key<'_>> = (0..btf.len() as u32)
        .map(|id| Key::new(btf, TypeId(id)))
        .collect();
    keys.sort_unstable_by(Key::compare);
    keys.into_iter().map(|key| key.id).collect()
}

struct Key<'b> {
    rank: u8,
    sort_name: Name<'b>,
    own_name: Name<'b>,
    hash: u64,
    id: TypeId,
}

impl<'b> Key<'b> {
    fn new(btf: &'b Btf<'b>, id: TypeId) -> Key<'b> {
        Key {
            rank: rank(btf, id),
            sort_name: sort_name(btf, id),
            own_name: btf.at(id).name(),
            hash: hash(btf, id, true, MAX_CHAIN),
            id,
        }
    }

    fn compare(&self, other: &Key<'_>) -> Ordering {
        self.rank
            .cmp(&other.rank)
            .then_with(|| self.sort_name.as_bytes().cmp(other.sort_name.as_bytes()))
            .then_with(|| self.own_name.as_bytes().cmp(other.own_name.as_bytes()))
            .then(self.hash.cmp(&other.hash))
            .then(self.id.cmp(&other.id))
    }
}

/// Rank of a type: enumerations, basic types, structures, prototypes, others. A named
/// reference has the rank of its target.
fn rank(btf: &Btf<'_>, id: TypeId) -> u8 {
    let mut id = id;
    let mut is_named = false;
    for _ in 0..MAX_CHAIN {
        let ty = btf.at(id);
        is_named |= ty.name_offset().0 != 0;
        id = match (ty.shape(), is_named) {
            (Shape::Enum(_), true) => return 1,
            (Shape::Enum(_), false) => return 0,
            (Shape::Int(_) | Shape::Float(_), _) => return 2,
            (Shape::Struct(_) | Shape::Union(_), true) => return 3,
            (Shape::Proto(_), true) => return 4,
            (Shape::Array(array), true) => array.element,
            (Shape::Func(_) | Shape::Var(_), _) => return LAST,
            (_, true) => match ty.referred() {
                Some(to) => to,
                None => return LAST,
            },
            (_, false) => return LAST,
        };
    }
    LAST
}

/// Name of a type, or of the type that it refers to; an anonymous enumeration has the
/// name of its first enumerator.
fn sort_name<'b>(btf: &'b Btf<'b>, id: TypeId) -> Name<'b> {
    let first = id;
    let mut id = id;
    for _ in 0..MAX_CHAIN {
        let ty = btf.at(id);
        id = match ty.shape() {
            Shape::Enum(of) if id == first && ty.name_offset().0 == 0 => {
                return of
                    .values()
                    .next()
                    .map_or(Name::default(), |value| btf.string(value.name));
            }
            Shape::Array(array) => array.element,
            Shape::Func(_) | Shape::Var(_) | Shape::Proto(_) => return ty.name(),
            _ => match ty.referred() {
                Some(to) => to,
                None => return ty.name(),
            },
        };
    }
    Name::default()
}

/// Hash that distinguishes types of the same name.
fn hash(btf: &Btf<'_>, id: TypeId, with_members: bool, depth: usize) -> u64 {
    let ty = btf.at(id);
    let mut hash = mix_name(0, ty.name());
    let Some(depth) = depth.checked_sub(1) else {
        return hash;
    };
    let mut mix = |value: u64| hash = hash.wrapping_mul(31).wrapping_add(value);
    match ty.shape() {
        Shape::Enum(of) => {
            for value in of.values() {
                hash = mix_name(hash, btf.string(value.name));
            }
        }
        Shape::Struct(composite) | Shape::Union(composite) if with_members => {
            for member in composite.members() {
                hash = mix_name(hash, btf.string(member.name));
                let below = self::hash(btf, member.ty, false, depth);
                hash = hash.wrapping_mul(31).wrapping_add(below);
            }
        }
        Shape::Array(array) => {
            mix(array.count.into());
            mix(self::hash(btf, array.element, with_members, depth));
        }
        Shape::Func(_) | Shape::Var(_) | Shape::Proto(_) => {}
        _ => {
            if let Some(to) = ty.referred() {
                mix(self::hash(btf, to, with_members, depth));
            }
        }
    }
    hash
}

/// Mixes a name into the hash; the empty name leaves it unchanged.
fn mix_name(hash: u64, name: Name<'_>) -> u64 {
    if name.is_empty() {
        return hash;
    }
    let of_name = name.as_bytes().iter().fold(0u64, |hash, &byte| {
        hash.wrapping_mul(31)
            .wrapping_add(i64::from(byte as i8) as u64)
    });
    hash.wrapping_mul(31).wrapping_add(of_name)
}
