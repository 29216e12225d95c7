//! Fields of a packet's headers, as filter expressions mean them: those of the outermost IP header,
//! behind VLAN tags. Tunnels are not entered, and fragments but the first have no ports.
//!
//! O(1): at most 16 tags and extension headers.

use crate::Packet;

/// Most tags, and most extension headers, that are passed over.
const MAX_HEADERS: usize = 16;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

const TCP: u8 = 6;

/// Fields of a packet, `None` where it has none or it was captured too short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowFields<'p> {
    /// Identifier in the outermost VLAN tag.
    pub vlan: Option<u16>,
    /// Protocol of the network header (an EtherType).
    pub ethertype: Option<u16>,
    /// Source address of IPv4 or IPv6: 4 or 16 bytes.
    pub source: Option<&'p [u8]>,
    /// Destination address.
    pub destination: Option<&'p [u8]>,
    /// Protocol of the transport header, behind the extension headers of IPv6.
    pub protocol: Option<u8>,
    /// Ports of TCP, UDP, DCCP, SCTP and UDP-Lite: source and destination.
    pub ports: Option<(u16, u16)>,
    /// Flags of TCP.
    pub tcp_flags: Option<u8>,
}

/// The fields of a packet, whose metadata has the protocol and offset of the network header.
pub fn flow_fields<'p>(packet: &Packet<'p>) -> FlowFields<'p> {
    let mut fields = FlowFields::default();
    let meta = packet.meta();
    let mut at = i64::from(meta.network_header);
    let mut ethertype = meta.protocol;
    if let Some(tag) = packet.stripped_tag() {
        fields.vlan = Some(tag.tci & 0xfff);
    }
    for _ in 0..MAX_HEADERS {
        if !matches!(ethertype, VLAN | SERVICE_VLAN) {
            break;
        }
        let Some(tag) = header::<4>(packet, at) else {
            return fields;
        };
        fields.vlan.get_or_insert(be16(tag, 0) & 0xfff);
        ethertype = be16(tag, 2);
        at += 4;
    }
    fields.ethertype = (ethertype != 0).then_some(ethertype);
    match ethertype {
        IPV4 => fields.ipv4(packet, at),
        IPV6 => fields.ipv6(packet, at),
        _ => None,
    };
    fields
}

impl<'p> FlowFields<'p> {
    fn ipv4(&mut self, packet: &Packet<'p>, at: i64) -> Option<()> {
        let header = header::<20>(packet, at)?;
        let words = header[0] & 15;
        if words < 5 {
            return None;
        }
        self.source = Some(&header[12..16]);
        self.destination = Some(&header[16..20]);
        self.protocol = Some(header[9]);
        let is_later_fragment = be16(header, 6) & 0x1fff != 0;
        match is_later_fragment {
            true => None,
            false => self.transport(packet, at + i64::from(words) * 4, header[9]),
        }
    }

    fn ipv6(&mut self, packet: &Packet<'p>, mut at: i64) -> Option<()> {
        const HOP_BY_HOP: u8 = 0;
        const ROUTING: u8 = 43;
        const FRAGMENT: u8 = 44;
        const DESTINATION: u8 = 60;
        let fixed = header::<40>(packet, at)?;
        self.source = Some(&fixed[8..24]);
        self.destination = Some(&fixed[24..40]);
        let mut protocol = fixed[6];
        at += 40;
        for _ in 0..MAX_HEADERS {
            match protocol {
                HOP_BY_HOP | ROUTING | DESTINATION => {
                    let extension = header::<8>(packet, at)?;
                    protocol = extension[0];
                    at += (i64::from(extension[1]) + 1) * 8;
                }
                FRAGMENT => {
                    let extension = header::<8>(packet, at)?;
                    protocol = extension[0];
                    at += 8;
                    if be16(extension, 2) & 0xfff8 != 0 {
                        self.protocol = Some(protocol);
                        return None;
                    }
                }
                _ => break,
            }
        }
        self.protocol = Some(protocol);
        self.transport(packet, at, protocol)
    }

