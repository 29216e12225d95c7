//! netfilter: a packet behind a context of pointers to kernel objects.

use std::ops::RangeInclusive;

use spec::Errno;
use vm::{PacketBuffer, SKB};

use super::skb::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::test_run::{LINK_HEADER, Rules, TestInput, sized};

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

/// A frame, and hook and protocol family in the context that is given; without one
/// that of sent packets of IPv4. The context of the program has no kernel objects: its pointers are
/// null.
///
/// # Errors
/// EINVAL for a wrong size or another family than the frame's, EPROTO for frames of
/// neither.
pub(super) fn test_input(frame: &[u8], given: &[u8]) -> Result<TestInput, Errno> {
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
        if !is_known || rest.iter().any(|byte| *byte != 0) {
            return Err(Errno::EINVAL);
        }
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
    Ok(TestInput {
        rules: Rules::Netfilter,
        packet: Some(PacketBuffer::new(SKB, frame, 0, 0)),
        context: vec![0; CONTEXT],
        flow_keys: None,
        packet_socket: None,
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
