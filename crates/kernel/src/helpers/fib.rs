//! `bpf_fib_lookup`: the route of a packet, with the hardware addresses for its next hop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use spec::Errno;
use vm::network::{AF_INET, AF_INET6, NetDevice, Network, NextHop, RouteKind, table};
use vm::{MemoryPort, System, XDP};

use super::skb::get;
use crate::call::{Call, Return, fail_if};
use crate::lookups::{
    self, Flow, Found, NoRoute, Tables, lookup_ipv4, lookup_ipv6, source_ipv4, source_ipv6,
};
use crate::programs::field::GSO_SIZE;

/// Bytes of `struct bpf_fib_lookup`.
const SIZE: usize = 64;

/// Flags (`BPF_FIB_LOOKUP_…`).
const DIRECT: u32 = 1;
const OUTPUT: u32 = 2;
const SKIP_NEIGHBOUR: u32 = 4;
const TABLE: u32 = 8;
const SOURCE: u32 = 16;
const MARK: u32 = 32;
const FLAGS: u32 = 63;

/// Device of packets that the host makes (`LOOPBACK_IFINDEX`).
const OWN: u32 = System::LOOPBACK;

/// Most bytes of an IPv4 packet (`IP_MAX_MTU`).
const MOST_IPV4: u32 = 0xffff;

/// Results (`BPF_FIB_LKUP_RET_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Success = 0,
    Blackhole = 1,
    Unreachable = 2,
    Prohibit = 3,
    NotForwarded = 4,
    ForwardingDisabled = 5,
    UnsupportedTunnel = 6,
    NoNeighbour = 7,
    FragmentationNeeded = 8,
    NoSource = 9,
}

impl From<NoRoute> for Answer {
    fn from(why: NoRoute) -> Answer {
        match why {
            NoRoute::NoneMatches | NoRoute::BlackholeRule | NoRoute::ProhibitRule => {
                Answer::NotForwarded
            }
            NoRoute::Blackhole => Answer::Blackhole,
            NoRoute::Unreachable => Answer::Unreachable,
            NoRoute::Prohibited => Answer::Prohibit,
        }
    }
}

/// `long bpf_fib_lookup(ctx, struct bpf_fib_lookup *params, int size, u32 flags)`: 0 if the
/// packet is to be forwarded, a positive number if it is not. `-EINVAL` for a smaller
/// structure and unknown flags, `-EAFNOSUPPORT` for other families, `-ENODEV` without the
/// device.
pub(super) fn fib_lookup<M: MemoryPort>(
    Call([context, at, size, flags, _], memory, cx): Call<M>,
) -> Return<M> {
    let flags = flags as u32;
    fail_if!((size as i32) < SIZE as i32 || flags & !FLAGS != 0 => Errno::EINVAL);
    let mut bytes = [0; SIZE];
    memory.read(at, &mut bytes)?;
    let mut params = Params(bytes);
    let packet = memory.packet(context)?;
    let (is_xdp, len) = (packet.context() == XDP, packet.len() as u32);
    let checks_mtu = is_xdp || params.total_len() != 0;
    let network = &cx.system.network;
    let result = match u32::from(params.0[0]) {
        AF_INET => ipv4(network, &mut params, flags, checks_mtu),
        AF_INET6 => ipv6(network, &mut params, flags, checks_mtu),
        _ => return Ok(Errno::EAFNOSUPPORT.negated()),
    };
    let answer = match result {
        Ok(answer) => answer,
        Err(NoDevice) => return Ok(Errno::ENODEV.negated()),
    };
    let answer = match network.device(params.index()) {
        Some(device) if answer == Answer::Success && !checks_mtu => {
            // The packet itself is held to the device.
            params.set_mtu(device.mtu);
            let has_segments = get(memory, context, GSO_SIZE)? as u16 != 0;
            let most = device.mtu.saturating_add(LINK_AND_TAG);
            match device.is_up && (len <= most || has_segments) {
                true => Answer::Success,
                false => Answer::FragmentationNeeded,
            }
        }
        _ => answer,
    };
    memory.write(at, &params.0)?;
    Ok(answer as u64)
}

/// Bytes of the link-layer header with a VLAN tag.
const LINK_AND_TAG: u32 = 14 + 4;

/// There is no device of the index.
struct NoDevice;

