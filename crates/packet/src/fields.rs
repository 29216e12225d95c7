//! The header fields of a packet by name: Ethernet, VLAN tags, ARP, IPv4, IPv6 with its extension
//! headers, TCP, UDP, ICMP, and the packets within IP in IP.
//!
//! Fields are whole bytes. What is truncated ends the walk: the bytes that remain are the payload.
//! O(n) in the number of headers, which each take bytes of the packet.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Most headers of a packet that are read.
const MOST_HEADERS: usize = 16;

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Name of the header.
    pub header: &'static str,
    /// Name of the field in it.
    pub name: &'static str,
    /// Number of headers of this name in front of it.
    pub number: usize,
    /// Offset of its first byte from the start of the packet.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
    form: Form,
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    Hex,
    Mac,
    Ip,
    Bytes,
}

/// The first header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstHeader {
    /// Ethernet.
    Link,
    /// IPv4 or IPv6, as its version says.
    Network,
}

type Layout = &'static [(&'static str, usize, Form)];

const ETHERNET: Layout = &[
    ("dst", 6, Form::Mac),
    ("src", 6, Form::Mac),
    ("type", 2, Form::Hex),
];
const VLAN: Layout = &[("tci", 2, Form::Hex), ("type", 2, Form::Hex)];
const ARP: Layout = &[
    ("hardware", 2, Form::Number),
    ("protocol", 2, Form::Hex),
    ("hardware_len", 1, Form::Number),
    ("protocol_len", 1, Form::Number),
    ("operation", 2, Form::Number),
    ("sender_mac", 6, Form::Mac),
    ("sender_ip", 4, Form::Ip),
    ("target_mac", 6, Form::Mac),
    ("target_ip", 4, Form::Ip),
];
const IPV4: Layout = &[
    ("version_ihl", 1, Form::Hex),
    ("tos", 1, Form::Hex),
    ("length", 2, Form::Number),
    ("id", 2, Form::Hex),
    ("fragment", 2, Form::Hex),
    ("ttl", 1, Form::Number),
    ("protocol", 1, Form::Number),
    ("checksum", 2, Form::Hex),
    ("src", 4, Form::Ip),
    ("dst", 4, Form::Ip),
];
const IPV6: Layout = &[
    ("version_class_label", 4, Form::Hex),
    ("length", 2, Form::Number),
    ("next", 1, Form::Number),
    ("hops", 1, Form::Number),
    ("src", 16, Form::Ip),
    ("dst", 16, Form::Ip),
];
const EXTENSION: Layout = &[("next", 1, Form::Number), ("length", 1, Form::Number)];
const FRAGMENT: Layout = &[
    ("next", 1, Form::Number),
    ("reserved", 1, Form::Number),
    ("offset", 2, Form::Hex),
    ("id", 4, Form::Hex),
];
const TCP: Layout = &[
    ("src", 2, Form::Number),
    ("dst", 2, Form::Number),
    ("seq", 4, Form::Number),
    ("ack", 4, Form::Number),
    ("offset", 1, Form::Hex),
    ("flags", 1, Form::Hex),
    ("window", 2, Form::Number),
    ("checksum", 2, Form::Hex),
    ("urgent", 2, Form::Number),
];
const UDP: Layout = &[
    ("src", 2, Form::Number),
    ("dst", 2, Form::Number),
    ("length", 2, Form::Number),
    ("checksum", 2, Form::Hex),
];
const ICMP: Layout = &[
    ("type", 1, Form::Number),
    ("code", 1, Form::Number),
    ("checksum", 2, Form::Hex),
    ("rest", 4, Form::Hex),
];

impl HeaderField {
    /// Its bytes in the packet.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// Header and field, as `ip.ttl`; those of a second header of a kind are `ip2.ttl`.
    pub fn path(&self) -> String {
        let number = match self.number {
            0 => String::new(),
            earlier => (earlier + 1).to_string(),
        };
        match self.name {
            "" => self.header.to_owned(),
            name => format!("{}{number}.{name}", self.header),
        }
    }

