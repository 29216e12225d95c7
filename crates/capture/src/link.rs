//! Link types: names, limits, and what a link-layer header says about a packet.

use packet::{Device, Metadata};

use crate::Interface;

/// What the packets of an interface start with: a LINKTYPE number as capture
/// files hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

macro_rules! link_types {
    ($( $constant:ident = $number:literal, $name:literal, $description:literal; )*) => {
        impl LinkType {
            $(
                #[doc = $description]
                pub const $constant: LinkType = LinkType($number);
            )*

            /// Its name, where it is one of the common ones.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $number => Some($name), )*
                    _ => None,
                }
            }

            /// The link type with that name, in either case.
            pub fn named(name: &str) -> Option<LinkType> {
                [$( ($name, $number) ),*]
                    .into_iter()
                    .find(|(known, _)| known.eq_ignore_ascii_case(name))
                    .map(|(_, number)| LinkType(number))
            }
        }
    };
}

link_types! {
    NULL = 0, "NULL", "BSD loopback: an address family in the byte order of the capturing host.";
    ETHERNET = 1, "EN10MB", "Ethernet.";
    PPP = 9, "PPP", "PPP, with or without HDLC framing.";
    PPP_HDLC = 50, "PPP_SERIAL", "PPP in HDLC-like framing.";
    RAW = 101, "RAW", "IPv4 or IPv6, by the version in the packet.";
    IEEE802_11 = 105, "IEEE802_11", "IEEE 802.11.";
    LOOP = 108, "LOOP", "OpenBSD loopback: an address family in network byte order.";
    LINUX_SLL = 113, "LINUX_SLL", "Linux cooked capture.";
    RADIOTAP = 127, "IEEE802_11_RADIO", "IEEE 802.11 after a radiotap header.";
    USB_LINUX = 189, "USB_LINUX", "Linux USB.";
    USB_LINUX_MMAPPED = 220, "USB_LINUX_MMAPPED", "Linux USB with padding.";
    IPV4 = 228, "IPV4", "IPv4.";
    IPV6 = 229, "IPV6", "IPv6.";
    DBUS = 231, "DBUS", "D-Bus messages.";
    NFLOG = 239, "NFLOG", "Linux netfilter log.";
    USBPCAP = 249, "USBPCAP", "Windows USB.";
    LINUX_SLL2 = 276, "LINUX_SLL2", "Linux cooked capture, second version.";
    EBHSCR = 279, "EBHSCR", "Elektrobit automotive capture.";
}

impl LinkType {
    /// The most captured bytes that a packet can have. libpcap's limits: more
    /// is taken for damage.
    pub fn max_captured(self) -> u32 {
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

/// What Linux would have known about a captured packet, as far as its link-layer
/// header tells: the data stays as captured (the link-layer header at offset 0,
/// VLAN tags in place, no tag beside the packet), and the device is number
/// `id + 1` unless the header names another.
pub fn describe(interface: &Interface, id: u32, data: &[u8]) -> Metadata {
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
    // A header that is cut short says nothing.
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
    fn the_link_header_tells_what_the_system_would_know() {
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
            let meta = describe(&interface, 0, &data);
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
