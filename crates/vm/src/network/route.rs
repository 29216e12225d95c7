//! Routes: tables of prefixes, in the order in which Linux tries them.
//!
//! A table has one ordered map for each prefix length that occurs. A lookup visits the lengths
//! from the longest: O(lengths × log prefixes).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Numbers of route tables.
pub mod table {
    /// The table that rules search last.
    pub const DEFAULT: u32 = 253;
    /// The table of most routes.
    pub const MAIN: u32 = 254;
    /// The table of the host's addresses.
    pub const LOCAL: u32 = 255;
}

/// The first bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutePrefix {
    address: IpAddr,
    len: u8,
}

impl RoutePrefix {
    /// All addresses of IPv4.
    pub const ALL_IPV4: RoutePrefix = RoutePrefix {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        len: 0,
    };
    /// All addresses of IPv6.
    pub const ALL_IPV6: RoutePrefix = RoutePrefix {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        len: 0,
    };

    /// The first `len` bits of an address; `None` if it has fewer. Bits behind them are
    /// cleared.
    pub fn new(address: IpAddr, len: u8) -> Option<RoutePrefix> {
        (len <= bits(address)).then(|| RoutePrefix {
            address: masked(address, len),
            len,
        })
    }

    /// The prefix of one address.
    pub fn host(address: IpAddr) -> RoutePrefix {
        RoutePrefix {
            address,
            len: bits(address),
        }
    }

    /// The address, in which other bits than the first ones are zero.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Number of bits.
    pub fn len(self) -> u8 {
        self.len
    }

    /// True if it is that of all addresses of its family.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// True if it is that of an address.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.len) == self.address
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with only its first bits.
fn masked(address: IpAddr, len: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

/// Type of a route (`RTN_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Sends them to a next hop.
    Unicast,
    /// Receives them: an address of the host.
    Local,
    /// Receives them, and sends them as broadcasts.
    Broadcast,
    /// Receives them: an address that other hosts have too.
    Anycast,
    /// Sends them to a group.
    Multicast,
    /// Drops them.
    Blackhole,
    /// Drops them, and says that the host cannot be reached.
    Unreachable,
    /// Drops them, and says that it is forbidden.
    Prohibit,
    /// Ends the lookup in this table.
    Throw,
}

/// The preference of an IPv6 route among others of its metric (RFC 4191).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoutePreference {
    /// Below the others.
    Low,
    /// As most.
    #[default]
    Medium,
    /// Above the others.
    High,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destinations.
    pub destination: RoutePrefix,
    /// Sources (IPv6); all if its length is 0.
    pub source: RoutePrefix,
    /// Number of its table.
    pub table: u32,
    /// Its type.
    #[doc(hidden)]
    pub kind: RouteKind,
    /// A number of [`scope`](super::scope).
    pub scope: u8,
    /// Type of service of the packets (IPv4); 0 for any.
    pub tos: u8,
    /// The lowest comes first. Linux gives IPv6 routes 1,024 unless they say another one.
    pub metric: u32,
    /// Preference among IPv6 routes of its metric.
    #[doc(hidden)]
    pub preference: RoutePreference,
    /// The address that packets of the host have.
    pub preferred_source: Option<IpAddr>,
    /// Most bytes of packets behind the link-layer header; 0 if the device decides.
    pub mtu: u32,
    /// Discovery does not change the MTU (`mtu lock`). Forwarding heeds an MTU only if it is
    /// locked.
    pub is_mtu_locked: bool,
    /// Its next hops.
    #[doc(hidden)]
    pub next_hops: Vec<NextHop>,
}

/// Next hop of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Index of the device.
    pub device: u32,
    /// The router; `None` for hosts on the link.
    pub gateway: Option<IpAddr>,
    /// Share of the packets.
    pub weight: u32,
    /// Its device is down.
    pub is_dead: bool,
    /// Its device has no carrier.
    pub is_link_down: bool,
    /// Packets are encapsulated by a lightweight tunnel, which needs so many bytes for it.
    pub encapsulation: Option<u32>,
}

impl NextHop {
    /// On the link of a device.
    pub const fn on_link(device: u32) -> NextHop {
        NextHop {
            device,
            gateway: None,
            weight: 1,
            is_dead: false,
            is_link_down: false,
            encapsulation: None,
        }
    }

    /// Through a router on the link of a device.
    pub const fn via(gateway: IpAddr, device: u32) -> NextHop {
        NextHop {
            gateway: Some(gateway),
            ..NextHop::on_link(device)
        }
    }
}

impl Route {
    /// The metric that Linux gives IPv6 routes.
    pub const METRIC_IPV6: u32 = 1024;

