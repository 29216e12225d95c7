//! Lookup of IPv6 routes: longest prefix first, of routes with the lowest metric that have one
//! the best by device and preference.

use vm::System;
use vm::network::{Network, NextHop, Route, RouteKind, RoutePreference, table};

use super::{Flow, Found, NoRoute, Tables, is_usable, multipath, rules};

/// Most bytes of an IPv6 packet.
const MOST_BYTES: u32 = 0xffff + 40;
/// Least MTU of a link with IPv6.
const LEAST_MTU: u32 = 1280;

/// The route of a packet, with its next hop. The device that it prefers is where the packet
/// has to go, or else where it comes from.
pub(crate) fn lookup<'n>(
    network: &'n Network,
    flow: &Flow,
    tables: Tables,
) -> Result<Found<'n>, NoRoute> {
    let custom = network.rules.custom(false);
    let found = match (tables, custom) {
        (Tables::Only(number), _) => search(network, flow, number),
        (Tables::ByRules, None) => {
            search(network, flow, table::LOCAL).or_else(|| search(network, flow, table::MAIN))
        }
        (Tables::ByRules, Some(rules)) => {
            let answer = rules::lookup(network, rules, flow, |number| {
                search(network, flow, number).map(Ok)
            });
            match answer {
                Err(NoRoute::Blackhole) => return Err(NoRoute::BlackholeRule),
                Err(NoRoute::Prohibited) => return Err(NoRoute::ProhibitRule),
                answer => answer.ok(),
            }
        }
    };
    let found = found.ok_or(NoRoute::NoneMatches)?;
    match found.route.kind {
        RouteKind::Blackhole => Err(NoRoute::Blackhole),
        RouteKind::Unreachable => Err(NoRoute::Unreachable),
        RouteKind::Prohibit => Err(NoRoute::Prohibited),
        RouteKind::Unicast => Ok(multipath::choose_ipv6(network, flow, found)),
        RouteKind::Local
        | RouteKind::Broadcast
        | RouteKind::Anycast
        | RouteKind::Multicast
        | RouteKind::Throw => Ok(found),
    }
}

/// Most bytes of a packet on a route.
pub(crate) fn mtu(network: &Network, found: &Found<'_>) -> u32 {
    let device = found.hop.and_then(|hop| network.device(hop.device));
    let mtu = match (found.route.mtu, found.route.is_mtu_locked) {
        (mtu @ 1.., true) => mtu,
        _ => {
            let mtu = device.map_or(0, |device| device.mtu);
            mtu.clamp(LEAST_MTU, MOST_BYTES)
        }
    };
    let headroom = found.hop.and_then(|hop| hop.encapsulation).unwrap_or(0);
    match headroom < mtu {
        true => mtu - headroom,
        false => mtu,
    }
}

/// Asks one table.
///
/// A lookup begins at the longest prefix of the destination that has routes for the source:
/// routes for some sources hide those of their prefix for all, but for default routes. From
/// there it goes to shorter prefixes of the source, then to the routes for all sources, then
/// to shorter prefixes of the destination, and nothing is hidden any more.
fn search<'n>(network: &'n Network, flow: &Flow, number: u32) -> Option<Found<'n>> {
    let table = network.routes.table(false, number)?;
    let mut has_begun = false;
    table.matching(flow.destination).find_map(|(len, routes)| {
        let has_sources = routes.first().is_some_and(|route| !route.source.is_empty());
        let groups = routes.chunk_by(|a, b| a.source.len() == b.source.len());
        let mut groups = groups.filter_map(|group| {
            let routes = (group.iter()).filter(|route| route.source.contains(flow.source));
            routes.clone().next()?;
            Some(routes)
        });
        groups.find_map(|routes| {
            let is_for_all = (routes.clone().next()).is_some_and(|route| route.source.is_empty());
            if is_for_all && has_sources && len != 0 && !has_begun {
                return None;
            }
            has_begun = true;
            best(network, flow, routes).map(|(route, hop)| Found {
                route,
                hop,
                prefix_len: len,
            })
        })
    })
}

/// The best of the routes of one prefix, which are in the order of their metrics.
fn best<'n>(
    network: &Network,
    flow: &Flow,
    routes: impl Iterator<Item = &'n Route> + Clone,
) -> Option<(&'n Route, Option<&'n NextHop>)> {
    let lowest = routes.clone().next()?.metric;
    let of_lowest = routes.clone().take_while(|route| route.metric == lowest);
    best_score(network, flow, of_lowest).or_else(|| {
        let others = routes.skip_while(|route| route.metric == lowest);
        best_score(network, flow, others)
    })
}

/// The first of the routes with the highest score.
fn best_score<'n>(
    network: &Network,
    flow: &Flow,
    routes: impl Iterator<Item = &'n Route>,
) -> Option<(&'n Route, Option<&'n NextHop>)> {
    let mut best: Option<(u32, &Route, Option<&NextHop>)> = None;
    for route in routes {
        let hops = route.next_hops.iter().map(Some);
        let none = route.next_hops.is_empty().then_some(None);
        for hop in hops.chain(none) {
            let is_other = hop.map_or(LOOPBACK, |hop| hop.device) != wanted_device(flow);
            let is_dead = hop.is_some_and(|hop| !is_usable(network, hop, false));
            if is_dead || flow.is_bound && is_other {
                continue;
            }
            let score = score(flow, route, hop);
            if best.is_none_or(|(most, ..)| score > most) {
                best = Some((score, route, hop));
            }
        }
    }
    best.map(|(_, route, hop)| (route, hop))
}

/// Score of a route: preference first, then whether it has the device.
fn score(flow: &Flow, route: &Route, hop: Option<&NextHop>) -> u32 {
    let device = hop.map_or(LOOPBACK, |hop| hop.device);
    let preference = match route.preference {
        RoutePreference::Low => 1,
        RoutePreference::Medium => 2,
        RoutePreference::High => 3,
    };
    let wanted = wanted_device(flow);
    preference << 2
        | if wanted == 0 || wanted == device {
            2
        } else {
            0
        }
}

/// The device of routes that drop packets.
const LOOPBACK: u32 = System::LOOPBACK;

/// The device that a lookup prefers.
fn wanted_device(flow: &Flow) -> u32 {
    match flow.output {
        0 => flow.input,
        output => output,
    }
}
