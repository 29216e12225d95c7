//! Packets from words: `proto tcp from 192.0.2.1 port 4000 to 198.51.100.7 port 443 flags syn`. The words are
//! those of access rules, with more for what else a packet has; lengths and checksums follow.

use std::fmt;
use std::net::IpAddr;

use crate::checksum::set_checksums;

/// Why a text is no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposeError {
    /// Column of the text, from 1.
    pub column: usize,
    /// What stands there.
    pub found: String,
    /// What is expected there.
    pub expected: String,
}

impl fmt::Display for ComposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ComposeError {
            column,
            found,
            expected,
        } = self;
        match found.as_str() {
            "" => write!(f, "column {column}: {expected} is expected"),
            found => write!(f, "column {column}: {expected} is expected, not {found:?}"),
        }
    }
}

impl std::error::Error for ComposeError {}

/// Words that fields begin with, but those that go with another one.
const KEYS: [&str; 13] = [
    "proto", "from", "to", "type", "code", "flags", "ttl", "vlan", "smac", "dmac", "length",
    "text", "payload",
];
const FIELDS: &str = "proto, from, to, port, type, code, flags, ttl, vlan, smac, dmac, length, text, \
                      payload or the end";
const FLAGS: [(&str, u8); 8] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
    ("ece", 64),
    ("cwr", 128),
];

/// What the words say.
#[derive(Default)]
struct Words {
    protocol: Option<u8>,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    kind: u8,
    code: u8,
    flags: u8,
    ttl: Option<u8>,
    /// Tags, the outer one first.
    vlans: Vec<u16>,
    macs: [[u8; 6]; 2],
    payload: Vec<u8>,
}

/// True for text that begins with a word of packets.
pub fn is_packet_text(text: &str) -> bool {
    let word = text.split_once(char::is_whitespace).map(|(word, _)| word);
    word.is_some_and(|word| KEYS.contains(&word))
}

/// The Ethernet frame that a text describes.
///
/// # Errors
/// For the first word that is not as expected.
pub fn compose(text: &str) -> Result<Vec<u8>, ComposeError> {
    let words = Reader::new(text).read()?;
    let at_end = |expected: &str| ComposeError {
        column: text.chars().count() + 1,
        found: String::new(),
        expected: expected.to_owned(),
    };
    let protocol = words.protocol.ok_or_else(|| at_end("proto"))?;
    let source = words.source.ok_or_else(|| at_end("from ADDRESS"))?;
    let destination = words.destination.ok_or_else(|| at_end("to ADDRESS"))?;
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(at_end("addresses of one family"));
    }
    let mut segment = Vec::new();
    let has_ports = matches!(protocol, 6 | 17 | 33 | 132 | 136);
    if has_ports {
        let source = words
            .source_port
            .ok_or_else(|| at_end("from ADDRESS port N"))?;
        let destination = words.destination_port;
        let destination = destination.ok_or_else(|| at_end("to ADDRESS port N"))?;
        segment.extend(source.to_be_bytes());
        segment.extend(destination.to_be_bytes());
    }
    match protocol {
        1 | 58 => segment.extend([words.kind, words.code, 0, 0, 0, 0, 0, 0]),
        6 => {
            segment.extend([0; 8]);
            segment.extend([5 << 4, words.flags, 0xff, 0xff, 0, 0, 0, 0]);
        }
        17 | 136 => {
            let len = (8 + words.payload.len()) as u16;
            segment.extend(len.to_be_bytes());
            segment.extend([0, 0]);
        }
        _ => {}
    }
    segment.extend(&words.payload);
    let mut packet = Vec::new();
    let [from, to] = words.macs;
    packet.extend(to);
    packet.extend(from);
    for (at, vlan) in words.vlans.iter().enumerate() {
        let is_outer = at + 1 < words.vlans.len();
        packet.extend(if is_outer { [0x88, 0xa8] } else { [0x81, 0] });
        packet.extend(vlan.to_be_bytes());
    }
    let ttl = words.ttl.unwrap_or(64);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet.extend([8, 0, 0x45, 0]);
            packet.extend(((20 + segment.len()) as u16).to_be_bytes());
            packet.extend([0, 0, 0, 0, ttl, protocol, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            packet.extend((segment.len() as u16).to_be_bytes());
            packet.extend([protocol, ttl]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
        }
        _ => return Err(at_end("addresses of one family")),
    }
    packet.extend(segment);
    set_checksums(&mut packet);
    Ok(packet)
}

