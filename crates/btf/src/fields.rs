//! Special fields: members of map values and allocated objects that the kernel manages
//! itself, such as locks, timers, list heads and kptrs (`enum btf_field_type`).
//!
//! The kernel finds them by the names and tags of their types, in structures when BTF is
//! loaded and in values when a map is created (`btf_parse_fields`); the two differ in the
//! kinds that they look for ([`FieldSet`]).

use std::fmt;
use std::ops::Range;

mod search;
mod structures;

pub(crate) use search::pointer;
pub(crate) use structures::MARKS;
pub use structures::StructureFields;

use crate::{Btf, Name, TypeId};

/// Maximum number of special fields of a type (`BTF_FIELDS_MAX`).
const MAX_FIELDS: usize = 11;
/// Maximum depth of nested structures and arrays.
const MAX_DEPTH: usize = 32;

/// Kind of a special field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// `struct bpf_spin_lock`.
    SpinLock,
    /// `struct bpf_res_spin_lock`.
    ResSpinLock,
    /// `struct bpf_timer`.
    Timer,
    /// `struct bpf_wq`.
    Workqueue,
    /// `struct bpf_task_work`.
    TaskWork,
    /// A pointer tagged `kptr_untrusted`.
    KptrUnref,
    /// A pointer tagged `kptr`.
    KptrRef,
    /// A pointer tagged `percpu_kptr`.
    KptrPercpu,
    /// A pointer tagged `uptr`.
    Uptr,
    /// `struct bpf_list_head`.
    ListHead,
    /// `struct bpf_list_node`.
    ListNode,
    /// `struct bpf_rb_root`.
    RbRoot,
    /// `struct bpf_rb_node`.
    RbNode,
    /// `struct bpf_refcount`.
    Refcount,
}

impl FieldKind {
    /// The kinds found by the name of their structure, with its size in bytes.
    const STRUCTS: &[(FieldKind, &'static str, u32)] = &[
        (FieldKind::SpinLock, "bpf_spin_lock", 4),
        (FieldKind::ResSpinLock, "bpf_res_spin_lock", 4),
        (FieldKind::Timer, "bpf_timer", 16),
        (FieldKind::Workqueue, "bpf_wq", 16),
        (FieldKind::TaskWork, "bpf_task_work", 8),
        (FieldKind::ListHead, "bpf_list_head", 16),
        (FieldKind::ListNode, "bpf_list_node", 24),
        (FieldKind::RbRoot, "bpf_rb_root", 16),
        (FieldKind::RbNode, "bpf_rb_node", 32),
        (FieldKind::Refcount, "bpf_refcount", 4),
    ];

    /// The pointers found by the tag of their target.
    const TAGS: &[(FieldKind, &'static str)] = &[
        (FieldKind::KptrRef, "kptr"),
        (FieldKind::KptrUnref, "kptr_untrusted"),
        (FieldKind::KptrPercpu, "percpu_kptr"),
        (FieldKind::Uptr, "uptr"),
    ];

    /// Kind of the structure of this name.
    pub fn of_structure(name: Name<'_>) -> Option<FieldKind> {
        let mut structs = FieldKind::STRUCTS.iter();
        let found = structs.find(|(_, known, _)| name == **known);
        found.map(|(kind, ..)| *kind)
    }

    /// Kind of a pointer to what has this tag.
    pub fn of_tag(name: Name<'_>) -> Option<FieldKind> {
        let found = FieldKind::TAGS.iter().find(|(_, known)| name == **known);
        found.map(|(kind, _)| *kind)
    }

    /// Name in messages of the kernel: that of the structure or tag (`btf_field_type_name`).
    pub fn name(self) -> &'static str {
        match self.structure() {
            Some((name, _)) => name,
            None if self == FieldKind::KptrPercpu => "percpu_kptr",
            None if self == FieldKind::Uptr => "uptr",
            None => "kptr",
        }
    }

    /// Bytes of the field.
    pub fn size(self) -> u32 {
        self.structure().map_or(8, |(_, size)| size)
    }

    /// Required alignment in bytes.
    pub fn alignment(self) -> u32 {
        self.size().min(8)
    }

    /// Bit of `enum btf_field_type`.
    pub const fn bit(self) -> u32 {
        match self {
            FieldKind::SpinLock => 1,
            FieldKind::Timer => 1 << 1,
            FieldKind::KptrUnref => 1 << 2,
            FieldKind::KptrRef => 1 << 3,
            FieldKind::KptrPercpu => 1 << 4,
            FieldKind::ListHead => 1 << 5,
            FieldKind::ListNode => 1 << 6,
            FieldKind::RbRoot => 1 << 7,
            FieldKind::RbNode => 1 << 8,
            FieldKind::Refcount => 1 << 9,
            FieldKind::Workqueue => 1 << 10,
            FieldKind::Uptr => 1 << 11,
            FieldKind::ResSpinLock => 1 << 12,
            FieldKind::TaskWork => 1 << 13,
        }
    }

    /// True for pointers to kernel objects.
    pub fn is_kptr(self) -> bool {
        matches!(
            self,
            FieldKind::KptrUnref | FieldKind::KptrRef | FieldKind::KptrPercpu
        )
    }

    /// True if loads and stores may touch the field under the rules of pointers.
    pub fn is_pointer(self) -> bool {
        self.is_kptr() || self == FieldKind::Uptr
    }

    /// True for locks.
    pub fn is_lock(self) -> bool {
        matches!(self, FieldKind::SpinLock | FieldKind::ResSpinLock)
    }

    /// True for what owns objects: list heads and tree roots.
    pub fn is_root(self) -> bool {
        matches!(self, FieldKind::ListHead | FieldKind::RbRoot)
    }

    /// True for the links of owned objects: nodes of lists and trees.
    pub fn is_node(self) -> bool {
        matches!(self, FieldKind::ListNode | FieldKind::RbNode)
    }

    /// True if a structure may directly contain only one.
    fn is_unique(self) -> bool {
        self.is_lock()
            || matches!(
                self,
                FieldKind::Timer | FieldKind::Workqueue | FieldKind::TaskWork
            )
    }

    fn structure(self) -> Option<(&'static str, u32)> {
        let mut structs = FieldKind::STRUCTS.iter();
        let found = structs.find(|(kind, ..)| *kind == self)?;
        Some((found.1, found.2))
    }
}

/// A set of kinds of special fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSet(u32);

impl FieldSet {
    /// Fields that the kernel searches in the structures of a blob, which programs may allocate
    /// (`btf_parse_struct_metas`).
    pub const OBJECT: FieldSet = FieldSet::of(&[
        FieldKind::SpinLock,
        FieldKind::ResSpinLock,
        FieldKind::ListHead,
        FieldKind::ListNode,
        FieldKind::RbRoot,
        FieldKind::RbNode,
        FieldKind::Refcount,
        FieldKind::KptrUnref,
        FieldKind::KptrRef,
        FieldKind::KptrPercpu,
    ]);

