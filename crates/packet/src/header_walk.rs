//! The payload offset of a packet: the header walk of Linux's flow dissector, for the
//! ancillary load `poff`.
//!
//! The walk starts at the network header with the packet's protocol (that of the stripped
//! VLAN tag first, if there is one), enters tunnels, and adds the length of the last
//! transport header. The result is 0 if a header is truncated or invalid; the walk ends
//! early at a known protocol without a dissector. Source: net/core/flow_dissector.c of
//! Linux 6.18, confirmed by the running kernel.
//!
//! Each step moves forward or counts against a limit of 15 headers, so the walk
//! ends on any input. O(1).

use crate::Packet;

/// Largest number of headers, including tags and extensions (`MAX_FLOW_DISSECT_HDRS`).
const MAX_HEADERS: u32 = 15;

mod ethertype {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const ARP: u16 = 0x0806;
    pub(super) const BATMAN: u16 = 0x4305;
    pub(super) const ETHERNET_BRIDGING: u16 = 0x6558;
    pub(super) const RARP: u16 = 0x8035;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const PPP_IN_GRE: u16 = 0x880b;
    pub(super) const MPLS: u16 = 0x8847;
    pub(super) const MPLS_MULTICAST: u16 = 0x8848;
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
    pub(super) const SERVICE_VLAN: u16 = 0x88a8;
    pub(super) const TIPC: u16 = 0x88ca;
    pub(super) const PTP: u16 = 0x88f7;
    pub(super) const PRP: u16 = 0x88fb;
    pub(super) const CFM: u16 = 0x8902;
    pub(super) const FCOE: u16 = 0x8906;
    pub(super) const HSR: u16 = 0x892f;
}

mod ip_protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const IGMP: u8 = 2;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const DCCP: u8 = 33;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const DESTINATION: u8 = 60;
    pub(super) const SCTP: u8 = 132;
    pub(super) const UDPLITE: u8 = 136;
    pub(super) const MPLS: u8 = 137;
}

mod ppp {
    pub(super) const IPV4: u16 = 0x0021;
    pub(super) const IPV6: u16 = 0x0057;
    pub(super) const MPLS: u16 = 0x0281;
    pub(super) const MPLS_MULTICAST: u16 = 0x0283;
}

/// Offset of the payload from the start of the packet's data; 0 if a header is truncated,
/// invalid or unknown.
pub fn payload_offset(packet: &Packet<'_>) -> u32 {
    let meta = packet.meta();
    let mut walk = Walk {
        packet,
        at: i64::from(meta.network_header),
        protocol: match packet.stripped_tag() {
            Some(tag) => tag.protocol,
            None => meta.protocol,
        },
        transport: 0,
        later_fragment: false,
        tags: 0,
        headers: 0,
    };
    match walk.network() {
        Some(()) => walk.payload(),
        None => 0,
    }
}

/// Next step after a header.
enum Next {
    /// Dissect the network protocol in `protocol`.
    Network,
    /// Dissect the transport protocol in `transport`.
    Transport,
    /// Stop successfully.
    Done,
}

struct Walk<'a, 'p> {
    packet: &'a Packet<'p>,
    /// Offset of the next header from the start of the data.
    at: i64,
    protocol: u16,
    transport: u8,
    /// A fragment that does not begin with the transport header.
    later_fragment: bool,
    tags: u32,
    headers: u32,
}

