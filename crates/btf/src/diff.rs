//! Difference of two BTF blobs in the facts that programs rely on: sizes, offsets and
//! types of members, values of enumerators.
//!
//! Types are matched by kind and name; several types of one name are matched in order.
//! Members of anonymous structures count as members of the enclosing structure, as in C
//! and CO-RE. Types are compared by meaning, not by spelling: gcc's `long unsigned int`
//! is clang's `unsigned long`.

mod describe;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::{Btf, Kind, Shape, Type, TypeId};
pub use describe::describe;
use describe::describe_canonical;

/// Maximum depth of anonymous structures.
const MAX_NESTING: usize = 64;

/// A type that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Kind.
    pub kind: Kind,
    /// Name.
    pub name: String,
    /// Changes, at least one.
    pub changes: Vec<Change>,
}

/// Change of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The type is added.
    Added,
    /// The type is removed.
    Removed,
    /// The size differs, in bytes.
    Size {
        /// Old size.
        old: u32,
        /// New size.
        new: u32,
    },
    /// A member is added.
    MemberAdded {
        /// Name.
        name: String,
        /// Place and type.
        new: MemberPlace,
    },
    /// A member is removed.
    MemberRemoved {
        /// Name.
        name: String,
        /// Place and type.
        old: MemberPlace,
    },
    /// A member has another place or type.
    MemberChanged {
        /// Name.
        name: String,
        /// Old place and type.
        old: MemberPlace,
        /// New place and type.
        new: MemberPlace,
    },
    /// An enumerator is added.
    ValueAdded {
        /// Name.
        name: String,
        /// Value.
        new: i128,
    },
    /// An enumerator is removed.
    ValueRemoved {
        /// Name.
        name: String,
        /// Value.
        old: i128,
    },
    /// An enumerator has another value.
    ValueChanged {
        /// Name.
        name: String,
        /// Old value.
        old: i128,
        /// New value.
        new: i128,
    },
    /// A typedef has another target, or a function another prototype.
    Target {
        /// Old type.
        old: String,
        /// New type.
        new: String,
    },
}

impl Change {
    /// True if the change breaks programs built before without CO-RE relocation.
    pub fn moves_things(&self) -> bool {
        !matches!(
            self,
            Change::Added | Change::MemberAdded { .. } | Change::ValueAdded { .. }
        )
    }
}

/// Place and type of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPlace {
    /// Offset in bits from the start of the structure.
    pub bit_offset: u32,
    /// Width of a bit field in bits; 0 for other members.
    pub bits: u32,
    /// Size of another member in bytes, if it has one.
    pub size: Option<u32>,
    /// Short text of the type.
    pub ty: String,
}

/// Differences from one blob to another, by kind and name.
pub fn diff(old: &Btf<'_>, new: &Btf<'_>) -> Vec<Changed> {
    let (mut before, mut after) = (by_name(old), by_name(new));
    let mut changed = Vec::new();
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    for key in keys {
        let (kind, name) = key;
        let before = before.remove(&key).unwrap_or_default();
        let after = after.remove(&key).unwrap_or_default();
        for at in 0..before.len().max(after.len()) {
            let changes = match (before.get(at), after.get(at)) {
                (Some(&old), Some(&new)) => changes(old, new),
                (Some(_), None) => vec![Change::Removed],
                (None, _) => vec![Change::Added],
            };
            if !changes.is_empty() {
                changed.push(Changed {
                    kind,
                    name: String::from_utf8_lossy(name).into_owned(),
                    changes,
                });
            }
        }
    }
    changed
}

type ByName<'b> = BTreeMap<(Kind, &'b [u8]), Vec<Type<'b>>>;

/// Named types that programs use. ENUM and ENUM64 are one kind.
fn by_name<'b>(btf: &'b Btf<'b>) -> ByName<'b> {
    let mut found: ByName<'b> = BTreeMap::new();
    for ty in btf.types().filter(|ty| !ty.name().is_empty()) {
        let kind = match ty.kind() {
            Kind::Enum64 => Kind::Enum,
            kind @ (Kind::Struct | Kind::Union | Kind::Enum | Kind::Typedef | Kind::Func) => kind,
            _ => continue,
        };
        found
            .entry((kind, ty.name().as_bytes()))
            .or_default()
            .push(ty);
    }
    found
}

