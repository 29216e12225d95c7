//! Special fields: locks, timers, lists, trees, reference counts and kptrs in the
//! structures of a program (`btf_parse_struct_metas`). The kernel finds them by the names
//! of their types when BTF is loaded, and refuses the blob without a log message if they
//! are invalid.

use super::blob::{Blob, RawMember};
use super::reason::{FieldFault, Place, Reason};
use crate::kind::Kind;
use crate::wire::{MEMBER_SIZE, word};
use crate::{Btf, Name, TypeId};

/// Structures of Linux 6.18 with a destructor, which maps may own.
const WITH_DESTRUCTOR: &[&str] = &[
    "task_struct",
    "cgroup",
    "bpf_cpumask",
    "bpf_crypto_ctx",
    "prog_test_ref_kfunc",
    "prog_test_member",
];

/// BTF of the kernel, if known.
#[derive(Clone, Copy)]
struct KernelTypes<'k>(Option<&'k Btf<'k>>);

impl KernelTypes<'_> {
    /// True for a structure of the kernel without a destructor.
    fn is_unreleased(self, name: Name<'_>) -> bool {
        let has = |types: &Btf<'_>| {
            let found = types.find_all(Kind::Struct, name.as_bytes()).next();
            found.is_some()
        };
        self.0.is_some_and(has) && !WITH_DESTRUCTOR.iter().any(|known| name == **known)
    }
}

/// Kind of special field (`enum btf_field_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    SpinLock,
    ResilientLock,
    ListHead,
    ListNode,
    TreeRoot,
    TreeNode,
    Refcount,
    Pointer,
    OwningPointer,
}

impl Field {
    /// Special fields that are recognised by the name of their structure.
    const NAMED: &[(Field, &str)] = &[
        (Field::SpinLock, "bpf_spin_lock"),
        (Field::ResilientLock, "bpf_res_spin_lock"),
        (Field::ListHead, "bpf_list_head"),
        (Field::ListNode, "bpf_list_node"),
        (Field::TreeRoot, "bpf_rb_root"),
        (Field::TreeNode, "bpf_rb_node"),
        (Field::Refcount, "bpf_refcount"),
    ];

    fn size(self) -> u32 {
        match self {
            Field::SpinLock | Field::ResilientLock | Field::Refcount => 4,
            Field::Pointer | Field::OwningPointer => 8,
            Field::ListHead | Field::TreeRoot => 16,
            Field::ListNode => 24,
            Field::TreeNode => 32,
        }
    }

    fn alignment(self) -> u32 {
        self.size().min(8)
    }

    fn is_lock(self) -> bool {
        matches!(self, Field::SpinLock | Field::ResilientLock)
    }

    fn is_root(self) -> bool {
        matches!(self, Field::ListHead | Field::TreeRoot)
    }

    fn is_node(self) -> bool {
        matches!(self, Field::ListNode | Field::TreeNode)
    }

    fn is_pointer(self) -> bool {
        matches!(self, Field::Pointer | Field::OwningPointer)
    }
}

/// A special field.
#[derive(Clone, Copy)]
struct Found<'b> {
    field: Field,
    offset: u32,
    /// Type that a kptr points to, or that a root contains.
    ty: TypeId,
    /// Node member of the contained type.
    node: Name<'b>,
}

/// Maximum number of special fields of a structure (`BTF_FIELDS_MAX`).
const MAX_FIELDS: usize = 11;
/// Maximum depth of nested structures.
const MAX_DEPTH: usize = 32;

type Outcome<T> = Result<T, FieldFault>;

