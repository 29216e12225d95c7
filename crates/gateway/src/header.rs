//! Header fields that rules match, read from a frame as the data plane reads it.

use crate::rules::{has_ports, has_types};

/// Most extension headers between those of IPv6 and of the transport.
const MOST_EXTENSIONS: usize = 8;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// A frame, as far as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// An IP packet.
    Ip(Packet),
    /// Another frame.
    Other,
    /// An IP packet whose header or extension headers are wrong or cut off, or with more than 8
    /// extension headers.
    Malformed,
}

/// Addresses, protocol and ports of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Source address.
    pub source: Address,
    /// Destination address, of the same family.
    pub destination: Address,
    /// Protocol above IP and its extension headers.
    pub protocol: u8,
    /// Source port or type of ICMP; none if the protocol has none, in later fragments, and if the
    /// packet ends before it.
    pub source_port: Option<u16>,
    /// Destination port or code of ICMP.
    pub destination_port: Option<u16>,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Of IPv4.
    V4(u32),
    /// Of IPv6.
    V6(u128),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Address::V4(address) => write!(f, "{}", std::net::Ipv4Addr::from(address)),
            Address::V6(address) => write!(f, "{}", std::net::Ipv6Addr::from(address)),
        }
    }
}

/// Big-endian number at an offset.
fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl Header {
    /// Reads an Ethernet frame with up to two VLAN tags.
    pub fn of(frame: &[u8]) -> Header {
        let mut start = 14;
        let Some(mut kind) = short(frame, 12) else {
            return Header::Other;
        };
        for _ in 0..2 {
            if !VLAN.contains(&kind) {
                break;
            }
            let Some(next) = short(frame, start + 2) else {
                return Header::Other;
            };
            kind = next;
            start += 4;
        }
        let packet = match kind {
            IPV4 => ipv4(&frame[start..]),
            IPV6 => ipv6(&frame[start..]),
            _ => return Header::Other,
        };
        packet.map_or(Header::Malformed, Header::Ip)
    }
}

fn ipv4(ip: &[u8]) -> Option<Packet> {
    let header: &[u8; 20] = ip.first_chunk()?;
    let len = usize::from(header[0] & 15) * 4;
    if header[0] >> 4 != 4 || len < 20 || ip.len() < len {
        return None;
    }
    let address = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        Address::V4(u32::from_be_bytes(bytes))
    };
    let is_later_fragment = short(header, 6)? & 0x1fff != 0;
    let transport = (!is_later_fragment).then(|| &ip[len..]);
    Some(packet(address(12), address(16), header[9], transport))
}

fn ipv6(ip: &[u8]) -> Option<Packet> {
    let header: &[u8; 40] = ip.first_chunk()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&header[at..at + 16]);
        Address::V6(u128::from_be_bytes(bytes))
    };
    let (source, destination) = (address(8), address(24));
    let (mut next, mut at) = (header[6], 40);
    for _ in 0..MOST_EXTENSIONS {
        let is_extension = matches!(
            next,
            HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS
        );
        if !is_extension {
            let transport = Some(ip.get(at..).unwrap_or_default());
            return Some(packet(source, destination, next, transport));
        }
        let extension: &[u8; 8] = ip.get(at..)?.first_chunk()?;
        let units = usize::from(extension[1]);
        match next {
            FRAGMENT if short(extension, 2)? & 0xfff8 != 0 => {
                return Some(packet(source, destination, extension[0], None));
            }
            FRAGMENT => at += 8,
            AUTHENTICATION => at += (units + 2) * 4,
            _ => at += (units + 1) * 8,
        }
        next = extension[0];
    }
    None
}

/// A packet, with what the header of its transport begins with, if that is there.
fn packet(source: Address, destination: Address, protocol: u8, transport: Option<&[u8]>) -> Packet {
    let transport = transport.unwrap_or_default();
    let ports = if has_ports(protocol) {
        short(transport, 0).zip(short(transport, 2))
    } else if has_types(protocol) {
        let bytes = transport.first_chunk();
        bytes.map(|&[kind, code]| (u16::from(kind), u16::from(code)))
    } else {
        None
    };
    Packet {
        source,
        destination,
        protocol,
        source_port: ports.map(|(source, _)| source),
        destination_port: ports.map(|(_, destination)| destination),
    }
}
