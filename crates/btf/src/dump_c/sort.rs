//! bpftool's stable order of types: by rank of the kind, then name, then a hash of the
//! contents.

use std::cmp::Ordering;

use crate::{Btf, Name, Shape, Type, TypeId};

/// Rank of the last group.
const LAST: u8 = 10;

/// Ids of all types, sorted; `void` included.
pub(super) fn sorted(btf: &Btf<'_>) -> Vec<TypeId> {
    let targets = fold_chains(
        btf,
        |ty| Target {
            rank: rank_of_target(ty),
            name: ty.name(),
        },
        |_, below| below,
    );
    let with_own_name = |ty: Type<'_>, below: u64| chained_hash(ty, below);
    let hashes = fold_chains(btf, |ty| hash(ty, &[]), with_own_name);
    let hashes = fold_chains(btf, |ty| hash(ty, &hashes), with_own_name);
    let key = |id: u32| {
        let ty = btf.at(TypeId(id));
        let target = targets[id as usize];
        Key {
            rank: rank(ty, target.rank),
            sort_name: match ty.shape() {
                // An anonymous enumeration has the name of its first enumerator.
                Shape::Enum(of) if ty.name_offset().0 == 0 => {
                    let first = of.values().next();
                    first.map_or(Name::default(), |value| btf.string(value.name))
                }
                _ => target.name,
            },
            own_name: ty.name(),
            hash: hashes[id as usize],
            id: TypeId(id),
        }
    };
    let mut keys: Vec<Key<'_>> = (0..btf.len() as u32).map(key).collect();
    keys.sort_unstable_by(Key::compare);
    keys.into_iter().map(|key| key.id).collect()
}

/// The type at the end of a chain of references.
#[derive(Clone, Copy)]
struct Target<'b> {
    /// Rank of named references to it.
    rank: u8,
    name: Name<'b>,
}

struct Key<'b> {
    rank: u8,
    sort_name: Name<'b>,
    own_name: Name<'b>,
    hash: u64,
    id: TypeId,
}

impl Key<'_> {
    fn compare(&self, other: &Key<'_>) -> Ordering {
        self.rank
            .cmp(&other.rank)
            .then_with(|| self.sort_name.as_bytes().cmp(other.sort_name.as_bytes()))
            .then_with(|| self.own_name.as_bytes().cmp(other.own_name.as_bytes()))
            .then(self.hash.cmp(&other.hash))
            .then(self.id.cmp(&other.id))
    }
}

/// Type that a type refers to, where chains of references go on.
fn next(ty: Type<'_>) -> Option<TypeId> {
    match ty.shape() {
        Shape::Array(array) => Some(array.element),
        Shape::Func(_) | Shape::Var(_) | Shape::Proto(_) => None,
        _ => ty.referred(),
    }
}

/// A value for each type: of one that refers to none by `end`, of others by `step` from the
/// value of the type that they refer to. A cycle ends where it begins. Linear.
fn fold_chains<'b, T: Copy>(
    btf: &'b Btf<'b>,
    end: impl Fn(Type<'b>) -> T,
    step: impl Fn(Type<'b>, T) -> T,
) -> Vec<T> {
    let mut known: Vec<Option<T>> = vec![None; btf.len()];
    let mut is_open = vec![false; btf.len()];
    let mut path = Vec::new();
    for start in 0..btf.len() {
        let mut id = TypeId(start as u32);
        let mut value = loop {
            if let Some(value) = known[id.index()] {
                break value;
            }
            is_open[id.index()] = true;
            let goes_on = |to: &TypeId| match known.get(to.index()) {
                Some(Some(_)) => true,
                Some(None) => !is_open[to.index()],
                None => false,
            };
            match next(btf.at(id)).filter(goes_on) {
                Some(to) => {
                    path.push(id);
                    id = to;
                }
                None => {
                    let value = end(btf.at(id));
                    known[id.index()] = Some(value);
                    break value;
                }
            }
        };
        while let Some(id) = path.pop() {
            value = step(btf.at(id), value);
            known[id.index()] = Some(value);
        }
    }
    known.into_iter().flatten().collect()
}

/// Rank of a type: enumerations, basic types, structures, prototypes, others. A named
/// reference has the rank of its target.
fn rank(ty: Type<'_>, target: u8) -> u8 {
    match (ty.shape(), ty.name_offset().0 != 0) {
        (Shape::Enum(_), false) => 0,
        (Shape::Int(_) | Shape::Float(_), false) => 2,
        (_, false) => LAST,
        (_, true) => target,
    }
}

fn rank_of_target(ty: Type<'_>) -> u8 {
    match ty.shape() {
        Shape::Enum(_) => 1,
        Shape::Int(_) | Shape::Float(_) => 2,
        Shape::Struct(_) | Shape::Union(_) => 3,
        Shape::Proto(_) => 4,
        _ => LAST,
    }
}

/// Hash that distinguishes types of the same name, of a type that refers to none. With the
/// hashes of all types without members, those of members are part of it.
fn hash(ty: Type<'_>, without_members: &[u64]) -> u64 {
    let mut hash = mix_name(0, ty.name());
    match ty.shape() {
        Shape::Enum(of) => {
            for value in of.values() {
                hash = mix_name(hash, ty.btf().string(value.name));
            }
        }
        Shape::Struct(composite) | Shape::Union(composite) if !without_members.is_empty() => {
            for member in composite.members() {
                hash = mix_name(hash, ty.btf().string(member.name));
                let below = without_members.get(member.ty.index()).copied();
                hash = mix(hash, below.unwrap_or(0));
            }
        }
        _ => {}
    }
    hash
}

/// Hash of a type that refers to another.
fn chained_hash(ty: Type<'_>, below: u64) -> u64 {
    let hash = mix_name(0, ty.name());
    match ty.shape() {
        Shape::Array(array) => mix(mix(hash, array.count.into()), below),
        _ => mix(hash, below),
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    hash.wrapping_mul(31).wrapping_add(value)
}

/// Mixes a name into the hash; the empty name leaves it unchanged.
fn mix_name(hash: u64, name: Name<'_>) -> u64 {
    if name.is_empty() {
        return hash;
    }
    let bytes = name.as_bytes().iter();
    let of_name = bytes.fold(0, |hash, &byte| mix(hash, i64::from(byte as i8) as u64));
    mix(hash, of_name)
}