struct Reader<'t> {
    text: &'t str,
    /// Bytes that were read.
    at: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        Reader { text, at: 0 }
    }

    /// The next word, with its place; a text in quotes is one.
    fn next(&mut self) -> Option<(usize, &'t str)> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.len() - rest.trim_start().len();
        let rest = &self.text[start..];
        let len = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map_or(rest.len(), |end| end + 2),
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        self.at = start + len;
        (len > 0).then(|| (start, &self.text[start..self.at]))
    }

    fn fault(&self, place: usize, found: &str, expected: &str) -> ComposeError {
        ComposeError {
            column: self.text[..place].chars().count() + 1,
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// The next word as a value.
    fn value<T>(
        &mut self,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ComposeError> {
        match self.next() {
            None => Err(self.fault(self.text.len(), "", expected)),
            Some((place, word)) => read(word).ok_or_else(|| self.fault(place, word, expected)),
        }
    }

    fn read(mut self) -> Result<Words, ComposeError> {
        let mut words = Words::default();
        let mut seen: Vec<&str> = Vec::new();
        let mut side = None;
        while let Some((place, word)) = self.next() {
            let key = match (word, side) {
                ("port", None) => {
                    return Err(self.fault(place, word, "from or to before port"));
                }
                ("port", Some("from")) => "source port",
                ("port", Some(_)) => "destination port",
                (word, _) => word,
            };
            let again = match key {
                "vlan" if words.vlans.len() < 2 => false,
                key => seen.contains(&key),
            };
            if again {
                let at_most = match key {
                    "vlan" => "vlan twice at most".to_owned(),
                    key => format!("{key} once"),
                };
                return Err(self.fault(place, word, &at_most));
            }
            match key {
                "proto" => {
                    words.protocol = Some(
                        self.value("a protocol: tcp, udp, icmp, icmpv6 or a number", protocol)?,
                    )
                }
                "from" => words.source = Some(self.value("an address", |it| it.parse().ok())?),
                "to" => words.destination = Some(self.value("an address", |it| it.parse().ok())?),
                "source port" => {
                    words.source_port = Some(self.value("a port", |it| it.parse().ok())?);
                }
                "destination port" => {
                    words.destination_port = Some(self.value("a port", |it| it.parse().ok())?);
                }
                "type" => words.kind = self.value("a number to 255", |it| it.parse().ok())?,
                "code" => words.code = self.value("a number to 255", |it| it.parse().ok())?,
                "flags" => {
                    words.flags = self.value(
                        "flags of TCP: fin, syn, rst, psh, ack, urg, ece or cwr, with commas",
                        flags,
                    )?;
                }
                "ttl" => {
                    words.ttl = Some(self.value("a number to 255", |it| it.parse().ok())?);
                }
                "vlan" => {
                    let tag = |it: &str| it.parse::<u16>().ok().filter(|it| *it < 4096);
                    words.vlans.push(self.value("a number to 4095", tag)?);
                }
                "smac" => words.macs[0] = self.value("an address as 02:00:00:00:00:01", mac)?,
                "dmac" => words.macs[1] = self.value("an address as 02:00:00:00:00:01", mac)?,
                "length" => {
                    let len = |it: &str| it.parse::<usize>().ok().filter(|it| *it <= 65_000);
                    let len = self.value("bytes of the payload, to 65000", len)?;
                    words.payload = vec![0; len];
                }
                "text" => {
                    words.payload = self.value("a text in quotes", |it| {
                        let text = it.strip_prefix('"')?.strip_suffix('"')?;
                        Some(text.as_bytes().to_vec())
                    })?;
                }
                "payload" => words.payload = self.value("hexadecimal digits", hex)?,
                _ => return Err(self.fault(place, word, FIELDS)),
            }
            seen.push(key);
            if matches!(word, "from" | "to") {
                side = Some(word);
            }
        }
        Ok(words)
    }
}

fn protocol(word: &str) -> Option<u8> {
    match word {
        "icmp" => Some(1),
        "tcp" => Some(6),
        "udp" => Some(17),
        "dccp" => Some(33),
        "gre" => Some(47),
        "icmpv6" => Some(58),
        "sctp" => Some(132),
        "udplite" => Some(136),
        word => word.parse().ok(),
    }
}

fn flags(word: &str) -> Option<u8> {
    word.split(',').try_fold(0, |all, name| {
        let mut known = FLAGS.iter();
        let (_, bit) = known.find(|(known, _)| *known == name)?;
        Some(all | bit)
    })
}

fn mac(word: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = word
        .split(':')
        .map(|part| match part.len() {
            2 => u8::from_str_radix(part, 16).ok(),
            _ => None,
        })
        .collect();
    bytes?.try_into().ok()
}

fn hex(word: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = word
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FirstHeader, fields, summary, wrong_checksums};

    #[test]
    fn packets_are_what_their_words_say() {
        for (text, expected) in [
            (
                "proto tcp from 192.0.2.1 port 4000 to 198.51.100.7 port 443 flags syn,ack",
                "tcp 192.0.2.1:4000 > 198.51.100.7:443",
            ),
            (
                "proto udp from 2001:db8::1 port 53 to 2001:db8::2 port 5353 text \"a b c\"",
                "udp [2001:db8::1]:53 > [2001:db8::2]:5353",
            ),
            (
                "from 10.0.0.1 to 10.0.0.2 proto icmp type 8 vlan 7 length 3",
                "icmp 10.0.0.1 > 10.0.0.2",
            ),
            (
                "vlan 7 vlan 8 from 10.0.0.1 to 10.0.0.2 proto 99",
                "10.0.0.1 > 10.0.0.2",
            ),
        ] {
            assert!(is_packet_text(text), "{text}");
            let packet = compose(text).expect(text);
            assert_eq!(wrong_checksums(&packet), [], "{text}");
            assert!(
                summary(&packet, FirstHeader::Link).contains(expected),
                "{}",
                summary(&packet, FirstHeader::Link)
            );
        }
        let packet = compose("proto tcp from 1.1.1.1 port 1 to 2.2.2.2 port 2 ttl 9 flags rst");
        let packet = packet.expect("a packet");
        let field = |path: &str| {
            let fields = fields(&packet, FirstHeader::Link);
            let field = fields
                .iter()
                .find(|field| field.path() == path)
                .expect(path);
            field.text(&packet[field.range()])
        };
        assert_eq!([field("ip.ttl"), field("tcp.flags")], ["9", "0x04"]);
    }

    #[test]
    fn a_changed_byte_makes_a_checksum_wrong() {
        let mut packet =
            compose("proto udp from 1.1.1.1 port 1 to 2.2.2.2 port 2 payload 0102").expect("text");
        packet[43] ^= 1;
        let wrong = wrong_checksums(&packet);
        assert_eq!(wrong.len(), 1);
        assert_eq!((wrong[0].header, wrong[0].offset), ("udp", 40));
        packet[22] ^= 1;
        assert_eq!(wrong_checksums(&packet).len(), 2);
    }

    #[test]
    fn errors_name_the_column_and_what_is_expected() {
        for (text, column, expected) in [
            ("proto tpc", 7, "a protocol"),
            ("proto tcp from 1.1.1", 16, "an address"),
            ("proto tcp port 3", 11, "from or to before port"),
            (
                "proto udp from 1.1.1.1 to 2.2.2.2",
                34,
                "from ADDRESS port N",
            ),
            ("proto icmp from 1.1.1.1 to ::1", 31, "one family"),
            ("proto icmp from 1.1.1.1 from 2.2.2.2", 25, "from once"),
            ("vlan 1 vlan 2 vlan 3", 15, "vlan twice at most"),
            (
                "from 1.1.1.1 to 2.2.2.2 proto tcp flags syn,x",
                41,
                "flags of TCP",
            ),
            ("to 2.2.2.2 colour red", 12, "proto, from"),
        ] {
            let error = compose(text).expect_err(text);
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.expected.contains(expected), "{text}: {error}");
        }
    }
}
