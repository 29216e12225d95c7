//! Sections that the verifier pairs: a run here is neither preempted nor waits for others, so
//! that entering and leaving them does nothing.

use vm::MemoryPort;

use crate::call::{Call, Return};

/// `void bpf_rcu_read_lock(void)`.
pub(super) fn rcu_read_lock<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `void bpf_rcu_read_unlock(void)`.
pub(super) fn rcu_read_unlock<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `void bpf_preempt_disable(void)`.
pub(super) fn preempt_disable<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `void bpf_preempt_enable(void)`.
pub(super) fn preempt_enable<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}
