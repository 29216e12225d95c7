//! Rule files of the gateway: any text is a set of rules or an error with a position, and what
//! is written of a set is read as the same. The compiled table finds the rule that the
//! definition finds.
//!
//! The input: text, or a compiled set, which begins with its magic.

use gateway::{
    Address, Compiled, Header, Packet, Rule, RuleSet, TransportHeader, is_state, read_state,
    write_state,
};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "gateway-rules",
    property: "rules are read, written and looked up as they are defined, or their fault is found",
    words: &[
        "default ",
        "other ",
        "malformed ",
        "pass ",
        "drop ",
        "count ",
        "sample 1/",
        "redirect eth1 ",
        "proto tcp ",
        "proto not icmp,icmpv6 ",
        "header cut ",
        "header whole,offset8 ",
        "from not ",
        "from 10.0.0.0/8 ",
        "to 2001:db8::/32,::1 ",
        "to any ",
        "port 80,443 ",
        "port 1-1024,unknown ",
        "port not 22 ",
        "type 8 ",
        "code 0-3 ",
        "any ",
        "# ",
        "\n",
        "BEEGATE3",
    ],
    run,
};

/// Rules of which every value is looked up.
const MOST: usize = 24;

fn run(input: &[u8]) -> Signature {
    if is_state(input) {
        return match read_state(input) {
            Ok((set, table)) => {
                let written = write_state(&set, &table);
                let (again, table) = read_state(&written).expect("a set that was written");
                assert_eq!(again, set, "another set");
                assert!(write_state(&again, &table) == written, "another table");
                Signature::of("state")
            }
            Err(error) => Signature::of(std::mem::discriminant(&error)),
        };
    }
    let text = String::from_utf8_lossy(input);
    let set = match RuleSet::parse(&text) {
        Ok(set) => set,
        Err(error) => {
            let line = text
                .lines()
                .nth(error.line - 1)
                .expect("a line of the text");
            let columns = 1..=line.chars().count() + 1;
            assert!(columns.contains(&error.column), "{error} in {line:?}");
            return Signature::of(("text", error.expected));
        }
    };
    hold(&set);
    let kinds = set.rules.iter().map(|rule| {
        (
            std::mem::discriminant(&rule.action),
            rule.protocols.is_any(),
            rule.headers.is_any(),
            rule.source.is_any(),
            rule.destination_ports.is_any(),
        )
    });
    Signature::of(kinds.take(4).collect::<Vec<_>>())
}

/// Checks that a set is written and compiled to what it is, if its table has room for it.
fn hold(set: &RuleSet) {
    let text = set.to_string();
    assert_eq!(RuleSet::parse(&text).as_ref(), Ok(set), "{text}");
    let Ok(compiled) = Compiled::new(set) else {
        return;
    };
    let table = compiled.table();
    let state = read_state(&write_state(set, table));
    assert_eq!(state.as_ref().map(|(set, _)| set), Ok(set));
    for rule in set.rules.iter().take(MOST) {
        for packet in packets(rule) {
            let header = Header::Ip(packet);
            assert_eq!(
                table.lookup(&header),
                set.first_match(&header),
                "{packet:?}"
            );
        }
    }
    for header in [Header::Other, Header::Malformed] {
        assert_eq!(table.lookup(&header), set.first_match(&header));
    }
}

/// Packets at the edges of what a rule matches.
fn packets(rule: &Rule) -> Vec<Packet> {
    let addresses = |of: &gateway::Addresses| {
        let mut edges = vec![Address::V4(0x0a00_0001), Address::V6(1)];
        for prefix in of.prefixes.iter().take(4) {
            let (first, last) = prefix.range();
            let edge = |value: u128| match prefix.is_v6() {
                true => Address::V6(value),
                false => Address::V4(value as u32),
            };
            edges.extend([first, last, last.wrapping_add(1)].map(edge));
        }
        edges
    };
    let ports = |of: &gateway::Ports| {
        let ranges = of.ranges.iter().take(3);
        let edges = ranges.flat_map(|&(first, last)| [first, last, last.wrapping_add(1)]);
        edges.map(Some).chain([None, Some(0)]).collect::<Vec<_>>()
    };
    let is_same = |one: Address, other: Address| {
        matches!(
            (one, other),
            (Address::V4(_), Address::V4(_)) | (Address::V6(_), Address::V6(_))
        )
    };
    let (sources, destinations) = (addresses(&rule.source), addresses(&rule.destination));
    let (from, to) = (ports(&rule.source_ports), ports(&rule.destination_ports));
    let protocols = rule.protocols.list.iter().take(3).copied();
    let protocols: Vec<u8> = protocols.chain([6, 99]).collect();
    let mut packets = Vec::new();
    for (at, &source) in sources.iter().enumerate() {
        for &destination in destinations.iter().filter(|to| is_same(source, **to)) {
            for (by, &protocol) in protocols.iter().enumerate() {
                let turn = at + by + packets.len();
                packets.push(Packet {
                    source,
                    destination,
                    protocol,
                    header: TransportHeader::ALL[turn % TransportHeader::ALL.len()],
                    source_port: from[turn % from.len()],
                    destination_port: to[(turn / 2) % to.len()],
                });
            }
        }
    }
    packets
}
