//! The structures of a program with special fields, whose objects the program may allocate and
//! lists and trees may hold (`btf_parse_struct_metas`).
//!
//! Complexity: linear in the types of the blob, and for each structure with such a member in the
//! members below it.

use super::{FieldFault, FieldKind, FieldRecord, FieldSet, pointer};
use crate::{Btf, Kind, TypeId};

/// Kinds whose structure makes those with such a member candidates. A structure with
/// resilient spin locks only is none.
pub(crate) const MARKS: [FieldKind; 6] = [
    FieldKind::SpinLock,
    FieldKind::ListHead,
    FieldKind::ListNode,
    FieldKind::RbRoot,
    FieldKind::RbNode,
    FieldKind::Refcount,
];

/// The special fields of the structures of a program (`struct btf_struct_metas`).
#[doc(alias = "btf_struct_metas")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructureFields {
    /// By type, ascending.
    records: Vec<(TypeId, FieldRecord)>,
}

impl StructureFields {
    /// Finds and checks them (`btf_parse_struct_metas`). Without the types of the kernel, pointers
    /// to kernel structures without destructor are not recognised.
    ///
    /// # Errors
    /// The first structure that violates a rule, and the rule.
    #[doc(alias = "btf_parse_struct_metas")]
    pub fn new(
        btf: &Btf<'_>,
        kernel: Option<&Btf<'_>>,
    ) -> Result<StructureFields, (TypeId, FieldFault)> {
        let marked = marked_types(btf);
        let mut records = Vec::new();
        for ty in btf.types().filter(|ty| ty.kind() == Kind::Struct) {
            let mut members = ty.as_composite().into_iter().flat_map(|of| of.members());
            if members.any(|member| marked.binary_search(&member.ty).is_ok()) {
                let id = ty.id();
                let record = FieldRecord::new(btf, kernel, id, FieldSet::OBJECT);
                let record = record.map_err(|fault| (id, fault))?;
                if record.fields().is_empty() {
                    return Err((id, FieldFault::None));
                }
                records.push((id, record));
            }
        }
        let found = StructureFields { records };
        for (id, record) in &found.records {
            found
                .check_ownership(record)
                .map_err(|fault| (*id, fault))?;
        }
        Ok(found)
    }

    /// The fields of a structure; `None` if it has none (`btf_find_struct_meta`).
    #[doc(alias = "btf_find_struct_meta")]
    pub fn get(&self, id: TypeId) -> Option<&FieldRecord> {
        let found = self.records.binary_search_by_key(&id, |(id, _)| *id);
        found.ok().map(|index| &self.records[index].1)
    }

    /// Checks that an owned type does not own types that own others (`btf_check_and_fixup_fields`,
    /// `btf_check_ownership_depth`, `btf_ownership_depth`, `btf_owned_type_idx`).
    #[doc(alias = "btf_check_and_fixup_fields")]
    #[doc(alias = "btf_check_ownership_depth")]
    #[doc(alias = "btf_ownership_depth")]
    #[doc(alias = "btf_owned_type_idx")]
    fn check_ownership(&self, record: &FieldRecord) -> Result<(), FieldFault> {
        let is_owned = record.fields().iter().any(|field| field.kind.is_node());
        for root in record.fields().iter().filter(|field| field.kind.is_root()) {
            let contents = self.get(root.target).ok_or(FieldFault::ContainsPlain)?;
            if is_owned && contents.fields().iter().any(|field| field.kind.is_root()) {
                return Err(FieldFault::OwnershipLoop);
            }
        }
        Ok(())
    }
}

/// Types that make a structure with such a member a candidate, in order.
fn marked_types(btf: &Btf<'_>) -> Vec<TypeId> {
    let named = MARKS
        .iter()
        .filter_map(|mark| btf.find(Kind::Struct, mark.name()))
        .map(|ty| ty.id());
    let is_pointer = |id: &TypeId| matches!(pointer(btf, *id, FieldSet::OBJECT), Ok(Some(_)));
    let pointers = btf.types().map(|ty| ty.id()).filter(is_pointer);
    let mut marked: Vec<TypeId> = named.chain(pointers).collect();
    marked.sort_unstable();
    marked
}
