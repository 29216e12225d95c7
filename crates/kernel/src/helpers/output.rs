//! Helpers that hand records to the host: ring buffers and perf buffers.

use spec::Errno;
use vm::{MemoryPort, World};

use super::number;

pub(super) const RINGBUF_OUTPUT: i32 = number("bpf_ringbuf_output");
pub(super) const RINGBUF_QUERY: i32 = number("bpf_ringbuf_query");

/// `long bpf_ringbuf_output(map, void *data, u64 size, u64 flags)`: 0, `-EAGAIN` if there
/// is no room, `-EINVAL` for unknown flags.
pub(super) fn ringbuf_output<M: MemoryPort>(
    [map, data, size, flags, _]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    let ring = memory.map(map)?;
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(size as usize).is_err() {
        return Ok(Errno::EAGAIN.negated());
    }
    bytes.resize(size as usize, 0);
    memory.read(data, &mut bytes)?;
    Ok(super::map::status(ring.output(&bytes, flags)))
}

/// `u64 bpf_ringbuf_query(map, u64 flags)`: bytes that wait, size, position of the host or
/// of programs.
pub(super) fn ringbuf_query<M: MemoryPort>(
    [map, what, ..]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    Ok(memory.map(map)?.query(what))
}
