//! Files of results.

use std::path::Path;

use report::veristat::{self, VeristatError};

use crate::answer::Failure;
use crate::input::read_at_most;

/// Bytes of the largest file of results.
const LARGEST: u64 = 32 << 20;

/// Reads results that this command or veristat wrote.
pub(super) fn read_csv(path: &Path) -> Result<Vec<veristat::ResultRow>, Failure> {
    let bytes = read_at_most(path, LARGEST)?;
    let rows = veristat::read_csv(&String::from_utf8_lossy(&bytes));
    rows.map_err(|error| failure(&error).within(path.display()))
}

/// The failure for a filter, a column or a file of results, with a remedy.
pub(super) fn failure(error: &VeristatError) -> Failure {
    let failure = Failure::new(error);
    match error.form() {
        Some(form) => failure.hint(form),
        None => failure,
    }
}
