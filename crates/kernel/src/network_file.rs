//! The file that describes the network of a run: JSON with what `ip -json` prints of links,
//! addresses, routes, rules and neighbours, and the sockets of the host.
//!
//! Of the objects that `ip` prints, members that do not matter here are passed over. Those of
//! the file's own kind have only known members.

mod item;
mod json;
mod link;
mod neighbours;
mod routes;
mod rules;
mod socket;
mod xdp_sockets;

use std::fmt;

use vm::System;
use vm::network::Network;

use item::Item;
use json::Json;

/// Error in a file that describes a network: the place in it, and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkFileError {
    /// Path from the top, such as `route[3].gateway`; empty for the whole file.
    pub place: String,
    /// The problem there.
    pub problem: String,
}

impl fmt::Display for NetworkFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => f.write_str(&self.problem),
            false => write!(f, "{}: {}", self.place, self.problem),
        }
    }
}

impl std::error::Error for NetworkFileError {}

/// Members of a file.
const MEMBERS: &[&str] = &[
    "link",
    "addr",
    "route",
    "rule",
    "rule6",
    "neigh",
    "netconf",
    "multipath",
    "socket",
    "xdp_socket",
    "tcp_syncookies",
];

/// Reads the system that a file describes; what it does not mention is as in [`System::DEFAULT`]. A
/// file with links has no other devices than those.
///
/// # Errors
/// [`NetworkFileError`] for invalid JSON, unknown members, and values that do not fit.
pub fn read(text: &str) -> Result<System, NetworkFileError> {
    let json: Json = serde_json::from_str(text).map_err(|error| NetworkFileError {
        place: String::new(),
        problem: format!("invalid JSON: {error}"),
    })?;
    let file = Item::top(&json);
    file.check_members(MEMBERS)?;
    let mut network = Network::LOOPBACK_ONLY;
    if file.has("link") || file.has("addr") {
        network.devices = Vec::new().into();
    }
    for name in ["link", "addr"] {
        for item in file.list(name)? {
            link::read(&mut network, &item)?;
        }
    }
    link::resolve_vrfs(&mut network, &file)?;
    for item in file.list("netconf")? {
        link::read_settings(&mut network, &item)?;
    }
    for item in file.list("route")? {
        let route = routes::read(&network, &item)?;
        network.routes.add(route);
    }
    for (name, is_ipv4) in [("rule", true), ("rule6", false)] {
        if file.has(name) {
            let rules = file.list(name)?;
            let rules = rules
                .iter()
                .map(|item| rules::read(&network, item, is_ipv4));
            let rules: Result<Vec<_>, _> = rules.collect();
            network.rules.set(is_ipv4, rules?);
        }
    }
    for item in file.list("neigh")? {
        neighbours::read(&mut network, &item)?;
    }
    if let Some(item) = file.get("multipath") {
        item.check_members(&["seed", "ipv4_has_ports"])?;
        network.multipath.seed = item.number_or("seed", 0)?;
        network.multipath.ipv4_has_ports = item.flag("ipv4_has_ports")?;
    }
    for item in file.list("socket")? {
        socket::read(&mut network, &item)?;
    }
    for item in file.list("xdp_socket")? {
        xdp_sockets::read(&mut network, &item)?;
    }
    if let Some(item) = file.get("tcp_syncookies") {
        network.syncookies = socket::read_syncookies(&item)?;
    }
    Ok(System {
        network,
        ..System::DEFAULT
    })
}

#[cfg(test)]
mod tests;
