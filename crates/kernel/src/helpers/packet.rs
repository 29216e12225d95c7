//! Helpers that read and write bytes of packets.

use spec::Errno;
use vm::{MemoryPort, World};

use super::EFAULT;

/// Offsets are from the link-layer header (`BPF_HDR_START_MAC`).
const FROM_LINK: u32 = 0;
/// Offsets are from the network header (`BPF_HDR_START_NET`).
const FROM_NETWORK: u32 = 1;

/// Bytes of the link-layer header.
const LINK_HEADER: u64 = 14;

/// Flags of a store: adjust the packet's checksum, forget its hash.
const STORE_FLAGS: u64 = 3;

/// `long bpf_skb_load_bytes(skb, u32 offset, void *to, u32 len)`: 0, or `-EFAULT` and
/// zeroed bytes if the packet ends before.
pub(super) fn skb_load_bytes<M: MemoryPort>(
    [context, offset, to, len, _]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    let offset = Some(u64::from(offset as u32)).filter(|offset| *offset <= i32::MAX as u64);
    load(memory, context, offset, to, len as u32)
}

/// `long bpf_skb_load_bytes_relative(skb, u32 offset, void *to, u32 len, u32 start_header)`:
/// as [`skb_load_bytes`], from the start of a header.
pub(super) fn skb_load_bytes_relative<M: MemoryPort>(
    [context, offset, to, len, start]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    let offset = Some(u64::from(offset as u32)).filter(|offset| *offset <= 0xffff);
    let offset = match start as u32 {
        FROM_LINK => offset,
        FROM_NETWORK => offset.map(|offset| offset + LINK_HEADER),
        _ => None,
    };
    load(memory, context, offset, to, len as u32)
}

/// Copies bytes out of a packet. Beyond its end or without an offset, they are zero and the
/// result is `-EFAULT`.
fn load<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    offset: Option<u64>,
    to: u64,
    len: u32,
) -> Result<u64, M::Fault> {
    let (data, packet_len) = memory.packet(context)?;
    let mut bytes = vec![0; len as usize];
    let inside = offset.filter(|offset| offset + u64::from(len) <= packet_len);
    if let Some(offset) = inside {
        memory.read(data + offset, &mut bytes)?;
    }
    memory.write(to, &bytes)?;
    Ok(if inside.is_some() { 0 } else { EFAULT })
}

/// `long bpf_skb_store_bytes(skb, u32 offset, const void *from, u32 len, u64 flags)`: 0,
/// `-EFAULT` if the packet ends before, `-EINVAL` for unknown flags.
pub(super) fn skb_store_bytes<M: MemoryPort>(
    [context, offset, from, len, flags]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    if flags & !STORE_FLAGS != 0 {
        return Ok(Errno::EINVAL.negated());
    }
    let (offset, len) = (offset as u32, len as u32);
    let (data, packet_len) = memory.packet(context)?;
    if offset > i32::MAX as u32 || u64::from(offset) + u64::from(len) > packet_len {
        return Ok(EFAULT);
    }
    let mut bytes = vec![0; len as usize];
    memory.read(from, &mut bytes)?;
    memory.write(data + u64::from(offset), &bytes)?;
    Ok(0)
}
