//! Lookup of IPv4 routes: longest prefix first, then type of service and metric; a route
//! counts if one of its next hops can be used.

use vm::network::{Network, Route, RouteKind, table};

use super::{Flow, Found, NoRoute, Tables, is_usable, multipath, rules};

/// The answer of one table: `None` if it has no route, or one that ends the lookup in it.
type Answer<'n> = Option<Result<Found<'n>, NoRoute>>;

/// The route of a packet, with its next hop.
pub(crate) fn lookup<'n>(
    network: &'n Network,
    flow: &Flow,
    tables: Tables,
) -> Result<Found<'n>, NoRoute> {
    let custom = network.rules.custom(true);
    let answer = match (tables, custom) {
        (Tables::Only(number), custom) => search(network, flow, number, custom.is_some()),
        (Tables::ByRules, Some(rules)) => Some(rules::lookup(network, rules, flow, |number| {
            search(network, flow, number, true)
        })),
        (Tables::ByRules, None) => by_default(network, flow),
    };
    let found = answer.unwrap_or(Err(NoRoute::NoneMatches))?;
    Ok(match found.route.kind {
        RouteKind::Unicast => multipath::choose_ipv4(network, flow, found),
        _ => found,
    })
}

/// Without custom rules: the main table, then the default one.
fn by_default<'n>(network: &'n Network, flow: &Flow) -> Answer<'n> {
    let main = search(network, flow, table::MAIN, false);
    main.or_else(|| search(network, flow, table::DEFAULT, false))
}

/// Searches one table. Without custom rules main and local table are one.
fn search<'n>(network: &'n Network, flow: &Flow, number: u32, has_rules: bool) -> Answer<'n> {
    let is_joined = !has_rules && matches!(number, table::MAIN | table::LOCAL);
    if !is_joined {
        return first(network, flow, &[number]);
    }
    first(network, flow, &[table::LOCAL, table::MAIN])
}

/// The first route of some tables: of a prefix, those of the first table come first.
fn first<'n>(network: &'n Network, flow: &Flow, tables: &[u32]) -> Answer<'n> {
    let mut candidates = Vec::new();
    for (order, number) in tables.iter().enumerate() {
        if let Some(table) = network.routes.table(true, *number) {
            let routes = table.matching(flow.destination);
            candidates.extend(routes.map(|(len, routes)| (len, order, routes)));
        }
    }
    candidates.sort_by_key(|(len, order, _)| (std::cmp::Reverse(*len), *order));
    for (prefix_len, _, routes) in candidates {
        for route in routes {
            if let Some(answer) = route_answer(network, flow, route, prefix_len) {
                return match answer {
                    Err(Verdict::Throw) => None,
                    Err(Verdict::Drop(why)) => Some(Err(why)),
                    Ok(found) => Some(Ok(found)),
                };
            }
        }
    }
    None
}

/// Verdict of a route without next hop.
enum Verdict {
    Throw,
    Drop(NoRoute),
}

/// Verdict of a route of the destination's prefix; `None` if it does not count.
fn route_answer<'n>(
    network: &Network,
    flow: &Flow,
    route: &'n Route,
    prefix_len: u8,
) -> Option<Result<Found<'n>, Verdict>> {
    if route.tos != 0 && route.tos != flow.tos & 0x1c {
        return None;
    }
    match route.kind {
        RouteKind::Blackhole => return Some(Err(Verdict::Drop(NoRoute::Blackhole))),
        RouteKind::Unreachable => return Some(Err(Verdict::Drop(NoRoute::Unreachable))),
        RouteKind::Prohibit => return Some(Err(Verdict::Drop(NoRoute::Prohibited))),
        RouteKind::Throw => return Some(Err(Verdict::Throw)),
        RouteKind::Unicast
        | RouteKind::Local
        | RouteKind::Broadcast
        | RouteKind::Anycast
        | RouteKind::Multicast => {}
    }
    let mut hops = route.next_hops.iter();
    let hop = hops.find(|hop| {
        is_usable(network, hop, true) && (flow.output == 0 || flow.output == hop.device)
    });
    hop.map(|hop| {
        Ok(Found {
            route,
            hop: Some(hop),
            prefix_len,
        })
    })
}
