//! Layouts of what owns objects, by types of programs.

use btf::fields::{FieldKind, FieldRecord, FieldSet};
use btf::{Btf, TypeId};
use vm::{ObjectLayout, Owned, OwningField};

/// The layout of the objects of a structure, by the types of a program and of the kernel; `None`
/// if it is no structure.
pub fn object_layout(
    types: &Btf<'_>,
    kernel: Option<&Btf<'_>>,
    type_id: TypeId,
) -> Option<ObjectLayout> {
    let structure = types.get(type_id)?;
    structure.as_composite()?;
    // What the kernel refuses there the verifier has refused.
    let fields = FieldRecord::new(types, kernel, type_id, FieldSet::OBJECT).unwrap_or_default();
    Some(ObjectLayout {
        name: structure.name().to_string(),
        size: types.size_of(type_id)? as usize,
        owning: owning_fields(&fields),
    })
}

/// The fields that own objects.
pub(crate) fn owning_fields(fields: &FieldRecord) -> Vec<OwningField> {
    let fields = fields.fields().iter();
    let owning = fields.filter_map(|field| {
        let owned = match field.kind {
            FieldKind::KptrRef | FieldKind::KptrPercpu => Owned::Object,
            FieldKind::ListHead => Owned::List,
            FieldKind::RbRoot => Owned::Tree,
            FieldKind::SpinLock
            | FieldKind::ResSpinLock
            | FieldKind::Timer
            | FieldKind::Workqueue
            | FieldKind::TaskWork
            | FieldKind::KptrUnref
            | FieldKind::Uptr
            | FieldKind::ListNode
            | FieldKind::RbNode
            | FieldKind::Refcount => return None,
        };
        let offset = field.offset as usize;
        Some(OwningField { offset, owned })
    });
    owning.collect()
}
