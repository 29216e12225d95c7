//! Chains and trees of programs that call each other through one program array, in the
//! checked engine, as native code and in the running kernel.
//!
//! Every program leaves a trace of what ran in a counter, so that equal counters mean equal
//! sequences of programs and functions.
//!
//! # Modules
//!
//! Generated chains of programs that call each other (`generate.rs`) in both engines (`engines.rs`)
//! and in the kernel (`in_kernel.rs`), and what the kernel's own tests of tail calls do and expect
//! (`selftests.rs`).

mod engines;
mod generate;
mod in_kernel;
pub mod selftests;
mod stress;

pub use engines::{Checked, Direct};
pub use generate::{Code, counting_program, generate, link};
pub use in_kernel::InKernel;
pub use stress::{Stress, Tally, stress};

use program::MapParams;
use spec::maps::MapKind;

/// Programs of a generated chain.
pub const PROGRAMS: u32 = 5;
/// Slots of its array.
pub const SLOTS: u32 = PROGRAMS + 2;

/// Indices of the maps: the program array, and an array of one counter.
const ARRAY: u32 = 0;
const COUNTER: u32 = 1;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The low 32 bits of `r0`.
    pub retval: u32,
    /// The counter, which goes on from run to run.
    pub counter: u64,
}

fn maps() -> [MapParams; 2] {
    let map = |kind: MapKind, value_size, max_entries| MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size,
        max_entries,
        ..MapParams::default()
    };
    [map(MapKind::ProgArray, 4, SLOTS), map(MapKind::Array, 8, 1)]
}
