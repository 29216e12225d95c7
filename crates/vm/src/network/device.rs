//! Network devices and their addresses.

use std::borrow::Cow;
use std::net::IpAddr;

/// Scopes of addresses and routes (`rtnetlink`), from the widest to the narrowest.
pub mod scope {
    /// Everywhere.
    pub const UNIVERSE: u8 = 0;
    /// On a link.
    pub const LINK: u8 = 253;
    /// In the host.
    pub const HOST: u8 = 254;
    /// Nowhere.
    pub const NOWHERE: u8 = 255;
}

/// A network device with Ethernet headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetDevice {
    /// Index, from 1.
    pub index: u32,
    /// Name.
    pub name: Cow<'static, str>,
    /// Its kind.
    #[doc(hidden)]
    pub kind: DeviceKind,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Most bytes behind the link-layer header.
    pub mtu: u32,
    /// It sends and receives.
    pub is_up: bool,
    /// It forwards IPv4 packets that it receives (`net.ipv4.conf.DEV.forwarding`).
    pub forwards_ipv4: bool,
    /// It forwards IPv6 packets that it receives (`net.ipv6.conf.DEV.forwarding`).
    pub forwards_ipv6: bool,
    /// Next hops of IPv4 routes on it do not count without a carrier
    /// (`net.ipv4.conf.DEV.ignore_routes_with_linkdown`).
    pub ignores_linkdown_ipv4: bool,
    /// The same for IPv6.
    pub ignores_linkdown_ipv6: bool,
    /// Route table of the VRF that it belongs to.
    pub vrf_table: Option<u32>,
    /// Its addresses.
    #[doc(hidden)]
    pub addresses: Cow<'static, [DeviceAddress]>,
}

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A link with neighbours.
    Broadcast,
    /// The host itself.
    Loopback,
    /// One other end.
    PointToPoint,
}

/// An address of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress {
    /// The address.
    pub address: IpAddr,
    /// The address at the other end of a point-to-point link.
    pub peer: Option<IpAddr>,
    /// Bits of the network's prefix.
    pub prefix_len: u8,
    /// A number of [`scope`].
    pub scope: u8,
    /// Another address of the same network comes first (IPv4).
    pub is_secondary: bool,
    /// It is not to be used for new connections (IPv6).
    pub is_deprecated: bool,
    /// It is not used yet: its uniqueness is not known (IPv6).
    pub is_tentative: bool,
}

impl DeviceAddress {
    /// An address in a network whose prefix has so many bits, known everywhere.
    pub const fn new(address: IpAddr, prefix_len: u8) -> DeviceAddress {
        DeviceAddress {
            address,
            peer: None,
            prefix_len,
            scope: scope::UNIVERSE,
            is_secondary: false,
            is_deprecated: false,
            is_tentative: false,
        }
    }
}

impl NetDevice {
    /// The loopback device, index 1.
    pub const LOOPBACK: NetDevice =
        NetDevice::new(1, Cow::Borrowed("lo"), DeviceKind::Loopback, [0; 6], 65_536);

    /// A device that is up, with an MTU of 1,500 bytes, a local hardware address made of the
    /// index, and no IP address. It forwards packets.
    pub const fn ethernet(index: u32, name: Cow<'static, str>) -> NetDevice {
        let [a, b, c, d] = index.to_be_bytes();
        NetDevice::new(index, name, DeviceKind::Broadcast, [2, 0, a, b, c, d], 1500)
    }

    const fn new(
        index: u32,
        name: Cow<'static, str>,
        kind: DeviceKind,
        mac: [u8; 6],
        mtu: u32,
    ) -> NetDevice {
        NetDevice {
            index,
            name,
            kind,
            mac,
            mtu,
            is_up: true,
            forwards_ipv4: true,
            forwards_ipv6: true,
            ignores_linkdown_ipv4: false,
            ignores_linkdown_ipv6: false,
            vrf_table: None,
            addresses: Cow::Borrowed(&[]),
        }
    }

    /// Adds an address.
    #[doc(hidden)]
    pub fn add_address(&mut self, address: DeviceAddress) {
        self.addresses.to_mut().push(address);
    }
}
