//! The rule that matches what two rules match.

use crate::rules::{Addresses, Ports, Prefix, Protocols, Rule};

/// What matches both, with the first one's action; `None` if that is nothing.
pub(super) fn combine(a: &Rule, b: &Rule) -> Option<Rule> {
    Some(Rule {
        action: a.action.clone(),
        protocols: protocols(&a.protocols, &b.protocols)?,
        source: addresses(&a.source, &b.source)?,
        source_ports: ports(&a.source_ports, &b.source_ports)?,
        destination: addresses(&a.destination, &b.destination)?,
        destination_ports: ports(&a.destination_ports, &b.destination_ports)?,
        comment: String::new(),
    })
}

/// True if it matches all packets of the families that its chain sees.
pub(super) fn is_any(rule: &Rule) -> bool {
    let is_all = |addresses: &Addresses| {
        let is_whole = |prefix: &Prefix| matches!(prefix, Prefix::V4(_, 0) | Prefix::V6(_, 0));
        addresses.is_any() || !addresses.is_negated && addresses.prefixes.iter().any(is_whole)
    };
    rule.protocols.is_any()
        && is_all(&rule.source)
        && is_all(&rule.destination)
        && rule.source_ports.is_any()
        && rule.destination_ports.is_any()
}

fn protocols(a: &Protocols, b: &Protocols) -> Option<Protocols> {
    if a.is_any() || a == b {
        return Some(b.clone());
    }
    if b.is_any() {
        return Some(a.clone());
    }
    let list: Vec<u8> = (0..=255)
        .filter(|it| a.contains(*it) && b.contains(*it))
        .collect();
    (!list.is_empty()).then_some(Protocols {
        is_negated: false,
        list,
    })
}

fn both(a: &[(u128, u128)], b: &[(u128, u128)]) -> Vec<(u128, u128)> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    pairs
        .map(|(x, y)| (x.0.max(y.0), x.1.min(y.1)))
        .filter(|(first, last)| first <= last)
        .collect()
}

fn ports(a: &Ports, b: &Ports) -> Option<Ports> {
    if a.is_any() || a == b {
        return Some(b.clone());
    }
    if b.is_any() {
        return Some(a.clone());
    }
    let ranges = both(&a.normalized(), &b.normalized());
    let ranges = ranges.iter().map(|it| (it.0 as u16, it.1 as u16));
    let ranges: Vec<(u16, u16)> = ranges.collect();
    (!ranges.is_empty()).then_some(Ports {
        is_negated: false,
        ranges,
    })
}

fn addresses(a: &Addresses, b: &Addresses) -> Option<Addresses> {
    if a.is_any() || a == b {
        return Some(b.clone());
    }
    if b.is_any() {
        return Some(a.clone());
    }
    let mut prefixes = Vec::new();
    for is_v6 in [false, true] {
        for range in both(&a.ranges(is_v6), &b.ranges(is_v6)) {
            prefixes_of(range, is_v6, &mut prefixes);
        }
    }
    (!prefixes.is_empty()).then_some(Addresses {
        is_negated: false,
        prefixes,
    })
}

/// Appends the fewest prefixes that make up a range of addresses.
pub(super) fn prefixes_of((first, last): (u128, u128), is_v6: bool, prefixes: &mut Vec<Prefix>) {
    let width = if is_v6 { 128 } else { 32 };
    let mut next = Some(first);
    while let Some(start) = next.filter(|start| *start <= last) {
        // As many free bits as the start and what is left allow.
        let mut free = start.trailing_zeros().min(width);
        while free > 0
            && (1u128.checked_shl(free)).map_or(u128::MAX, |size| size - 1) > last - start
        {
            free -= 1;
        }
        let bits = (width - free) as u8;
        prefixes.push(match is_v6 {
            true => Prefix::V6(start, bits),
            false => Prefix::V4(start as u32, bits),
        });
        let size = 1u128.checked_shl(free);
        next = size.and_then(|size| start.checked_add(size));
    }
}
