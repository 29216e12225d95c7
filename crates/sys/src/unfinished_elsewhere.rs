//! Files that are removed when a signal ends the process, on systems without the signals of Unix:
//! there they stay.

use std::path::Path;

use crate::Errno;

/// A file of the process that stays if the process is ended.
#[derive(Debug)]
pub struct RemovedOnSignal(());

impl RemovedOnSignal {
    /// For the file of this path.
    ///
    /// # Errors
    /// None here.
    pub fn new(_: &Path) -> Result<RemovedOnSignal, Errno> {
        Ok(RemovedOnSignal(()))
    }
}