    /// Fields that the kernel searches in the values of a map (`map_check_btf`).
    pub const MAP_VALUE: FieldSet = FieldSet::of(&[
        FieldKind::SpinLock,
        FieldKind::ResSpinLock,
        FieldKind::Timer,
        FieldKind::Workqueue,
        FieldKind::TaskWork,
        FieldKind::ListHead,
        FieldKind::RbRoot,
        FieldKind::Refcount,
        FieldKind::KptrUnref,
        FieldKind::KptrRef,
        FieldKind::KptrPercpu,
        FieldKind::Uptr,
    ]);

    /// In place of a kind: tags have the meaning that they had first.
    const FIRST_TAGS: u32 = 1 << 31;

    /// Those of the set of which a condition is true.
    pub fn filter(self, is_in: impl Fn(FieldKind) -> bool) -> FieldSet {
        let structs = FieldKind::STRUCTS.iter().map(|(kind, ..)| *kind);
        let tags = FieldKind::TAGS.iter().map(|(kind, _)| *kind);
        let left_out = structs.chain(tags).filter(|kind| !is_in(*kind));
        FieldSet(left_out.fold(self.0, |bits, kind| bits & !kind.bit()))
    }

    /// The set where `kptr` tags pointers without reference, and `kptr_ref` those with one.
    #[must_use]
    pub const fn with_first_tags(self) -> FieldSet {
        FieldSet(self.0 | FieldSet::FIRST_TAGS)
    }

    /// True if tags have the meaning that they had first.
    pub(crate) const fn has_first_tags(self) -> bool {
        self.0 & FieldSet::FIRST_TAGS != 0
    }

    /// True if a kind of pointer is in the set.
    pub(crate) fn has_pointers(self) -> bool {
        FieldKind::TAGS.iter().any(|(kind, _)| self.has(*kind))
    }

    /// The kind of pointer that a tag names.
    pub(crate) fn of_tag(self, name: Name<'_>) -> Option<FieldKind> {
        if !self.has_first_tags() {
            return FieldKind::of_tag(name);
        }
        match name.as_bytes() {
            b"kptr" => Some(FieldKind::KptrUnref),
            b"kptr_ref" => Some(FieldKind::KptrRef),
            _ => None,
        }
    }

    const fn of(kinds: &[FieldKind]) -> FieldSet {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= kinds[index].bit();
            index += 1;
        }
        FieldSet(bits)
    }

    /// True if the kind is in the set.
    pub const fn has(self, kind: FieldKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// One special field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialField {
    /// Its kind.
    pub kind: FieldKind,
    /// Bytes from the start of the type.
    pub offset: u32,
    /// Structure that a pointer points to or a root contains, in the same blob; void
    /// otherwise.
    pub target: TypeId,
    /// Of a root, the offset of the node in the structure that it contains, in bytes.
    pub node: u32,
}

/// The special fields of a type, in order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRecord {
    fields: Vec<SpecialField>,
}

impl FieldRecord {
    /// The fields of both, in order of their offsets.
    #[must_use]
    pub fn merge(mut self, other: FieldRecord) -> FieldRecord {
        self.fields.extend(other.fields);
        self.fields.sort_by_key(|field| field.offset);
        self
    }

