//! Link types: names, limits, and packet metadata from link-layer headers.

mod names;

use std::fmt;

use packet::{Device, Metadata};

use crate::Interface;
use names::NAMES;

/// Link type: the link-layer header of packets, as a LINKTYPE number of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// BSD loopback: an address family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP, with or without HDLC framing.
    pub const PPP: LinkType = LinkType(9);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// IPv4 or IPv6, by the version in the packet.
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: an address family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// D-Bus messages.
    pub const DBUS: LinkType = LinkType(231);
    /// Windows USB.
    pub const USBPCAP: LinkType = LinkType(249);
    /// Linux cooked capture, second version.
    pub const LINUX_SLL2: LinkType = LinkType(276);
    /// Elektrobit automotive capture.
    pub const EBHSCR: LinkType = LinkType(279);

    /// libpcap's name, where it has one.
    pub fn name(self) -> Option<&'static str> {
        let place = NAMES.binary_search_by_key(&self.0, |&(number, _)| number);
        place.ok().map(|place| NAMES[place].1)
    }

    /// The link type with that name, in either case, with or without `DLT_` or
    /// `LINKTYPE_`.
    pub fn named(name: &str) -> Option<LinkType> {
        let upper = name.to_ascii_uppercase();
        let bare = ["DLT_", "LINKTYPE_"]
            .iter()
            .find_map(|prefix| upper.strip_prefix(prefix))
            .unwrap_or(&upper);
        let mut all = LinkType::all();
        all.find_map(|(link_type, known)| (known == bare).then_some(link_type))
    }

    /// Every link type that libpcap names, with its name, by number. Of two numbers for one
    /// link type only the one that libpcap writes.
    pub fn all() -> impl Iterator<Item = (LinkType, &'static str)> {
        let is_last = |at: usize| NAMES[at + 1..].iter().all(|other| other.1 != NAMES[at].1);
        let rows = NAMES.iter().enumerate();
        rows.filter(move |&(at, _)| is_last(at))
            .map(|(_, &(number, name))| (LinkType(number), name))
    }
}

impl fmt::Display for LinkType {
    /// The name, or the number where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}

impl LinkType {
    /// The most captured bytes that a packet can have. libpcap's limits: more
    /// is taken for damage.
    pub const fn max_captured(self) -> u32 {
        match self {
            LinkType::DBUS | LinkType::USBPCAP => 128 << 20,
            LinkType::EBHSCR => 8 << 20,
            _ => 256 << 10,
        }
    }
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

// ARP hardware types.
const HATYPE_ETHERNET: u16 = 1;
const HATYPE_PPP: u16 = 512;
const HATYPE_LOOPBACK: u16 = 772;
const HATYPE_NONE: u16 = 65534;

// Packet types.
const TO_US: u8 = 0;
const BROADCAST: u8 = 1;
const MULTICAST: u8 = 2;

/// Metadata that Linux had about a captured packet, as far as its link-layer header
/// shows them. The data are as captured: link-layer header at offset 0, VLAN tags in the
/// packet and none beside it. The device has ifindex `id + 1` unless the header states
/// one.
pub fn packet_metadata(interface: &Interface, id: u32, data: &[u8]) -> Metadata {
    let header = match interface.link_type {
        LinkType::ETHERNET => ethernet(data),
        LinkType::LINUX_SLL => cooked(data),
        LinkType::LINUX_SLL2 => cooked2(data),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Some(LinkHeader {
            protocol: ip_protocol(data),
            hatype: HATYPE_NONE,
            ..LinkHeader::of_len(0)
        }),
        LinkType::NULL => loopback(data.get(..4).map(|family| interface.order.u32(family, 0))),
        LinkType::LOOP => loopback(be32(data, 0)),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(data),
        _ => Some(LinkHeader::of_len(0)),
    };
    // A truncated header gives no metadata.
    let header = header.unwrap_or(LinkHeader::of_len(0));
    Metadata {
        protocol: header.protocol,
        pkt_type: header.pkt_type,
        device: Some(Device {
            ifindex: header.ifindex.unwrap_or(id.wrapping_add(1)),
            hatype: header.hatype,
        }),
        link_header: Some(0),
        network_header: header.len,
        ..Metadata::UNKNOWN
    }
}

struct LinkHeader {
    len: i32,
    protocol: u16,
    pkt_type: u8,
    hatype: u16,
    ifindex: Option<u32>,
}

impl LinkHeader {
    const fn of_len(len: i32) -> LinkHeader {
        LinkHeader {
            len,
            protocol: 0,
            pkt_type: TO_US,
            hatype: 0,
            ifindex: None,
        }
    }
}

fn ethernet(data: &[u8]) -> Option<LinkHeader> {
    let to = data.get(..6)?;
    let pkt_type = match to {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => BROADCAST,
        [first, ..] if first & 1 != 0 => MULTICAST,
        _ => TO_US,
    };
    // Below 0x600 it is a length; the payload is then either raw IPX, which
    // starts with all ones, or an LLC header (Linux numbers them 1 and 4).
    let protocol = match be16(data, 12)? {
        0..0x600 if be16(data, 14) == Some(0xffff) => 1,
        0..0x600 => 4,
        ethertype => ethertype,
    };
    Some(LinkHeader {
        protocol,
        pkt_type,
        hatype: HATYPE_ETHERNET,
        ..LinkHeader::of_len(14)
    })
}

fn cooked(data: &[u8]) -> Option<LinkHeader> {
    Some(LinkHeader {
        pkt_type: be16(data, 0)? as u8,
        hatype: be16(data, 2)?,
        protocol: be16(data, 14)?,
        ..LinkHeader::of_len(16)
    })
}

fn cooked2(data: &[u8]) -> Option<LinkHeader> {
    data.get(..20)?;
    Some(LinkHeader {
        protocol: be16(data, 0)?,
        ifindex: be32(data, 4),
        hatype: be16(data, 8)?,
        pkt_type: data[10],
        ..LinkHeader::of_len(20)
    })
}

fn loopback(family: Option<u32>) -> Option<LinkHeader> {
    Some(LinkHeader {
        protocol: match family? {
            2 => ETHERTYPE_IPV4,
            // Linux, and the three BSD families.
            10 | 24 | 28 | 30 => ETHERTYPE_IPV6,
            _ => 0,
        },
        hatype: HATYPE_LOOPBACK,
        ..LinkHeader::of_len(4)
    })
}

fn ppp(data: &[u8]) -> Option<LinkHeader> {
    let framing = if data.starts_with(&[0xff, 0x03]) {
        2
    } else {
        0
    };
    Some(LinkHeader {
        protocol: match be16(data, framing)? {
            0x0021 => ETHERTYPE_IPV4,
            0x0057 => ETHERTYPE_IPV6,
            _ => 0,
        },
        hatype: HATYPE_PPP,
        ..LinkHeader::of_len(framing as i32 + 2)
    })
}

fn ip_protocol(data: &[u8]) -> u16 {
    match data.first().map(|first| first >> 4) {
        Some(4) => ETHERTYPE_IPV4,
        Some(6) => ETHERTYPE_IPV6,
        _ => 0,
    }
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn be32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, Resolution};

