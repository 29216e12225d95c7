//! Special fields of the structures of a program (`btf_parse_struct_metas`). The kernel
//! refuses the blob without a log message if they are invalid.

use super::blob::Blob;
use super::reason::{BlobPlace, Reason};
use crate::fields::{FieldFault, FieldKind, FieldRecord, FieldSet, pointer};
use crate::write::write_blob;
use crate::{Btf, Kind, TypeId};

/// Kinds whose structure makes those with such a member candidates. A structure with
/// resilient spin locks only is none.
const MARKS: [FieldKind; 6] = [
    FieldKind::SpinLock,
    FieldKind::ListHead,
    FieldKind::ListNode,
    FieldKind::RbRoot,
    FieldKind::RbNode,
    FieldKind::Refcount,
];

/// Checks all structures with special fields, of a blob whose types are valid.
pub(super) fn check_fields(
    blob: &Blob<'_>,
    kernel: Option<&Btf<'_>>,
) -> Result<(), (BlobPlace, Reason)> {
    if !may_have_fields(blob) {
        return Ok(());
    }
    // Types and strings are valid by now, and the header is new.
    let btf = Btf::parse(write_blob(blob.types, blob.strings))
        .map_err(|_| (BlobPlace::Blob, Reason::Strings))?;
    let marked = marked_types(&btf);
    let at = |id| move |fault| (BlobPlace::Type(id), Reason::Field(fault));
    let mut records = Vec::new();
    for ty in btf.types().filter(|ty| ty.kind() == Kind::Struct) {
        let mut members = ty.as_composite().into_iter().flat_map(|of| of.members());
        if members.any(|member| marked.binary_search(&member.ty).is_ok()) {
            let id = ty.id();
            let record = FieldRecord::new(&btf, kernel, id, FieldSet::OBJECT).map_err(at(id))?;
            if record.fields().is_empty() {
                return Err(at(id)(FieldFault::None));
            }
            records.push((id, record));
        }
    }
    for (id, record) in &records {
        check_ownership(record, &records).map_err(at(*id))?;
    }
    Ok(())
}

/// True if the blob has a type that makes structures candidates: a special one, or a tag.
fn may_have_fields(blob: &Blob<'_>) -> bool {
    let records = (1..blob.starts.len() as u32).map(|id| blob.record_or_void(TypeId(id)));
    let mut candidates = records.filter(|record| match record.kind_or_void() {
        Kind::TypeTag => true,
        Kind::Struct => {
            let name = blob.string(record.name).unwrap_or_default();
            MARKS.iter().any(|mark| name == *mark.name())
        }
        _ => false,
    });
    candidates.next().is_some()
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

/// Checks that an owned type does not own types that own others
/// (`btf_check_and_fixup_fields`).
fn check_ownership(
    record: &FieldRecord,
    records: &[(TypeId, FieldRecord)],
) -> Result<(), FieldFault> {
    let is_owned = record.fields().iter().any(|field| field.kind.is_node());
    for root in record.fields().iter().filter(|field| field.kind.is_root()) {
        let (_, contents) = records
            .iter()
            .find(|(id, _)| *id == root.target)
            .ok_or(FieldFault::ContainsPlain)?;
        if is_owned && contents.fields().iter().any(|field| field.kind.is_root()) {
            return Err(FieldFault::OwnershipLoop);
        }
    }
    Ok(())
}
