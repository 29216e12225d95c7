//! Special fields of the structures of a program (`btf_parse_struct_metas`). The kernel
//! refuses the blob without a log message if they are invalid.

use super::blob::Blob;
use super::reason::{BlobPlace, Reason};
use crate::fields::{MARKS, StructureFields};
use crate::write::write_blob;
use crate::{Btf, Kind, TypeId};

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
    match StructureFields::new(&btf, kernel) {
        Ok(_) => Ok(()),
        Err((id, fault)) => Err((BlobPlace::Type(id), Reason::Field(fault))),
    }
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
