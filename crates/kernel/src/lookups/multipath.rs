//! Choice among several next hops: a hash of the packet falls into the share of one (hash
//! threshold, RFC 2992).

use std::net::IpAddr;

use vm::network::{Network, NextHop};

use super::source::source_of_hop;
use super::{Flow, Found, is_usable, siphash};

/// Bytes of the hashed keys (`struct flow_keys` from `basic` on) in front of the addresses.
const KEYS: usize = 36;

/// Offsets in the keys.
const PROTOCOL: usize = 2;
const TAGS: usize = 4;
const PORTS: usize = 28;

/// The next hop that an IPv4 packet takes.
pub(super) fn choose_ipv4<'n>(network: &'n Network, flow: &Flow, found: Found<'n>) -> Found<'n> {
    let hops = &found.route.next_hops;
    if hops.len() < 2 || flow.output != 0 {
        return found;
    }
    let ports = network.multipath.ipv4_has_ports;
    let protocol = if ports { flow.protocol } else { 0 };
    let hash = hash(network, flow, 0, ports, protocol);
    let has_source = !flow.source.is_unspecified();
    let mut best: Option<(u32, &NextHop)> = None;
    for (hop, bound) in bounds(hops, |hop| is_usable(network, hop, true)) {
        let owns_source = has_source
            && source_of_hop(network, found.route, hop).map(IpAddr::V4) == Some(flow.source);
        let score = u32::from(owns_source) * 2 + u32::from(hash <= bound);
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, hop));
            if score == 3 || !has_source && score == 1 {
                break;
            }
        }
    }
    Found {
        hop: best.map(|(_, hop)| hop).or(found.hop),
        ..found
    }
}

/// The next hop that an IPv6 packet takes.
pub(super) fn choose_ipv6<'n>(network: &'n Network, flow: &Flow, found: Found<'n>) -> Found<'n> {
    let hops = &found.route.next_hops;
    if hops.len() < 2 || flow.output != 0 {
        return found;
    }
    let hash = hash(network, flow, flow.flow_label, false, flow.protocol);
    let bounds = bounds(hops, |hop| is_usable(network, hop, false));
    let hop = bounds.into_iter().find(|(_, bound)| hash <= *bound);
    Found {
        hop: hop.map(|(hop, _)| hop).or(found.hop),
        ..found
    }
}

/// The next hops that can be used, each with the highest hash of its share.
fn bounds(hops: &[NextHop], is_usable: impl Fn(&NextHop) -> bool) -> Vec<(&NextHop, u32)> {
    let usable = hops.iter().filter(|hop| is_usable(hop));
    let total: u64 = usable.clone().map(|hop| u64::from(hop.weight)).sum();
    let total = total.max(1);
    let mut sum = 0;
    let bound = |hop| {
        let hop: &NextHop = hop;
        sum += u64::from(hop.weight);
        let share = ((sum << 31) + total / 2) / total;
        (hop, share.saturating_sub(1) as u32)
    };
    usable.map(bound).collect()
}

/// The hash of a packet, of 31 bits. Both directions of a connection have the same.
fn hash(network: &Network, flow: &Flow, label: u32, has_ports: bool, protocol: u8) -> u32 {
    let mut keys = [0; KEYS];
    keys[PROTOCOL] = protocol;
    keys[TAGS..TAGS + 4].copy_from_slice(&label.to_be_bytes());
    if has_ports {
        let mut ports = [flow.source_port, flow.destination_port].map(u16::swap_bytes);
        if ports[1] < ports[0] {
            ports.swap(0, 1);
        }
        keys[PORTS..PORTS + 2].copy_from_slice(&ports[0].to_le_bytes());
        keys[PORTS + 2..PORTS + 4].copy_from_slice(&ports[1].to_le_bytes());
    }
    let mut bytes = keys.to_vec();
    match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut pair =
                [source, destination].map(|address| u32::from_le_bytes(address.octets()));
            pair.sort_unstable();
            bytes.extend(pair.iter().flat_map(|address| address.to_le_bytes()));
        }
        (source, destination) => {
            let octets = |address| match address {
                IpAddr::V6(address) => address.octets(),
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            };
            let mut pair = [source, destination].map(octets);
            pair.sort_unstable();
            bytes.extend(pair.concat());
        }
    }
    // The structure is a multiple of 8 bytes.
    bytes.extend([0; 4]);
    let seed = u64::from(network.multipath.seed);
    let key = seed << 32 | seed;
    (siphash(&bytes, [key, key]) as u32).max(1) >> 1
}