/// Checks all structures with special fields.
pub(super) fn check_fields(
    blob: &Blob<'_>,
    kernel: Option<&Btf<'_>>,
) -> Result<(), (Place, Reason)> {
    let kernel = KernelTypes(kernel);
    let fields = Fields { blob, kernel };
    let marked = fields.marked_types();
    if marked.is_empty() {
        return Ok(());
    }
    let mut records = Vec::new();
    for id in fields.ids().filter(|&id| fields.kind(id) == Kind::Struct) {
        let is_marked = |member: RawMember| marked.binary_search(&member.ty).is_ok();
        if fields.members(id).any(is_marked) {
            let record = fields
                .record(id)
                .map_err(|fault| (Place::Type(id), Reason::Field(fault)))?;
            records.push((id, record));
        }
    }
    for (id, record) in &records {
        check_ownership(record, &records)
            .map_err(|fault| (Place::Type(*id), Reason::Field(fault)))?;
    }
    Ok(())
}

/// Checks that an owned type does not own types that own others.
fn check_ownership(record: &[Found<'_>], records: &[(TypeId, Vec<Found<'_>>)]) -> Outcome<()> {
    let is_owned = record.iter().any(|found| found.field.is_node());
    for root in record.iter().filter(|found| found.field.is_root()) {
        let (_, contents) = records
            .iter()
            .find(|(id, _)| *id == root.ty)
            .ok_or(FieldFault::ContainsPlain)?;
        if is_owned && contents.iter().any(|found| found.field.is_root()) {
            return Err(FieldFault::OwnershipLoop);
        }
    }
    Ok(())
}

struct Fields<'b> {
    blob: &'b Blob<'b>,
    kernel: KernelTypes<'b>,
}

impl<'b> Fields<'b> {
    fn ids(&self) -> impl Iterator<Item = TypeId> {
        (1..self.blob.starts.len() as u32).map(TypeId)
    }

    fn kind(&self, id: TypeId) -> Kind {
        self.blob.record_or_void(id).kind_or_void()
    }

    fn payload(&self, id: TypeId) -> TypeId {
        TypeId(self.blob.record_or_void(id).payload)
    }

