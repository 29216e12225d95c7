//! Reads of stack memory that a program never wrote, on standard error.

use beebox::internal::run::UnwrittenRead;

/// Says of each program that it makes such a read.
pub(super) fn note(reads: &[UnwrittenRead]) {
    for read in reads {
        diagnostic!("beebox: {read}");
    }
    if reads.iter().any(|read| !read.is_certain) {
        diagnostic!("  try: --engine checked, which notices whether a run makes the read");
    }
}