    /// The value of its bytes in the usual form.
    pub fn text(&self, bytes: &[u8]) -> String {
        match (self.form, bytes.len()) {
            (Form::Number, 1..=8) => big_endian(bytes).to_string(),
            (Form::Hex, 1..=8) => format!(
                "{:#0width$x}",
                big_endian(bytes),
                width = 2 + 2 * bytes.len()
            ),
            (Form::Ip, 4) => {
                Ipv4Addr::from(<[u8; 4]>::try_from(bytes).unwrap_or_default()).to_string()
            }
            (Form::Ip, 16) => {
                Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default()).to_string()
            }
            (Form::Mac, _) => joined(bytes, ":"),
            (Form::Number | Form::Hex | Form::Ip | Form::Bytes, _) => joined(bytes, " "),
        }
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn joined(bytes: &[u8], between: &str) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(between)
}

/// The fields of a packet in their order; the last one is the payload, if there is some.
pub fn fields(packet: &[u8], first: FirstHeader) -> Vec<HeaderField> {
    let mut walk = Walk {
        packet,
        at: 0,
        fields: Vec::new(),
    };
    let mut next = match first {
        FirstHeader::Link => Some(Next::Ethernet),
        FirstHeader::Network => match packet.first().map(|byte| byte >> 4) {
            Some(4) => Some(Next::Ipv4),
            Some(6) => Some(Next::Ipv6),
            _ => None,
        },
    };
    for _ in 0..MOST_HEADERS {
        match next {
            Some(header) => next = walk.header(header),
            None => break,
        }
    }
    let len = packet.len() - walk.at;
    if len > 0 {
        let number = 0;
        walk.fields.push(HeaderField {
            header: "payload",
            name: "",
            number,
            start: walk.at,
            len,
            form: Form::Bytes,
        });
    }
    walk.fields
}

/// Protocol, addresses and ports of a packet in a line: `tcp 192.0.2.1:4000 > 198.51.100.1:80`.
pub fn summary(packet: &[u8], first: FirstHeader) -> String {
    let fields = fields(packet, first);
    let text = |header: &str, name: &str| {
        let mut found = fields.iter().filter(|field| field.header == header);
        let field = found.rfind(|field| field.name == name)?;
        Some(field.text(&packet[field.range()]))
    };
    let has = |header: &str| fields.iter().any(|field| field.header == header);
    let network = ["ip6", "ip"].into_iter().find(|header| has(header));
    let transport = ["tcp", "udp", "icmp", "icmp6"]
        .into_iter()
        .find(|header| has(header));
    let Some(network) = network else {
        return match text("arp", "target_ip") {
            Some(target) => format!("arp for {target}"),
            None => match text("eth", "type") {
                Some(kind) => format!("ethernet type {kind}"),
                None => format!("{} bytes", packet.len()),
            },
        };
    };
    let mut line = transport.unwrap_or(network).to_owned();
    let side = |name: &str| {
        let address = text(network, name).unwrap_or_default();
        let port = transport.and_then(|header| text(header, name));
        match port {
            Some(port) if network == "ip6" => format!("[{address}]:{port}"),
            Some(port) => format!("{address}:{port}"),
            None => address,
        }
    };
    let _ = write!(line, " {} > {}", side("src"), side("dst"));
    line
}

/// A header.
#[derive(Clone, Copy)]
enum Next {
    Ethernet,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Extension,
    Fragment,
    Tcp,
    Udp,
    Icmp,
    Icmp6,
}

struct Walk<'p> {
    packet: &'p [u8],
    /// Offset of the next header.
    at: usize,
    fields: Vec<HeaderField>,
}

