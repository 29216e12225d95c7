//! Helpers that hand records to the host through ring buffers.

use spec::Errno;
use vm::MemoryPort;

use super::bytes::Bytes;
use crate::call::{Call, Return};

/// `long bpf_ringbuf_output(map, void *data, u64 size, u64 flags)`: 0, `-EAGAIN` if there
/// is no room, `-EINVAL` for unknown flags.
pub(super) fn ringbuf_output<M: MemoryPort>(
    Call([map, data, size, flags, _], memory, _): Call<M>,
) -> Return<M> {
    let ring = memory.map(map)?;
    let Some(mut bytes) = Bytes::try_zeroed(size as usize) else {
        return Ok(Errno::EAGAIN.negated());
    };
    memory.read(data, bytes.get_mut())?;
    Ok(super::map::status(
        ring.operations().output(bytes.get(), flags),
    ))
}

/// `u64 bpf_ringbuf_query(map, u64 flags)`: bytes that wait, size, position of the host or
/// of programs.
pub(super) fn ringbuf_query<M: MemoryPort>(Call([map, what, ..], memory, _): Call<M>) -> Return<M> {
    Ok(memory.map(map)?.operations().query(what))
}

/// `void *bpf_ringbuf_reserve(map, u64 size, u64 flags)`: the address of a new record, or
/// null if there is no room, the size is too large or there are flags.
pub(super) fn ringbuf_reserve<M: MemoryPort>(
    Call([map, size, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.reserve(map, size, flags)
}

/// `void bpf_ringbuf_submit(void *record, u64 flags)`: hands the record to the host. The
/// flags say whether to wake it.
pub(super) fn ringbuf_submit<M: MemoryPort>(Call([record, ..], memory, _): Call<M>) -> Return<M> {
    memory.submit(record, false)?;
    Ok(0)
}

/// `void bpf_ringbuf_discard(void *record, u64 flags)`: the host skips the record.
pub(super) fn ringbuf_discard<M: MemoryPort>(Call([record, ..], memory, _): Call<M>) -> Return<M> {
    memory.submit(record, true)?;
    Ok(0)
}
