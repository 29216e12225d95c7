//! Helpers that take and free the spin lock in the value of a map.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `long bpf_spin_lock(struct bpf_spin_lock *lock)`: 0, when the lock is free.
pub(super) fn spin_lock<M: MemoryPort>(Call([lock, ..], memory, _): Call<M>) -> Return<M> {
    memory.lock(lock)?;
    Ok(0)
}

/// `long bpf_spin_unlock(struct bpf_spin_lock *lock)`: 0.
pub(super) fn spin_unlock<M: MemoryPort>(Call([lock, ..], memory, _): Call<M>) -> Return<M> {
    memory.unlock(lock)?;
    Ok(0)
}
