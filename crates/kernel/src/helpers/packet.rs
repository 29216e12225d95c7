//! Helpers that read and write bytes of packets.

use spec::{Errno, Result};
use vm::MemoryPort;

use super::bytes::Bytes;
use super::map::status;
use super::{EFAULT, skb};
use crate::call::{Call, Return};

/// Offsets are from the link-layer header (`BPF_HDR_START_MAC`).
const FROM_LINK: u32 = 0;
/// Offsets are from the network header (`BPF_HDR_START_NET`).
const FROM_NETWORK: u32 = 1;

/// Flags of a store: adjust the packet's checksum, forget its hash.
const RECOMPUTE_CSUM: u64 = 1;
const INVALIDATE_HASH: u64 = 2;

/// `long bpf_skb_load_bytes(skb, u32 offset, void *to, u32 len)`: 0, or `-EFAULT` and
/// zeroed bytes if the packet ends before.
pub(super) fn skb_load_bytes<M: MemoryPort>(
    Call([context, offset, to, len, _], memory, _): Call<M>,
) -> Return<M> {
    let mut bytes = Bytes::zeroed(len as u32 as usize);
    let packet = memory.packet(context)?;
    let offset = offset as u32;
    let is_loaded = offset <= i32::MAX as u32
        && packet.context().is_loadable
        && packet.read(offset as usize, bytes.get_mut());
    memory.write(to, bytes.get())?;
    Ok(if is_loaded { 0 } else { EFAULT })
}

/// `long bpf_skb_load_bytes_relative(skb, u32 offset, void *to, u32 len, u32 start_header)`:
/// as [`skb_load_bytes`], from the start of a header.
pub(super) fn skb_load_bytes_relative<M: MemoryPort>(
    Call([context, offset, to, len, start], memory, _): Call<M>,
) -> Return<M> {
    let mut bytes = Bytes::zeroed(len as u32 as usize);
    let packet = memory.packet(context)?;
    let start = match start as u32 {
        FROM_LINK => Some(packet.state.link_header),
        FROM_NETWORK => Some(packet.state.network_header),
        _ => None,
    };
    let offset = offset as u32 as usize;
    let found = start.filter(|_| offset <= 0xffff).and_then(|start| {
        let first = start + offset;
        packet.up_to_end().get(first..first + bytes.get().len())
    });
    if let Some(found) = found {
        bytes.get_mut().copy_from_slice(found);
    }
    let is_loaded = found.is_some();
    memory.write(to, bytes.get())?;
    Ok(if is_loaded { 0 } else { EFAULT })
}

/// `long bpf_skb_store_bytes(skb, u32 offset, const void *from, u32 len, u64 flags)`: 0,
/// `-EFAULT` if the packet ends before, `-EINVAL` for unknown flags.
pub(super) fn skb_store_bytes<M: MemoryPort>(
    Call([context, offset, from, len, flags], memory, _): Call<M>,
) -> Return<M> {
    let bytes = Bytes::read(memory, from, len as u32 as usize)?;
    let stored = store_bytes(
        memory,
        context,
        u64::from(offset as u32),
        bytes.get(),
        flags,
    )?;
    Ok(status(stored))
}

/// Writes bytes of a packet: `-EFAULT` if it ends before, `-EINVAL` for unknown flags.
pub(crate) fn store_bytes<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    offset: u64,
    bytes: &[u8],
    flags: u64,
) -> Result<Result, M::Fault> {
    if flags & !(RECOMPUTE_CSUM | INVALIDATE_HASH) != 0 {
        return Ok(Err(Errno::EINVAL));
    }
    let is_stored = offset <= i32::MAX as u64
        && memory.change_packet(context, |packet| packet.write(offset as usize, bytes))?;
    if !is_stored {
        return Ok(Err(Errno::EFAULT));
    }
    if flags & INVALIDATE_HASH != 0 {
        skb::clear_hash(memory, context)?;
    }
    Ok(Ok(()))
}
