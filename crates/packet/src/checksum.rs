//! Internet checksums of packets: of IPv4 headers, TCP, UDP and ICMP.

use std::fmt;

/// A checksum that is not that of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongChecksum {
    /// Name of the header: `ip`, `tcp`, `udp`, `icmp` or `icmpv6`.
    pub header: &'static str,
    /// Offset of the checksum in the packet.
    pub offset: usize,
    /// What the packet has.
    pub found: u16,
    /// What it should have.
    pub expected: u16,
}

impl fmt::Display for WrongChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongChecksum {
            header,
            offset,
            found,
            expected,
        } = self;
        write!(
            f,
            "{header}.checksum at byte {offset} is {found:#06x}, {expected:#06x} is right"
        )
    }
}

/// The transport header of a packet: its protocol, where it begins and ends, and the sum of the
/// pseudo-header.
struct Transport {
    protocol: u8,
    start: usize,
    end: usize,
    pseudo: u64,
}

/// Sum of 16-bit words; a last byte is padded.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words
        .map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0)))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Offset of the IP header, and its EtherType, behind Ethernet and VLAN tags.
fn network(packet: &[u8]) -> Option<(usize, u16)> {
    let mut at = 12;
    loop {
        let kind = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?);
        match kind {
            0x8100 | 0x88a8 => at += 4,
            kind => return Some((at + 2, kind)),
        }
    }
}

/// The transport header, if the packet has it from the start.
fn transport(packet: &[u8]) -> Option<Transport> {
    let (ip, kind) = network(packet)?;
    let header = packet.get(ip..)?;
    match kind {
        0x0800 => {
            let len = usize::from(header.first()? & 15) * 4;
            let total = usize::from(u16::from_be_bytes(header.get(2..4)?.try_into().ok()?));
            let is_fragment = u16::from_be_bytes(header.get(6..8)?.try_into().ok()?) & 0x3fff != 0;
            let data = total.checked_sub(len)?;
            let protocol = *header.get(9)?;
            let pseudo = sum(header.get(12..20)?) + u64::from(protocol) + data as u64;
            (!is_fragment && total <= header.len()).then_some(Transport {
                protocol,
                start: ip + len,
                end: ip + total,
                pseudo,
            })
        }
        0x86dd => {
            let data = usize::from(u16::from_be_bytes(header.get(4..6)?.try_into().ok()?));
            let protocol = *header.get(6)?;
            let pseudo = sum(header.get(8..40)?) + u64::from(protocol) + data as u64;
            (40 + data <= header.len()).then_some(Transport {
                protocol,
                start: ip + 40,
                end: ip + 40 + data,
                pseudo,
            })
        }
        _ => None,
    }
}

/// The checksums of an Ethernet frame: header, offset, what it is and what it should be.
fn checksums(packet: &[u8]) -> Vec<WrongChecksum> {
    let mut found = Vec::new();
    let mut check = |header, offset: usize, range: std::ops::Range<usize>, pseudo: u64| {
        // A header that is too short has none.
        let is_inside = range.start <= offset && offset + 2 <= range.end;
        let bytes = packet.get(offset..offset + 2).filter(|_| is_inside);
        let (Some(bytes), Some(covered)) = (bytes, packet.get(range)) else {
            return;
        };
        let value = u16::from_be_bytes([bytes[0], bytes[1]]);
        // Without the field itself, which begins at an even offset of what it covers.
        let expected = fold(sum(covered) + pseudo - u64::from(value));
        found.push(WrongChecksum {
            header,
            offset,
            found: value,
            expected,
        });
    };
    if let Some((ip, 0x0800)) = network(packet)
        && let Some(first) = packet.get(ip)
    {
        check("ip", ip + 10, ip..ip + usize::from(first & 15) * 4, 0);
    }
    if let Some(Transport {
        protocol,
        start,
        end,
        pseudo,
    }) = transport(packet)
    {
        match protocol {
            1 => check("icmp", start + 2, start..end, 0),
            6 => check("tcp", start + 16, start..end, pseudo),
            17 => check("udp", start + 6, start..end, pseudo),
            58 => check("icmpv6", start + 2, start..end, pseudo),
            _ => {}
        }
    }
    found
}

/// The checksums of an Ethernet frame that are wrong. A UDP checksum of 0 is none.
pub fn wrong_checksums(packet: &[u8]) -> Vec<WrongChecksum> {
    let mut wrong = checksums(packet);
    wrong.retain(|it| {
        // 0 stands for none in UDP, and is sent as its complement.
        let is_udp =
            it.header == "udp" && (it.found == 0 || (it.found, it.expected) == (0xffff, 0));
        it.found != it.expected && !is_udp
    });
    wrong
}

/// Writes the checksums of an Ethernet frame.
pub fn set_checksums(packet: &mut [u8]) {
    for it in checksums(packet) {
        let value = match (it.header, it.expected) {
            ("udp", 0) => 0xffff,
            (_, value) => value,
        };
        packet[it.offset..it.offset + 2].copy_from_slice(&value.to_be_bytes());
    }
}
