//! Sockets: addresses, states and names as `ss` prints them, figures as `struct bpf_tcp_sock`
//! names them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use vm::network::{NetSocket, Network, SocketProtocol, SocketState, SynCookies, TcpFigures};

use super::NetworkFileError;
use super::item::Item;

/// Members of a socket.
const MEMBERS: &[&str] = &[
    "protocol",
    "state",
    "local",
    "remote",
    "dev",
    "v6only",
    "mark",
    "priority",
    "cookie",
    "uid",
    "netnsid",
    "reuseport",
    "incoming_cpu",
    "rx_queue",
    "tcp",
];

/// Reads a socket and adds it.
pub(super) fn read(network: &mut Network, item: &Item<'_>) -> Result<(), NetworkFileError> {
    item.check_members(MEMBERS)?;
    let protocol = item.need("protocol")?;
    let protocol = match protocol.text()? {
        "tcp" => SocketProtocol::Tcp,
        "udp" => SocketProtocol::Udp,
        other => return Err(protocol.error(format!("`{other}` is no protocol; write tcp or udp"))),
    };
    let local = read_end(&item.need("local")?)?;
    let remote = item.get("remote").map(|remote| read_end(&remote));
    let remote = remote.transpose()?.filter(|end| !end.is_any());
    let is_ipv6 = local.is_ipv6() || remote.as_ref().is_some_and(End::is_ipv6);
    let mut socket = match (protocol, &remote) {
        (SocketProtocol::Tcp, None) => NetSocket::listener(local.address(is_ipv6)),
        (SocketProtocol::Tcp, Some(remote)) => {
            NetSocket::connection(local.address(is_ipv6), remote.address(is_ipv6))
        }
        (SocketProtocol::Udp, None) => NetSocket::udp(local.address(is_ipv6)),
        (SocketProtocol::Udp, Some(remote)) => NetSocket {
            state: SocketState::Established,
            remote: remote.address(is_ipv6),
            ..NetSocket::udp(local.address(is_ipv6))
        },
    };
    if let Some(state) = item.get("state") {
        socket.state = read_state(&state, protocol)?;
    }
    let device = local.device.or(remote.and_then(|remote| remote.device));
    socket.device = match (item.get("dev"), device) {
        (Some(device), _) => device.device(network)?.index,
        (None, Some(name)) => match network.device_named(name) {
            Some(device) => device.index,
            None => {
                let place = item.need("local")?;
                return Err(place.error(format!(
                    "no device is named `{name}`; `link` or `addr` has the devices"
                )));
            }
        },
        (None, None) => 0,
    };
    socket.is_ipv6_only = match item.has("v6only") {
        true => item.flag("v6only")?,
        false => local.address == Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
    };
    socket.mark = item.number_or("mark", 0)?;
    socket.priority = item.number_or("priority", 0)?;
    socket.cookie = item.number_or("cookie", 0)?;
    socket.uid = item.number_or("uid", 0)?;
    socket.namespace = optional(item, "netnsid")?;
    socket.group = optional(item, "reuseport")?;
    socket.incoming_cpu = optional(item, "incoming_cpu")?;
    socket.queue = optional(item, "rx_queue")?;
    if let Some(figures) = item.get("tcp") {
        read_figures(&figures, &mut socket)?;
    }
    if socket.cookie != 0 && network.sockets.has_cookie(socket.cookie) {
        let cookie = item.need("cookie")?;
        return Err(cookie.error("another socket has this cookie; each needs its own, or none"));
    }
    network.sockets.add(socket);
    Ok(())
}

/// When connections are answered with SYN cookies.
pub(super) fn read_syncookies(item: &Item<'_>) -> Result<SynCookies, NetworkFileError> {
    match item.number()? {
        0u8 => Ok(SynCookies::Never),
        1 => Ok(SynCookies::WhenFull),
        2 => Ok(SynCookies::Always),
        other => Err(item.error(format!(
            "{other} is no setting of net.ipv4.tcp_syncookies; it is 0, 1 or 2"
        ))),
    }
}

