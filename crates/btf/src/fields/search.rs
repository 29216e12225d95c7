//! The search for special fields, and their rules (`btf_find_field`, `btf_parse_fields`).
//!
//! Depth-first over the members. Structures without special fields are memoized with the depth
//! at which they were searched: a structure of n levels that has each level below twice takes n
//! visits, not 2^n. Those with special fields are few, since their total is limited. Complexity:
//! linear in the members of all structures below the type, times the maximum depth.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{FieldFault, FieldKind, FieldSet, MAX_DEPTH, MAX_FIELDS, SpecialField};
use crate::{Btf, Kind, Member, Name, Shape, TypeId};

/// Structures of Linux 6.18 with a destructor, which maps may own.
const WITH_DESTRUCTOR: &[&str] = &[
    "task_struct",
    "cgroup",
    "bpf_cpumask",
    "bpf_crypto_ctx",
    "prog_test_ref_kfunc",
    "prog_test_member",
];

type Outcome<T> = Result<T, FieldFault>;

/// Special fields of a type, checked, in the order of the search (`btf_find_field`,
/// `btf_parse_fields`).
#[doc(alias = "btf_find_field")]
#[doc(alias = "btf_parse_fields")]
pub(super) fn fields(
    btf: &Btf<'_>,
    kernel: Option<&Btf<'_>>,
    ty: TypeId,
    wanted: FieldSet,
) -> Outcome<Vec<SpecialField>> {
    let search = Search {
        btf,
        wanted,
        without_fields: RefCell::default(),
    };
    let mut found = Vec::new();
    match btf.at(ty).shape() {
        Shape::Struct(_) => search.find_in_struct(ty, &mut found, MAX_FIELDS, 0)?,
        Shape::Datasec(_) => search.find_in_section(ty, &mut found)?,
        _ => {}
    }
    check_and_fixup(btf, kernel, wanted, &mut found)?;
    Ok(found.into_iter().map(|found| found.field).collect())
}

/// A special field that the search found.
#[derive(Clone, Copy)]
struct Found<'b> {
    field: SpecialField,
    /// Node member of the type that a root contains.
    node: Name<'b>,
}

/// Place of a field: member `component` of a structure, or a variable (-1).
#[derive(Clone, Copy)]
struct Place {
    of: TypeId,
    component: i32,
    offset: u32,
    /// Bytes that a variable takes in its section.
    expected: Option<u32>,
}

struct Search<'b> {
    btf: &'b Btf<'b>,
    wanted: FieldSet,
    /// Structures without special fields, with the greatest depth of a search that did not
    /// exceed the limit of the depth.
    without_fields: RefCell<HashMap<TypeId, usize>>,
}

impl<'b> Search<'b> {
    /// Adds the special fields of a structure, at most `room` (`btf_find_struct_field`,
    /// `btf_find_nested_struct`).
    #[doc(alias = "btf_find_struct_field")]
    #[doc(alias = "btf_find_nested_struct")]
    fn find_in_struct(
        &self,
        id: TypeId,
        found: &mut Vec<Found<'b>>,
        room: usize,
        depth: usize,
    ) -> Outcome<()> {
        let Some(composite) = self.btf.at(id).as_composite() else {
            return Ok(());
        };
        let known = self.without_fields.borrow().get(&id).copied();
        if known.is_some_and(|known| depth <= known) {
            return Ok(());
        }
        let first = found.len();
        let mut seen = Vec::new();
        for (component, member) in (0..).zip(composite.members()) {
            if !member.bit_offset.is_multiple_of(8) {
                return Err(FieldFault::InsideByte);
            }
            let place = Place {
                of: id,
                component,
                offset: member.bit_offset / 8,
                expected: None,
            };
            let room = room - (found.len() - first);
            self.find_in_member(place, member.ty, &mut seen, found, room, depth)?;
        }
        if found.len() == first {
            self.without_fields.borrow_mut().insert(id, depth);
        }
        Ok(())
    }

