//! Special fields of map values: locks, timers, work queues, kernel pointers, list
//! heads, tree roots and reference counts that the kernel manages itself.
//!
//! The kernel finds them by the names of their types when a map with BTF is created
//! (`btf_parse_fields` in kernel/bpf/btf.c). One depth-first walk over the value's
//! members yields them in order of their offsets. A field that the walk finds at an
//! unfit alignment, or whose structure has another size than the kernel's, is no
//! special field. Complexity: linear in members and array elements, at most
//! [`MAX_FIELDS`] fields and [`MAX_DEPTH`] nested structures.

use btf::{Btf, Kind, Shape, TypeId};

/// The most special fields of one value.
const MAX_FIELDS: usize = 11;
/// The deepest nesting of structures and arrays.
const MAX_DEPTH: usize = 32;

/// What a special field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The kinds found by the name of their structure, with its size and alignment.
    const STRUCTS: &[(FieldKind, &'static str, u32, u32)] = &[
        (FieldKind::SpinLock, "bpf_spin_lock", 4, 4),
        (FieldKind::ResSpinLock, "bpf_res_spin_lock", 4, 4),
        (FieldKind::Timer, "bpf_timer", 16, 8),
        (FieldKind::Workqueue, "bpf_wq", 16, 8),
        (FieldKind::TaskWork, "bpf_task_work", 8, 8),
        (FieldKind::ListHead, "bpf_list_head", 16, 8),
        (FieldKind::ListNode, "bpf_list_node", 24, 8),
        (FieldKind::RbRoot, "bpf_rb_root", 16, 8),
        (FieldKind::RbNode, "bpf_rb_node", 32, 8),
        (FieldKind::Refcount, "bpf_refcount", 4, 4),
    ];

    /// The name in log messages.
    pub fn name(self) -> &'static str {
        match self {
            FieldKind::KptrUnref | FieldKind::KptrRef => "kptr",
            FieldKind::KptrPercpu => "percpu_kptr",
            FieldKind::Uptr => "uptr",
            _ => FieldKind::STRUCTS
                .iter()
                .find(|(kind, ..)| *kind == self)
                .map_or("unknown", |(_, name, ..)| name),
        }
    }

    /// The bit of `enum btf_field_type`.
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
}

/// One special field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it is.
    pub kind: FieldKind,
    /// Bytes from the start of the value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The structure that a pointer points to, in the BTF of the map; void otherwise.
    pub target: TypeId,
}

/// The special fields of a value, in order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    fields: Vec<Field>,
}

impl Record {
    /// The special fields of a value of type `value`: a structure, or the section
    /// of a global data map.
    pub fn of_value(btf: &Btf<'_>, value: TypeId) -> Record {
        let mut walk = Walk {
            btf,
            fields: Vec::new(),
        };
        let Some(ty) = btf.get(value) else {
            return Record::default();
        };
        match ty.shape() {
            Shape::Struct(_) => walk.visit_struct(value, 0, 0),
            Shape::Datasec(section) => {
                for placed in section.vars() {
                    if let Some(Shape::Var(var)) = btf.get(placed.var).map(|ty| ty.shape()) {
                        walk.visit(var.ty, placed.offset, Some(placed.size), 0);
                    }
                }
            }
            _ => {}
        }
        let mut fields = walk.fields;
        fields.truncate(MAX_FIELDS);
        fields.sort_by_key(|field| field.offset);
        Record { fields }
    }

    /// All fields.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// True if there is a field of this kind.
    pub fn has(&self, kind: FieldKind) -> bool {
        self.offset_of(kind).is_some()
    }

    /// The offset of the first field of this kind.
    pub fn offset_of(&self, kind: FieldKind) -> Option<u32> {
        self.fields
            .iter()
            .find(|field| field.kind == kind)
            .map(|field| field.offset)
    }

    /// True if a callback may run later on the value.
    pub fn has_async(&self) -> bool {
        self.has(FieldKind::Timer)
            || self.has(FieldKind::Workqueue)
            || self.has(FieldKind::TaskWork)
    }

