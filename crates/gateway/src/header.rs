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

/// What there is in a packet of the header of its transport protocol. Only protocols of which
/// ports or types are read have a header that can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransportHeader {
    /// All of it.
    Whole,
    /// The packet ends within it.
    Cut,
    /// None: a fragment that begins 8 bytes behind the start of the datagram's data.
    Offset8,
    /// None: a fragment that begins further behind.
    Later,
}

impl TransportHeader {
    /// All, in the order of their values in the table.
    pub const ALL: [TransportHeader; 4] = [
        TransportHeader::Whole,
        TransportHeader::Cut,
        TransportHeader::Offset8,
        TransportHeader::Later,
    ];

    /// Its name in rules.
    pub fn name(self) -> &'static str {
        match self {
            TransportHeader::Whole => "whole",
            TransportHeader::Cut => "cut",
            TransportHeader::Offset8 => "offset8",
            TransportHeader::Later => "later",
        }
    }

    /// The header that a packet of a protocol has for sure, or most likely, if its ports or types
    /// are known or not.
    pub fn of_ports(protocol: u8, are_known: bool) -> TransportHeader {
        match header_bytes(protocol) != 0 && !are_known {
            true => TransportHeader::Later,
            false => TransportHeader::Whole,
        }
    }

    /// True if it may begin with ports.
    pub(crate) fn has_ports(self) -> bool {
        match self {
            TransportHeader::Whole | TransportHeader::Cut => true,
            TransportHeader::Offset8 | TransportHeader::Later => false,
        }
    }

    /// The value of the table's field of protocols for a protocol with this header.
    pub(crate) fn value(self, protocol: u8) -> u32 {
        (self as u32) << 8 | u32::from(protocol)
    }

    /// The protocol and the header of a value of the table's field.
    pub(crate) fn of_value(value: u32) -> (u8, TransportHeader) {
        (value as u8, TransportHeader::ALL[(value >> 8) as usize & 3])
    }
}

/// Bytes of the header of a protocol; 0 for those of which nothing is read.
fn header_bytes(protocol: u8) -> usize {
    match protocol {
        6 => 20,
        33 | 132 => 12,
        1 | 17 | 58 | 136 => 8,
        _ => 0,
    }
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
    /// What there is of the header of that protocol.
    pub header: TransportHeader,
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
    let fragment = short(header, 6)? & 0x1fff;
    let total = match usize::from(short(header, 2)?) {
        0 => None,
        length => Some(length),
    };
    let transport = match fragment {
        0 => Ok(within(ip, len, total)),
        offset => Err(fragment_at(offset)),
    };
    Some(packet(address(12), address(16), header[9], transport))
}

/// What a packet has from an offset on, without what follows its stated length; `None` is that of
/// a packet which is longer than the field can tell.
fn within(ip: &[u8], at: usize, total: Option<usize>) -> &[u8] {
    let end = total.unwrap_or(ip.len()).min(ip.len());
    ip.get(at..end).unwrap_or_default()
}

/// The header of a fragment at an offset in units of 8 bytes.
fn fragment_at(offset: u16) -> TransportHeader {
    match offset {
        1 => TransportHeader::Offset8,
        _ => TransportHeader::Later,
    }
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
            // A jumbogram (RFC 2675) states its length in the first extension.
            let total = match short(header, 4)? {
                0 if header[6] == HOP_BY_HOP => None,
                length => Some(40 + usize::from(length)),
            };
            let transport = Ok(within(ip, at, total));
            return Some(packet(source, destination, next, transport));
        }
        let extension: &[u8; 8] = ip.get(at..)?.first_chunk()?;
        let units = usize::from(extension[1]);
        match next {
            FRAGMENT if short(extension, 2)? & 0xfff8 != 0 => {
                let header = fragment_at(short(extension, 2)? >> 3);
                return Some(packet(source, destination, extension[0], Err(header)));
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
fn packet(
    source: Address,
    destination: Address,
    protocol: u8,
    transport: Result<&[u8], TransportHeader>,
) -> Packet {
    let bytes = transport.unwrap_or_default();
    let header = match transport {
        Ok(bytes) if bytes.len() < header_bytes(protocol) => TransportHeader::Cut,
        Ok(_) => TransportHeader::Whole,
        Err(header) => header,
    };
    let ports = if has_ports(protocol) {
        short(bytes, 0).zip(short(bytes, 2))
    } else if has_types(protocol) {
        let bytes = bytes.first_chunk();
        bytes.map(|&[kind, code]| (u16::from(kind), u16::from(code)))
    } else {
        None
    };
    Packet {
        source,
        destination,
        protocol,
        header,
        source_port: ports.map(|(source, _)| source),
        destination_port: ports.map(|(_, destination)| destination),
    }
}
