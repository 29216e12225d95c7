//! `bpf_perf_event_output`: records for the host in perf buffers.

use spec::Errno;
use vm::MemoryPort;

use super::EFAULT;
use super::bytes::Bytes;
use super::map::status;
use crate::call::{Call, Return, fail_if};

/// Bits of the flags that name the buffer; all of them: the one of this CPU.
const INDEX: u64 = 0xffff_ffff;
/// Bits of the flags that count bytes of the packet (`BPF_F_CTXLEN_MASK`).
const PACKET_BYTES: u64 = 0xf_ffff << 32;

/// `long bpf_perf_event_output(ctx, map, u64 flags, void *data, u64 size)`: writes the data,
/// and as many bytes of the packet as the flags say. `-EINVAL` for unknown flags, `-EFAULT`
/// if the packet is shorter, `-E2BIG` and `-ENOENT` if there is no such buffer,
/// `-EOPNOTSUPP` if it is another CPU's, `-ENOSPC` if the record does not fit.
pub(super) fn perf_event_output<M: MemoryPort>(
    Call([context, map, flags, data, size], memory, cx): Call<M>,
) -> Return<M> {
    let has_packet = memory.has_packet(context);
    let known = if has_packet {
        INDEX | PACKET_BYTES
    } else {
        INDEX
    };
    fail_if!(flags & !known != 0 => Errno::EINVAL);
    let mut record = Bytes::read(memory, data, size as usize)?.get().to_vec();
    let packet_bytes = (flags >> 32) as usize;
    if has_packet {
        let mut bytes = Bytes::zeroed(packet_bytes);
        if !memory.packet(context)?.read(0, bytes.get_mut()) {
            return Ok(EFAULT);
        }
        record.extend_from_slice(bytes.get());
    }
    let index = match (flags & INDEX) as u32 {
        u32::MAX => cx.cpu(),
        index => index,
    };
    let map = memory.map(map)?;
    Ok(status(map.operations().perf_output(
        index,
        cx.cpu(),
        &record,
    )))
}
