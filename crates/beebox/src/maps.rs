//! The maps of programs that run: elements, batches, ring buffers, and what holds other
//! objects.

pub use ::kernel::maps::{
    Batch, Cgroup, Host, LocalStorage, LookupBatch, Map, NoResources, Operations, PerfBuffer,
    ProgramClass, Record, Resources, Ring, RunGuard, Socket, SocketKind, StoredMap, StoredProgram,
    UserRing, UserSample, UserSamples, ValueLayout,
};
pub use vm::{
    CELL_BYTES, CellAddress, CellGroup, CellSlice, Cells, DirectAccess, Elements, MapFunction,
    MapHandle, MapObject, OutOfMemory, RecordOutput, WordLookup,
};
