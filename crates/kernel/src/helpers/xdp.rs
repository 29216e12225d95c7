//! Helpers of XDP that change the bounds of a packet or access all of its bytes.

use spec::{Errno, Result};
use vm::{MemoryPort, PacketBuffer};

use super::EFAULT;
use super::bytes::Bytes;
use super::map::status;
use crate::call::{Call, Return, fail_if};
use crate::programs::{LINK_HEADER, XDP_FRAME, is_wrong_metadata};

/// Largest offset and length of an access.
const MOST: u64 = 0xffff;

/// Bytes of a fragment's memory.
const FRAGMENT: usize = 4096;

/// `int bpf_xdp_adjust_head(xdp_md, int delta)`: moves the start of the packet; `-EINVAL` if
/// there is no room, or less than a link-layer header remains.
pub(super) fn xdp_adjust_head<M: MemoryPort>(
    Call([context, delta, ..], memory, _): Call<M>,
) -> Return<M> {
    let delta = delta as i32 as isize;
    memory.change_packet(context, |packet| {
        let least = XDP_FRAME + packet.metadata_len();
        let start = packet.start().checked_add_signed(delta);
        let start = start.filter(|start| *start >= least && start + LINK_HEADER <= packet.end());
        let Some(start) = start else {
            return Errno::EINVAL.negated();
        };
        packet.move_start(start);
        0
    })
}

/// `int bpf_xdp_adjust_meta(xdp_md, int delta)`: moves the start of the metadata; `-EINVAL`
/// if there is no room, `-EACCES` for a length of metadata that is no multiple of 4 or above
/// 255.
pub(super) fn xdp_adjust_meta<M: MemoryPort>(
    Call([context, delta, ..], memory, _): Call<M>,
) -> Return<M> {
    let delta = delta as i32 as isize;
    memory.change_packet(context, |packet| {
        let (start, end) = (packet.start(), packet.end());
        let meta = (start - packet.metadata_len()).checked_add_signed(delta);
        match meta.filter(|meta| (XDP_FRAME..=start).contains(meta)) {
            None => Errno::EINVAL.negated(),
            Some(meta) if is_wrong_metadata(start - meta) => Errno::EACCES.negated(),
            Some(meta) => {
                packet.set_bounds(meta, start, end);
                0
            }
        }
    })
}

/// `int bpf_xdp_adjust_tail(xdp_md, int delta)`: moves the end of the packet; `-EINVAL` if
/// there is no room, or less than a link-layer header remains. New bytes are zero.
pub(super) fn xdp_adjust_tail<M: MemoryPort>(
    Call([context, delta, ..], memory, _): Call<M>,
) -> Return<M> {
    let delta = delta as i32;
    memory.change_packet(context, |packet| {
        let count = delta.unsigned_abs() as usize;
        let result = match (packet.fragments(), delta >= 0) {
            (0, _) => adjust_linear(packet, delta),
            (_, true) => grow_fragments(packet, count),
            (_, false) => shrink_fragments(packet, count),
        };
        status(result)
    })
}

fn adjust_linear(packet: &mut PacketBuffer, delta: i32) -> Result {
    let len = packet.linear_len().checked_add_signed(delta as isize);
    let len = len.filter(|len| *len >= LINK_HEADER && packet.start() + len <= packet.capacity());
    packet.set_linear_len(len.ok_or(Errno::EINVAL)?);
    Ok(())
}

fn grow_fragments(packet: &mut PacketBuffer, count: usize) -> Result {
    let last = packet.last_fragment().ok_or(Errno::EINVAL)?;
    Errno::EINVAL.when(count > FRAGMENT - last.len())?;
    last.resize(last.len() + count, 0);
    Ok(())
}

fn shrink_fragments(packet: &mut PacketBuffer, count: usize) -> Result {
    Errno::EINVAL.when(count + LINK_HEADER > packet.len())?;
    let mut rest = count;
    while let Some(last) = packet.last_fragment() {
        if rest < last.len() {
            last.truncate(last.len() - rest);
            return Ok(());
        }
        rest -= last.len();
        packet.drop_last_fragment();
    }
    let len = packet.linear_len() - rest;
    packet.set_linear_len(len);
    Ok(())
}

/// `u64 bpf_xdp_get_buff_len(xdp_md)`: bytes of the packet with its fragments.
pub(super) fn xdp_get_buff_len<M: MemoryPort>(
    Call([context, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(memory.packet(context)?.len() as u64)
}

/// `int bpf_xdp_load_bytes(xdp_md, u32 offset, void *to, u32 len)`: `-EINVAL` if the packet
/// ends before, `-EFAULT` for numbers above 65,535.
pub(super) fn xdp_load_bytes<M: MemoryPort>(
    Call([context, offset, to, len, _], memory, _): Call<M>,
) -> Return<M> {
    let (offset, len) = (u64::from(offset as u32), u64::from(len as u32));
    if offset > MOST || len > MOST {
        return Ok(EFAULT);
    }
    let mut bytes = Bytes::zeroed(len as usize);
    fail_if!(!memory.packet(context)?.read(offset as usize, bytes.get_mut()) => Errno::EINVAL);
    memory.write(to, bytes.get())?;
    Ok(0)
}

/// `int bpf_xdp_store_bytes(xdp_md, u32 offset, const void *from, u32 len)`: as
/// [`xdp_load_bytes`].
pub(super) fn xdp_store_bytes<M: MemoryPort>(
    Call([context, offset, from, len, _], memory, _): Call<M>,
) -> Return<M> {
    let (offset, len) = (u64::from(offset as u32), u64::from(len as u32));
    if offset > MOST || len > MOST {
        return Ok(EFAULT);
    }
    let bytes = Bytes::read(memory, from, len as usize)?;
    let is_stored =
        memory.change_packet(context, |packet| packet.write(offset as usize, bytes.get()))?;
    Ok(match is_stored {
        true => 0,
        false => Errno::EINVAL.negated(),
    })
}
