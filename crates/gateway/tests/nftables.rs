//! The first matching rule is the one that nftables finds in a network namespace of our own.

use crate::support;
use std::thread;

use crate::support::netfilter::{Netfilter, repair, run, table_of};
use crate::support::{Dice, amount};
use beebox_gateway::{Action, Compiled, Header, RuleSet, TransportHeaders};

/// A set that nftables can express: no unknown ports, and ranges that do not overlap.
fn rules(dice: &mut Dice) -> RuleSet {
    let mut set = support::rules(dice, 60);
    for rule in &mut set.rules {
        rule.headers = TransportHeaders::default();
        for ports in [&mut rule.source_ports, &mut rule.destination_ports] {
            ports.has_unknown = false;
            ports.ranges.truncate(1);
        }
    }
    set
}

/// True if both see the same in a whole frame: nftables looks at no second VLAN tag, behind no
/// authentication header of IPv6, and at no extension header behind a later fragment; and it reads
/// ports of later fragments out of their data.
fn is_comparable(frame: &[u8]) -> bool {
    const EXTENSIONS: [u8; 6] = [0, 43, 44, 51, 59, 60];
    let Header::Ip(packet) = Header::of(frame) else {
        return false;
    };
    let has_ports = matches!(packet.protocol, 1 | 6 | 17 | 33 | 58 | 132 | 136);
    let start = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let ip = &frame[start..];
    let is_alike = match ip[0] >> 4 {
        6 => !extensions(ip).contains(&51) && !EXTENSIONS.contains(&packet.protocol),
        // A header that is as long as that reaches into the transport's.
        _ => ip[0] != 0x4f,
    };
    let is_later_fragment = has_ports && packet.source_port.is_none();
    is_alike && !is_later_fragment && frame[start - 2..start] != [0x81, 0]
}

/// The numbers of the extension headers of an IPv6 packet.
fn extensions(ip: &[u8]) -> Vec<u8> {
    let (mut found, mut next, mut at) = (Vec::new(), ip[6], 40);
    while matches!(next, 0 | 43 | 44 | 51 | 60) && at + 8 <= ip.len() {
        found.push(next);
        let units = usize::from(ip[at + 1]);
        let len = match next {
            44 => 8,
            51 => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        next = ip[at];
        at += len;
    }
    found
}

#[oracle::test]
fn nftables_finds_the_same_rules() {
    let [sets, packets] = amount("BEEBOX_GATEWAY_NFTABLES", [50, 1_000]);
    let compare = move || {
        let Some(netfilter) = Netfilter::enter("the gateway and nftables") else {
            return;
        };
        let mut hits = 0;
        for seed in 0..sets {
            let mut dice = Dice::new(1_000_000 + seed);
            let set = rules(&mut dice);
            let compiled = Compiled::new(&set).unwrap();
            let mut frames = Vec::new();
            while (frames.len() as u64) < packets {
                let mut frame = support::whole_frame(&mut dice);
                repair(&mut frame);
                if is_comparable(&frame) {
                    frames.push(frame);
                }
            }
            run("nft", &["-f", "-"], &table_of(&set));
            let names = ["netdev", "gateway", "seen"];
            let count = frames.len();
            let found = netfilter.verdict_of(&mut frames, &names, |found| found.len() == count);
            run("nft", &["delete", "table", "netdev", "gateway"], "");
            for (number, frame) in (0u32..).zip(&frames) {
                let header = Header::of(frame);
                let expected = compiled.table().lookup(&header).rule;
                let theirs = found.get(&number).copied();
                assert_eq!(
                    theirs,
                    Some(expected),
                    "seed {seed}: {header:?} {frame:02x?}\n{set}"
                );
                hits += u64::from(expected != 0 && *set.action(expected) == Action::Drop);
            }
        }
        println!("{sets} sets x {packets} packets: equal; {hits} dropped by a rule");
        assert!(hits > 0);
    };
    thread::spawn(compare).join().unwrap();
}