    /// The pointer field at exactly this offset.
    pub fn pointer_at(&self, offset: u32) -> Option<&Field> {
        self.fields
            .iter()
            .find(|field| field.offset == offset && field.kind.is_pointer())
    }
}

/// The walk over the members of a value.
struct Walk<'b> {
    btf: &'b Btf<'b>,
    fields: Vec<Field>,
}

impl Walk<'_> {
    fn visit_struct(&mut self, id: TypeId, base: u32, depth: usize) {
        let Some(composite) = self.btf.get(id).and_then(|ty| ty.as_composite()) else {
            return;
        };
        if depth >= MAX_DEPTH {
            return;
        }
        for member in composite.members() {
            if member.bit_offset % 8 == 0 && self.fields.len() <= MAX_FIELDS {
                let offset = base.wrapping_add(member.bit_offset / 8);
                self.visit(member.ty, offset, None, depth);
            }
        }
    }

    /// Visits a member or variable of type `id`; `expected` is the size of a variable.
    fn visit(&mut self, id: TypeId, offset: u32, expected: Option<u32>, depth: usize) {
        let mut id = id;
        let mut count = 1u32;
        for _ in 0..MAX_DEPTH {
            let Some(Shape::Array(array)) = self.btf.get(id).map(|ty| ty.shape()) else {
                break;
            };
            count = count.wrapping_mul(array.count);
            id = array.element;
        }
        if count == 0 {
            return;
        }
        let Some(ty) = self.btf.get(id) else { return };
        let name = ty.name();
        let named = FieldKind::STRUCTS
            .iter()
            .find(|(_, known, ..)| name == **known);
        let first = self.fields.len();
        let each = match named {
            Some(&(kind, _, size, align)) => {
                let is_kernels = matches!(ty.shape(), Shape::Struct(of) if of.size == size);
                if !is_kernels || !offset.is_multiple_of(align) {
                    return;
                }
                self.push(kind, offset, size, TypeId::VOID);
                size
            }
            None if ty.kind() == Kind::Struct => {
                self.visit_struct(id, offset, depth + 1);
                self.btf.size_of(id).unwrap_or(0)
            }
            None => match self.pointer(id) {
                Some((kind, target)) if offset.is_multiple_of(8) => {
                    self.push(kind, offset, 8, target);
                    8
                }
                _ => return,
            },
        };
        if expected.is_some_and(|expected| expected != each.wrapping_mul(count)) {
            self.fields.truncate(first);
            return;
        }
        let found = self.fields[first..].to_vec();
        for element in 1..count {
            for field in &found {
                if self.fields.len() > MAX_FIELDS {
                    return;
                }
                let offset = field.offset.wrapping_add(element.wrapping_mul(each));
                self.fields.push(Field { offset, ..*field });
            }
        }
    }

    fn push(&mut self, kind: FieldKind, offset: u32, size: u32, target: TypeId) {
        self.fields.push(Field {
            kind,
            offset,
            size,
            target,
        });
    }

    /// The kind and target of a tagged pointer.
    fn pointer(&self, id: TypeId) -> Option<(FieldKind, TypeId)> {
        let id = match self.btf.get(id)?.shape() {
            Shape::Volatile(to) => to,
            _ => id,
        };
        let Shape::Ptr(tag) = self.btf.get(id)?.shape() else {
            return None;
        };
        let tag = self.btf.get(tag)?;
        let Shape::TypeTag(target) = tag.shape() else {
            return None;
        };
        if tag.flag() {
            return None;
        }
        let kind = match tag.name().as_bytes() {
            b"kptr_untrusted" => FieldKind::KptrUnref,
            b"kptr" => FieldKind::KptrRef,
            b"percpu_kptr" => FieldKind::KptrPercpu,
            b"uptr" => FieldKind::Uptr,
            _ => return None,
        };
        Some((kind, self.btf.skip_modifiers(target)?))
    }
}
