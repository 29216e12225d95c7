//! The network of a run: devices, routes, rules, neighbours, sockets, as the host describes them.
//! Helpers look packets up in it as Linux does; nothing changes it during a run.

mod device;
mod neighbour;
mod route;
mod rule;
mod socket_table;
mod socket_view;
mod xdp_socket;

use std::borrow::Cow;
use std::net::IpAddr;

pub use device::{DeviceAddress, DeviceKind, NetDevice, scope};
pub use neighbour::Neighbours;
pub use route::{
    NextHop, Route, RouteKind, RoutePreference, RoutePrefix, RouteTable, Routes, table,
};
pub use rule::{PolicyRule, PolicyRules, RuleAction};
pub use socket_table::{SocketPart, SocketRef, Sockets};
pub use socket_view::{
    AF_INET, AF_INET6, AF_UNIX, NetSocket, SocketProtocol, SocketState, SocketView, TcpFigures,
};
pub use xdp_socket::{DeviceQueue, XdpSocket};

/// The network of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The devices.
    #[doc(hidden)]
    pub devices: Cow<'static, [NetDevice]>,
    /// The routes, by family and table.
    #[doc(hidden)]
    pub routes: Routes,
    /// The rules that choose tables.
    #[doc(hidden)]
    pub rules: PolicyRules,
    /// The neighbours.
    #[doc(hidden)]
    pub neighbours: Neighbours,
    /// Choice of next hops among several.
    #[doc(hidden)]
    pub multipath: Multipath,
    /// The sockets, of this network namespace and of others that it knows.
    #[doc(hidden)]
    pub sockets: Sockets,
    /// When connections are answered with SYN cookies.
    #[doc(hidden)]
    pub syncookies: SynCookies,
}

/// When connections are answered with SYN cookies (`net.ipv4.tcp_syncookies`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynCookies {
    /// Never.
    Never,
    /// When the queue of a listener is full, which none is here.
    #[default]
    WhenFull,
    /// Always.
    Always,
}

/// Choice of next hops of a route among several (`net.ipv4.fib_multipath_hash_policy`,
/// `net.ipv4.fib_multipath_hash_seed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multipath {
    /// Key of the hash. Linux draws one at random unless it is set.
    pub seed: u32,
    /// The hash of IPv4 packets has ports too. That of IPv6 packets has the flow label.
    pub ipv4_has_ports: bool,
}

impl Network {
    /// A loopback device, no routes.
    pub const LOOPBACK_ONLY: Network = Network {
        devices: Cow::Borrowed(&[NetDevice::LOOPBACK]),
        routes: Routes::new(),
        rules: PolicyRules::DEFAULT,
        neighbours: Neighbours::new(),
        multipath: Multipath {
            seed: 0,
            ipv4_has_ports: false,
        },
        sockets: Sockets::new(),
        syncookies: SynCookies::WhenFull,
    };

    /// The device of an index.
    pub fn device(&self, index: u32) -> Option<&NetDevice> {
        self.devices.iter().find(|device| device.index == index)
    }

    /// The device of a name.
    pub fn device_named(&self, name: &str) -> Option<&NetDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Adds a device, in place of one that has its index.
    pub fn add_device(&mut self, device: NetDevice) {
        let devices = self.devices.to_mut();
        match devices.iter_mut().find(|old| old.index == device.index) {
            Some(old) => *old = device,
            None => devices.push(device),
        }
    }

    /// Adds a route to its table, in place of one to the same destination with its metric.
    pub fn add_route(&mut self, route: Route) {
        self.routes.add(route);
    }

    /// Adds the hardware address of a neighbour on the device of an index.
    pub fn add_neighbour(&mut self, device: u32, address: IpAddr, mac: [u8; 6]) {
        self.neighbours.add(device, address, mac);
    }

    /// Adds a socket, which lookups find.
    pub fn add_socket(&mut self, socket: NetSocket) {
        self.sockets.add(socket);
    }

    /// The valid hardware address of a neighbour on a device.
    pub fn neighbour(&self, device: &NetDevice, address: IpAddr) -> Option<[u8; 6]> {
        // Devices without neighbours have one entry of IPv4 for all addresses.
        let address = match (address, device.kind) {
            (IpAddr::V4(_), DeviceKind::Loopback | DeviceKind::PointToPoint) => {
                IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)
            }
            (address, _) => address,
        };
        self.neighbours.get(device.index, address)
    }
}

impl Default for Network {
    fn default() -> Network {
        Network::LOOPBACK_ONLY
    }
}
