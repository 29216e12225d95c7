//! Maps beside the kernel's: one list of operations on both.
//!
//! [`compare_creation`] creates maps of random parameters; [`compare_operations`] replays
//! random operations of bpf(2) on a map of each kind, and compares result, error number and
//! value of each, and at the end all contents; [`compare_eviction`] compares which keys LRU maps
//! keep; [`compare_definitions`] loads programs that use maps of random definitions with types.

mod definitions;
mod descriptors;
mod eviction;
mod generate;
mod objects;
mod replay;

use std::fmt;
use std::panic::resume_unwind;
use std::thread;

use spec::Errno;
use spec::maps::MapKind;

pub use definitions::compare_definitions;
pub use eviction::compare_eviction;
pub use generate::{KINDS, NOT_MADE, Shape, WITHOUT_ELEMENTS};
pub use replay::{compare_creation, compare_operations};

/// A result that differs from the kernel's.
#[derive(Clone, Debug)]
pub struct MapDifference {
    /// Seed of the list of operations.
    pub seed: u64,
    /// The map.
    pub shape: Shape,
    /// The operation, with its number in the list.
    pub operation: String,
    /// The kernel's result.
    pub kernel: String,
    /// Ours.
    pub ours: String,
}

impl fmt::Display for MapDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}, {}: {}\n  kernel {}\n  ours   {}",
            self.seed, self.shape, self.operation, self.kernel, self.ours
        )
    }
}

/// Counts of a comparison.
#[derive(Clone, Debug, Default)]
pub struct MapComparison {
    /// Operations.
    pub operations: u64,
    /// Operations that succeeded in the kernel.
    pub successes: u64,
    /// Differences.
    pub differences: Vec<MapDifference>,
}

/// Compares on a thread that can stay on a CPU.
fn on_own_thread(
    compare: impl FnOnce() -> Result<MapComparison, Errno> + Send,
) -> Result<MapComparison, Errno> {
    thread::scope(|scope| match scope.spawn(compare).join() {
        Ok(comparison) => comparison,
        Err(panic) => resume_unwind(panic),
    })
}

/// Name of a kind in reports.
fn name(kind: MapKind) -> &'static str {
    kind.name()
}

/// A kernel's error number as ours.
fn errno(errno: sys::Errno) -> Errno {
    Errno(errno.0)
}