impl<'p> Walk<'_, 'p> {
    /// Walks the headers to the transport header; `None` on an error.
    fn network(&mut self) -> Option<()> {
        let mut next = Next::Network;
        loop {
            let continues = match next {
                Next::Network => {
                    next = self.network_header()?;
                    !matches!(next, Next::Network) || self.count_header()
                }
                Next::Transport => {
                    next = self.transport_header()?;
                    matches!(next, Next::Done) || self.count_header()
                }
                Next::Done => false,
            };
            if !continues {
                return Some(());
            }
        }
    }

    fn count_header(&mut self) -> bool {
        self.headers += 1;
        self.headers <= MAX_HEADERS
    }

    fn network_header(&mut self) -> Option<Next> {
        match self.protocol {
            ethertype::IPV4 => self.ipv4(),
            ethertype::IPV6 => {
                self.transport = self.header::<40>(0)?[6];
                self.at += 40;
                Some(Next::Transport)
            }
            ethertype::VLAN | ethertype::SERVICE_VLAN => {
                if self.tags == 0 && self.packet.stripped_tag().is_some() {
                    self.protocol = self.packet.meta().protocol;
                } else {
                    self.protocol = be16(self.header::<4>(0)?, 2);
                    self.at += 4;
                }
                self.tags += 1;
                Some(Next::Network)
            }
            ethertype::PPPOE_SESSION => self.pppoe(),
            ethertype::MPLS | ethertype::MPLS_MULTICAST => {
                self.at += 4;
                Some(Next::Done)
            }
            ethertype::TIPC => self.header::<16>(0).map(|_| Next::Done),
            ethertype::FCOE => {
                self.header::<38>(0)?;
                self.at += 38;
                Some(Next::Done)
            }
            ethertype::ARP | ethertype::RARP | ethertype::CFM => Some(Next::Done),
            ethertype::BATMAN => {
                // A unicast packet (type 0x40, version 15) carries a frame.
                let header = self.header::<24>(0)?;
                if header[0] != 0x40 || header[1] != 15 {
                    return None;
                }
                self.protocol = be16(header, 22);
                self.at += 24;
                Some(Next::Network)
            }
            ethertype::PTP => {
                self.header::<34>(0)?;
                self.at += 34;
                Some(Next::Done)
            }
            ethertype::PRP | ethertype::HSR => {
                self.protocol = be16(self.header::<6>(0)?, 4);
                self.at += 6;
                Some(Next::Network)
            }
            _ => None,
        }
    }

    fn ipv4(&mut self) -> Option<Next> {
        let header = self.header::<20>(0)?;
        let words = header[0] & 15;
        if words < 5 {
            return None;
        }
        self.at += i64::from(words) * 4;
        self.transport = header[9];
        let fragment = be16(header, 6);
        let (more, offset) = (fragment & 0x2000 != 0, fragment & 0x1fff);
        self.later_fragment |= offset != 0;
        Some(if more || offset != 0 {
            Next::Done
        } else {
            Next::Transport
        })
    }

    fn pppoe(&mut self) -> Option<Next> {
        let header = self.header::<8>(0)?;
        // Version 1, type 1, code 0: session data.
        if header[0] != 0x11 || header[1] != 0 {
            return None;
        }
        let protocol = be16(header, 6);
        self.at += 8;
        self.protocol = match protocol {
            ppp::IPV4 => ethertype::IPV4,
            ppp::IPV6 => ethertype::IPV6,
            ppp::MPLS => ethertype::MPLS,
            ppp::MPLS_MULTICAST => ethertype::MPLS_MULTICAST,
            // A protocol number is odd and its first byte even.
            _ if protocol & 0x0101 == 0x0001 => return Some(Next::Done),
            _ => return None,
        };
        Some(Next::Network)
    }

    fn transport_header(&mut self) -> Option<Next> {
        let in_ipv6 = self.protocol == ethertype::IPV6;
        match self.transport {
            ip_protocol::GRE => self.gre(),
            ip_protocol::HOP_BY_HOP | ip_protocol::ROUTING | ip_protocol::DESTINATION
                if in_ipv6 =>
            {
                let header = self.header::<2>(0)?;
                self.transport = header[0];
                self.at += (i64::from(header[1]) + 1) * 8;
                Some(Next::Transport)
            }
            ip_protocol::FRAGMENT if in_ipv6 => {
                let header = self.header::<8>(0)?;
                self.transport = header[0];
                self.at += 8;
                self.later_fragment |= be16(header, 2) & 0xfff8 != 0;
                Some(Next::Done)
            }
            ip_protocol::IPV4 => {
                self.protocol = ethertype::IPV4;
                Some(Next::Network)
            }
            ip_protocol::IPV6 => {
                self.protocol = ethertype::IPV6;
                Some(Next::Network)
            }
            ip_protocol::MPLS => {
                self.protocol = ethertype::MPLS;
                Some(Next::Network)
            }
            _ => Some(Next::Done),
        }
    }

    /// GRE, versions 0 and 1 (PPTP), without routing.
    fn gre(&mut self) -> Option<Next> {
        const CHECKSUM: u16 = 0x8000;
        const ROUTING: u16 = 0x4000;
        const KEY: u16 = 0x2000;
        const SEQUENCE: u16 = 0x1000;
        const ACKNOWLEDGEMENT: u16 = 0x0080;

        let header = self.header::<4>(0)?;
        let (flags, version) = (be16(header, 0), be16(header, 0) & 7);
        let protocol = be16(header, 2);
        let is_pptp = protocol == ethertype::PPP_IN_GRE && flags & KEY != 0;
        if flags & ROUTING != 0 || version > 1 || (version == 1 && !is_pptp) {
            return Some(Next::Done);
        }
        let mut len = 4;
        if flags & CHECKSUM != 0 {
            len += 4;
        }
        if flags & KEY != 0 {
            self.header::<4>(len)?;
            len += 4;
        }
        if flags & SEQUENCE != 0 {
            len += 4;
        }
        self.protocol = protocol;
        if version == 1 {
            if flags & ACKNOWLEDGEMENT != 0 {
                len += 4;
            }
            match be16(self.header::<4>(len)?, 2) {
                ppp::IPV4 => self.protocol = ethertype::IPV4,
                ppp::IPV6 => self.protocol = ethertype::IPV6,
                _ => {}
            }
            len += 4;
        } else if protocol == ethertype::ETHERNET_BRIDGING {
            self.protocol = be16(self.header::<14>(len)?, 12);
            len += 14;
        }
        self.at += len;
        Some(Next::Network)
    }

    /// The end of the current transport header.
    fn payload(&self) -> u32 {
        // Linux stores and compares this offset in 16 bits.
        let start = u32::from((self.at as u16).min(self.packet.data().len() as u16));
        if self.later_fragment {
            return start;
        }
        start
            + match self.transport {
                ip_protocol::TCP => match self.packet.bytes(i64::from(start) + 12, 1) {
                    Some(words) => u32::from((words[0] & 0xf0) >> 2).max(20),
                    None => 0,
                },
                ip_protocol::UDP
                | ip_protocol::UDPLITE
                | ip_protocol::ICMP
                | ip_protocol::ICMPV6
                | ip_protocol::IGMP => 8,
                ip_protocol::DCCP | ip_protocol::SCTP => 12,
                _ => 0,
            }
    }

    /// `N` bytes of the current header, `skipped` bytes from its start.
    fn header<const N: usize>(&self, skipped: i64) -> Option<&'p [u8; N]> {
        self.packet.bytes(self.at + skipped, N)?.try_into().ok()
    }
}

fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metadata, VlanTag};

    const ETHERNET: [u8; 14] = [0; 14];

    /// Payload offset of a frame of these parts after an Ethernet header.
    fn offset(protocol: u16, parts: &[&[u8]]) -> u32 {
        let frame = [&ETHERNET[..], &parts.concat()].concat();
        let meta = Metadata {
            protocol,
            network_header: 14,
            ..Metadata::UNKNOWN
        };
        payload_offset(&Packet::whole(&frame, &meta))
    }

    fn ipv4(protocol: u8, fragment: u16) -> [u8; 20] {
        let mut header = [0; 20];
        header[0] = 0x45;
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[9] = protocol;
        header
    }

    fn ipv6(next: u8) -> [u8; 40] {
        let mut header = [0; 40];
        header[6] = next;
        header
    }

    #[test]
    fn transport_headers_are_skipped() {
        let tcp = |words: u8| {
            let mut header = [0; 60];
            header[12] = words << 4;
            header
        };
        assert_eq!(offset(0x0800, &[&ipv4(6, 0), &tcp(8)]), 34 + 32);
        assert_eq!(offset(0x0800, &[&ipv4(6, 0), &tcp(1)]), 34 + 20);
        assert_eq!(offset(0x0800, &[&ipv4(6, 0), &[0; 12]]), 34, "cut off");
        assert_eq!(offset(0x86dd, &[&ipv6(17), &[0; 8]]), 54 + 8);
        assert_eq!(offset(0x0800, &[&ipv4(132, 0), &[0; 12]]), 34 + 12);
        assert_eq!(offset(0x0800, &[&ipv4(99, 0), &[0; 12]]), 34);
    }

    #[test]
    fn fragments_stop_the_walk() {
        let udp = [0; 8];
        assert_eq!(offset(0x0800, &[&ipv4(17, 0x2000), &udp]), 34 + 8, "first");
        assert_eq!(offset(0x0800, &[&ipv4(17, 0x2001), &udp]), 34, "later");
        let later = [17, 0, 0, 8, 0, 0, 0, 0];
        assert_eq!(offset(0x86dd, &[&ipv6(44), &later, &udp]), 62, "later");
    }

    #[test]
    fn tunnels_and_extensions_are_entered() {
        let hop_by_hop = [17, 0, 0, 0, 0, 0, 0, 0];
        let udp = [0; 8];
        assert_eq!(offset(0x86dd, &[&ipv6(0), &hop_by_hop, &udp]), 70);
        assert_eq!(offset(0x0800, &[&ipv4(41, 0), &ipv6(58), &udp]), 82);
        let gre = [0x20, 0, 0x08, 0, 0, 0, 0, 9];
        let inner = [&ipv4(47, 0)[..], &gre, &ipv4(17, 0), &udp];
        assert_eq!(offset(0x0800, &inner), 34 + 8 + 20 + 8);
        let tag = [0, 5, 0x08, 0];
        assert_eq!(offset(0x8100, &[&tag, &ipv4(1, 0), &udp]), 46);
    }

    #[test]
    fn a_stripped_tag_comes_first() {
        let frame = [&ETHERNET[..], &ipv4(17, 0), &[0; 8]].concat();
        let meta = Metadata {
            protocol: 0x0800,
            vlan: Some(VlanTag {
                protocol: 0x8100,
                tci: 5,
            }),
            network_header: 14,
            ..Metadata::UNKNOWN
        };
        assert_eq!(payload_offset(&Packet::whole(&frame, &meta)), 42);
    }

    #[test]
    fn invalid_headers_have_no_payload() {
        assert_eq!(offset(0x1234, &[&[0; 60]]), 0, "unknown protocol");
        assert_eq!(offset(0x0800, &[&[0x44; 60]]), 0, "short IPv4 header");
        assert_eq!(offset(0x0800, &[&ipv4(17, 0)[..19]]), 0, "cut off");
        let endless = [0x81, 0x00].repeat(200);
        assert_ne!(offset(0x8100, &[&endless]), 0, "the limit is no fault");
    }
}
