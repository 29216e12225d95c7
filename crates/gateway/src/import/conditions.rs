//! Conditions: unions of products, each the condition of a rule. The action of such a rule counts
//! for nothing.

use crate::rules::{Addresses, Ports, Prefix, Protocols, Rule, TransportHeaders};
use crate::space::{difference, intersection};

/// Most products of a union.
pub(super) const MOST_PRODUCTS: usize = 1 << 16;

/// The intersection of two products; `None` if it is empty.
pub(super) fn intersect(a: &Rule, b: &Rule) -> Option<Rule> {
    Some(Rule {
        action: a.action.clone(),
        protocols: protocols(&a.protocols, &b.protocols, |a, b| a && b)?,
        headers: TransportHeaders::where_in(|it| a.headers.contains(it) && b.headers.contains(it))?,
        source: addresses_in_both(&a.source, &b.source)?,
        source_ports: ports_in_both(&a.source_ports, &b.source_ports)?,
        destination: addresses_in_both(&a.destination, &b.destination)?,
        destination_ports: ports_in_both(&a.destination_ports, &b.destination_ports)?,
        comment: String::new(),
    })
}

/// The intersection of two unions.
pub(super) fn intersect_all(a: &[Rule], b: &[Rule]) -> Vec<Rule> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| intersect(a, b)).collect()
}

/// The difference of two products: disjoint products, at most one a field.
pub(super) fn subtract(a: &Rule, b: &Rule) -> Vec<Rule> {
    let Some(both) = intersect(a, b) else {
        return vec![a.clone()];
    };
    let mut pieces = Vec::new();
    // What agrees with `b` in the fields before.
    let mut rest = a.clone();
    if let Some(protocols) = protocols(&rest.protocols, &b.protocols, |a, b| a && !b) {
        let mut piece = rest.clone();
        piece.protocols = protocols;
        pieces.push(piece);
    }
    rest.protocols = both.protocols;
    let headers =
        TransportHeaders::where_in(|it| rest.headers.contains(it) && !b.headers.contains(it));
    if let Some(headers) = headers {
        let mut piece = rest.clone();
        piece.headers = headers;
        pieces.push(piece);
    }
    rest.headers = both.headers;
    if let Some(source) = addresses_without(&rest.source, &b.source) {
        let mut piece = rest.clone();
        piece.source = source;
        pieces.push(piece);
    }
    rest.source = both.source;
    if let Some(destination) = addresses_without(&rest.destination, &b.destination) {
        let mut piece = rest.clone();
        piece.destination = destination;
        pieces.push(piece);
    }
    rest.destination = both.destination;
    let most = if rest.protocols.have_types() {
        255
    } else {
        u16::MAX
    };
    if let Some(ports) = ports_without(&rest.source_ports, &b.source_ports, most) {
        let mut piece = rest.clone();
        piece.source_ports = ports;
        pieces.push(piece);
    }
    rest.source_ports = both.source_ports;
    if let Some(ports) = ports_without(&rest.destination_ports, &b.destination_ports, most) {
        rest.destination_ports = ports;
        pieces.push(rest);
    }
    pieces
}

/// The difference of two unions of disjoint products; `None` if it has too
/// many products.
pub(super) fn subtract_all(a: &[Rule], b: &[Rule]) -> Option<Vec<Rule>> {
    let mut left = a.to_vec();
    for b in b {
        left = left.iter().flat_map(|a| subtract(a, b)).collect();
        if left.len() > MOST_PRODUCTS {
            return None;
        }
    }
    Some(left)
}

/// The protocols that one of two products matches or both, by `is_in`.
fn protocols(a: &Protocols, b: &Protocols, is_in: fn(bool, bool) -> bool) -> Option<Protocols> {
    let (list, others): (Vec<u8>, Vec<u8>) =
        (0..=255).partition(|it| is_in(a.contains(*it), b.contains(*it)));
    match (list.is_empty(), list.len() > others.len()) {
        (true, _) => None,
        (false, is_negated) => Some(Protocols {
            is_negated: is_negated && !others.is_empty(),
            list: if is_negated { others } else { list },
        }),
    }
}

fn ports_in_both(a: &Ports, b: &Ports) -> Option<Ports> {
    if a.is_any() || a == b {
        return Some(b.clone());
    }
    if b.is_any() {
        return Some(a.clone());
    }
    Ports::of_values(&intersection(&a.values(), &b.values()))
}

fn ports_without(a: &Ports, b: &Ports, most: u16) -> Option<Ports> {
    let known = Ports {
        ranges: vec![(0, most)],
        has_unknown: true,
        ..Ports::default()
    };
    let a = intersection(&a.values(), &known.values());
    Ports::of_values(&difference(&a, &b.values()))
}

/// True if the addresses are all those of one family.
fn is_family(addresses: &Addresses, is_v6: bool) -> bool {
    let all = Addresses::default();
    addresses.ranges(is_v6) == all.ranges(is_v6) && addresses.ranges(!is_v6).is_empty()
}

fn addresses_in_both(a: &Addresses, b: &Addresses) -> Option<Addresses> {
    if a.is_any() || a == b {
        return Some(b.clone());
    }
    if b.is_any() {
        return Some(a.clone());
    }
    // All of a family: the shorter text is kept.
    for (whole, part) in [(a, b), (b, a)] {
        for is_v6 in [false, true] {
            if is_family(whole, is_v6) && part.prefixes.iter().all(|it| it.is_v6() == is_v6) {
                return Some(part.clone());
            }
        }
    }
    of_ranges([false, true].map(|is_v6| intersection(&a.ranges(is_v6), &b.ranges(is_v6))))
}

fn addresses_without(a: &Addresses, b: &Addresses) -> Option<Addresses> {
    for is_v6 in [false, true] {
        let is_other = |prefix: &Prefix| prefix.is_v6() == is_v6;
        let is_negatable = !b.is_any() && !b.is_negated && b.prefixes.iter().all(is_other);
        if is_negatable && is_family(a, is_v6) && !is_family(b, is_v6) {
            return Some(Addresses {
                is_negated: true,
                prefixes: b.prefixes.clone(),
            });
        }
    }
    of_ranges([false, true].map(|is_v6| difference(&a.ranges(is_v6), &b.ranges(is_v6))))
}

/// The addresses of ranges of IPv4 and of IPv6; `None` for no addresses.
fn of_ranges(ranges: [Vec<(u128, u128)>; 2]) -> Option<Addresses> {
    let mut prefixes = Vec::new();
    for (ranges, is_v6) in ranges.into_iter().zip([false, true]) {
        for range in ranges {
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
