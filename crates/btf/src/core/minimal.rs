//! Minimal BTF: the part of a kernel's BTF that the CO-RE relocations of objects need.
//!
//! Every type of the target that satisfies a relocation is kept, with the members on the
//! access path; structures keep their sizes, enumerations their enumerators. Types of
//! members are kept without their own members, pointers without what they point to,
//! except where relocations compare whole types (`type_exists`, `type_size`,
//! `type_matches`): there everything that the comparison visits is kept.
//!
//! Invariant: each relocation of the added objects resolves against the result as against
//! the target, except that types have new ids. A relocation of a subset of them does so
//! too, because all candidates are kept, without regard to the order of relocations.
//!
//! Types keep their order. The cost is that of resolving each distinct relocation once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::CoreError;
use super::compatible::Comparison;
use super::matching::find_in;
use super::path::{Path, Subject};
use super::resolver::candidates_in;
use crate::ext::{CoreKind, CoreSpec};
use crate::{Btf, BtfExt, Builder, Kind, Member, Shape, Type, TypeId};

/// Collector of the types of a target that relocations need.
pub struct MinimalBtf<'b> {
    target: &'b Btf<'b>,
    /// Kept types, with the indices of the kept members.
    kept: BTreeMap<TypeId, BTreeSet<u32>>,
    /// Types whose comparison is kept, by the comparison.
    compared: HashSet<(TypeId, Compared)>,
}

/// Minimal BTF of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimal {
    /// Bytes of the blob.
    pub blob: Vec<u8>,
    /// Id of each type in the target, by its id in the blob; that of `void` first.
    pub ids: Vec<TypeId>,
}

/// Extent of the comparison of whole types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Compared {
    /// Pointers, arrays and prototypes are followed.
    Kinds,
    /// Members of structures are followed too.
    Members,
    /// The same behind a pointer, where names of structures suffice.
    BehindPointer,
}

