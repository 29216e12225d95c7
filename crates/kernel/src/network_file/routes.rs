//! Routes, as `ip -json route` prints them.

use std::net::IpAddr;

use vm::network::{Network, NextHop, Route, RouteKind, RoutePreference, RoutePrefix, table};

use super::NetworkFileError;
use super::item::Item;
use super::link::read_scope;

/// Bytes of an IPv6 header and of a segment routing header without segments.
const IPV6_HEADER: u32 = 40;
const SEGMENT_HEADER: u32 = 8;

/// A route.
pub(super) fn read(network: &Network, item: &Item<'_>) -> Result<Route, NetworkFileError> {
    let destination = item.need("dst")?;
    let is_ipv4 = is_ipv4(item, destination.text()?)?;
    let destination = destination.prefix(is_ipv4)?;
    let kind = read_kind(item)?;
    let mut next_hops = Vec::new();
    for hop in item.list("nexthops")? {
        next_hops.push(read_hop(network, &hop)?);
    }
    if next_hops.is_empty() && item.has("dev") {
        next_hops.push(read_hop(network, item)?);
    }
    if next_hops.is_empty() && kind == RouteKind::Unicast {
        return Err(item.error("`dev` or `nexthops` is missing"));
    }
    let mut route = Route::new(destination, kind, next_hops);
    if let Some(source) = item.get("from") {
        route.source = source.prefix(is_ipv4)?;
    }
    route.table = read_table(item)?.unwrap_or(table::MAIN);
    if is_ipv4 && let Some(scope) = item.get("scope") {
        route.scope = read_scope(&scope)?;
    }
    route.tos = item.number_or("tos", 0)?;
    route.metric = item.number_or("metric", route.metric)?;
    route.preference = match item.text_of("pref")? {
        Some("low") => RoutePreference::Low,
        Some("high") => RoutePreference::High,
        _ => RoutePreference::Medium,
    };
    let source = item.get("prefsrc").map(|source| source.address());
    route.preferred_source = source.transpose()?;
    for metrics in item.list("metrics")? {
        route.mtu = metrics.number_or("mtu", route.mtu)?;
        route.is_mtu_locked |= metrics.flag("lock")?;
    }
    Ok(route)
}

/// The family of a route. Only those of IPv6 have a preference.
fn is_ipv4(item: &Item<'_>, destination: &str) -> Result<bool, NetworkFileError> {
    if destination != "default" {
        return Ok(!destination.contains(':'));
    }
    let hops = item.list("nexthops")?;
    let mut gateways = vec![item.get("gateway")];
    gateways.extend(hops.iter().map(|hop| hop.get("gateway")));
    for gateway in gateways.into_iter().flatten() {
        if gateway.address()?.is_ipv6() {
            return Ok(false);
        }
    }
    Ok(!item.has("pref"))
}

fn read_kind(item: &Item<'_>) -> Result<RouteKind, NetworkFileError> {
    let Some(kind) = item.get("type") else {
        return Ok(RouteKind::Unicast);
    };
    Ok(match kind.text()? {
        "unicast" | "1" => RouteKind::Unicast,
        "local" | "2" => RouteKind::Local,
        "broadcast" | "3" => RouteKind::Broadcast,
        "anycast" | "4" => RouteKind::Anycast,
        "multicast" | "5" => RouteKind::Multicast,
        "blackhole" | "6" => RouteKind::Blackhole,
        "unreachable" | "7" => RouteKind::Unreachable,
        "prohibit" | "8" => RouteKind::Prohibit,
        "throw" | "9" => RouteKind::Throw,
        other => return Err(kind.error(format!("unknown type of route `{other}`"))),
    })
}

/// The number of the table that a route or rule names.
pub(super) fn read_table(item: &Item<'_>) -> Result<Option<u32>, NetworkFileError> {
    let Some(item) = item.get("table") else {
        return Ok(None);
    };
    Ok(Some(match item.text() {
        Ok("local") => table::LOCAL,
        Ok("main") => table::MAIN,
        Ok("default") => table::DEFAULT,
        _ => item.number()?,
    }))
}

fn read_hop(network: &Network, item: &Item<'_>) -> Result<NextHop, NetworkFileError> {
    let device = item.need("dev")?.device(network)?.index;
    let gateway = match (item.get("gateway"), item.get("via")) {
        (Some(gateway), _) => Some(gateway.address()?),
        (None, Some(via)) => Some(via.need("host")?.address()?),
        (None, None) => None,
    };
    let weight = item.number_or("weight", 1)?;
    if weight == 0 {
        return Err(item.error("the weight of a next hop is at least 1"));
    }
    Ok(NextHop {
        device,
        gateway,
        weight,
        is_dead: item.has_word("flags", "dead")?,
        is_link_down: item.has_word("flags", "linkdown")?,
        encapsulation: read_encapsulation(item)?,
    })
}

/// Bytes that a lightweight tunnel takes off the MTU.
fn read_encapsulation(item: &Item<'_>) -> Result<Option<u32>, NetworkFileError> {
    let Some(kind) = item.text_of("encap")? else {
        return Ok(None);
    };
    if kind != "seg6" {
        return Ok(Some(0));
    }
    let segments = item.list("segs")?;
    let segments: Result<Vec<IpAddr>, _> = segments.iter().map(Item::address).collect();
    let header = SEGMENT_HEADER + 16 * segments?.len() as u32;
    Ok(Some(match item.text_of("mode")? {
        Some("inline") => header,
        _ => header + IPV6_HEADER,
    }))
}

/// The prefix that a rule says by an address and a length.
pub(super) fn read_prefix(
    item: &Item<'_>,
    [address, len]: [&str; 2],
    is_ipv4: bool,
) -> Result<Option<RoutePrefix>, NetworkFileError> {
    let Some(value) = item.get(address) else {
        return Ok(None);
    };
    let prefix = value.prefix(is_ipv4)?;
    let Some(len) = item.get(len) else {
        return Ok((!prefix.is_empty()).then_some(prefix));
    };
    let wrong = || len.error("more bits than the address has");
    let prefix = RoutePrefix::new(prefix.address(), len.number()?).ok_or_else(wrong)?;
    Ok(Some(prefix))
}