    fn transport(&mut self, packet: &Packet<'p>, at: i64, protocol: u8) -> Option<()> {
        const UDP: u8 = 17;
        const DCCP: u8 = 33;
        const SCTP: u8 = 132;
        const UDPLITE: u8 = 136;
        if matches!(protocol, TCP | UDP | DCCP | SCTP | UDPLITE) {
            let ports = header::<4>(packet, at)?;
            self.ports = Some((be16(ports, 0), be16(ports, 2)));
        }
        if protocol == TCP {
            self.tcp_flags = Some(header::<14>(packet, at)?[13]);
        }
        Some(())
    }
}

/// `N` bytes at an offset of the data.
fn header<'p, const N: usize>(packet: &Packet<'p>, at: i64) -> Option<&'p [u8; N]> {
    packet.bytes(at, N)?.try_into().ok()
}

fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metadata;

    /// Of the parts of a packet from its network header on.
    fn with_fields(protocol: u16, parts: &[&[u8]], check: impl Fn(FlowFields<'_>)) {
        let bytes = parts.concat();
        let meta = Metadata {
            protocol,
            ..Metadata::UNKNOWN
        };
        check(flow_fields(&Packet::whole(&bytes, &meta)));
        // Cut off anywhere, it has a part of them.
        for len in 0..bytes.len() {
            flow_fields(&Packet::whole(&bytes[..len], &meta));
        }
    }

    const SOURCE: [u8; 4] = [192, 0, 2, 1];

    fn ipv4(protocol: u8, fragment: u16) -> [u8; 20] {
        let mut header = [0; 20];
        header[0] = 0x45;
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[9] = protocol;
        header[12..16].copy_from_slice(&SOURCE);
        header
    }

    const PORTS: [u8; 20] = [
        0, 53, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn addresses_and_ports_are_those_of_the_outer_header() {
        with_fields(IPV4, &[&ipv4(TCP, 0), &PORTS], |fields| {
            assert_eq!(fields.source, Some(&SOURCE[..]));
            assert_eq!(fields.ports, Some((53, 0x8001)));
            assert_eq!((fields.protocol, fields.tcp_flags), (Some(6), Some(0x12)));
        });
        with_fields(IPV4, &[&ipv4(4, 0), &ipv4(17, 0), &PORTS], |fields| {
            assert_eq!((fields.protocol, fields.ports), (Some(4), None));
        });
        with_fields(IPV4, &[&ipv4(17, 5), &PORTS], |fields| {
            assert_eq!(
                (fields.protocol, fields.ports),
                (Some(17), None),
                "later fragment"
            );
        });
    }

    #[test]
    fn tags_and_extension_headers_are_passed_over() {
        let mut ipv6 = [0; 40];
        ipv6[6] = 0;
        ipv6[8] = 0x20;
        let tags = [0x60, 7, 0x81, 0, 0, 9, 0x86, 0xdd];
        let extension = [17, 0, 0, 0, 0, 0, 0, 0];
        with_fields(
            SERVICE_VLAN,
            &[&tags, &ipv6, &extension, &PORTS],
            |fields| {
                assert_eq!((fields.vlan, fields.ethertype), (Some(7), Some(IPV6)));
                assert_eq!(
                    fields.source.map(|address| (address.len(), address[0])),
                    Some((16, 0x20))
                );
                assert_eq!(
                    (fields.protocol, fields.ports),
                    (Some(17), Some((53, 0x8001)))
                );
            },
        );
        with_fields(VLAN, &[&[0x81, 0].repeat(40)], |fields| {
            assert_eq!(fields.ethertype, Some(VLAN), "the limit ends the walk");
        });
        with_fields(0x0806, &[&[0; 28]], |fields| {
            assert_eq!(fields.source, None)
        });
    }
}
