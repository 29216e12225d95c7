//! Contents of the committed sample capture, as the documents describe them.
//!
//! This test decodes the frames itself, so that it is independent of the project's
//! capture reader and engines.

use std::collections::BTreeMap;
use std::path::Path;

/// Required kinds of packets, with smallest counts.
const REQUIRED: &[(&str, usize)] = &[
    ("arp", 2),
    ("icmp", 8),
    ("icmp6", 8),
    ("ssh over ipv4 from client", 8),
    ("ssh over ipv4 from server", 8),
    ("ssh over ipv6 from client", 8),
    ("ssh over ipv6 from server", 8),
    ("http over ipv4", 10),
    ("http over ipv6", 10),
    ("dns over udp", 6),
    ("dns over tcp", 6),
    ("ipv4 header with options", 1),
    ("ipv4 first fragment", 2),
    ("ipv4 later fragment", 4),
    ("ipv6 first fragment", 2),
    ("ipv6 later fragment", 4),
    ("802.1Q tag", 4),
    ("802.1ad tag", 4),
    ("two tags", 4),
    ("802.3 frame", 1),
    ("mpls", 1),
    ("pppoe", 1),
    ("sctp", 1),
    ("igmp", 1),
    ("ethernet broadcast", 2),
];

#[test]
fn sample_has_every_required_kind_of_packet() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let file = std::fs::read(path).expect("the committed capture");
    assert!(
        file.len() < 300_000,
        "room for the capture in the repository"
    );
    let mut seen = BTreeMap::<&str, usize>::new();
    for frame in frames(&file) {
        for kind in kinds(frame) {
            *seen.entry(kind).or_default() += 1;
        }
    }
    for (kind, least) in REQUIRED {
        let found = seen.get(kind).copied().unwrap_or(0);
        assert!(found >= *least, "{kind}: {found} packets, promised {least}");
    }
}

fn frames(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(
        (word(0), word(20)),
        (0xa1b2_c3d4, 1),
        "a little-endian Ethernet capture"
    );
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let (captured, wire) = (word(at + 8), word(at + 12));
        assert_eq!(captured, wire, "packets are captured whole");
        at += 16;
        frames.push(&file[at..at + captured as usize]);
        at += captured as usize;
    }
    frames
}

fn kinds(frame: &[u8]) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    if frame[..6] == [0xff; 6] {
        kinds.push("ethernet broadcast");
    }
    let mut at = 12;
    let mut tags = 0;
    loop {
        match be16(frame, at) {
            0x8100 => kinds.push("802.1Q tag"),
            0x88a8 => kinds.push("802.1ad tag"),
            kind => {
                if tags == 2 {
                    kinds.push("two tags");
                }
                kinds.extend(network(kind, &frame[at + 2..]));
                return kinds;
            }
        }
        tags += 1;
        at += 4;
    }
}

fn network(kind: u16, payload: &[u8]) -> Vec<&'static str> {
    match kind {
        0..=1500 => vec!["802.3 frame"],
        0x0806 => vec!["arp"],
        0x8847 => vec!["mpls"],
        0x8864 => vec!["pppoe"],
        0x0800 => ipv4(payload),
        0x86dd => ipv6(payload),
        _ => vec![],
    }
}

fn ipv4(packet: &[u8]) -> Vec<&'static str> {
    let header = usize::from(packet[0] & 15) * 4;
    let mut kinds = Vec::new();
    if header > 20 {
        kinds.push("ipv4 header with options");
    }
    match (be16(packet, 6) & 0x1fff, packet[6] & 0x20 != 0) {
        (0, true) => kinds.push("ipv4 first fragment"),
        (1.., _) => {
            kinds.push("ipv4 later fragment");
            return kinds;
        }
        _ => (),
    }
    match packet[9] {
        1 => kinds.push("icmp"),
        2 => kinds.push("igmp"),
        132 => kinds.push("sctp"),
        protocol => kinds.extend(ports(protocol, &packet[header..], false)),
    }
    kinds
}

fn ipv6(packet: &[u8]) -> Vec<&'static str> {
    match packet[6] {
        44 if be16(packet, 42) & 0xfff8 == 0 => vec!["ipv6 first fragment"],
        44 => vec!["ipv6 later fragment"],
        58 => vec!["icmp6"],
        protocol => ports(protocol, &packet[40..], true).into_iter().collect(),
    }
}

fn ports(protocol: u8, segment: &[u8], v6: bool) -> Option<&'static str> {
    let pick = |v4_name, v6_name| Some(if v6 { v6_name } else { v4_name });
    match (protocol, be16(segment, 0), be16(segment, 2)) {
        (17, 53, _) | (17, _, 53) => Some("dns over udp"),
        (6, 53, _) | (6, _, 53) => Some("dns over tcp"),
        (6, 80, _) | (6, _, 80) => pick("http over ipv4", "http over ipv6"),
        (6, 22, _) => pick("ssh over ipv4 from server", "ssh over ipv6 from server"),
        (6, _, 22) => pick("ssh over ipv4 from client", "ssh over ipv6 from client"),
        _ => None,
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