    fn name(&self, id: TypeId) -> Name<'b> {
        self.text(self.blob.record_or_void(id).name)
    }

    /// Name of a type or member; anonymous ones are called so by the kernel.
    fn text(&self, offset: u32) -> Name<'b> {
        match offset {
            0 => Name::new(b"(anon)"),
            offset => self.blob.string(offset).unwrap_or_default(),
        }
    }

    fn members(&self, id: TypeId) -> impl Iterator<Item = RawMember> {
        let count = self.blob.record_or_void(id).count();
        self.blob.tail(id)[..count * MEMBER_SIZE]
            .chunks_exact(MEMBER_SIZE)
            .map(|raw| RawMember::read(raw, 0))
    }

    /// First structure with this name.
    fn find_struct(&self, name: &[u8]) -> Option<TypeId> {
        self.ids().find(|&id| {
            self.kind(id) == Kind::Struct
                && self
                    .blob
                    .string(self.blob.record_or_void(id).name)
                    .is_some_and(|found| found.as_bytes() == name)
        })
    }

    /// Types that make a structure with such a member a candidate.
    fn marked_types(&self) -> Vec<TypeId> {
        // A structure with resilient spin locks only is not a candidate.
        let named = Field::NAMED
            .iter()
            .filter(|(field, _)| *field != Field::ResilientLock)
            .filter_map(|(_, name)| self.find_struct(name.as_bytes()));
        let pointers = self
            .ids()
            .filter(|&id| matches!(self.find_pointer(id), Ok(Some(_))));
        let mut marked: Vec<TypeId> = named.chain(pointers).collect();
        marked.sort_unstable();
        marked
    }

    /// Special fields of a structure, checked.
    fn record(&self, id: TypeId) -> Outcome<Vec<Found<'b>>> {
        let mut found = Vec::new();
        self.find_in_struct(id, &mut found, MAX_FIELDS, 0)?;
        if found.is_empty() {
            return Err(FieldFault::None);
        }
        let mut end = 0;
        for found in &found {
            if found.offset < end {
                return Err(FieldFault::Overlap);
            }
            end = found.offset.wrapping_add(found.field.size());
            if found.field == Field::OwningPointer && self.kernel.is_unreleased(self.name(found.ty))
            {
                return Err(FieldFault::NoDestructor);
            }
            if found.field.is_root() {
                self.check_root(found)?;
            }
        }
        let has = |wanted: Field| found.iter().any(|found| found.field == wanted);
        if has(Field::SpinLock) && has(Field::ResilientLock) {
            return Err(FieldFault::TwoLocks);
        }
        let is_locked = found.iter().any(|found| found.field.is_lock());
        if !is_locked && found.iter().any(|found| found.field.is_root()) {
            return Err(FieldFault::NoLock);
        }
        if !has(Field::Refcount) && has(Field::ListNode) && has(Field::TreeNode) {
            return Err(FieldFault::NoRefcount);
        }
        Ok(found)
    }

    /// Adds the special fields of a structure, at most `room`; returns their number.
    fn find_in_struct(
        &self,
        id: TypeId,
        found: &mut Vec<Found<'b>>,
        room: usize,
        depth: usize,
    ) -> Outcome<()> {
        let first = found.len();
        let mut seen = Vec::new();
        let record = self.blob.record_or_void(id);
        for (index, member) in self.members(id).enumerate() {
            let bits = member.bit_offset(record);
            if !bits.is_multiple_of(8) {
                return Err(FieldFault::InsideByte);
            }
            let room = room - (found.len() - first);
            let at = (id, index, bits / 8);
            self.find_in_member(at, member.ty, &mut seen, found, room, depth)?;
        }
        Ok(())
    }

    fn find_in_member(
        &self,
        (of, index, offset): (TypeId, usize, u32),
        ty: TypeId,
        seen: &mut Vec<Field>,
        found: &mut Vec<Found<'b>>,
        room: usize,
        depth: usize,
    ) -> Outcome<()> {
        let mut ty = ty;
        let mut count = 1u32;
        let mut arrays = 0;
        while self.kind(ty) == Kind::Array && arrays < MAX_DEPTH {
            let tail = self.blob.tail(ty);
            count = count.wrapping_mul(word(tail, 8));
            ty = TypeId(word(tail, 0));
            arrays += 1;
        }
        if arrays == MAX_DEPTH {
            return Err(FieldFault::TooDeep);
        }
        if count == 0 {
            return Ok(());
        }
        let first = found.len();
        let Some(field) = self.field_of(ty, seen)? else {
            if self.kind(ty) != Kind::Struct {
                return Ok(());
            }
            if depth + 1 >= MAX_DEPTH {
                return Err(FieldFault::TooDeep);
            }
            self.find_in_struct(ty, found, room, depth + 1)?;
            for found in &mut found[first..] {
                found.offset = found.offset.wrapping_add(offset);
            }
            let size = self.payload(ty).0;
            return repeat(found, first, count, size, room);
        };
        if !offset.is_multiple_of(field.alignment()) {
            return Ok(());
        }
        let one = match field {
            Field::OwningPointer => self.find_pointer(ty)?,
            _ if self.kind(ty) != Kind::Struct || self.payload(ty).0 != field.size() => None,
            _ if field.is_root() => Some(self.find_root(of, index, field)?),
            _ => Some(Found {
                field,
                offset: 0,
                ty,
                node: Name::default(),
            }),
        };
        let Some(one) = one else {
            return Ok(());
        };
        if room == 0 {
            return Err(FieldFault::TooMany);
        }
        found.push(Found { offset, ..one });
        repeat(found, first, count, field.size(), room)
    }

    /// Special field of a type by its name; a type that is no structure may be a kptr.
    fn field_of(&self, ty: TypeId, seen: &mut Vec<Field>) -> Outcome<Option<Field>> {
        let name = self.name(ty);
        let named = Field::NAMED.iter().find(|(_, known)| name == **known);
        match named {
            Some(&(field, _)) => {
                if field.is_lock() && seen.contains(&field) {
                    return Err(FieldFault::Twice);
                }
                seen.push(field);
                Ok(Some(field))
            }
            None if self.kind(ty) == Kind::Struct => Ok(None),
            None => Ok(Some(Field::OwningPointer)),
        }
    }

    /// kptr: a pointer whose target has one of the kptr type tags.
    fn find_pointer(&self, ty: TypeId) -> Outcome<Option<Found<'b>>> {
        let ty = match self.kind(ty) {
            Kind::Volatile => self.payload(ty),
            _ => ty,
        };
        let tag = self.payload(ty);
        let is_tag = |id| {
            let record = self.blob.record_or_void(id);
            self.kind(id) == Kind::TypeTag && !record.flag()
        };
        if self.kind(ty) != Kind::Ptr || !is_tag(tag) {
            return Ok(None);
        }
        if self.kind(self.payload(tag)) == Kind::TypeTag {
            return Err(FieldFault::Pointer);
        }
        let field = match self.name(tag).as_bytes() {
            b"kptr" => Field::OwningPointer,
            b"kptr_untrusted" | b"percpu_kptr" => Field::Pointer,
            // Pointers to user memory (uptr) are not checked here.
            b"uptr" => return Ok(None),
            _ => return Err(FieldFault::Pointer),
        };
        let mut target = self.payload(tag);
        while self.kind(target).is_modifier() {
            target = self.payload(target);
        }
        if self.kind(target) != Kind::Struct {
            return Err(FieldFault::Pointer);
        }
        Ok(Some(Found {
            field,
            offset: 0,
            ty: target,
            node: Name::default(),
        }))
    }

    /// Root of a list or tree, whose declaration tag states the contained type:
    /// `contains:STRUCT:NODE`.
    fn find_root(&self, of: TypeId, index: usize, field: Field) -> Outcome<Found<'b>> {
        let is_tag = |&id: &TypeId| {
            self.kind(id) == Kind::DeclTag
                && self.payload(id) == of
                && word(self.blob.tail(id), 0) == index as u32
        };
        let mut tags = self
            .ids()
            .filter(is_tag)
            .filter_map(|id| self.name(id).as_bytes().strip_prefix(b"contains:"));
        let tag = tags.next().ok_or(FieldFault::Contains)?;
        if tags.next().is_some() {
            return Err(FieldFault::Contains);
        }
        let colon = tag.iter().position(|&byte| byte == b':');
        let (contents, node) = tag.split_at(colon.ok_or(FieldFault::Contains)?);
        let ty = self
            .find_struct(contents)
            .ok_or(FieldFault::ContainsNothing)?;
        if node.len() == 1 {
            return Err(FieldFault::Contains);
        }
        Ok(Found {
            field,
            offset: 0,
            ty,
            node: Name::new(&node[1..]),
        })
    }

    /// Checks that the node of a root is a node.
    fn check_root(&self, root: &Found<'_>) -> Outcome<()> {
        let wanted = match root.field {
            Field::ListHead => "bpf_list_node",
            _ => "bpf_rb_node",
        };
        let mut found = false;
        for member in self.members(root.ty) {
            if self.text(member.name) != root.node {
                continue;
            }
            let is_node = self.kind(member.ty) == Kind::Struct && self.name(member.ty) == wanted;
            // The kernel decodes the offset by the `kind_flag` of the node's type, not of
            // the containing structure.
            let bits = member.bit_offset(self.blob.record_or_void(member.ty));
            if found || !is_node || !bits.is_multiple_of(64) {
                return Err(FieldFault::Node);
            }
            found = true;
        }
        if found {
            Ok(())
        } else {
            Err(FieldFault::NoNode)
        }
    }
}

/// Repeats the fields from index `first` for each element of an array.
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
    let may_repeat = |found: &Found<'_>| found.field.is_pointer() || found.field.is_root();
    if !found[first..].iter().all(may_repeat) {
        return Err(FieldFault::Repeated);
    }
    let total = fields.checked_mul(count as usize);
    if total.is_none_or(|total| total > room) {
        return Err(FieldFault::TooMany);
    }
    for element in 1..count {
        for field in first..first + fields {
            let offset = found[field].offset.wrapping_add(element.wrapping_mul(each));
            found.push(Found {
                offset,
                ..found[field]
            });
        }
    }
    Ok(())
}
