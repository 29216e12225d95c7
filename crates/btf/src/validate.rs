//! Validation of BTF as in Linux's BPF_BTF_LOAD, rule by rule and in its order, since the
//! first violated rule, the error number and the log are part of the answer.
//!
//! libbpf completes BTF before loading it (sizes of DATASECs, for example), so BTF of a
//! compiler may be refused. The rules are those of Linux 6.18; tests of `testkit` compare
//! them with the running kernel on generated and damaged blobs.

mod blob;
mod fields;
mod log;
mod members;
mod reason;
mod records;
mod references;
mod tags;

pub use crate::fields::FieldFault;
pub use log::kernel_log;
pub use reason::{BlobPlace, Pass, Reason, Refusal};

use crate::Btf;
use blob::Blob;

/// Validates a blob as the kernel with this BTF. Without it, pointers to kernel
/// structures without destructor are not recognised.
pub fn validate(bytes: &[u8], kernel: Option<&Btf<'_>>) -> Result<(), Refusal> {
    let mut blob = Blob::open(bytes)?;
    records::check_records(&mut blob)?;
    references::check_references(&blob)?;
    tags::check_tags(&blob).map_err(|reason| Refusal {
        pass: Pass::Tags,
        place: BlobPlace::Blob,
        reason,
    })?;
    fields::check_fields(&blob, kernel).map_err(|(place, reason)| Refusal {
        pass: Pass::Fields,
        place,
        reason,
    })
}
