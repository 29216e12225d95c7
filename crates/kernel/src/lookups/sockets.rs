//! Lookups of sockets by addresses and ports (`net/ipv4/inet_hashtables.c`, `net/ipv4/udp.c`
//! and their counterparts of IPv6).
//!
//! Sockets are visited in the order of the kernel's lists: the one that was bound last comes
//! first, those of IPv6 that share their port come last. Linear in the number of sockets.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use vm::network::{NetSocket, SocketProtocol, SocketState};

use super::siphash;

/// Key of a socket lookup, from a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketQuery {
    pub(crate) protocol: SocketProtocol,
    /// Id of the network namespace; `None` for that of the run.
    pub(crate) namespace: Option<u32>,
    /// Address and port of the sender.
    pub(crate) source: SocketAddr,
    /// Address and port of the socket, of the same family.
    pub(crate) destination: SocketAddr,
    /// Index of the device that the packet comes from.
    pub(crate) device: u32,
    /// The same if the device belongs to a VRF; otherwise 0.
    pub(crate) vrf_device: u32,
    /// The CPU of the lookup.
    pub(crate) cpu: u32,
}

impl SocketQuery {
    /// The number of the socket that is found among those of a network.
    pub(crate) fn find(&self, sockets: &[NetSocket]) -> Option<usize> {
        let list = self.list(sockets);
        match self.protocol {
            SocketProtocol::Tcp => {
                (self.connection(&list)).or_else(|| self.at_any(&list, Self::listener))
            }
            SocketProtocol::Udp => {
                (self.connected(&list)).or_else(|| self.at_any(&list, Self::receiver))
            }
        }
        .map(|found| found.0)
    }

    /// The number of the TCP socket that waits for connections and is asked for this one.
    pub(crate) fn find_listener(&self, sockets: &[NetSocket]) -> Option<usize> {
        let found = self.at_any(&self.list(sockets), Self::listener);
        found.map(|found| found.0)
    }

