//! Random rules and packets that meet often: few networks, ports and protocols.

pub(crate) mod kernel;
pub(crate) mod netfilter;
pub(crate) mod traffic;

use beebox::internal::run::SplitMix;
use beebox_gateway::{
    Action, Addresses, Ports, Prefix, Protocols, Rule, RuleSet, TransportHeader, TransportHeaders,
};

/// Sets and packets of a comparison: those of a variable as `SETS,PACKETS`, which
/// `cargo differential soak gateway` sets, or others.
pub(crate) fn amount(variable: &str, default: [u64; 2]) -> [u64; 2] {
    let Ok(text) = std::env::var(variable) else {
        return default;
    };
    let (sets, packets) = text.split_once(',').unwrap();
    [sets, packets].map(|number| number.parse().unwrap())
}

/// A source of choices.
pub(crate) struct Dice(SplitMix);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(SplitMix::new(seed))
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

const PORTS: &[u16] = &[0, 22, 53, 80, 443, 1023, 1024, 8080, 32768, 65535];
const PROTOCOLS: &[u8] = &[6, 6, 6, 17, 17, 1, 58, 47, 132];

fn v4(dice: &mut Dice) -> u32 {
    let network = dice.of(&[0x0a00_0000, 0xc000_0200, 0xc0a8_0000, 0xffff_ff00, 0]);
    let (subnet, host) = (dice.below(4) as u32 * 64, dice.below(4) as u32);
    network | subnet | host | ((dice.below(2) as u32) << 20)
}

fn v6(dice: &mut Dice) -> u128 {
    let network = dice.of(&[
        0x2001_0db8_u128 << 96,
        0xfe80_u128 << 112,
        u128::MAX << 16,
        0,
    ]);
    network | u128::from(dice.below(3)) << 64 | u128::from(dice.below(4))
}

fn addresses(dice: &mut Dice) -> Addresses {
    if dice.is_one_in(3) {
        return Addresses::default();
    }
    let is_v6 = dice.is_one_in(3);
    let count = if dice.is_one_in(4) {
        1 + dice.below(3)
    } else {
        1
    };
    let prefixes = (0..count).map(|_| match is_v6 && !dice.is_one_in(8) {
        false => {
            let bits = dice.of(&[0, 8, 9, 12, 24, 26, 30, 31, 32, 32]);
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Prefix::V4(v4(dice) & mask, bits)
        }
        true => {
            let bits = dice.of(&[0, 10, 32, 64, 65, 127, 128]);
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Prefix::V6(v6(dice) & mask, bits)
        }
    });
    Addresses {
        prefixes: prefixes.collect(),
        is_negated: dice.is_one_in(8),
    }
}

fn ports(dice: &mut Dice) -> Ports {
    if dice.is_one_in(2) {
        return Ports::default();
    }
    let count = 1 + dice.below(2);
    let ranges = (0..count).map(|_| {
        let (a, b) = (dice.of(PORTS), dice.of(PORTS));
        if dice.is_one_in(2) {
            (a, a)
        } else {
            (a.min(b), a.max(b))
        }
    });
    let ranges = ranges.collect();
    let is_negated = dice.is_one_in(8);
    Ports {
        ranges,
        is_negated,
        has_unknown: !is_negated && dice.is_one_in(8),
    }
}

fn action(dice: &mut Dice) -> Action {
    match dice.below(8) {
        0..4 => Action::Drop,
        4 => Action::Redirect(format!("{}", 1 + dice.below(5))),
        5 => Action::Count,
        _ => Action::Pass,
    }
}

fn headers(dice: &mut Dice) -> TransportHeaders {
    let mut list = TransportHeader::ALL.to_vec();
    list.remove(dice.below(4) as usize);
    list.retain(|_| !dice.is_one_in(3));
    TransportHeaders { list }
}

