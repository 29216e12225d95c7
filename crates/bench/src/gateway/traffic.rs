//! Flows for sets of rules, and the order in which their packets come.

use ::gateway::{Addresses, Header, Ports, Prefix, RuleSet, Table};
use spec::SplitMix;

use super::plane::failed;
use super::rules::{below, skewed};
use crate::Failure;

/// Flows of most traffic.
const FLOWS: usize = 4096;
/// Packets of an order.
pub(super) const ORDER: usize = 16384;

/// A frame of 64 bytes: UDP and TCP without options, other protocols without a header.
pub(super) type Frame = [u8; 64];

/// Packets of flows in the order in which they come.
pub(super) struct Traffic {
    pub(super) name: &'static str,
    /// A frame of each flow.
    pub(super) frames: Vec<Frame>,
    pub(super) order: Vec<u16>,
}

/// The traffic for a set of rules and its table.
pub(super) fn all(set: &RuleSet, table: &Table) -> Result<Vec<Traffic>, Failure> {
    let last = set.rules.len() - 1;
    let unmatched = unmatched(set, table, FLOWS, 19);
    let one = |name, frame| Traffic {
        name,
        frames: vec![frame],
        order: vec![0],
    };
    Ok(vec![
        Traffic {
            name: "Zipf",
            frames: flows(set, FLOWS, 11),
            order: zipf(13),
        },
        // As many flows as packets.
        Traffic {
            name: "uniform",
            frames: flows(set, ORDER, 17),
            order: (0..ORDER as u16).collect(),
        },
        one(
            "one flow of the first rule",
            decided_by(set, table, 0..=last)?,
        ),
        one(
            "one flow of the middle rule",
            decided_by(set, table, last / 2..=last)?,
        ),
        one(
            "one flow of the last rule",
            decided_by(set, table, (0..=last).rev())?,
        ),
        one("one flow without a rule", unmatched[0]),
        Traffic {
            name: "no hit",
            frames: unmatched,
            order: zipf(13),
        },
    ])
}

/// A packet about which the first of some rules decides that decides about any.
fn decided_by(
    set: &RuleSet,
    table: &Table,
    mut rules: impl Iterator<Item = usize>,
) -> Result<Frame, Failure> {
    let mut random = SplitMix::new(23);
    let found = rules.find_map(|rule| {
        let mut frames = (0..8).map(|_| of_rule(set, rule, &mut random));
        frames.find(|frame| table.lookup(&Header::of(frame)).rule as usize == rule + 1)
    });
    found.ok_or_else(|| failed("no rule decides about a packet that is made for it"))
}

fn frame(source: u32, destination: u32, protocol: u8, ports: [u16; 2]) -> Frame {
    let mut frame = [0; 64];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[17] = 50;
    frame[22] = 64;
    frame[23] = protocol;
    frame[26..30].copy_from_slice(&source.to_be_bytes());
    frame[30..34].copy_from_slice(&destination.to_be_bytes());
    frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
    frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
    frame
}

fn address(random: &mut SplitMix, addresses: &Addresses) -> u32 {
    let host = random.next_u64() as u32;
    match addresses.prefixes.first() {
        Some(Prefix::V4(network, bits)) => {
            network | host & u32::MAX.checked_shr((*bits).into()).unwrap_or(0)
        }
        _ => host,
    }
}

fn port(random: &mut SplitMix, ports: &Ports) -> u16 {
    match ports.ranges.first() {
        Some((first, last)) => first + below(random, u64::from(last - first) + 1) as u16,
        None => 1024 + below(random, 64512) as u16,
    }
}

/// A packet that a rule matches.
fn of_rule(set: &RuleSet, rule: usize, random: &mut SplitMix) -> Frame {
    let rule = &set.rules[rule];
    let protocol = rule.protocols.list.first().copied().unwrap_or(6);
    frame(
        address(random, &rule.source),
        address(random, &rule.destination),
        protocol,
        [
            port(random, &rule.source_ports),
            port(random, &rule.destination_ports),
        ],
    )
}

/// Packets of which each is made for a rule of the set.
fn flows(set: &RuleSet, count: usize, seed: u64) -> Vec<Frame> {
    let mut random = SplitMix::new(seed);
    (0..count)
        .map(|_| {
            let rule = below(&mut random, set.rules.len() as u64) as usize;
            of_rule(set, rule, &mut random)
        })
        .collect()
}

/// Packets that no rule matches.
fn unmatched(set: &RuleSet, table: &Table, count: usize, seed: u64) -> Vec<Frame> {
    let mut random = SplitMix::new(seed);
    let mut found = Vec::new();
    while found.len() < count {
        let rule = skewed(&mut random, set.rules.len() as u64) as usize;
        let other = below(&mut random, set.rules.len() as u64) as usize;
        let source = address(&mut random, &set.rules[rule].source);
        let destination = address(&mut random, &set.rules[other].destination);
        // GRE with addresses of rules, or addresses of none.
        let frame = match below(&mut random, 2) {
            0 => frame(source, destination, 50, [0; 2]),
            _ => frame(source, 0xf000_0001 | destination >> 8, 6, [4000, 9]),
        };
        if table.lookup(&Header::of(&frame)).rule == 0 {
            found.push(frame);
        }
    }
    found
}

/// Flows in the order of their packets: the n-th frequent one comes with a probability
/// proportional to 1 / n.
fn zipf(seed: u64) -> Vec<u16> {
    let mut random = SplitMix::new(seed);
    let mut sums = Vec::with_capacity(FLOWS);
    let mut sum = 0.0;
    for rank in 1..=FLOWS {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    (0..ORDER)
        .map(|_| {
            let at = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * sum;
            sums.partition_point(|below| *below < at).min(FLOWS - 1) as u16
        })
        .collect()
}
