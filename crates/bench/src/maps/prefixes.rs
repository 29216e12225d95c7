//! IPv4 prefixes with the lengths of the Internet's routing table.

use std::collections::HashSet;

use spec::SplitMix;

/// Number of prefixes.
pub(super) const PREFIXES: usize = 100_000;

/// Length of a prefix in bits, and its share of a routing table in units of 0.01 %, as the
/// public statistics of BGP tables have it (bgp.potaroo.net, 2024, rounded).
const SHARES: &[(u32, u32)] = &[
    (8, 2),
    (10, 1),
    (11, 1),
    (12, 3),
    (13, 6),
    (14, 12),
    (15, 20),
    (16, 140),
    (17, 85),
    (18, 140),
    (19, 250),
    (20, 450),
    (21, 520),
    (22, 1_110),
    (23, 1_010),
    (24, 6_250),
];

/// Distinct prefixes: length and address, in host order with zeros behind the length.
pub(super) fn table() -> Vec<(u32, u32)> {
    let mut random = SplitMix::new(16);
    let mut seen = HashSet::new();
    let mut prefixes = Vec::with_capacity(PREFIXES);
    while prefixes.len() < PREFIXES {
        let len = length(&mut random);
        let address = unicast(&mut random) & u32::MAX << (32 - len);
        if seen.insert((len, address)) {
            prefixes.push((len, address));
        }
    }
    prefixes
}

/// Addresses in host order, nine of ten below one of the prefixes.
pub(super) fn addresses(prefixes: &[(u32, u32)], count: usize) -> Vec<u32> {
    let mut random = SplitMix::new(17);
    let mut address = || {
        if random.next_u64().is_multiple_of(10) {
            return unicast(&mut random);
        }
        let (len, address) = prefixes[random.next_u64() as usize % prefixes.len()];
        address | random.next_u64() as u32 & u32::MAX.checked_shr(len).unwrap_or(0)
    };
    (0..count).map(|_| address()).collect()
}

/// An address from 1.0.0.0 to 223.255.255.255.
fn unicast(random: &mut SplitMix) -> u32 {
    let first = 1 + (random.next_u64() % 223) as u32;
    first << 24 | random.next_u64() as u32 >> 8
}

fn length(random: &mut SplitMix) -> u32 {
    let total: u32 = SHARES.iter().map(|(_, share)| share).sum();
    let mut at = (random.next_u64() % u64::from(total)) as u32;
    for (len, share) in SHARES {
        match at.checked_sub(*share) {
            Some(rest) => at = rest,
            None => return *len,
        }
    }
    24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_prefixes_have_24_bits() {
        let prefixes = table();
        let long = prefixes.iter().filter(|(len, _)| *len == 24).count();
        assert!((60_000..65_000).contains(&long), "{long}");
        assert_eq!(prefixes, table());
        let inside = |address: &u32| {
            prefixes
                .iter()
                .any(|(len, of)| address >> (32 - len) == of >> (32 - len))
        };
        let hits = addresses(&prefixes, 100)
            .iter()
            .filter(|at| inside(at))
            .count();
        assert!(hits > 80, "{hits}");
    }
}
