//! Legacy packet loads (RFC 9669 section 5.5): values in network byte order; a load
//! outside the packet ends the program.

use packet::Packet;

use crate::{Direct, MemoryPort, RunContext};

/// The meaning of packet loads whose offset lies outside the packet's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRules {
    /// Offsets are unsigned and do not wrap (libpcap).
    Capture,
    /// Offsets wrap at 32 bits; negative ones count from the network or the
    /// link-layer header (Linux).
    Kernel,
}

/// Loads `N` bytes (1, 2 or 4) at `offset` of `len` bytes at `data`, in network byte
/// order; `None` if they lie outside, where [`load_packet_outside`] decides.
///
/// # Safety
/// `data` is readable for `len` bytes.
#[inline(always)]
pub unsafe fn load_packet<const N: usize>(data: *const u8, len: usize, offset: u64) -> Option<u32> {
    // An offset is at most 2^33, so the sum cannot overflow.
    if offset + N as u64 > len as u64 {
        return None;
    }
    // SAFETY: `offset + N <= len`, and the caller upholds that `len` bytes are
    // readable.
    unsafe {
        let at = data.add(offset as usize);
        Some(match N {
            1 => u32::from(at.read()),
            2 => u32::from(u16::from_be(at.cast::<u16>().read_unaligned())),
            _ => u32::from_be(at.cast::<u32>().read_unaligned()),
        })
    }
}

/// Completes a packet load whose `offset` (an index register plus a constant, each 32
/// bits, unsigned) lies outside the data; `None` ends the program.
#[cold]
pub fn load_packet_outside(
    packet: &Packet<'_>,
    rules: PacketRules,
    offset: u64,
    size: u32,
) -> Option<u32> {
    if rules == PacketRules::Capture {
        return None;
    }
    (packet.bytes_at_offset(offset as i32, size as usize)).map(in_network_order)
}

/// The number of up to 4 bytes in network byte order.
fn in_network_order(bytes: &[u8]) -> u32 {
    let append = |value, &byte: &u8| value << 8 | u32::from(byte);
    bytes.iter().fold(0, append)
}

/// The value of [`load_from_packet`] outside the packet, in all 64 bits.
pub const OUTSIDE_PACKET: u64 = u64::MAX;

/// Called by native code of verified programs: loads `size` bytes at an offset of the linear
/// part of the packet that a context carries, or of its headers in front, as Linux does, or
/// [`OUTSIDE_PACKET`].
///
/// # Safety
/// As for [`Call`](crate::Call): the context is that of a verified program.
pub unsafe extern "C" fn load_from_packet(
    context: u64,
    offset: u64,
    size: u64,
    _: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    // SAFETY: guard and maps outlive the call, and the context is that of a verified program.
    let memory = unsafe { Direct::new(cx) };
    let Ok(packet) = memory.packet(context);
    // The offset is 32 bits; the packet decides about all, those inside as well.
    let bytes = packet.bytes_at_offset(offset as i32, size as usize);
    bytes.map_or(OUTSIDE_PACKET, |bytes| in_network_order(bytes).into())
}