    /// Adds the special fields of the variables of a data section (`btf_find_datasec_var`).
    #[doc(alias = "btf_find_datasec_var")]
    fn find_in_section(&self, id: TypeId, found: &mut Vec<Found<'b>>) -> Outcome<()> {
        let Shape::Datasec(section) = self.btf.at(id).shape() else {
            return Ok(());
        };
        let mut seen = Vec::new();
        for placed in section.vars() {
            let Shape::Var(var) = self.btf.at(placed.var).shape() else {
                continue;
            };
            let place = Place {
                of: placed.var,
                component: -1,
                offset: placed.offset,
                expected: Some(placed.size),
            };
            let room = MAX_FIELDS - found.len();
            self.find_in_member(place, var.ty, &mut seen, found, room, 0)?;
        }
        Ok(())
    }

    /// Adds the special fields of a member or variable (`btf_find_field_one`, `btf_find_struct`).
    #[doc(alias = "btf_find_field_one")]
    #[doc(alias = "btf_find_struct")]
    fn find_in_member(
        &self,
        place: Place,
        ty: TypeId,
        seen: &mut Vec<FieldKind>,
        found: &mut Vec<Found<'b>>,
        room: usize,
        depth: usize,
    ) -> Outcome<()> {
        let (ty, count) = self.element(ty)?;
        if count == 0 {
            return Ok(());
        }
        let is_size_of = |each: u32| {
            let expected = place.expected.filter(|&expected| expected != 0);
            expected.is_none_or(|expected| expected == each.wrapping_mul(count))
        };
        let first = found.len();
        let Some(kind) = self.kind_of(ty, seen)? else {
            let Shape::Struct(inner) = self.btf.at(ty).shape() else {
                return Ok(());
            };
            if !is_size_of(inner.size) {
                return Ok(());
            }
            if depth + 1 >= MAX_DEPTH {
                return Err(FieldFault::TooDeep);
            }
            self.find_in_struct(ty, found, room, depth + 1)?;
            for found in &mut found[first..] {
                found.field.offset = found.field.offset.wrapping_add(place.offset);
            }
            return repeat(found, first, count, inner.size, room);
        };
        if !is_size_of(kind.size()) || !place.offset.is_multiple_of(kind.alignment()) {
            return Ok(());
        }
        let is_struct =
            matches!(self.btf.at(ty).shape(), Shape::Struct(of) if of.size == kind.size());
        let (kind, target, node) = match kind {
            FieldKind::KptrRef => match pointer(self.btf, ty, self.wanted)? {
                Some((kind, target)) => (kind, target, Name::default()),
                None => return Ok(()),
            },
            _ if !is_struct => return Ok(()),
            _ if kind.is_root() => {
                let (target, node) = self.contents(place)?;
                (kind, target, node)
            }
            _ => (kind, TypeId::VOID, Name::default()),
        };
        if room == 0 {
            return Err(FieldFault::TooMany);
        }
        let offset = place.offset;
        found.push(Found {
            field: SpecialField {
                kind,
                offset,
                target,
                node: 0,
            },
            node,
        });
        repeat(found, first, count, kind.size(), room)
    }

    /// Element type below all arrays, and the number of elements.
    fn element(&self, ty: TypeId) -> Outcome<(TypeId, u32)> {
        let (mut ty, mut count) = (ty, 1u32);
        for _ in 0..MAX_DEPTH {
            let Shape::Array(array) = self.btf.at(ty).shape() else {
                return Ok((ty, count));
            };
            count = count.wrapping_mul(array.count);
            ty = array.element;
        }
        Err(FieldFault::TooDeep)
    }

    /// Kind by the name of the type; a type that is no structure may be a pointer, which
    /// [`FieldKind::KptrRef`] stands for (`btf_get_field_type`).
    #[doc(alias = "btf_get_field_type")]
    fn kind_of(&self, ty: TypeId, seen: &mut Vec<FieldKind>) -> Outcome<Option<FieldKind>> {
        let ty = self.btf.at(ty);
        let name = ty.name();
        match FieldKind::of_structure(name).filter(|kind| self.wanted.has(*kind)) {
            Some(kind) => {
                if kind.is_unique() && seen.contains(&kind) {
                    return Err(FieldFault::Twice);
                }
                seen.push(kind);
                Ok(Some(kind))
            }
            None if ty.kind() == Kind::Struct => Ok(None),
            None => Ok(Some(FieldKind::KptrRef)),
        }
    }