fn optional<N: TryFrom<i128>>(item: &Item<'_>, name: &str) -> Result<Option<N>, NetworkFileError> {
    item.get(name).map(|number| number.number()).transpose()
}

fn read_state(item: &Item<'_>, protocol: SocketProtocol) -> Result<SocketState, NetworkFileError> {
    let text = item.text()?;
    let mut known = SocketState::ALL.iter();
    let fits = |state: SocketState| match protocol {
        SocketProtocol::Tcp => true,
        SocketProtocol::Udp => {
            matches!(state, SocketState::Established | SocketState::Close)
        }
    };
    match known.find(|(state, name)| *name == text && fits(*state)) {
        Some((state, _)) => Ok(*state),
        None => {
            let names = SocketState::ALL.iter().filter(|(state, _)| fits(*state));
            let names: Vec<&str> = names.map(|(_, name)| *name).collect();
            Err(item.error(format!(
                "`{text}` is no state of such a socket; known are {}",
                names.join(", ")
            )))
        }
    }
}

fn read_figures(item: &Item<'_>, socket: &mut NetSocket) -> Result<(), NetworkFileError> {
    if socket.protocol != SocketProtocol::Tcp {
        return Err(item.error("a UDP socket has no figures of TCP; leave them out"));
    }
    item.check_members(TcpFigures::NAMES)?;
    for name in TcpFigures::NAMES {
        if let Some(figure) = item.get(name) {
            let value = figure.number()?;
            if !socket.tcp.set(name, value) {
                return Err(figure.error(format!("{value} is out of range")));
            }
        }
    }
    Ok(())
}

/// An address with a port, as `ss` prints it: `127.0.0.1:80`, `[::1]:80`, `*:80`, with `%` and
/// the name of a device behind the address, and `*` in place of port 0. Of a socket that is bound
/// to any address it prints `[::]` if it takes no packets of IPv4, otherwise `*`.
struct End<'t> {
    /// `None` for `*`, any address of both families.
    address: Option<IpAddr>,
    device: Option<&'t str>,
    port: u16,
}

impl End<'_> {
    fn is_ipv6(&self) -> bool {
        self.address.is_none_or(|address| address.is_ipv6())
    }

    /// True if it is the other end of a socket that is not connected.
    fn is_any(&self) -> bool {
        self.port == 0 && self.address.is_none_or(|address| address.is_unspecified())
    }

    /// The address as a socket of that family has it.
    fn address(&self, is_ipv6: bool) -> SocketAddr {
        let any = match is_ipv6 {
            true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        let address = match self.address.unwrap_or(any) {
            IpAddr::V4(address) if is_ipv6 && address.is_unspecified() => any,
            IpAddr::V4(address) if is_ipv6 => IpAddr::V6(address.to_ipv6_mapped()),
            address => address,
        };
        SocketAddr::new(address, self.port)
    }
}

fn read_end<'j>(item: &Item<'j>) -> Result<End<'j>, NetworkFileError> {
    let text = item.text()?;
    let wrong = || {
        item.error(format!(
            "`{text}` is no address with a port; write it as `ss` does: 127.0.0.1:80, [::1]:80, *:80"
        ))
    };
    let (address, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let (address, device) = match address.split_once('%') {
        Some((address, device)) if address.starts_with('[') => {
            (address, Some(device.trim_end_matches(']')))
        }
        Some((address, device)) => (address, Some(device)),
        None => (address, None),
    };
    let is_bracketed = address.starts_with('[');
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let address = match address {
        "*" => None,
        text => Some(text.parse::<IpAddr>().map_err(|_| wrong())?),
    };
    if address.is_some_and(|address| address.is_ipv6()) != is_bracketed {
        return Err(wrong());
    }
    let port = match port {
        "*" => 0,
        port => port.parse().map_err(|_| wrong())?,
    };
    Ok(End {
        address,
        device,
        port,
    })
}
