//! How long entries of maps that are gone stay in memory.

use std::fmt;

use crossbeam_epoch::Guard;

/// A run of a program, or of an operation of the host: while it exists, no entry is
/// recycled that was reachable when it began, where the kind of map promises that (Linux's
/// RCU read-side critical section).
pub struct RunGuard(Guard);

impl RunGuard {
    /// A guard of the current thread.
    pub fn new() -> RunGuard {
        RunGuard(crossbeam_epoch::pin())
    }

    /// Calls the function when all guards that exist now are dropped.
    pub fn defer(&self, recycle: impl FnOnce() + Send + 'static) {
        self.0.defer(recycle);
    }
}

impl Default for RunGuard {
    fn default() -> RunGuard {
        RunGuard::new()
    }
}

impl fmt::Debug for RunGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunGuard")
    }
}