fn ipv4(
    network: &Network,
    params: &mut Params,
    flags: u32,
    checks_mtu: bool,
) -> Result<Answer, NoDevice> {
    let device = network.device(params.index()).ok_or(NoDevice)?;
    if !device.forwards_ipv4 {
        return Ok(Answer::ForwardingDisabled);
    }
    let destination = params.ipv4(DESTINATION);
    let flow = Flow {
        tos: params.0[TOS],
        has_source: true,
        source: params.ipv4(SOURCE_ADDRESS).into(),
        destination: destination.into(),
        ..params.flow(flags)
    };
    let tables = params.tables(device, flags);
    let lookup = Lookup {
        found: lookup_ipv4(network, &flow, tables),
        destination: destination.into(),
        mtu: mtu_ipv4,
        source: |network, found, hop, _| {
            let source = source_ipv4(network, found.route, hop);
            Some(source.unwrap_or(Ipv4Addr::UNSPECIFIED).into())
        },
    };
    Ok(params.answer(network, flags, checks_mtu, &lookup))
}

/// Most bytes of an IPv4 packet on a route.
fn mtu_ipv4(network: &Network, found: &Found<'_>) -> u32 {
    let device = found.hop.and_then(|hop| network.device(hop.device));
    let mtu = match (found.route.mtu, found.route.is_mtu_locked) {
        (mtu @ 1.., true) => mtu,
        _ => device.map_or(0, |device| device.mtu).min(MOST_IPV4),
    };
    let headroom = found.hop.and_then(|hop| hop.encapsulation).unwrap_or(0);
    match headroom < mtu {
        true => mtu - headroom,
        false => mtu,
    }
}

fn ipv6(
    network: &Network,
    params: &mut Params,
    flags: u32,
    checks_mtu: bool,
) -> Result<Answer, NoDevice> {
    let destination = params.ipv6(DESTINATION);
    let source = params.ipv6(SOURCE_ADDRESS);
    if [source, destination].into_iter().any(is_local) {
        return Ok(Answer::NotForwarded);
    }
    let device = network.device(params.index()).ok_or(NoDevice)?;
    if !device.forwards_ipv6 {
        return Ok(Answer::ForwardingDisabled);
    }
    let mut info = [0; 4];
    info.copy_from_slice(&params.0[TOS..TOS + 4]);
    let info = u32::from_be_bytes(info);
    let flow = Flow {
        tos: (info >> 20) as u8,
        has_source: flags & OUTPUT == 0,
        source: source.into(),
        destination: destination.into(),
        flow_label: info & 0xf_ffff,
        ..params.flow(flags)
    };
    let tables = params.tables(device, flags);
    let lookup = Lookup {
        found: lookup_ipv6(network, &flow, tables),
        destination: destination.into(),
        mtu: lookups::mtu_ipv6,
        source: |network, found, hop, destination| {
            let device = network.device(hop.device)?;
            let IpAddr::V6(destination) = destination else {
                return None;
            };
            source_ipv6(network, found.route, device, destination).map(IpAddr::V6)
        },
    };
    Ok(params.answer(network, flags, checks_mtu, &lookup))
}