    /// Type that a root contains and the name of its node, by the root's declaration tag
    /// `contains:STRUCT:NODE` (`btf_find_graph_root`).
    #[doc(alias = "btf_find_graph_root")]
    fn contents(&self, root: Place) -> Outcome<(TypeId, Name<'b>)> {
        let mut tags = self
            .btf
            .decl_tags(root.of, root.component)
            .filter_map(|tag| tag.as_bytes().strip_prefix(b"contains:"));
        let tag = tags.next().ok_or(FieldFault::Contains)?;
        if tags.next().is_some() {
            return Err(FieldFault::Contains);
        }
        let colon = tag.iter().position(|&byte| byte == b':');
        let (name, node) = tag.split_at(colon.ok_or(FieldFault::Contains)?);
        let mut structs = self.btf.find_all(Kind::Struct, name);
        let target = structs.next().ok_or(FieldFault::ContainsNothing)?.id();
        if node.len() == 1 {
            return Err(FieldFault::Contains);
        }
        Ok((target, Name::new(&node[1..])))
    }
}

/// Kind and target of a pointer with one of the tags `kptr`, `kptr_untrusted`, `percpu_kptr` and
/// `uptr` (`btf_find_kptr`, `btf_type_tag_walk`).
#[doc(alias = "btf_find_kptr")]
#[doc(alias = "btf_type_tag_walk")]
pub(crate) fn pointer(
    btf: &Btf<'_>,
    ty: TypeId,
    wanted: FieldSet,
) -> Outcome<Option<(FieldKind, TypeId)>> {
    let ty = match btf.at(ty).shape() {
        Shape::Volatile(to) => to,
        _ => ty,
    };
    let Shape::Ptr(to) = btf.at(ty).shape() else {
        return Ok(None);
    };
    let tag = btf.at(to);
    let to = match tag.shape() {
        Shape::TypeTag(to) if !tag.flag() => to,
        _ => return Ok(None),
    };
    if btf.at(to).kind() == Kind::TypeTag {
        return Err(FieldFault::Pointer);
    }
    if !wanted.has_pointers() {
        return Ok(None);
    }
    let kind = wanted.of_tag(tag.name()).ok_or(FieldFault::Pointer)?;
    if !wanted.has(kind) {
        return Ok(None);
    }
    match btf.skip_modifiers(to) {
        Some(target) if btf.at(target).kind() == Kind::Struct => Ok(Some((kind, target))),
        _ => Err(FieldFault::Pointer),
    }
}

/// Repeats the fields from index `first` for each element of an array (`btf_repeat_fields`).
#[doc(alias = "btf_repeat_fields")]
fn repeat(
    found: &mut Vec<Found<'_>>,
    first: usize,
    count: u32,
    each: u32,
    room: usize,
) -> Outcome<()> {
    let fields = found.len() - first;
    if count == 1 || fields == 0 {
        return Ok(());
    }
    let may_repeat =
        |found: &Found<'_>| found.field.kind.is_pointer() || found.field.kind.is_root();
    if !found[first..].iter().all(may_repeat) {
        return Err(FieldFault::Repeated);
    }
    let total = fields.checked_mul(count as usize);
    if total.is_none_or(|total| total > room) {
        return Err(FieldFault::TooMany);
    }
    for element in 1..count {
        for index in first..first + fields {
            let mut next = found[index];
            let distance = element.wrapping_mul(each);
            next.field.offset = next.field.offset.wrapping_add(distance);
            found.push(next);
        }
    }
    Ok(())
}

