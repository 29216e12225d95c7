//! netfilter: a packet behind a context of pointers to kernel objects.
//!
//! At the first hook of sent packets Linux's test run hands the program the whole frame and has no
//! device for it; at all others the packet begins with its network header, and the loopback device
//! received it.

use std::ops::RangeInclusive;

use spec::programs::TestRunKind;
use spec::{Errno, Result};
use vm::{PacketBuffer, SKB};

use super::skb::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::test_run::{LINK_HEADER, SHARED_INFO, TestInput, sized};

/// Bytes of `struct nf_hook_state`, and of its first fields: hook and protocol family.
const HOOK_STATE: usize = 48;
/// Bytes of the context: pointers to the state and the packet.
const CONTEXT: usize = 16;

/// Sizes of headers of IPv4 and IPv6.
const IPV4: usize = 20;
const IPV6: usize = 40;

/// `NF_INET_LOCAL_OUT`.
const LOCAL_OUT: u8 = 3;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

/// Hook state of a packet, from the kernel's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetfilterHook {
    /// Number of the hook (`enum nf_inet_hooks`).
    pub hook: u8,
    /// Protocol family.
    pub family: u8,
    /// Type of the packet (`skb->pkt_type`).
    pub packet_type: u8,
    /// True if the state of the hook names the loopback device as the one to send with.
    pub has_output: bool,
    /// True if the packet was received: it has a device, and begins with the network header.
    pub is_received: bool,
}

impl NetfilterHook {
    /// Bytes in front of a frame in its buffer (`NET_SKB_PAD`).
    pub const HEADROOM: usize = 64;

    /// Bytes of the link-layer header, in front of a received packet.
    pub const LINK_HEADER: usize = LINK_HEADER;

    /// Bytes behind a packet that its buffer ends with (`struct skb_shared_info`).
    pub const SHARED_INFO: usize = SHARED_INFO;

    /// The type of the packet's protocol (`skb->protocol`).
    pub fn protocol(&self) -> u16 {
        match self.family {
            NFPROTO_IPV6 => ETHERTYPE_IPV6,
            _ => ETHERTYPE_IPV4,
        }
    }
}

/// A frame, and hook and protocol family in the context that is given; without one
/// that of sent packets of IPv4. The context of the program gets its pointers when the objects
/// have addresses.
///
/// # Errors
/// EINVAL for a wrong size or another family than the frame's, EPROTO for frames of
/// neither.
pub(super) fn test_input(frame: &[u8], given: &[u8]) -> Result<TestInput> {
    if frame.len() < IPV4 || frame.len() > skb::MOST || frame.len() < LINK_HEADER {
        return Err(Errno::EINVAL);
    }
    let (mut hook, mut family) = (LOCAL_OUT, NFPROTO_IPV4);
    let given = match given {
        [] => Vec::new(),
        _ => sized(given, HOOK_STATE)?,
    };
    if let [given_hook, given_family, rest @ ..] = &given[..] {
        (hook, family) = (*given_hook, *given_family);
        let is_known = matches!(family, NFPROTO_IPV4 | NFPROTO_IPV6);
        Errno::EINVAL.when(!is_known || rest.iter().any(|byte| *byte != 0))?;
    }
    if hook != LOCAL_OUT {
        let (least, expected) = match skb::ethertype(frame) {
            _ if frame.len() < LINK_HEADER + IPV4 => return Err(Errno::EINVAL),
            Some(ETHERTYPE_IPV4) => (IPV4, NFPROTO_IPV4),
            Some(ETHERTYPE_IPV6) => (IPV6, NFPROTO_IPV6),
            _ => return Err(Errno::EPROTO),
        };
        if frame.len() < LINK_HEADER + least || family != expected {
            return Err(Errno::EINVAL);
        }
    }
    let is_received = hook != LOCAL_OUT;
    let state = NetfilterHook {
        hook,
        family,
        packet_type: match is_received {
            true => skb::packet_type(frame) as u8,
            false => 0,
        },
        has_output: !given.is_empty(),
        is_received,
    };
    let mut packet = PacketBuffer::new(SKB, frame, 0, 0);
    packet.state.is_read_only = true;
    if is_received {
        let end = packet.end();
        packet.set_bounds(LINK_HEADER, LINK_HEADER, end);
    }
    Ok(TestInput {
        rules: TestRunKind::Netfilter,
        packet: Some(packet),
        context: vec![0; CONTEXT],
        flow_keys: None,
        packet_socket: None,
        hook: Some(state),
        initial_keys: None,
        given,
    })
}

/// The sizes that a test run takes at the first hook.
pub(super) fn sizes(frame: &[u8]) -> RangeInclusive<usize> {
    let header = match skb::ethertype(frame) {
        Some(ETHERTYPE_IPV6) => IPV6,
        _ => IPV4,
    };
    LINK_HEADER + header..=skb::MOST
}
