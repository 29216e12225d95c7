//! Hand-written Rust with the logic of the filters, as the baseline without an engine.
//!
//! The functions are never inlined, as a filter is chosen at run time.

use packet::Packet;

/// Return value of libpcap's programs for a match.
const MATCH: u32 = 262_144;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const SSH: u16 = 22;

/// `port 22`.
#[inline(never)]
pub(crate) fn port_22(frame: &[u8]) -> u32 {
    verdict(is_port_22(frame))
}

/// `tcp port 22`, with payload.
#[inline(never)]
pub(crate) fn tcp_port_22_with_payload(frame: &[u8]) -> u32 {
    verdict(is_tcp_port_22_with_payload(frame))
}

fn verdict(matches: Option<bool>) -> u32 {
    if matches == Some(true) { MATCH } else { 0 }
}

/// `None` where the frame ends too early.
#[inline(always)]
fn is_port_22(frame: &[u8]) -> Option<bool> {
    match half(frame, 12)? {
        IPV6 => {
            let has_ports = matches!(byte(frame, 20)?, SCTP | TCP | UDP);
            Some(has_ports && (half(frame, 54)? == SSH || half(frame, 56)? == SSH))
        }
        IPV4 => {
            let has_ports = matches!(byte(frame, 23)?, SCTP | TCP | UDP);
            Some(has_ports && !is_later_fragment(frame)? && has_ipv4_port(frame)?)
        }
        _ => Some(false),
    }
}

#[inline(always)]
fn is_tcp_port_22_with_payload(frame: &[u8]) -> Option<bool> {
    if half(frame, 12)? != IPV4
        || byte(frame, 23)? != TCP
        || is_later_fragment(frame)?
        || !has_ipv4_port(frame)?
    {
        return Some(false);
    }
    let ip_header = ipv4_header(frame)?;
    let total = u32::from(half(frame, 16)?);
    let tcp_header = u32::from(byte(frame, ip_header + 26)? & 0xf0) >> 2;
    Some(total.wrapping_sub(ip_header as u32) != tcp_header)
}

#[inline(always)]
fn is_later_fragment(frame: &[u8]) -> Option<bool> {
    Some(half(frame, 20)? & 0x1fff != 0)
}

#[inline(always)]
fn has_ipv4_port(frame: &[u8]) -> Option<bool> {
    let ip_header = ipv4_header(frame)?;
    Some(half(frame, ip_header + 14)? == SSH || half(frame, ip_header + 16)? == SSH)
}

#[inline(always)]
fn ipv4_header(frame: &[u8]) -> Option<usize> {
    Some(usize::from(byte(frame, 14)? & 15) * 4)
}

#[inline(always)]
fn byte(frame: &[u8], at: usize) -> Option<u8> {
    frame.get(at).copied()
}

#[inline(always)]
fn half(frame: &[u8], at: usize) -> Option<u16> {
    let bytes = frame.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// programs/ancillary.asm.
#[inline(never)]
pub(crate) fn ancillary(packet: &Packet<'_>) -> u32 {
    let meta = packet.meta();
    let Some(device) = meta.device else {
        return u32::from(meta.pkt_type & 7);
    };
    let tag = packet.stripped_tag();
    let holds = meta.protocol == IPV4
        && meta.pkt_type & 7 != 4
        && device.ifindex == 2
        && device.hatype == 1
        && meta.mark & 0xff00 == 0x1200
        && meta.queue <= 7
        && meta.hash != 0
        && meta.cpu <= 63
        && tag.is_some_and(|tag| tag.tci & 0x0fff == 100 && tag.protocol == 0x8100)
        && {
            let payload = packet::payload_offset(packet);
            payload >= 34 && packet.wire_len() >= payload
        };
    if holds { u32::MAX } else { 0 }
}

/// A seccomp filter that allows the calls of a list.
#[inline(never)]
pub(crate) fn allow_list(call: &classic::SeccompData, list: &[u32]) -> u32 {
    use crate::classic::seccomp_rules::{ALLOW, ARCH, ERRNO, KILL};
    if call.arch != ARCH {
        KILL
    } else if list.contains(&(call.nr as u32)) {
        ALLOW
    } else {
        ERRNO
    }
}
