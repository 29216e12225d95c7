//! Packets at the bounds of what rules ask for.

use std::collections::HashSet;

use beebox_gateway::{Header, Packet, Prefix, RuleSet};

use super::Dice;

/// A source of packets that the kernel gives to its filters: complete, with addresses of hosts,
/// and such as begin connections.
pub(crate) struct Traffic {
    dice: Dice,
    is_v6_only: bool,
    /// Addresses of each family.
    addresses: [Vec<u128>; 2],
    ports: Vec<u16>,
    has_v6: bool,
    /// Messages of ICMP have several types, and some are later fragments. (Of TCP and UDP
    /// iptables over nftables reads ports in later fragments out of their data.)
    pub(crate) has_fragments: bool,
    /// Packets that were made.
    made: HashSet<Packet>,
}

impl Traffic {
    pub(crate) fn new(set: &RuleSet, is_v6_only: bool, seed: u64) -> Traffic {
        let mut addresses = [vec![0xc000_0201], vec![0x2001_0db8 << 96 | 1]];
        let mut ports = vec![9, 40_000];
        let mut has_v6 = is_v6_only;
        for rule in &set.rules {
            for prefix in rule
                .source
                .prefixes
                .iter()
                .chain(&rule.destination.prefixes)
            {
                let (first, last) = prefix.range();
                let middle = first + (last - first) / 2;
                let near = [
                    first.wrapping_sub(1),
                    first,
                    middle,
                    last,
                    last.wrapping_add(1),
                ];
                has_v6 |= prefix.is_v6();
                addresses[usize::from(prefix.is_v6())].extend(near);
            }
            for (first, last) in rule
                .source_ports
                .ranges
                .iter()
                .chain(&rule.destination_ports.ranges)
            {
                let near = [
                    first.saturating_sub(1),
                    *first,
                    *last,
                    last.saturating_add(1),
                ];
                ports.extend(near);
            }
        }
        addresses[0].retain(|it| is_host(Prefix::V4(*it as u32, 32)));
        addresses[1].retain(|it| is_host(Prefix::V6(*it, 128)));
        for list in &mut addresses {
            list.sort_unstable();
            list.dedup();
        }
        Traffic {
            dice: Dice::new(seed),
            is_v6_only,
            addresses,
            ports,
            has_v6,
            has_fragments: false,
            made: HashSet::new(),
        }
    }

    /// A packet that is no answer to one before.
    pub(crate) fn frame(&mut self) -> Vec<u8> {
        loop {
            let frame = self.any_frame();
            let Header::Ip(packet) = Header::of(&frame) else {
                continue;
            };
            // Echo requests have no ports, and are answered by other types.
            let has_ports = packet.protocol == 6 || packet.protocol == 17;
            let (from, to) = (packet.source_port, packet.destination_port);
            let answer = Packet {
                source: packet.destination,
                destination: packet.source,
                source_port: if has_ports { to } else { from },
                destination_port: if has_ports { from } else { to },
                ..packet
            };
            if !self.made.contains(&answer) {
                self.made.insert(packet);
                return frame;
            }
        }
    }

    fn any_frame(&mut self) -> Vec<u8> {
        let dice = &mut self.dice;
        let is_v6 = self.is_v6_only || self.has_v6 && dice.below(3) == 0;
        let known = &self.addresses[usize::from(is_v6)];
        let mut address = || known[dice.below(known.len() as u64) as usize];
        let (source, destination) = (address(), address());
        let mut port = || self.ports[dice.below(self.ports.len() as u64) as usize];
        let (from, to) = (port(), port());
        let protocol: u8 = match dice.below(12) {
            0 if is_v6 => 58,
            0 => 1,
            1 => 47,
            2 => 50,
            3..6 => 17,
            _ => 6,
        };
        let mut frame = vec![0; 12];
        match is_v6 {
            false => {
                frame.extend([0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
                frame.extend((source as u32).to_be_bytes());
                frame.extend((destination as u32).to_be_bytes());
            }
            true => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol, 64]);
                frame.extend(source.to_be_bytes());
                frame.extend(destination.to_be_bytes());
            }
        }
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        match protocol {
            // A segment that begins a connection.
            6 => frame.extend(
                [
                    &ports[..],
                    &[0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0, 0, 0, 0, 0],
                ]
                .concat(),
            ),
            17 => frame.extend([&ports[..], &[0, 16, 0, 0]].concat()),
            1 if self.has_fragments => {
                let kinds = [0, 3, 4, 5, 8, 11];
                let kind = kinds[dice.below(kinds.len() as u64) as usize];
                frame.extend([kind, dice.below(6) as u8, 0, 0]);
            }
            // Echo requests.
            1 => frame.extend([8, 0, 0, 0]),
            58 => frame.extend([128, 0, 0, 0]),
            _ => frame.extend([0, 0, 8, 0]),
        }
        frame.extend([0; 8]);
        if self.has_fragments && protocol == 1 && dice.below(4) == 0 {
            // From byte 800 on, with more to come.
            frame[20..22].copy_from_slice(&[0x20, 100]);
        }
        frame
    }
}

/// True for addresses that the kernel takes as those of other hosts, from any device.
fn is_host(address: Prefix) -> bool {
    match address {
        Prefix::V4(address, _) => {
            let first = address >> 24;
            (1..224).contains(&first) && first != 127
        }
        Prefix::V6(address, _) => address >> 125 == 1,
    }
}
