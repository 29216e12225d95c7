//! The maps of programs that run: elements, batches, ring buffers, and what holds other
//! objects.

pub use ::kernel::maps::{
    Batch, Cgroup, Entries, Host, LocalStorage, LookupBatch, Map, MapMemory, NoResources,
    PerfBuffer, ProgramClass, Resources, Ring, RunGuard, Socket, SocketKind, StoredMap,
    StoredProgram, SyscallOperations, UserRing, UserSample, UserSamples, ValueLayout,
};

pub use vm::{
    ArenaObject, CELL_BYTES, Call, CallBlock, Callback, CellAddress, CellGroup, CellGroups,
    CellSlice, Cells, ContextKind, Cursor, DirectAccess, Elements, FiredTimer, HashLookup,
    HashParts, Iteration, IterationStep, MapAttributes, MapFunction, MapHandle, MapObject,
    MapOperations, MemoryPort, OutOfMemory, RecordOutput, Samples, SamplesReader, TailTable,
    TailTableError, TailTarget, TimerClock, Timers, ValueOf, WordLookup,
};
