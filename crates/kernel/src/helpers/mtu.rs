//! `bpf_check_mtu`: whether a packet fits through an interface.

use spec::Errno;
use vm::{MemoryPort, System, XDP};

use super::skb::get;
use crate::call::{Call, Return, fail_if};
use crate::programs::LINK_HEADER;
use crate::programs::field::{GSO_SIZE, IFINDEX};

/// Check the segments of a packet (`BPF_MTU_CHK_SEGS`).
const SEGMENTS: u64 = 1;
/// The packet is too long (`BPF_MTU_CHK_RET_FRAG_NEEDED`).
const TOO_LONG: u64 = 1;
/// Its segments are too long (`BPF_MTU_CHK_RET_SEGS_TOOBIG`).
const SEGMENTS_TOO_LONG: u64 = 2;

/// `long bpf_check_mtu(ctx, u32 ifindex, u32 *len, s32 difference, u64 flags)`: 0 if the
/// packet, or one of so many bytes behind the link-layer header, changed by the difference
/// fits; the interface's limit is written in place of the length. Interface 0 is the
/// packet's. `-EINVAL` for flags, `-ENODEV` without the interface.
pub(super) fn check_mtu<M: MemoryPort>(
    Call([context, index, len_at, difference, flags], memory, cx): Call<M>,
) -> Return<M> {
    let mut bytes = [0; 4];
    memory.read(len_at, &mut bytes)?;
    let given = u32::from_le_bytes(bytes);
    let packet = memory.packet(context)?;
    let is_xdp = packet.context() == XDP;
    // Fragments do not count.
    let packet_len = packet.linear_len() as i32;
    let difference = difference as i32;
    let is_wrong = match is_xdp {
        true => flags != 0,
        false => flags & !SEGMENTS != 0 || flags != 0 && (difference != 0 || given != 0),
    };
    fail_if!(is_wrong => Errno::EINVAL);
    let index = match (index as u32, is_xdp) {
        (0, true) => System::LOOPBACK,
        (0, false) => get(memory, context, IFINDEX)?,
        (index, _) => index,
    };
    let Some(interface) = cx.system.network.device(index) else {
        return Ok(Errno::ENODEV.negated());
    };
    let header = LINK_HEADER as i32;
    let most = (interface.mtu as i32).wrapping_add(header);
    let len = match given {
        0 => packet_len,
        given => (given as i32).wrapping_add(header),
    };
    let result = if len.wrapping_add(difference) <= most {
        0
    } else if !is_xdp && get(memory, context, GSO_SIZE)? as u16 != 0 {
        let segment = get(memory, context, GSO_SIZE)?;
        match flags & SEGMENTS != 0 && segment > interface.mtu {
            true => SEGMENTS_TOO_LONG,
            false => 0,
        }
    } else {
        TOO_LONG
    };
    memory.write(len_at, &interface.mtu.to_le_bytes())?;
    Ok(result)
}
