//! Lookups in the network of a run, as Linux makes them.

mod flow;
mod ipv4;
mod ipv6;
mod multipath;
mod rules;
mod siphash;
mod sockets;
mod source;

pub(crate) use flow::Flow;
pub(crate) use ipv4::lookup as lookup_ipv4;
pub(crate) use ipv6::{lookup as lookup_ipv6, mtu as mtu_ipv6};
pub(crate) use siphash::siphash;
pub(crate) use sockets::SocketQuery;
pub(crate) use source::{source_ipv4, source_ipv6, source_ipv6_on};

use vm::network::{Network, NextHop, Route};

/// A route and the next hop of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'n> {
    pub(crate) route: &'n Route,
    pub(crate) hop: Option<&'n NextHop>,
    /// Bits of its prefix.
    pub(crate) prefix_len: u8,
}

/// True if a next hop is alive, by the settings of its device for a family.
fn is_usable(network: &Network, hop: &NextHop, is_ipv4: bool) -> bool {
    let ignores_linkdown = network
        .device(hop.device)
        .is_some_and(|device| match is_ipv4 {
            true => device.ignores_linkdown_ipv4,
            false => device.ignores_linkdown_ipv6,
        });
    !(hop.is_dead || hop.is_link_down && ignores_linkdown)
}

/// The tables that a lookup searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Those that the rules say.
    ByRules,
    /// One.
    Only(u32),
}

/// Reason why no route is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No table has one (`ENETUNREACH`).
    NoneMatches,
    /// A route or a rule drops packets (`EINVAL`).
    Blackhole,
    /// A route says that the host cannot be reached (`EHOSTUNREACH`).
    Unreachable,
    /// A route or a rule forbids it (`EACCES`).
    Prohibited,
    /// A rule of IPv6 drops packets (`EINVAL`).
    BlackholeRule,
    /// A rule of IPv6 forbids it (`EACCES`).
    ProhibitRule,
}