    /// Link type, byte order, header bytes in hex; protocol, packet type,
    /// hardware type, interface index, network header.
    #[rustfmt::skip]
    const CASES: &[(LinkType, ByteOrder, &str, [i64; 5])] = &[
        (LinkType::ETHERNET, ByteOrder::Little, "0200000000010200000000020800", [0x800, 0, 1, 1, 14]),
        (LinkType::ETHERNET, ByteOrder::Little, "ffffffffffff0200000000020806", [0x806, 1, 1, 1, 14]),
        (LinkType::ETHERNET, ByteOrder::Little, "01005e0000010200000000028100", [0x8100, 2, 1, 1, 14]),
        (LinkType::ETHERNET, ByteOrder::Little, "0180c20000000200000000020026424203", [4, 2, 1, 1, 14]),
        (LinkType::ETHERNET, ByteOrder::Little, "0200000000010200000000020026ffff", [1, 0, 1, 1, 14]),
        (LinkType::ETHERNET, ByteOrder::Little, "02000000000102000000000208", [0, 0, 0, 1, 0]),
        (LinkType::LINUX_SLL, ByteOrder::Little, "00040001000602000000000100000800", [0x800, 4, 1, 1, 16]),
        (LinkType::LINUX_SLL2, ByteOrder::Little, "86dd00000000000703040206020000000001", [0, 0, 0, 1, 0]),
        (LinkType::LINUX_SLL2, ByteOrder::Little, "86dd000000000007030402060200000000010000", [0x86dd, 2, 772, 7, 20]),
        (LinkType::RAW, ByteOrder::Little, "60", [0x86dd, 0, 65534, 1, 0]),
        (LinkType::RAW, ByteOrder::Little, "", [0, 0, 65534, 1, 0]),
        (LinkType::NULL, ByteOrder::Little, "02000000", [0x800, 0, 772, 1, 4]),
        (LinkType::NULL, ByteOrder::Big, "0000001e", [0x86dd, 0, 772, 1, 4]),
        (LinkType::LOOP, ByteOrder::Little, "00000018", [0x86dd, 0, 772, 1, 4]),
        (LinkType::PPP, ByteOrder::Little, "0021", [0x800, 0, 512, 1, 2]),
        (LinkType::PPP_HDLC, ByteOrder::Little, "ff030057", [0x86dd, 0, 512, 1, 4]),
        (LinkType(147), ByteOrder::Little, "00", [0, 0, 0, 1, 0]),
    ];

    #[test]
    fn names_lead_to_the_number_that_libpcap_writes() {
        assert!(NAMES.is_sorted_by_key(|&(number, ..)| number));
        for (link_type, name) in LinkType::all() {
            assert_eq!(link_type.name(), Some(name));
            assert_eq!(LinkType::named(name), Some(link_type), "{name}");
        }
        assert_eq!(LinkType(12).name(), Some("RAW"));
        assert_eq!(LinkType::named("raw"), Some(LinkType::RAW));
        assert_eq!(LinkType::named("DLT_EN10MB"), Some(LinkType::ETHERNET));
        assert_eq!(LinkType(65_000).to_string(), "link type 65000");
    }

    #[test]
    fn the_link_header_states_the_metadata() {
        for &(link_type, order, hex, expected) in CASES {
            let interface = Interface {
                link_type,
                snaplen: 0,
                resolution: Resolution::MICROSECONDS,
                time_offset: 0,
                order,
            };
            let data: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect();
            let meta = packet_metadata(&interface, 0, &data);
            let device = meta.device.unwrap();
            let found = [
                i64::from(meta.protocol),
                i64::from(meta.pkt_type),
                i64::from(device.hatype),
                i64::from(device.ifindex),
                i64::from(meta.network_header),
            ];
            assert_eq!(found, expected, "{link_type:?} {hex}");
            assert_eq!((meta.link_header, meta.vlan), (Some(0), None));
        }
    }
}