    /// The sockets that the query may find, in the order of visits.
    fn list<'s>(&self, sockets: &'s [NetSocket]) -> Vec<Numbered<'s>> {
        let is_candidate = |socket: &NetSocket| {
            socket.protocol == self.protocol
                && socket.namespace == self.namespace
                && socket.local.port() == self.destination.port()
        };
        let candidates = sockets
            .iter()
            .enumerate()
            .filter(|(_, socket)| is_candidate(socket));
        let is_last = |(_, socket): &Numbered<'_>| socket.group.is_some() && socket.is_ipv6();
        let (last, first): (Vec<_>, Vec<_>) = candidates.partition(is_last);
        first.into_iter().rev().chain(last).collect()
    }

    /// A TCP connection between both ends.
    fn connection<'s>(&self, list: &[Numbered<'s>]) -> Option<Numbered<'s>> {
        let mut list = list.iter();
        let found = list.find(|(_, socket)| {
            let is_connection = match socket.state {
                SocketState::Listen | SocketState::Close => false,
                SocketState::Established
                | SocketState::SynSent
                | SocketState::SynRecv
                | SocketState::FinWait1
                | SocketState::FinWait2
                | SocketState::TimeWait
                | SocketState::CloseWait
                | SocketState::LastAck
                | SocketState::Closing
                | SocketState::NewSynRecv => true,
            };
            is_connection && self.joins(socket)
        });
        found.copied()
    }

    /// A UDP socket that is connected with the sender.
    fn connected<'s>(&self, list: &[Numbered<'s>]) -> Option<Numbered<'s>> {
        let mut list = list.iter();
        let found =
            list.find(|(_, socket)| socket.state == SocketState::Established && self.joins(socket));
        found.copied()
    }

    /// True if a connected socket has both ends of the query.
    fn joins(&self, socket: &NetSocket) -> bool {
        socket.remote.port() == self.source.port()
            && plain(socket.remote.ip()) == self.source.ip()
            && plain(socket.local.ip()) == self.destination.ip()
            && self.device_fits(socket)
    }

    /// The best socket that is bound to the address of the query, otherwise to any address.
    fn at_any<'s>(
        &self,
        list: &[Numbered<'s>],
        best: impl Fn(&Self, &[Numbered<'s>], IpAddr) -> Option<Numbered<'s>>,
    ) -> Option<Numbered<'s>> {
        let any = match self.destination {
            SocketAddr::V4(_) => [0; 4].into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let own = best(self, list, self.destination.ip());
        own.or_else(|| best(self, list, any))
    }

    /// The best TCP socket that waits for connections at an address.
    fn listener<'s>(&self, list: &[Numbered<'s>], address: IpAddr) -> Option<Numbered<'s>> {
        let mut best = (0, None);
        for &(number, socket) in list {
            if socket.state != SocketState::Listen || !self.is_at(socket, address) {
                continue;
            }
            let score = self.listener_score(socket);
            if score > best.0 {
                if let Some(member) = self.member_of_group(list, socket) {
                    return Some(member);
                }
                best = (score, Some((number, socket)));
            }
        }
        best.1
    }

    fn listener_score(&self, socket: &NetSocket) -> i32 {
        let is_ipv4 = i32::from(self.destination.is_ipv4() && !socket.is_ipv6());
        match self.device_fits(socket) {
            false => -1,
            true => 1 + i32::from(socket.device != 0) + is_ipv4 + self.cpu_score(socket),
        }
    }

    /// The best UDP socket at an address.
    fn receiver<'s>(&self, list: &[Numbered<'s>], address: IpAddr) -> Option<Numbered<'s>> {
        let mut best = (-1, None);
        for &(number, socket) in list {
            if !self.is_at(socket, address) {
                continue;
            }
            let score = self.receiver_score(socket);
            if score <= best.0 {
                continue;
            }
            best = (score, Some((number, socket)));
            if socket.state == SocketState::Established {
                continue;
            }
            let Some(member) = self.member_of_group(list, socket) else {
                continue;
            };
            let has_connections =
                (group_of(list, socket)).any(|(_, other)| other.state == SocketState::Established);
            if !has_connections {
                return Some(member);
            }
            best = (score.max(self.receiver_score(member.1)), Some(member));
        }
        best.1
    }

    fn receiver_score(&self, socket: &NetSocket) -> i32 {
        // Addresses count more in lookups of IPv4.
        let (base, weight) = match (self.destination.is_ipv4(), socket.is_ipv6()) {
            (true, false) => (2, 4),
            (true, true) => (1, 4),
            (false, _) => (0, 1),
        };
        let remote = match self.destination {
            SocketAddr::V4(_) => IpAddr::V4(socket.remote_ipv4()),
            SocketAddr::V6(_) => socket.remote.ip(),
        };
        let has_address = !remote.is_unspecified();
        let has_port = socket.remote.port() != 0;
        if has_address && remote != self.source.ip()
            || has_port && socket.remote.port() != self.source.port()
            || !self.device_fits(socket)
        {
            return -1;
        }
        let parts = [has_address, has_port, socket.device != 0];
        let matched: i32 = parts.map(i32::from).iter().sum();
        base + weight * matched + self.cpu_score(socket)
    }

    /// True if a socket takes packets of the query's family at the address that it is bound to.
    fn is_at(&self, socket: &NetSocket, address: IpAddr) -> bool {
        match (address, socket.local.ip()) {
            (IpAddr::V4(address), IpAddr::V4(local)) => local == address,
            (IpAddr::V4(address), IpAddr::V6(local)) => {
                let mapped = match local {
                    Ipv6Addr::UNSPECIFIED => Some([0; 4].into()),
                    local => local.to_ipv4_mapped(),
                };
                socket.takes_ipv4() && mapped == Some(address)
            }
            (IpAddr::V6(address), IpAddr::V6(local)) => local == address,
            (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    fn device_fits(&self, socket: &NetSocket) -> bool {
        match socket.device {
            0 => self.vrf_device == 0,
            device => device == self.device || device == self.vrf_device,
        }
    }

    fn cpu_score(&self, socket: &NetSocket) -> i32 {
        (socket.incoming_cpu == Some(self.cpu)).into()
    }

    /// The member of the group of a socket that gets the packet, by a hash of both ends; `None`
    /// for a socket that shares its port with no others.
    fn member_of_group<'s>(
        &self,
        list: &[Numbered<'s>],
        socket: &NetSocket,
    ) -> Option<Numbered<'s>> {
        let mut members: Vec<_> = group_of(list, socket).collect();
        members.sort_by_key(|(number, _)| *number);
        let first = self.hash().checked_mul(members.len() as u64)? >> 32;
        members.rotate_left(first as usize);
        members.retain(|(_, member)| member.state != SocketState::Established);
        let on_cpu = members
            .iter()
            .find(|(_, member)| self.cpu_score(member) != 0);
        on_cpu.or(members.first()).copied()
    }

    /// A hash of 32 bits. Linux draws its key at random; here it is fixed.
    fn hash(&self) -> u64 {
        let mut bytes = Vec::new();
        for end in [self.source, self.destination] {
            match end.ip() {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
            bytes.extend(end.port().to_be_bytes());
        }
        siphash(&bytes, [0; 2]) & 0xffff_ffff
    }
}

/// A socket with its number.
type Numbered<'s> = (usize, &'s NetSocket);

/// The sockets that share a port with a socket, itself among them; none if it shares none.
fn group_of<'l, 's>(
    list: &'l [Numbered<'s>],
    socket: &'l NetSocket,
) -> impl Iterator<Item = Numbered<'s>> + 'l {
    let is_member = move |(_, other): &Numbered<'_>| {
        socket.group.is_some()
            && other.group == socket.group
            && other.local.ip() == socket.local.ip()
            && other.device == socket.device
            && other.is_ipv6_only == socket.is_ipv6_only
            && other.uid == socket.uid
            && (other.state == SocketState::Listen) == (socket.state == SocketState::Listen)
    };
    list.iter().copied().filter(is_member)
}

/// The address of a connection in packets: of IPv4 if it is a mapped one. Linux finds
/// connections by a hash of these.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(own) => own.to_ipv4_mapped().map_or(address, IpAddr::V4),
    }
}

#[cfg(test)]
mod tests;
