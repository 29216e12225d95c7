//! Where the headers of a frame and their fields are: Ethernet, VLAN tags, IPv4 with options, IPv6 with
//! extension headers, TCP, UDP, ICMP, ARP and what tunnels carry (IP in IP, GRE, VXLAN, Geneve).

/// What a field means, which decides about the values that are worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Mac,
    EtherType,
    Protocol,
    Address,
    Port,
    Length,
    Number,
}

/// A field of a header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) kind: FieldKind,
}

/// The headers of a frame. One is used for frame after frame.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) fields: Vec<Field>,
    /// Where headers begin, and the payload.
    pub(super) starts: Vec<usize>,
    /// EtherType fields, in front of which a VLAN tag fits.
    pub(super) types: Vec<usize>,
    /// Next-header fields of IPv6 and the places of the headers that they name.
    pub(super) chain: Vec<(usize, usize)>,
    /// IPv4 headers.
    pub(super) ipv4: Vec<usize>,
    /// IPv6 headers.
    pub(super) ipv6: Vec<usize>,
    /// TCP headers.
    pub(super) tcp: Vec<usize>,
    /// UDP headers.
    pub(super) udp: Vec<usize>,
}

/// Most headers of a frame.
const MOST: usize = 24;

pub(super) const VXLAN: u16 = 4789;
pub(super) const GENEVE: u16 = 6081;

