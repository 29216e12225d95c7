//! Differential test of two engines on the same programs and packets.
//!
//! An engine is a closure that prepares a program and returns a function that runs it, so
//! this module depends on no engine.

use crate::generate::{Dialect, Generator};
use crate::shrink::shrink;
use isa::classic::SockFilter;
use packet::{Device, Metadata, Packet, VlanTag};
use std::ops::Range;

/// Packets that each program runs on.
pub const PACKETS_PER_PROGRAM: u64 = 10;

/// A pair on which two engines differ.
#[derive(Clone, Debug)]
pub struct EngineDifference {
    /// The seed that made it.
    pub seed: u64,
    /// The program, shrunk.
    pub program: Vec<SockFilter>,
    /// The packet's bytes.
    pub packet: Vec<u8>,
    /// Its length on the wire.
    pub wire_len: u32,
    /// Further data.
    pub meta: Metadata,
    /// Results of the engines.
    pub values: [u32; 2],
}

/// Runs both engines on one valid program for each seed, on
/// [`PACKETS_PER_PROGRAM`] packets: how many pairs were compared, and the first
/// difference.
///
/// An engine takes a program and a batch of packets and appends a value for each.
/// `#rand` must draw from a source that starts again for each packet.
pub fn compare_engines(
    seeds: Range<u64>,
    dialect: Dialect,
    mut first: impl FnMut(&[SockFilter], &[Packet<'_>], &mut Vec<u32>),
    mut second: impl FnMut(&[SockFilter], &[Packet<'_>], &mut Vec<u32>),
) -> (u64, Option<EngineDifference>) {
    let mut pairs = 0;
    let mut values = [Vec::new(), Vec::new()];
    for seed in seeds {
        let mut generator = Generator::new(seed);
        let len = match seed % 256 {
            0 => generator.program_len(),
            _ => 2 + generator.below(40) as usize,
        };
        let program = if dialect == Dialect::Socket && seed % 4 == 1 {
            generator.filter()
        } else {
            generator.program(dialect, len)
        };
        let meta = metadata(&mut generator);
        let packets: Vec<(Vec<u8>, u32)> = (0..PACKETS_PER_PROGRAM)
            .map(|_| {
                let len = match generator.below(8) {
                    0 => generator.below(4),
                    1 => generator.below(1000),
                    _ => generator.below(80),
                };
                let cut = if generator.one_in(3) {
                    generator.below(100)
                } else {
                    0
                };
                (generator.packet_bytes(len as usize), len + cut)
            })
            .collect();
        let packets: Vec<Packet<'_>> = packets
            .iter()
            .map(|(data, wire_len)| Packet::captured(data, *wire_len, &meta))
            .collect();
        values.iter_mut().for_each(Vec::clear);
        first(&program, &packets, &mut values[0]);
        second(&program, &packets, &mut values[1]);
        pairs += packets.len() as u64;
        let differs = values[0].iter().zip(&values[1]).position(|(a, b)| a != b);
        let Some(number) = differs else { continue };
        let packet = packets[number];
        let mut both = |program: &[SockFilter]| {
            values.iter_mut().for_each(Vec::clear);
            first(program, &[packet], &mut values[0]);
            second(program, &[packet], &mut values[1]);
            [values[0][0], values[1][0]]
        };
        let is_valid = |program: &[SockFilter]| {
            let rules = match dialect {
                Dialect::Seccomp => classic::Rules::Seccomp,
                _ => classic::Rules::Socket,
            };
            classic::check(program, rules).is_ok()
        };
        let program = shrink(&program, |smaller| {
            is_valid(smaller) && {
                let [a, b] = both(smaller);
                a != b
            }
        });
        let values = both(&program);
        let difference = EngineDifference {
            seed,
            program,
            packet: packet.data().to_vec(),
            wire_len: packet.wire_len(),
            meta: meta.clone(),
            values,
        };
        return (pairs, Some(difference));
    }
    (pairs, None)
}

/// Metadata of a packet.
fn metadata(generator: &mut Generator) -> Metadata {
    if generator.one_in(4) {
        return Metadata::UNKNOWN;
    }
    Metadata {
        protocol: generator.pick(&[0x0800, 0x86dd, 0x8100, 0x0806, 0x8847]),
        pkt_type: generator.below(5) as u8,
        device: (!generator.one_in(4)).then(|| Device {
            ifindex: 1 + generator.below(9),
            hatype: generator.pick(&[1, 772, 65534]),
        }),
        mark: generator.bits(),
        queue: generator.below(4) as u16,
        hash: generator.bits(),
        cpu: generator.below(8),
        vlan: generator.one_in(2).then(|| VlanTag {
            protocol: generator.pick(&[0x8100, 0x88a8]),
            tci: generator.bits() as u16,
        }),
        link_header: generator.pick(&[None, Some(0)]),
        network_header: generator.pick(&[0, 14]),
    }
}
