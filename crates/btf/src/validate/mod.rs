//! What Linux asks of a blob before it takes it (BPF_BTF_LOAD), rule by rule and
//! in its order: which rule is broken first is part of the answer, and so are the
//! error number and the log.
//!
//! Compilers leave some of it to the loader (the sizes of sections, say), so a
//! blob fresh from a compiler may be refused. The rules are those of Linux 6.18,
//! which is asked about generated and damaged blobs in the tests of `testkit`.

mod blob;
mod fields;
mod log;
mod members;
mod reason;
mod records;
mod references;
mod tags;

pub use log::kernel_log;
pub use reason::{FieldFault, Pass, Place, Reason, Refusal};

use crate::Btf;
use blob::Blob;

/// Checks a blob as the kernel with this BTF would. Without it, structures that a map
/// may not own, as they have no destructor, are not recognised.
pub fn validate(bytes: &[u8], kernel: Option<&Btf<'_>>) -> Result<(), Refusal> {
    let mut blob = Blob::open(bytes)?;
    records::check_records(&mut blob)?;
    references::check_references(&blob)?;
    tags::check_tags(&blob).map_err(|reason| Refusal {
        pass: Pass::Tags,
        place: Place::Blob,
        reason,
    })?;
    fields::check_fields(&blob, kernel).map_err(|(place, reason)| Refusal {
        pass: Pass::Fields,
        place,
        reason,
    })
}
