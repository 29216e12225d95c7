//! Helpers that take and free the spin lock in the value of a map.

use vm::{MemoryPort, RunContext};

/// `long bpf_spin_lock(struct bpf_spin_lock *lock)`: 0, when the lock is free.
pub(super) fn spin_lock<M: MemoryPort>(
    [lock, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    memory.lock(lock)?;
    Ok(0)
}

/// `long bpf_spin_unlock(struct bpf_spin_lock *lock)`: 0.
pub(super) fn spin_unlock<M: MemoryPort>(
    [lock, ..]: [u64; 5],
    memory: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    memory.unlock(lock)?;
    Ok(0)
}