    /// A route of the main table.
    #[doc(hidden)]
    pub fn new(destination: RoutePrefix, kind: RouteKind, next_hops: Vec<NextHop>) -> Route {
        let is_ipv4 = destination.address.is_ipv4();
        let is_direct = is_ipv4 && next_hops.iter().all(|hop| hop.gateway.is_none());
        let scope = match kind {
            RouteKind::Local if is_ipv4 => super::scope::HOST,
            RouteKind::Unicast if is_direct => super::scope::LINK,
            RouteKind::Broadcast | RouteKind::Anycast if is_ipv4 => super::scope::LINK,
            _ => super::scope::UNIVERSE,
        };
        Route {
            destination,
            source: match is_ipv4 {
                true => RoutePrefix::ALL_IPV4,
                false => RoutePrefix::ALL_IPV6,
            },
            table: table::MAIN,
            kind,
            scope,
            tos: 0,
            metric: if is_ipv4 { 0 } else { Route::METRIC_IPV6 },
            preference: RoutePreference::Medium,
            preferred_source: None,
            mtu: 0,
            is_mtu_locked: false,
            next_hops,
        }
    }

    /// A route of the main table through a router.
    pub fn via(destination: RoutePrefix, gateway: IpAddr, device: u32) -> Route {
        let hop = NextHop::via(gateway, device);
        Route::new(destination, RouteKind::Unicast, vec![hop])
    }

    /// A route of the main table to hosts on a link.
    pub fn on_link(destination: RoutePrefix, device: u32) -> Route {
        let hop = NextHop::on_link(device);
        Route::new(destination, RouteKind::Unicast, vec![hop])
    }
}

/// The routes of one table and family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable(BTreeMap<Reverse<u8>, BTreeMap<IpAddr, Vec<Route>>>);

impl RouteTable {
    /// Routes of prefixes that an address has, from the longest prefix: those of one prefix
    /// in the order in which they count.
    pub fn matching(&self, address: IpAddr) -> impl Iterator<Item = (u8, &[Route])> {
        let lengths = self.0.iter();
        lengths.filter_map(move |(Reverse(len), routes)| {
            let routes = routes.get(&masked(address, *len))?;
            Some((*len, &routes[..]))
        })
    }
}

/// All routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes(BTreeMap<(bool, u32), RouteTable>);

impl Routes {
    /// No routes.
    pub const fn new() -> Routes {
        Routes(BTreeMap::new())
    }

    /// Adds a route to its table: behind those of its prefix that are as good.
    pub fn add(&mut self, route: Route) {
        let destination = route.destination;
        let table = (destination.address.is_ipv4(), route.table);
        let table = self.0.entry(table).or_default();
        let routes = table.0.entry(Reverse(destination.len)).or_default();
        let routes = routes.entry(destination.address).or_default();
        // Of the prefixes of sources the longest first; types of service from the highest.
        let rank = |route: &Route| (Reverse(route.source.len), Reverse(route.tos), route.metric);
        let place = routes.partition_point(|other| rank(other) <= rank(&route));
        routes.insert(place, route);
    }

    /// The table of that number and family; `None` if it never had a route.
    pub fn table(&self, is_ipv4: bool, number: u32) -> Option<&RouteTable> {
        self.0.get(&(is_ipv4, number))
    }

    /// All routes, by family and table.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        let tables = self.0.values();
        let prefixes = tables.flat_map(|table| table.0.values());
        prefixes.flat_map(|routes| routes.values().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, len: u8) -> RoutePrefix {
        RoutePrefix::new(text.parse().unwrap(), len).unwrap()
    }

    #[test]
    fn prefixes_contain_addresses_of_their_family() {
        let net = prefix("10.1.2.3", 8);
        assert_eq!(net, prefix("10.0.0.0", 8));
        assert!(net.contains("10.255.0.1".parse().unwrap()));
        assert!(!net.contains("11.0.0.1".parse().unwrap()));
        assert!(RoutePrefix::ALL_IPV4.contains("1.2.3.4".parse().unwrap()));
        assert!(!RoutePrefix::ALL_IPV4.contains("::1".parse().unwrap()));
        assert!(RoutePrefix::ALL_IPV6.contains("::1".parse().unwrap()));
        assert_eq!(RoutePrefix::new("::".parse().unwrap(), 129), None);
    }

    #[test]
    fn routes_count_from_the_longest_prefix_and_the_lowest_metric() {
        let mut routes = Routes::new();
        for (net, len, metric) in [("10.0.0.0", 8, 9), ("10.1.0.0", 16, 5), ("10.0.0.0", 8, 2)] {
            let metric = |route| Route { metric, ..route };
            routes.add(metric(Route::on_link(prefix(net, len), 2)));
        }
        let table = routes.table(true, table::MAIN).unwrap();
        let found = table.matching("10.1.0.1".parse().unwrap());
        let metrics: Vec<u32> = found
            .flat_map(|(_, routes)| routes.iter().map(|route| route.metric))
            .collect();
        assert_eq!(metrics, [5, 2, 9]);
    }
}
