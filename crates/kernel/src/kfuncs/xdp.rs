//! `bpf_xdp_pull_data`: bytes of fragments become linear.

use spec::Errno;
use vm::MemoryPort;

use super::int;
use crate::call::{Call, Return};
use crate::programs::XDP_FRAME;

/// `int bpf_xdp_pull_data(xdp_md, u32 len)`: makes at least so many bytes linear, for which
/// the packet moves into the room in front if there is too little behind it; `-EINVAL` if the
/// packet is shorter, or both rooms are too small.
pub(super) fn xdp_pull_data<M: MemoryPort>(
    Call([context, len, ..], memory, _): Call<M>,
) -> Return<M> {
    let len = len as u32 as usize;
    memory.change_packet(context, |packet| {
        let Some(missing) = len
            .checked_sub(packet.linear_len())
            .filter(|count| *count != 0)
        else {
            return 0;
        };
        // The packet of another context has no frame in front.
        let before = packet.metadata_len() + XDP_FRAME;
        let headroom = packet.start().saturating_sub(before);
        let tailroom = packet.capacity() - packet.end();
        if len > packet.len() || missing > headroom + tailroom {
            return int(Errno::EINVAL.negated());
        }
        packet.shift(missing.saturating_sub(tailroom));
        packet.pull(missing);
        0
    })
}
