//! Helpers that read packets.

use vm::{MemoryPort, World};

use super::{EFAULT, number};

pub(super) const SKB_LOAD_BYTES: i32 = number("bpf_skb_load_bytes");

/// `long bpf_skb_load_bytes(skb, u32 offset, void *to, u32 len)`: 0, or `-EFAULT` and
/// zeroed bytes if the packet ends before.
pub(super) fn skb_load_bytes<M: MemoryPort>(
    [context, offset, to, len, _]: [u64; 5],
    memory: &mut M,
    _: &mut World<'_>,
) -> Result<u64, M::Fault> {
    let (offset, len) = (offset as u32, len as u32);
    let (data, packet_len) = memory.packet(context)?;
    let mut bytes = vec![0; len as usize];
    let is_inside = offset <= i32::MAX as u32 && u64::from(offset) + u64::from(len) <= packet_len;
    if is_inside {
        memory.read(data + u64::from(offset), &mut bytes)?;
    }
    memory.write(to, &bytes)?;
    Ok(if is_inside { 0 } else { EFAULT })
}
