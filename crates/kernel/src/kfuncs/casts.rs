//! Casts: another type for the verifier, the same pointer for a run.

use vm::network::{SocketPart, Sockets};
use vm::{MemoryPort, RunContext};

/// `void *bpf_rdonly_cast(const void *obj__ign, u32 btf_id__k)`: the pointer; of a socket that to
/// the structure that the kernel declares.
pub(super) fn rdonly_cast<M: MemoryPort>(
    [pointer, ..]: [u64; 5],
    memory: &mut M,
    cx: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    let sockets = &cx.system.network.sockets;
    let start = memory.sockets(sockets);
    Ok(match sockets.number_of(start, pointer) {
        Some(number) => Sockets::pointer(start, number, SocketPart::Kernel),
        None => pointer,
    })
}

/// `void *bpf_cast_to_kern_ctx(void *obj)`: the context.
pub(super) fn cast_to_kern_ctx<M: MemoryPort>(
    [context, ..]: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(context)
}