impl<'b> MinimalBtf<'b> {
    /// Collector without types.
    pub fn new(target: &'b Btf<'b>) -> MinimalBtf<'b> {
        MinimalBtf {
            target,
            kept: BTreeMap::new(),
            compared: HashSet::new(),
        }
    }

    /// Adds the types that the relocations of an object need: its BTF and `.BTF.ext`. An
    /// error names the relocation that caused it.
    pub fn add<'l>(
        &mut self,
        local: &'l Btf<'l>,
        ext: &BtfExt<'_>,
    ) -> Result<(), (CoreSpec, CoreError)>
    where
        'b: 'l,
    {
        let mut seen = HashSet::new();
        for group in ext.relocations() {
            for relocation in group.records() {
                let spec = relocation.spec;
                if seen.insert(spec) {
                    self.add_relocation(local, &spec)
                        .map_err(|error| (spec, error))?;
                }
            }
        }
        Ok(())
    }

    /// Adds the types that one relocation needs of an object with this BTF.
    pub fn add_relocation<'l>(
        &mut self,
        local: &'l Btf<'l>,
        spec: &CoreSpec,
    ) -> Result<(), CoreError>
    where
        'b: 'l,
    {
        let path = Path::parse(local, spec)?;
        if spec.kind == CoreKind::TYPE_ID_LOCAL {
            return Ok(());
        }
        let root = path.root();
        if root.name().is_empty() {
            return Err(CoreError::Anonymous { id: spec.ty });
        }
        let target: &'l Btf<'l> = self.target;
        for candidate in candidates_in(target, root, usize::MAX) {
            let root = candidate.id;
            if matches!(
                target.at(root).kind(),
                Kind::Func | Kind::Var | Kind::Datasec
            ) {
                // No relocation fits them.
                continue;
            }
            match Subject::of(spec.kind) {
                Some(Subject::Type) => {
                    let extent = match spec.kind {
                        CoreKind::TYPE_MATCHES => Compared::Members,
                        _ => Compared::Kinds,
                    };
                    // Kept if it differs, too: as a part of another type it would be
                    // incomplete, and might not differ.
                    self.keep_compared(root, extent);
                }
                Some(Subject::Field | Subject::EnumValue) => {
                    let mut types = Comparison::new(local, target);
                    if let Some(found) = find_in(&path, &mut types, root)? {
                        self.keep_path(&found);
                    }
                }
                None => return Err(CoreError::UnknownKind { kind: spec.kind }),
            }
        }
        Ok(())
    }

    /// Keeps the root of a path, and the members and elements on it.
    fn keep_path(&mut self, path: &Path<'_>) {
        let plain = self.keep_chain(path.root);
        if Subject::of(path.kind) == Some(Subject::EnumValue) {
            return;
        }
        let mut ty = plain;
        for &index in path.numbers.iter().skip(1) {
            ty = match self.target.at(ty).shape() {
                Shape::Struct(_) | Shape::Union(_) => self.keep_member(ty, index),
                Shape::Array(array) => self.keep(array.element),
                _ => return,
            };
        }
    }

    /// Keeps a member, and returns its type without modifiers.
    fn keep_member(&mut self, id: TypeId, index: u32) -> TypeId {
        let Some(composite) = self.target.at(id).as_composite() else {
            return TypeId::VOID;
        };
        let Some(member) = composite.member(index as usize) else {
            return TypeId::VOID;
        };
        self.kept.entry(id).or_default().insert(index);
        let ty = self.keep(member.ty);
        // An array of no elements is flexible if it is the last member.
        let last = composite.members().len() as u32 - 1;
        let is_empty =
            matches!(self.target.at(ty).shape(), Shape::Array(array) if array.count == 0);
        if is_empty && index != last && !self.has_member(id, last) {
            self.keep_member(id, last);
        }
        ty
    }

    fn has_member(&self, id: TypeId, index: u32) -> bool {
        self.kept.get(&id).is_some_and(|kept| kept.contains(&index))
    }

    /// Keeps a type by its kind, name and size, and returns it without modifiers.
    fn keep(&mut self, id: TypeId) -> TypeId {
        let mut id = self.plain(id);
        let plain = id;
        while !id.is_void() && !self.kept.contains_key(&id) {
            self.kept.insert(id, BTreeSet::new());
            let Shape::Array(array) = self.target.at(id).shape() else {
                break;
            };
            let index = self.plain(array.index);
            self.kept.entry(index).or_default();
            id = self.plain(array.element);
        }
        plain
    }

    /// Keeps a root type, which may be a typedef, and the type below its modifiers.
    fn keep_chain(&mut self, root: TypeId) -> TypeId {
        self.kept.entry(root).or_default();
        self.keep(root)
    }

    /// Keeps what a comparison of whole types visits.
    fn keep_compared(&mut self, root: TypeId, extent: Compared) {
        let mut queue = vec![(self.keep_chain(root), extent)];
        while let Some((id, extent)) = queue.pop() {
            if !self.compared.insert((id, extent)) {
                continue;
            }
            let mut next = Vec::new();
            match self.target.at(id).shape() {
                Shape::Ptr(to) => {
                    let behind = match extent {
                        Compared::Kinds => Compared::Kinds,
                        Compared::Members | Compared::BehindPointer => Compared::BehindPointer,
                    };
                    next.push((to, behind));
                }
                Shape::Array(array) => next.push((array.element, extent)),
                Shape::Proto(proto) => {
                    next.push((proto.returns, extent));
                    next.extend(proto.params().map(|param| (param.ty, extent)));
                }
                Shape::Struct(composite) | Shape::Union(composite)
                    if extent == Compared::Members =>
                {
                    for (index, member) in (0..).zip(composite.members()) {
                        self.keep_member(id, index);
                        next.push((member.ty, extent));
                    }
                }
                _ => {}
            }
            for (id, extent) in next {
                queue.push((self.keep(id), extent));
            }
        }
    }

    /// Type below the modifiers; `void` if they form a cycle.
    fn plain(&self, id: TypeId) -> TypeId {
        self.target.skip_modifiers(id).unwrap_or(TypeId::VOID)
    }

    /// The collected types as a blob of their own.
    pub fn finish(&self) -> Minimal {
        let ids: Vec<TypeId> = [TypeId::VOID]
            .into_iter()
            .chain(self.kept.keys().copied().filter(|id| !id.is_void()))
            .collect();
        let new_id = |id: TypeId| {
            let at = ids.binary_search(&self.plain(id)).unwrap_or_default();
            TypeId(at as u32)
        };
        let mut builder = Builder::new();
        for &id in &ids[1..] {
            let ty = self.target.at(id);
            match self.kept.get(&id) {
                Some(members) if ty.kind().is_composite() => {
                    self.write_composite(&mut builder, ty, members, new_id);
                }
                _ => {
                    builder.copy(ty, new_id);
                }
            }
        }
        let blob = builder.finish();
        Minimal { blob, ids }
    }

    fn write_composite(
        &self,
        builder: &mut Builder,
        ty: Type<'_>,
        members: &BTreeSet<u32>,
        new_id: impl Fn(TypeId) -> TypeId,
    ) {
        let Some(composite) = ty.as_composite() else {
            return;
        };
        let kept = members
            .iter()
            .filter_map(|&at| composite.member(at as usize));
        let kept: Vec<Member> = kept
            .map(|member| Member {
                name: builder.string(self.target.string(member.name).as_bytes()),
                ty: new_id(member.ty),
                ..member
            })
            .collect();
        let name = builder.string(ty.name().as_bytes());
        let kind = match ty.kind() {
            Kind::Union => Kind::Union,
            _ => Kind::Struct,
        };
        builder.composite(kind, name, composite.size, &kept);
    }
}