/// What begins at a place.
#[derive(Clone, Copy)]
enum Next {
    Ethernet,
    /// By an EtherType.
    Network(u16),
    /// By a protocol of IP; true for what IPv6 carries.
    Protocol(u8, bool),
    Payload,
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl Layout {
    /// Finds the headers of a frame.
    pub(super) fn find(&mut self, frame: &[u8]) {
        self.fields.clear();
        self.starts.clear();
        self.types.clear();
        self.chain.clear();
        self.ipv4.clear();
        self.ipv6.clear();
        self.tcp.clear();
        self.udp.clear();
        let (mut at, mut next) = (0, Next::Ethernet);
        for _ in 0..MOST {
            if at > frame.len() {
                return;
            }
            self.starts.push(at);
            (at, next) = match next {
                Next::Ethernet => self.ethernet(frame, at),
                Next::Network(kind) => self.network(frame, at, kind),
                Next::Protocol(protocol, is_6) => self.transport(frame, at, protocol, is_6),
                Next::Payload => return,
            };
        }
    }

    fn put(&mut self, at: usize, fields: &[(usize, FieldKind)]) {
        let mut at = at;
        for (len, kind) in fields {
            let (len, kind) = (*len, *kind);
            self.fields.push(Field { at, len, kind });
            at += len;
        }
    }

    fn ethernet(&mut self, frame: &[u8], at: usize) -> (usize, Next) {
        use FieldKind::{EtherType, Mac};
        self.put(at, &[(6, Mac), (6, Mac), (2, EtherType)]);
        self.types.push(at + 12);
        let kind = be16(frame, at + 12);
        (at + 14, kind.map_or(Next::Payload, Next::Network))
    }

    fn network(&mut self, frame: &[u8], at: usize, kind: u16) -> (usize, Next) {
        use FieldKind::{Address, EtherType, Length, Number, Protocol};
        match kind {
            0x8100 | 0x88a8 | 0x9100 => {
                self.put(at, &[(2, Number), (2, EtherType)]);
                self.types.push(at + 2);
                let kind = be16(frame, at + 2);
                (at + 4, kind.map_or(Next::Payload, Next::Network))
            }
            0x0800 => {
                self.ipv4.push(at);
                let first = [
                    (1, Length),
                    (1, Number),
                    (2, Length),
                    (2, Number),
                    (2, Number),
                ];
                self.put(at, &first);
                let rest = [
                    (1, Number),
                    (1, Protocol),
                    (2, Number),
                    (4, Address),
                    (4, Address),
                ];
                self.put(at + 8, &rest);
                let (Some(first), Some(protocol)) = (frame.get(at), frame.get(at + 9)) else {
                    return (at, Next::Payload);
                };
                let len = usize::from(first & 15) * 4;
                if len > 20 {
                    self.fields.push(Field {
                        at: at + 20,
                        len: 1,
                        kind: Number,
                    });
                    self.fields.push(Field {
                        at: at + 21,
                        len: 1,
                        kind: Length,
                    });
                }
                (at + len.max(20), Next::Protocol(*protocol, false))
            }
            0x86dd => {
                self.ipv6.push(at);
                let fields = [(4, Number), (2, Length), (1, Protocol), (1, Number)];
                self.put(at, &fields);
                self.put(at + 8, &[(16, Address), (16, Address)]);
                self.chain.push((at + 6, at + 40));
                let protocol = frame.get(at + 6);
                (
                    at + 40,
                    protocol.map_or(Next::Payload, |it| Next::Protocol(*it, true)),
                )
            }
            0x0806 => {
                self.put(
                    at,
                    &[
                        (2, Number),
                        (2, EtherType),
                        (1, Length),
                        (1, Length),
                        (2, Number),
                    ],
                );
                self.put(
                    at + 8,
                    &[
                        (6, FieldKind::Mac),
                        (4, Address),
                        (6, FieldKind::Mac),
                        (4, Address),
                    ],
                );
                (at + 28, Next::Payload)
            }
            0x8847 | 0x8848 => {
                self.put(at, &[(4, Number)]);
                match frame.get(at + 2).map(|byte| byte & 1) {
                    Some(1) => match frame.get(at + 4).map(|byte| byte >> 4) {
                        Some(4) => (at + 4, Next::Network(0x0800)),
                        Some(6) => (at + 4, Next::Network(0x86dd)),
                        _ => (at + 4, Next::Payload),
                    },
                    Some(_) => (at + 4, Next::Network(kind)),
                    None => (at + 4, Next::Payload),
                }
            }
            0x6558 => (at, Next::Ethernet),
            _ => (at, Next::Payload),
        }
    }

    fn transport(&mut self, frame: &[u8], at: usize, protocol: u8, is_6: bool) -> (usize, Next) {
        use FieldKind::{EtherType, Length, Number, Port, Protocol};
        match protocol {
            6 => {
                self.tcp.push(at);
                self.put(
                    at,
                    &[(2, Port), (2, Port), (4, Number), (4, Number), (1, Length)],
                );
                self.put(
                    at + 13,
                    &[(1, Number), (2, Number), (2, Number), (2, Number)],
                );
                let len = frame
                    .get(at + 12)
                    .map_or(20, |byte| usize::from(byte >> 4) * 4);
                if len > 20 {
                    self.fields.push(Field {
                        at: at + 20,
                        len: 1,
                        kind: Number,
                    });
                    self.fields.push(Field {
                        at: at + 21,
                        len: 1,
                        kind: Length,
                    });
                }
                (at + len.max(20), Next::Payload)
            }
            17 | 136 => {
                self.udp.push(at);
                self.put(at, &[(2, Port), (2, Port), (2, Length), (2, Number)]);
                let behind = match be16(frame, at + 2) {
                    Some(VXLAN) => {
                        self.put(at + 8, &[(4, Number), (4, Number)]);
                        (at + 16, Next::Ethernet)
                    }
                    Some(GENEVE) => {
                        self.put(
                            at + 8,
                            &[(1, Length), (1, Number), (2, EtherType), (4, Number)],
                        );
                        let options = frame
                            .get(at + 8)
                            .map_or(0, |byte| usize::from(byte & 63) * 4);
                        let kind = be16(frame, at + 10).unwrap_or(0);
                        (at + 16 + options, Next::Network(kind))
                    }
                    _ => (at + 8, Next::Payload),
                };
                behind
            }
            1 | 58 => {
                self.put(at, &[(1, Number), (1, Number), (2, Number), (4, Number)]);
                (at + 8, Next::Payload)
            }
            4 => (at, Next::Network(0x0800)),
            41 => (at, Next::Network(0x86dd)),
            47 => {
                self.put(at, &[(2, Number), (2, EtherType)]);
                let flags = be16(frame, at).unwrap_or(0);
                let options = [0x8000, 0x2000, 0x1000];
                let options = options.iter().filter(|bit| flags & **bit != 0).count() * 4;
                let kind = be16(frame, at + 2).unwrap_or(0);
                (at + 4 + options, Next::Network(kind))
            }
            132 => {
                self.put(
                    at,
                    &[(2, Port), (2, Port), (4, Number), (4, Number), (1, Number)],
                );
                (at + 12, Next::Payload)
            }
            0 | 43 | 60 | 135 | 44 if is_6 => {
                self.put(at, &[(1, Protocol), (1, Length), (2, Number), (4, Number)]);
                let (Some(next), Some(len)) = (frame.get(at), frame.get(at + 1)) else {
                    return (at, Next::Payload);
                };
                let len = match protocol {
                    44 => 8,
                    _ => 8 + usize::from(*len) * 8,
                };
                self.chain.push((at, at + len));
                (at + len, Next::Protocol(*next, true))
            }
            51 => {
                self.put(
                    at,
                    &[
                        (1, Protocol),
                        (1, Length),
                        (2, Number),
                        (4, Number),
                        (4, Number),
                    ],
                );
                let (Some(next), Some(len)) = (frame.get(at), frame.get(at + 1)) else {
                    return (at, Next::Payload);
                };
                let len = 8 + usize::from(*len) * 4;
                (at + len, Next::Protocol(*next, is_6))
            }
            _ => (at, Next::Payload),
        }
    }
}