    /// Finds and checks the special fields of a structure or data section (`btf_parse_fields`), empty if it has
    /// none. Without the types of the kernel, pointers to kernel structures without
    /// destructor are not recognised. Linear in the members of all structures below the type,
    /// times their depth, and for each root in the types of the blob.
    ///
    /// # Errors
    /// The first rule that the kernel finds violated.
    #[doc(alias = "btf_parse_fields")]
    pub fn new(
        btf: &Btf<'_>,
        kernel: Option<&Btf<'_>>,
        ty: TypeId,
        wanted: FieldSet,
    ) -> Result<FieldRecord, FieldFault> {
        let mut fields = search::fields(btf, kernel, ty, wanted)?;
        fields.sort_by_key(|field| field.offset);
        Ok(FieldRecord { fields })
    }

    /// All fields.
    pub fn fields(&self) -> &[SpecialField] {
        &self.fields
    }

    /// Byte ranges of all fields, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.fields.iter().map(|field| {
            let start = field.offset as usize;
            start..start + field.kind.size() as usize
        })
    }

    /// True if there is a field of this kind.
    pub fn has(&self, kind: FieldKind) -> bool {
        self.offset_of(kind).is_some()
    }

    /// Offset of the first field of this kind.
    pub fn offset_of(&self, kind: FieldKind) -> Option<u32> {
        self.field(kind).map(|field| field.offset)
    }

    /// True if a callback may run later on the value.
    pub fn has_async(&self) -> bool {
        self.has(FieldKind::Timer)
            || self.has(FieldKind::Workqueue)
            || self.has(FieldKind::TaskWork)
    }

    /// The first field of this kind.
    pub fn field(&self, kind: FieldKind) -> Option<&SpecialField> {
        self.fields.iter().find(|field| field.kind == kind)
    }

    /// The field of this kind at exactly this offset (`btf_record_find`, `reg_find_field_offset`).
    #[doc(alias = "btf_record_find")]
    #[doc(alias = "reg_find_field_offset")]
    pub fn field_at(&self, kind: FieldKind, offset: u32) -> Option<&SpecialField> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.offset == offset && field.kind == kind)
    }

    /// True if there is a lock.
    pub fn has_lock(&self) -> bool {
        self.fields.iter().any(|field| field.kind.is_lock())
    }

    /// The pointer field at exactly this offset.
    pub fn pointer_at(&self, offset: u32) -> Option<&SpecialField> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.offset == offset && field.kind.is_pointer())
    }
}

/// Violated rule of special fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldFault {
    /// A member does not start at a byte.
    InsideByte,
    /// A unique special field occurs twice.
    Twice,
    /// Structures are nested more than 32 deep.
    TooDeep,
    /// A structure has more than eleven special fields.
    TooMany,
    /// The special field may not be an element of an array.
    Repeated,
    /// The kptr has an unknown tag, two tags, or no structure as target.
    Pointer,
    /// The kptr's structure has no destructor.
    NoDestructor,
    /// The root lacks its declaration tag `contains:`.
    Contains,
    /// The contained type is missing.
    ContainsNothing,
    /// The contained type's member is not a node.
    Node,
    /// The contained type's node is missing.
    NoNode,
    /// Special fields overlap.
    Overlap,
    /// The structure has two kinds of locks.
    TwoLocks,
    /// A root without a lock.
    NoLock,
    /// Nodes of lists and trees without a reference count.
    NoRefcount,
    /// The structure has no special field where one is required.
    None,
    /// The contained type has no special fields.
    ContainsPlain,
    /// A structure owns one that owns others and is owned.
    OwnershipLoop,
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldFault::InsideByte => "a member does not start at a byte",
            FieldFault::Twice => "a unique special field occurs twice",
            FieldFault::TooDeep => "structures are nested more than 32 deep",
            FieldFault::TooMany => "a structure has more than 11 special fields",
            FieldFault::Repeated => "a special field of this kind is no element of an array",
            FieldFault::Pointer => "a kptr has an unknown tag, two tags, or no structure as target",
            FieldFault::NoDestructor => "the structure of a kptr has no destructor",
            FieldFault::Contains => "a list head or tree root lacks its tag contains:",
            FieldFault::ContainsNothing => "the type that a tag contains: names is missing",
            FieldFault::Node => "the member that a tag contains: names is no node",
            FieldFault::NoNode => "the node that a tag contains: names is missing",
            FieldFault::Overlap => "special fields overlap",
            FieldFault::TwoLocks => "a structure has two kinds of locks",
            FieldFault::NoLock => "a list head or tree root has no lock beside it",
            FieldFault::NoRefcount => "nodes of lists and trees have no reference count",
            FieldFault::None => "a structure has no special field where one is required",
            FieldFault::ContainsPlain => "the contained type has no special fields",
            FieldFault::OwnershipLoop => "a structure owns one that owns others and is owned",
        })
    }
}

impl std::error::Error for FieldFault {}
