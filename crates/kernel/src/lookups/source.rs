//! Source addresses of the packets that the host sends on a route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use vm::network::{DeviceAddress, NetDevice, Network, NextHop, Route, RoutePrefix, scope};

/// The source address of IPv4 packets: the route's, or that of its device which is nearest to
/// the router.
pub(crate) fn source_ipv4(network: &Network, route: &Route, hop: &NextHop) -> Option<Ipv4Addr> {
    match route.preferred_source {
        Some(IpAddr::V4(address)) => Some(address),
        _ => source_of_hop(network, route, hop),
    }
}

/// The source address of IPv4 packets through a next hop, whatever the route prefers.
pub(super) fn source_of_hop(network: &Network, route: &Route, hop: &NextHop) -> Option<Ipv4Addr> {
    let router = match hop.gateway {
        Some(IpAddr::V4(address)) => address,
        // Linux 6.18 takes the first bytes of the address.
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.octets();
            Ipv4Addr::new(a, b, c, d)
        }
        None => Ipv4Addr::UNSPECIFIED,
    };
    let own = network.device(hop.device);
    let own = own.and_then(|device| of_device(device, router, route.scope));
    own.or_else(|| {
        let mut devices = network.devices.iter();
        devices.find_map(|device| {
            ipv4(device).find_map(|(address, ip)| {
                let is_wide = address.scope != scope::LINK && address.scope <= route.scope;
                (is_wide && !address.is_secondary).then_some(ip)
            })
        })
    })
}

/// The address of a device in the network of a router, or else its first one.
fn of_device(device: &NetDevice, router: Ipv4Addr, most: u8) -> Option<Ipv4Addr> {
    let candidates = ipv4(device)
        .filter(|(address, _)| !address.is_secondary && address.scope.min(scope::HOST) <= most);
    let mut first = None;
    for (address, ip) in candidates {
        let net = RoutePrefix::new(address.peer.unwrap_or(address.address), address.prefix_len);
        if router.is_unspecified() || net.is_some_and(|net| net.contains(router.into())) {
            return Some(ip);
        }
        first.get_or_insert(ip);
    }
    first
}

fn ipv4(device: &NetDevice) -> impl Iterator<Item = (&DeviceAddress, Ipv4Addr)> {
    (device.addresses.iter()).filter_map(|address| match address.address {
        IpAddr::V4(ip) => Some((address, ip)),
        IpAddr::V6(_) => None,
    })
}

fn ipv6(device: &NetDevice) -> impl Iterator<Item = (&DeviceAddress, Ipv6Addr)> {
    (device.addresses.iter()).filter_map(|address| match address.address {
        IpAddr::V6(ip) => Some((address, ip)),
        IpAddr::V4(_) => None,
    })
}

/// The source address of IPv6 packets to a destination on a device: the route's, or the best
/// of the host.
pub(crate) fn source_ipv6(
    network: &Network,
    route: &Route,
    device: &NetDevice,
    destination: Ipv6Addr,
) -> Option<Ipv6Addr> {
    match route.preferred_source {
        Some(IpAddr::V6(address)) => Some(address),
        _ => source_ipv6_on(network, device, destination),
    }
}

/// The best source address of the host for IPv6 packets to a destination on a device, by the
/// rules of RFC 6724, section 5.
pub(crate) fn source_ipv6_on(
    network: &Network,
    device: &NetDevice,
    destination: Ipv6Addr,
) -> Option<Ipv6Addr> {
    let wanted = address_scope(destination);
    let label = label(destination);
    let mut best: Option<([u32; 6], Ipv6Addr)> = None;
    // Linux 6.18 tries the device of the route first, then the others.
    let others = (network.devices.iter()).filter(|other| other.index != device.index);
    for candidate in std::iter::once(device).chain(others) {
        // Of another link only global addresses serve.
        for (address, ip) in ipv6(candidate) {
            if address.is_tentative || candidate.vrf_table != device.vrf_table {
                continue;
            }
            let scope = address_scope(ip);
            let fits = match scope.cmp(&wanted) {
                std::cmp::Ordering::Less => u32::from(scope),
                _ => 256 - u32::from(scope),
            };
            let shared = (ip.to_bits() ^ destination.to_bits()).leading_zeros();
            let rank = [
                u32::from(ip == destination),
                fits,
                u32::from(!address.is_deprecated),
                u32::from(candidate.index == device.index),
                u32::from(self::label(ip) == label),
                shared.min(address.prefix_len.into()),
            ];
            if best.as_ref().is_none_or(|(most, _)| rank > *most) {
                best = Some((rank, ip));
            }
        }
    }
    best.map(|(_, ip)| ip)
}

/// The scope of an address (RFC 4291), by the numbers of multicast.
fn address_scope(address: Ipv6Addr) -> u8 {
    const INTERFACE: u8 = 1;
    const LINK: u8 = 2;
    const SITE: u8 = 5;
    const GLOBAL: u8 = 14;
    match address.segments() {
        [first, ..] if first >> 8 == 0xff => (first & 15) as u8,
        _ if address.is_loopback() => LINK.min(INTERFACE + 1),
        [first, ..] if first & 0xffc0 == 0xfe80 => LINK,
        [first, ..] if first & 0xffc0 == 0xfec0 => SITE,
        _ => GLOBAL,
    }
}

/// The label of an address in the policy table that Linux has at first.
fn label(address: Ipv6Addr) -> u32 {
    const LABELS: &[(u128, u32, u32)] = &[
        (1, 128, 0),
        (0xffff << 32, 96, 4),
        (0, 96, 3),
        (0x2001 << 112, 32, 6),
        (0x2001_0010 << 96, 28, 7),
        (0x3ffe << 112, 16, 12),
        (0x2002 << 112, 16, 2),
        (0xfec0 << 112, 10, 11),
        (0xfc00 << 112, 7, 5),
    ];
    let bits = address.to_bits();
    let found = LABELS
        .iter()
        .find(|(net, len, _)| (bits ^ net) >> (128 - len) == 0);
    found.map_or(1, |(.., label)| *label)
}
