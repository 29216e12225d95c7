//! Casts: another type for the verifier, the same pointer for a run.

use vm::MemoryPort;
use vm::network::{SocketPart, Sockets};

use crate::call::{Call, Return};

/// `void *bpf_rdonly_cast(const void *obj__ign, u32 btf_id__k)`: the pointer; of a socket that to
/// the structure that the kernel declares.
pub(super) fn rdonly_cast<M: MemoryPort>(Call([pointer, ..], memory, cx): Call<M>) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    let start = memory.sockets(sockets);
    Ok(match sockets.number_of(start, pointer) {
        Some(number) => Sockets::pointer(start, number, SocketPart::Kernel),
        None => pointer,
    })
}

/// `void *bpf_cast_to_kern_ctx(void *obj)`: the context.
pub(super) fn cast_to_kern_ctx<M: MemoryPort>(Call([context, ..], _, _): Call<M>) -> Return<M> {
    Ok(context)
}