/// Checks the fields of one type together, and finds the nodes of what roots contain
/// (`btf_check_and_fixup_fields`).
#[doc(alias = "btf_check_and_fixup_fields")]
fn check_and_fixup(
    btf: &Btf<'_>,
    kernel: Option<&Btf<'_>>,
    wanted: FieldSet,
    found: &mut [Found<'_>],
) -> Outcome<()> {
    let mut end = 0;
    for found in found.iter_mut() {
        let field = found.field;
        if field.offset < end {
            return Err(FieldFault::Overlap);
        }
        end = field.offset.wrapping_add(field.kind.size());
        let is_of_program = || !has_structure(kernel, btf.at(field.target).name());
        if wanted.has_first_tags() && field.kind.is_pointer() && is_of_program() {
            return Err(FieldFault::Pointer);
        }
        if field.kind == FieldKind::KptrRef && is_unreleased(kernel, btf.at(field.target).name()) {
            return Err(FieldFault::NoDestructor);
        }
        if field.kind.is_root() {
            found.field.node = node_offset(btf, found)?;
        }
    }
    let has = |wanted: FieldKind| found.iter().any(|found| found.field.kind == wanted);
    if has(FieldKind::SpinLock) && has(FieldKind::ResSpinLock) {
        return Err(FieldFault::TwoLocks);
    }
    let is_locked = found.iter().any(|found| found.field.kind.is_lock());
    if !is_locked && found.iter().any(|found| found.field.kind.is_root()) {
        return Err(FieldFault::NoLock);
    }
    if !has(FieldKind::Refcount) && has(FieldKind::ListNode) && has(FieldKind::RbNode) {
        return Err(FieldFault::NoRefcount);
    }
    Ok(())
}

/// True if the kernel has a structure of the name.
fn has_structure(kernel: Option<&Btf<'_>>, name: Name<'_>) -> bool {
    kernel.is_some_and(|types| {
        let mut found = types.find_all(Kind::Struct, name.as_bytes());
        found.next().is_some()
    })
}

/// True for a structure of the kernel without a destructor.
fn is_unreleased(kernel: Option<&Btf<'_>>, name: Name<'_>) -> bool {
    let has = |types: &Btf<'_>, name: &[u8]| types.find_all(Kind::Struct, name).next().is_some();
    let Some(kernel) = kernel.filter(|types| has(types, name.as_bytes())) else {
        return false;
    };
    // Packets have one where programs are queueing disciplines.
    let is_packet = name == "sk_buff" && has(kernel, b"bpf_struct_ops_Qdisc_ops");
    !is_packet && !WITH_DESTRUCTOR.iter().any(|known| name == **known)
}

/// Offset of the node in the structure that a root contains, in bytes (`btf_parse_graph_root`,
/// `btf_parse_list_head`, `btf_parse_rb_root`).
#[doc(alias = "btf_parse_graph_root")]
#[doc(alias = "btf_parse_list_head")]
#[doc(alias = "btf_parse_rb_root")]
fn node_offset(btf: &Btf<'_>, root: &Found<'_>) -> Outcome<u32> {
    let wanted = match root.field.kind {
        FieldKind::ListHead => "bpf_list_node",
        _ => "bpf_rb_node",
    };
    let mut found = None;
    let contents = btf.at(root.field.target).as_composite();
    for member in contents.iter().flat_map(|contents| contents.members()) {
        if btf.string(member.name).or_anonymous() != root.node {
            continue;
        }
        let node = btf.at(member.ty);
        let is_node = node.kind() == Kind::Struct && node.name() == wanted;
        // The kernel decodes the offset by the `kind_flag` of the node's type, not of the
        // containing structure.
        let bits = undecoded(member, node.flag());
        if found.is_some() || !is_node || !bits.is_multiple_of(64) {
            return Err(FieldFault::Node);
        }
        found = Some(bits / 8);
    }
    found.ok_or(FieldFault::NoNode)
}

/// Offset of a member in bits, as a structure with or without bit fields states it.
fn undecoded(member: Member, has_bit_fields: bool) -> u32 {
    let stated = member.bits << 24 | member.bit_offset;
    match has_bit_fields {
        true => stated & 0x00ff_ffff,
        false => stated,
    }
}
