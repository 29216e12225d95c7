//! Casts: another type for the verifier, the same pointer for a run.

use vm::{MemoryPort, RunContext};

/// `void *bpf_rdonly_cast(const void *obj__ign, u32 btf_id__k)`: the pointer.
pub(super) fn rdonly_cast<M: MemoryPort>(
    [pointer, ..]: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(pointer)
}

/// `void *bpf_cast_to_kern_ctx(void *obj)`: the context.
pub(super) fn cast_to_kern_ctx<M: MemoryPort>(
    [context, ..]: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(context)
}