/// Result of a lookup, with the fields that depend on its family.
struct Lookup<'n> {
    found: Result<Found<'n>, NoRoute>,
    destination: IpAddr,
    /// Most bytes of a packet on a route.
    mtu: fn(&Network, &Found<'_>) -> u32,
    /// Source address of the packets on a route to the destination.
    source: fn(&Network, &Found<'_>, &NextHop, IpAddr) -> Option<IpAddr>,
}

/// True for addresses that are never forwarded: of groups, links and the host.
fn is_local(address: Ipv6Addr) -> bool {
    address.is_multicast() || address.is_loopback() || address.segments()[0] & 0xffc0 == 0xfe80
}

/// `struct bpf_fib_lookup`.
struct Params([u8; SIZE]);

/// Offsets in it.
const PROTOCOL: usize = 1;
const SOURCE_PORT: usize = 2;
const DESTINATION_PORT: usize = 4;
const TOTAL_LEN: usize = 6;
const INDEX: usize = 8;
const TOS: usize = 12;
const METRIC: usize = 12;
const SOURCE_ADDRESS: usize = 16;
const DESTINATION: usize = 32;
const VLAN: usize = 48;
const SOURCE_MAC: usize = 52;
const DESTINATION_MAC: usize = 58;

impl Params {
    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(word)
    }

    fn port(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    fn total_len(&self) -> u16 {
        u16::from_le_bytes([self.0[TOTAL_LEN], self.0[TOTAL_LEN + 1]])
    }

    fn index(&self) -> u32 {
        self.word(INDEX)
    }

    fn ipv4(&self, at: usize) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.word(at).swap_bytes())
    }

    fn ipv6(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.0[at..at + 16]);
        octets.into()
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn set_mtu(&mut self, mtu: u32) {
        self.set(TOTAL_LEN, &(mtu as u16).to_le_bytes());
    }

    /// The packet, but for what is another one in each family.
    fn flow(&self, flags: u32) -> Flow {
        let index = self.index();
        let (input, output) = match flags & OUTPUT {
            0 => (index, 0),
            _ => (OWN, index),
        };
        Flow {
            input,
            output,
            vrf_device: index,
            mark: match flags & MARK {
                0 => 0,
                _ => self.word(SOURCE_MAC),
            },
            tos: 0,
            protocol: self.0[PROTOCOL],
            has_source: true,
            source: Ipv4Addr::UNSPECIFIED.into(),
            destination: Ipv4Addr::UNSPECIFIED.into(),
            source_port: self.port(SOURCE_PORT),
            destination_port: self.port(DESTINATION_PORT),
            flow_label: 0,
            is_bound: false,
        }
    }

    /// The tables that the flags choose. The number of a table is cleared.
    fn tables(&mut self, device: &NetDevice, flags: u32) -> Tables {
        match (flags & DIRECT, flags & TABLE) {
            (0, _) => Tables::ByRules,
            (_, 0) => Tables::Only(device.vrf_table.unwrap_or(table::MAIN)),
            _ => {
                let number = self.word(VLAN);
                self.set(VLAN, &[0; 4]);
                Tables::Only(match number {
                    0 => table::MAIN,
                    number => number,
                })
            }
        }
    }

    /// Fills in what a lookup found: the next hop in place of the destination, its device, and
    /// the metric.
    fn answer(
        &mut self,
        network: &Network,
        flags: u32,
        checks_mtu: bool,
        lookup: &Lookup<'_>,
    ) -> Answer {
        let found = match &lookup.found {
            Ok(found) => found,
            Err(why) => return (*why).into(),
        };
        let (RouteKind::Unicast, Some(hop)) = (found.route.kind, found.hop) else {
            return Answer::NotForwarded;
        };
        let mut mtu = 0;
        if checks_mtu {
            mtu = (lookup.mtu)(network, found);
            if u32::from(self.total_len()) > mtu {
                self.set_mtu(mtu);
                return Answer::FragmentationNeeded;
            }
        }
        if hop.encapsulation.is_some() {
            return Answer::UnsupportedTunnel;
        }
        self.set(METRIC, &found.route.metric.to_le_bytes());
        self.set(INDEX, &hop.device.to_le_bytes());
        if let Some(gateway) = hop.gateway {
            self.set_address(DESTINATION, gateway);
            if gateway.is_ipv6() {
                self.0[0] = AF_INET6 as u8;
            }
        }
        if flags & SOURCE != 0 {
            match (lookup.source)(network, found, hop, lookup.destination) {
                Some(source) => self.set_address(SOURCE_ADDRESS, source),
                None => return Answer::NoSource,
            }
        }
        let next = hop.gateway.unwrap_or(lookup.destination);
        self.finish(network, hop.device, next, flags, mtu)
    }

    fn set_address(&mut self, at: usize, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.set(at, &address.octets()),
            IpAddr::V6(address) => self.set(at, &address.octets()),
        }
    }

    /// Finds the neighbour, and fills in what it has in its place: both hardware addresses,
    /// no VLAN, and the MTU if it was looked up.
    fn finish(
        &mut self,
        network: &Network,
        index: u32,
        next: IpAddr,
        flags: u32,
        mtu: u32,
    ) -> Answer {
        if flags & SKIP_NEIGHBOUR == 0 {
            let device = network.device(index);
            let found = device.and_then(|device| Some((device, network.neighbour(device, next)?)));
            let Some((device, neighbour)) = found else {
                return Answer::NoNeighbour;
            };
            self.set(DESTINATION_MAC, &neighbour);
            self.set(SOURCE_MAC, &device.mac);
        }
        self.set(VLAN, &[0; 4]);
        if mtu != 0 {
            self.set_mtu(mtu);
        }
        Answer::Success
    }
}