fn changes(old: Type<'_>, new: Type<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let sizes = (old.btf().size_of(old.id()), new.btf().size_of(new.id()));
    if let (Some(old), Some(new)) = sizes
        && old != new
    {
        changes.push(Change::Size { old, new });
    }
    if old.as_composite().is_some() {
        member_changes(&members(old), &members(new), &mut changes);
    } else if let (Shape::Enum(_), Shape::Enum(_)) = (old.shape(), new.shape()) {
        value_changes(&values(old), &values(new), &mut changes);
    } else if let (Some(before), Some(after)) = (old.referred(), new.referred()) {
        let before = describe_canonical(old.btf(), before);
        let after = describe_canonical(new.btf(), after);
        if before != after {
            changes.push(Change::Target {
                old: before,
                new: after,
            });
        }
    }
    changes
}

/// Members of a structure that are compared one by one, those of anonymous members included:
/// as many as a structure of its own can have. Anonymous members beyond it are compared by type.
const MOST_MEMBERS: usize = 0xffff;

/// Named members, those of anonymous members included.
fn members(ty: Type<'_>) -> Vec<(String, MemberPlace)> {
    let (mut found, mut left) = (Vec::new(), MOST_MEMBERS);
    collect_members(ty.btf(), ty.id(), 0, 0, &mut found, &mut left);
    found
}

fn collect_members(
    btf: &Btf<'_>,
    id: TypeId,
    base: u32,
    nesting: usize,
    found: &mut Vec<(String, MemberPlace)>,
    left: &mut usize,
) {
    let Some(composite) = btf.get(id).and_then(|ty| ty.as_composite()) else {
        return;
    };
    for member in composite.members() {
        let bit_offset = base.saturating_add(member.bit_offset);
        let name = btf.string(member.name);
        *left = left.saturating_sub(1);
        if name.is_empty() && *left > 0 {
            if let Some(inner) = btf.skip_modifiers(member.ty)
                && nesting < MAX_NESTING
            {
                collect_members(btf, inner, bit_offset, nesting + 1, found, left);
            }
            continue;
        }
        let place = MemberPlace {
            bit_offset,
            bits: member.bits,
            size: btf.size_of(member.ty),
            ty: describe_canonical(btf, member.ty),
        };
        found.push((name.or_anonymous().to_string(), place));
    }
}

fn member_changes(
    old: &[(String, MemberPlace)],
    new: &[(String, MemberPlace)],
    changes: &mut Vec<Change>,
) {
    for (name, old, new) in matched(old, new) {
        let name = name.to_owned();
        changes.push(match (old.cloned(), new.cloned()) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => Change::MemberChanged { name, old, new },
            (Some(old), None) => Change::MemberRemoved { name, old },
            (None, Some(new)) => Change::MemberAdded { name, new },
            (None, None) => continue,
        });
    }
}

/// Pairs items of the same name before and after, several of one name in order; added
/// ones last.
fn matched<'n, T>(
    old: &'n [(String, T)],
    new: &'n [(String, T)],
) -> Vec<(&'n str, Option<&'n T>, Option<&'n T>)> {
    let mut after: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, (name, _)) in new.iter().enumerate() {
        after.entry(name).or_default().push_back(at);
    }
    let mut is_matched = vec![false; new.len()];
    let mut found: Vec<_> = old
        .iter()
        .map(|(name, old)| {
            let at = after.get_mut(&**name).and_then(VecDeque::pop_front);
            if let Some(at) = at {
                is_matched[at] = true;
            }
            (&**name, Some(old), at.map(|at| &new[at].1))
        })
        .collect();
    let added = new.iter().zip(is_matched).filter(|(_, matched)| !matched);
    found.extend(added.map(|((name, new), _)| (&**name, None, Some(new))));
    found
}

fn values(ty: Type<'_>) -> Vec<(String, i128)> {
    let Shape::Enum(of) = ty.shape() else {
        return Vec::new();
    };
    of.values()
        .map(|value| {
            let number = match of.signed {
                true => i128::from(value.value as i64),
                false => i128::from(value.value),
            };
            (ty.btf().string(value.name).to_string(), number)
        })
        .collect()
}

fn value_changes(old: &[(String, i128)], new: &[(String, i128)], changes: &mut Vec<Change>) {
    for (name, old, new) in matched(old, new) {
        let name = name.to_owned();
        changes.push(match (old.copied(), new.copied()) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => Change::ValueChanged { name, old, new },
            (Some(old), None) => Change::ValueRemoved { name, old },
            (None, Some(new)) => Change::ValueAdded { name, new },
            (None, None) => continue,
        });
    }
}
