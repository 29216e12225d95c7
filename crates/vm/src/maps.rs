//! Maps as programs reach them, the memory of values, and what values hold.

mod arena_object;
mod cell_groups;
mod cells;
pub(crate) mod lock;
mod map_object;
mod map_operations;
mod timers;

pub use arena_object::{ARENA_PAGE, ArenaObject, arena_address, arena_user_address};
pub use cell_groups::{CellGroup, CellGroups};
pub use cells::{CELL_BYTES, CellAddress, CellSlice, Cells, LINE_CELLS, OutOfMemory};
pub use lock::LockedValue;
pub use map_object::{MapAttributes, MapHandle, MapObject};
pub use map_operations::{MapOperations, Samples, SamplesReader, ValueOf};
pub use timers::{Callback, FiredTimer, TimerClock, Timers};
