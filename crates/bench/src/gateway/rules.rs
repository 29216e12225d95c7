//! Sets of rules with the structure of real ones (as ClassBench's): prefixes come from a tree of
//! networks that few rules share, most ports are any or well known, most rules are for TCP.

use ::gateway::{Action, Addresses, Ports, Prefix, Protocols, Rule, RuleSet};
use spec::SplitMix;

/// A number below an end.
pub(super) fn below(random: &mut SplitMix, end: u64) -> u64 {
    random.next_u64() % end
}

/// Well-known ports, frequent ones first.
const SERVICES: [u16; 24] = [
    80, 443, 53, 22, 25, 123, 110, 143, 21, 23, 161, 389, 445, 993, 995, 1433, 1521, 3306, 3389,
    5060, 5432, 8080, 8443, 179,
];

/// Index below a number of items; the first are the most frequent.
pub(super) fn skewed(random: &mut SplitMix, items: u64) -> u64 {
    below(random, items).min(below(random, items))
}

/// Prefixes of a field, from few networks of 16 bits.
fn pool(random: &mut SplitMix, count: usize) -> Vec<Prefix> {
    let networks: Vec<u32> = (0..count.div_ceil(64).max(4))
        .map(|_| (random.next_u64() as u32) & 0xffff_0000)
        .collect();
    (0..count)
        .map(|_| {
            let network = networks[skewed(random, networks.len() as u64) as usize];
            let bits = match below(random, 100) {
                0..45 => 32,
                45..75 => 24,
                75..85 => 28,
                85..92 => 20,
                _ => 16,
            };
            // Hosts share networks of 24 bits.
            let subnet = skewed(random, 64) as u32 * 4 % 256;
            let address = network | subnet << 8 | below(random, 256) as u32;
            Prefix::V4(address & (u32::MAX << (32 - bits)), bits)
        })
        .collect()
}

fn ports(random: &mut SplitMix, is_source: bool) -> Ports {
    let range = match (is_source, below(random, 100)) {
        (true, 0..90) | (false, 0..20) => return Ports::default(),
        (true, 90..96) | (false, 20..26) => (1024, u16::MAX),
        (_, 96..) => {
            let first = 1024 + below(random, 64) as u16 * 128;
            (first, first + below(random, 200) as u16)
        }
        _ => {
            let port = SERVICES[skewed(random, SERVICES.len() as u64) as usize];
            (port, port)
        }
    };
    Ports {
        ranges: vec![range],
        ..Ports::default()
    }
}

fn addresses(random: &mut SplitMix, pool: &[Prefix], any: u64) -> Addresses {
    match below(random, 100) < any {
        true => Addresses::default(),
        false => Addresses {
            prefixes: vec![pool[skewed(random, pool.len() as u64) as usize]],
            is_negated: false,
        },
    }
}

/// So many rules. Rules for all packets do not occur, so that later ones are reached.
pub(super) fn generate(count: usize, seed: u64) -> RuleSet {
    let mut random = SplitMix::new(seed);
    let random = &mut random;
    let sources = pool(random, (count / 5).max(4));
    let destinations = pool(random, (count / 4).max(4));
    let rules = (0..count).map(|_| {
        let action = match below(random, 3) {
            0 => Action::Drop,
            _ => Action::Pass,
        };
        let mut rule = Rule::new(action);
        rule.source = addresses(random, &sources, 12);
        rule.destination = addresses(random, &destinations, 6);
        if rule.source.is_any() && rule.destination.is_any() {
            rule.destination = addresses(random, &destinations, 0);
        }
        let protocol = match below(random, 100) {
            0..68 => Some(6),
            68..88 => Some(17),
            88..92 => Some(1),
            92..94 => Some(47),
            _ => None,
        };
        if let Some(protocol) = protocol {
            rule.protocols = Protocols {
                list: vec![protocol],
                is_negated: false,
            };
        }
        if rule.protocols.have_ports() {
            rule.source_ports = ports(random, true);
            rule.destination_ports = ports(random, false);
        }
        rule
    });
    RuleSet {
        default: Action::Drop,
        rules: rules.collect(),
        ..RuleSet::default()
    }
}