/// A set of up to so many rules.
pub(crate) fn rules(dice: &mut Dice, most: u64) -> RuleSet {
    let count = dice.below(most + 1);
    let rules = (0..count).map(|_| {
        let mut rule = Rule::new(action(dice));
        rule.source = addresses(dice);
        rule.destination = addresses(dice);
        if !dice.is_one_in(3) {
            rule.protocols = Protocols {
                list: vec![dice.of(PROTOCOLS)],
                is_negated: dice.is_one_in(10),
            };
        }
        if dice.is_one_in(6) {
            rule.headers = headers(dice);
        }
        if rule.protocols.have_ports() {
            rule.source_ports = ports(dice);
            rule.destination_ports = ports(dice);
        } else if rule.protocols.have_types() && dice.is_one_in(2) {
            let kind = dice.below(9) as u16;
            rule.source_ports.ranges.push((kind, kind));
        }
        rule
    });
    RuleSet {
        rules: rules.collect(),
        default: action(dice),
        other: action(dice),
        malformed: Action::Drop,
    }
}

/// A frame of 60 bytes or more, sometimes cut off.
pub(crate) fn frame(dice: &mut Dice) -> Vec<u8> {
    let mut frame = whole_frame(dice);
    if dice.is_one_in(20) {
        let len = 14 + dice.below(frame.len() as u64 - 14);
        frame.truncate(len as usize);
    }
    frame
}

/// A frame of 60 bytes or more that has all its headers, if its IP header is right.
pub(crate) fn whole_frame(dice: &mut Dice) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for _ in 0..dice.below(4).saturating_sub(2) {
        frame.extend([0x81, 0, 0, dice.below(255) as u8]);
    }
    let protocol = dice.of(PROTOCOLS);
    let mut ip = Vec::new();
    let kind: u16 = match dice.below(8) {
        0 => 0x0806,
        1 | 2 => 0x86dd,
        _ => 0x0800,
    };
    if kind == 0x86dd {
        let length = dice.of(&[40, 40, 40, 0, 3, 12, 23]);
        ip.extend([0x60, 0, 0, 0, 0, length, 0, 64]);
        ip.extend(v6(dice).to_be_bytes());
        ip.extend(v6(dice).to_be_bytes());
        // The place of the number of the next header.
        let mut next = 6;
        for _ in 0..dice.below(20).saturating_sub(9) {
            let number = dice.of(&[0u8, 43, 44, 60, 51]);
            ip[next] = number;
            next = ip.len();
            let units = dice.below(2) as u8;
            let offset = dice.of(&[0, 0, 0, 0, 0, 0, 8, 0x18]);
            let len = match number {
                44 => 8,
                51 => (usize::from(units) + 2) * 4,
                _ => (usize::from(units) + 1) * 8,
            };
            let offset = if number == 44 { offset } else { 0 };
            ip.extend([0, units, 0, offset]);
            ip.resize(next + len.max(8), 0);
            ip.truncate(next + len.max(8));
        }
        ip[next] = protocol;
    } else {
        let options = if dice.is_one_in(6) { 2 } else { 0 };
        let offset = dice.of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        let length = dice.of(&[60, 60, 60, 0, 20, 23, 27, 39]);
        ip.extend([
            0x45 + options,
            0,
            0,
            length,
            0,
            0,
            0,
            offset,
            64,
            protocol,
            0,
            0,
        ]);
        ip.extend(v4(dice).to_be_bytes());
        ip.extend(v4(dice).to_be_bytes());
        ip.resize(20 + 4 * usize::from(options), 0);
        if dice.is_one_in(40) {
            ip[0] = dice.of(&[0x44, 0x55, 0x4f]);
        }
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(ip);
    match protocol {
        1 | 58 => frame.extend([dice.below(9) as u8, dice.below(3) as u8, 0, 0]),
        _ => {
            frame.extend(dice.of(PORTS).to_be_bytes());
            frame.extend(dice.of(PORTS).to_be_bytes());
        }
    }
    frame.extend([0; 16]);
    frame
}