impl Walk<'_> {
    /// Reads a header; the next one.
    fn header(&mut self, header: Next) -> Option<Next> {
        let from = self.at;
        let (name, layout) = match header {
            Next::Ethernet => ("eth", ETHERNET),
            Next::Vlan => ("vlan", VLAN),
            Next::Arp => ("arp", ARP),
            Next::Ipv4 => ("ip", IPV4),
            Next::Ipv6 => ("ip6", IPV6),
            Next::Extension => ("ext", EXTENSION),
            Next::Fragment => ("frag", FRAGMENT),
            Next::Tcp => ("tcp", TCP),
            Next::Udp => ("udp", UDP),
            Next::Icmp => ("icmp", ICMP),
            Next::Icmp6 => ("icmp6", ICMP),
        };
        self.take(name, layout)?;
        let byte = |at: usize| self.packet.get(from + at).copied().unwrap_or(0);
        let word = |at: usize| u16::from_be_bytes([byte(at), byte(at + 1)]);
        match header {
            Next::Ethernet => protocol(word(12)),
            Next::Vlan => protocol(word(2)),
            Next::Ipv4 => {
                let is_later = word(6) & 0x1fff != 0;
                let next = (!is_later).then(|| transport(byte(9))).flatten();
                self.options(name, from + usize::from(byte(0) & 15) * 4)?;
                next
            }
            Next::Ipv6 => transport(byte(6)),
            Next::Extension => {
                let next = transport(byte(0));
                self.options(name, from + usize::from(byte(1)) * 8 + 8)?;
                next
            }
            Next::Fragment => {
                let is_later = word(2) & 0xfff8 != 0;
                (!is_later).then(|| transport(byte(0))).flatten()
            }
            Next::Tcp => {
                self.options(name, from + usize::from(byte(12) >> 4) * 4)?;
                None
            }
            Next::Arp | Next::Udp | Next::Icmp | Next::Icmp6 => None,
        }
    }

    fn take(&mut self, header: &'static str, layout: Layout) -> Option<()> {
        let len: usize = layout.iter().map(|(_, len, _)| len).sum();
        if self.packet.len() - self.at < len {
            return None;
        }
        let first = layout.first().map_or("", |(name, ..)| name);
        let earlier = self
            .fields
            .iter()
            .filter(|field| field.header == header && field.name == first);
        let number = earlier.count();
        for (name, len, form) in layout {
            self.fields.push(HeaderField {
                header,
                name,
                number,
                start: self.at,
                len: *len,
                form: *form,
            });
            self.at += len;
        }
        Some(())
    }

    /// Takes the options of a header up to its end.
    fn options(&mut self, header: &'static str, end: usize) -> Option<()> {
        if end > self.packet.len() {
            return None;
        }
        let number = self.fields.last().map_or(0, |field| field.number);
        if end > self.at {
            self.fields.push(HeaderField {
                header,
                name: "options",
                number,
                start: self.at,
                len: end - self.at,
                form: Form::Bytes,
            });
            self.at = end;
        }
        Some(())
    }
}

fn protocol(number: u16) -> Option<Next> {
    match number {
        0x0800 => Some(Next::Ipv4),
        0x0806 => Some(Next::Arp),
        0x8100 | 0x88a8 => Some(Next::Vlan),
        0x86dd => Some(Next::Ipv6),
        _ => None,
    }
}

fn transport(number: u8) -> Option<Next> {
    match number {
        0 | 43 | 60 => Some(Next::Extension),
        1 => Some(Next::Icmp),
        4 => Some(Next::Ipv4),
        6 => Some(Next::Tcp),
        17 => Some(Next::Udp),
        41 => Some(Next::Ipv6),
        44 => Some(Next::Fragment),
        58 => Some(Next::Icmp6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged_tcp() -> Vec<u8> {
        let mut packet = vec![0; 12];
        packet.extend([0x81, 0, 0, 7, 8, 0]);
        packet.extend([
            0x46, 0, 0, 44, 0, 1, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
        ]);
        packet.extend([1, 1, 1, 0]);
        packet.extend([
            0, 80, 0x30, 0x39, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 9, 0, 0, 0, 0,
        ]);
        packet.extend(*b"body");
        packet
    }

    #[test]
    fn every_byte_is_in_one_field() {
        let packet = tagged_tcp();
        for len in 0..=packet.len() {
            let fields = fields(&packet[..len], FirstHeader::Link);
            let mut at = 0;
            for field in &fields {
                assert_eq!(field.start, at, "{} of {len} bytes", field.path());
                at += field.len;
            }
            assert_eq!(at, len);
        }
    }

    #[test]
    fn fields_have_the_usual_text() {
        let packet = tagged_tcp();
        let fields = fields(&packet, FirstHeader::Link);
        let texts = fields.iter().map(|field| {
            let text = field.text(&packet[field.range()]);
            format!("{}={text}", field.path())
        });
        let texts: Vec<String> = texts.collect();
        for expected in [
            "vlan.tci=0x0007",
            "ip.ttl=64",
            "ip.options=01 01 01 00",
            "tcp.dst=12345",
            "payload=62 6f 64 79",
        ] {
            assert!(
                texts.iter().any(|text| text == expected),
                "{expected}: {texts:?}"
            );
        }
        assert_eq!(
            summary(&packet, FirstHeader::Link),
            "tcp 192.0.2.1:80 > 192.0.2.2:12345"
        );
    }
}
