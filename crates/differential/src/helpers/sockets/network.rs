//! Random real sockets in a network namespace, and the system that describes them.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use sys::Errno;
use sys::bpf::Map as KernelMap;
use sys::inet::{InetOption, InetSocket};
use sys::network::{NetworkNamespace, OwnNamespace, interface_index, pin_to_cpu};
use sys::socket::{PacketLayer, PacketSocket};
use vm::System;
use vm::network::{NetDevice, NetSocket, SocketProtocol, SocketState, Sockets, SynCookies};

use super::super::routes::run_ip;
use super::{DEVICES, PORTS, address};
use testkit::ebpf::Choices;

thread_local! {
    /// The sockets of the thread's namespace, which are open as long as the thread runs; `None`
    /// for what is left of closed ones.
    static OPEN: RefCell<Vec<Option<InetSocket>>> = const { RefCell::new(Vec::new()) };

    /// Their descriptions.
    static DESCRIBED: RefCell<Sockets> = const { RefCell::new(Sockets::new()) };
}

/// The tuple of a packet for a random socket of the thread's namespace; of one that is not
/// connected from anywhere.
pub(super) fn ends_of_any(choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    DESCRIBED.with_borrow(|sockets| {
        let list = sockets.list();
        let socket = list.get(choices.below(list.len().max(1) as u32) as usize)?;
        let mut tuple = Vec::new();
        for end in [socket.remote, socket.local] {
            match end.ip() {
                IpAddr::V4(address) => tuple.extend(address.octets()),
                IpAddr::V6(address) => match address.to_ipv4_mapped() {
                    Some(address) => tuple.extend(address.octets()),
                    None => tuple.extend(address.octets()),
                },
            }
        }
        let ports = [socket.remote.port(), socket.local.port()];
        tuple.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        matches!(tuple.len(), 12 | 36).then_some(tuple)
    })
}

/// Puts the open sockets into a map of sockets, by their numbers, as far as it takes them.
pub(in super::super) fn fill(map: &KernelMap) {
    OPEN.with_borrow(|open| {
        for (number, socket) in (0u32..).zip(open) {
            let Some(socket) = socket else { continue };
            let descriptor = socket.as_raw_fd() as u64;
            let _ = map.update(&number.to_ne_bytes(), &descriptor.to_ne_bytes());
        }
    });
}

fn any(is_ipv6: bool) -> SocketAddr {
    let text = if is_ipv6 { "[::]:0" } else { "0.0.0.0:0" };
    text.parse().expect("an address")
}

/// A random network of the calling thread's namespace, with what is open in it.
pub(super) fn network_of_sockets(
    choices: &mut Choices<'_>,
    system: System,
) -> Result<System, Errno> {
    let mut described = system;
    let open = add_sockets(choices, &mut described)?;
    OPEN.replace(open);
    DESCRIBED.replace(described.network.sockets.clone());
    Ok(described)
}

/// Ids of other namespaces with sockets.
pub(super) const NAMESPACES: [u32; 2] = [5, 1000];

/// As [`network_of_sockets`], with two other namespaces of the same kind, which have ids in it.
pub(super) fn network_of_namespaces(
    choices: &mut Choices<'_>,
    system: System,
) -> Result<System, Errno> {
    let mut described = system;
    let mut open = add_sockets(choices, &mut described)?;
    for id in NAMESPACES {
        let seed = choices.value();
        let made = thread::scope(|scope| scope.spawn(|| namespace_of_sockets(seed)).join());
        let (namespace, sockets, more) =
            made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        namespace.set_id(id)?;
        for mut socket in sockets {
            socket.namespace = Some(id);
            described.network.sockets.add(socket);
        }
        open.extend(more);
    }
    OPEN.replace(open);
    DESCRIBED.replace(described.network.sockets.clone());
    Ok(described)
}

/// A namespace, what its sockets are, and those that are open.
type Namespace = (NetworkNamespace, Vec<NetSocket>, Vec<Option<InetSocket>>);

/// Moves the calling thread to a new namespace with random sockets.
fn namespace_of_sockets(seed: u64) -> Result<Namespace, Errno> {
    let _own = OwnNamespace::enter()?;
    let mut described = System::DEFAULT;
    let open = add_sockets(&mut Choices::from_seed(seed), &mut described)?;
    let sockets = described.network.sockets.list().to_vec();
    Ok((NetworkNamespace::own()?, sockets, open))
}

/// Makes a random network in the calling thread's namespace, and describes it; what is open
/// in it.
fn add_sockets(
    choices: &mut Choices<'_>,
    described: &mut System,
) -> Result<Vec<Option<InetSocket>>, Errno> {
    pin_to_cpu(0)?;
    run_ip(
        Some("-4"),
        "link set lo up\nlink add v0 address 02:00:00:00:00:10 type veth peer name v1\n\
         link set v0 up\nlink set v1 up\n\
         addr add 10.9.0.1/24 dev v0\naddr add 2001:db8:9::1/64 dev v0 nodad\n\
         addr add 10.9.0.2/32 dev lo\naddr add 2001:db8:9::2/128 dev lo nodad\n",
    )?;
    let cookies = choices.pick(&[SynCookies::Never, SynCookies::WhenFull, SynCookies::Always]);
    let path = "/proc/sys/net/ipv4/tcp_syncookies";
    std::fs::write(path, (cookies as u8).to_string()).map_err(Errno::from)?;
    described.network.syncookies = cookies;
    described.network.add_device(NetDevice::LOOPBACK);
    for index in &DEVICES[1..] {
        let device = NetDevice::ethernet(*index, format!("v{index}").into());
        described.network.add_device(device);
    }
    let sockets = &mut described.network.sockets;
    let mut open = Vec::new();
    let mut listeners = Vec::new();
    for number in 0..8 + choices.below(16) {
        let made = match choices.one_in(3) && !listeners.is_empty() {
            true => connection(choices, number, &listeners, (&open, sockets, cookies)),
            false => bound(choices, number),
        };
        // What the kernel refuses is not there.
        for (socket, description) in made.unwrap_or_default() {
            if description.state == SocketState::Listen {
                listeners.push(open.len());
            }
            let is_closed = description.state == SocketState::TimeWait;
            sockets.add(described_by(&socket, description)?);
            open.push((!is_closed).then_some(socket));
        }
    }
    if cookies != SynCookies::Always {
        for at in 0..choices.below(4) {
            ask_for_connection(at as u16, &listeners, sockets)?;
            open.resize_with(sockets.list().len(), || None);
        }
    }
    Ok(open)
}

type Made = Vec<(InetSocket, NetSocket)>;

/// A new socket with random options, not bound yet.
fn unbound(
    choices: &mut Choices<'_>,
    number: u32,
    (is_ipv6, is_tcp): (bool, bool),
) -> Result<(InetSocket, NetSocket), Errno> {
    let socket = InetSocket::new(is_ipv6, is_tcp)?;
    let mut description = match is_tcp {
        true => NetSocket::listener(any(is_ipv6)),
        false => NetSocket::udp(any(is_ipv6)),
    };
    socket.set(InetOption::ReuseAddress, 1)?;
    if choices.one_in(3) {
        socket.set(InetOption::ReusePort, 1)?;
        description.group = Some(0);
    }
    if choices.one_in(3) {
        description.device = choices.pick(&DEVICES);
        socket.set(InetOption::Device, description.device)?;
    }
    if is_ipv6 && choices.one_in(3) {
        description.is_ipv6_only = true;
        socket.set(InetOption::Ipv6Only, 1)?;
    }
    if choices.one_in(4) {
        let cpu = choices.pick(&[0, 1]);
        description.incoming_cpu = Some(cpu);
        socket.set(InetOption::IncomingCpu, cpu)?;
    }
    // Which socket of a group is found is not compared.
    let mark = if description.group.is_some() {
        7
    } else {
        number + 100
    };
    set_marks(&socket, &mut description, mark)?;
    Ok((socket, description))
}

fn set_marks(socket: &InetSocket, description: &mut NetSocket, mark: u32) -> Result<(), Errno> {
    (description.mark, description.priority) = (mark, mark % 7);
    socket.set(InetOption::Mark, mark)?;
    socket.set(InetOption::Priority, mark % 7)
}

/// A socket that waits for connections, or one of UDP, which may be connected.
fn bound(choices: &mut Choices<'_>, number: u32) -> Result<Made, Errno> {
    let (is_ipv6, is_tcp) = (choices.one_in(2), choices.one_in(2));
    let (socket, mut description) = unbound(choices, number, (is_ipv6, is_tcp))?;
    let local = SocketAddr::new(address(choices, is_ipv6), choices.pick(&PORTS));
    socket.bind(local)?;
    description.local = local;
    if is_tcp {
        socket.listen()?;
    } else if !local.ip().is_unspecified() && description.group.is_none() && choices.one_in(3) {
        let remote = SocketAddr::new(address(choices, is_ipv6), choices.pick(&PORTS));
        if remote.ip().is_unspecified() {
            return Err(Errno(22));
        }
        socket.connect(remote)?;
        description.remote = remote;
        description.state = SocketState::Established;
    }
    Ok(vec![(socket, description)])
}

/// Both ends of a connection with a socket that waits for it.
fn connection(
    choices: &mut Choices<'_>,
    number: u32,
    listeners: &[usize],
    (open, sockets, cookies): (&[Option<InetSocket>], &Sockets, SynCookies),
) -> Result<Made, Errno> {
    let at = listeners[choices.below(listeners.len() as u32) as usize];
    let (Some(listener), their) = (&open[at], &sockets.list()[at]) else {
        return Ok(Vec::new());
    };
    if their.group.is_some() || their.device != 0 {
        return Ok(Vec::new());
    }
    let is_ipv6 = their.is_ipv6() && choices.one_in(2);
    let (socket, mut description) = unbound(choices, number, (is_ipv6, true))?;
    if description.device != 0 {
        return Ok(Vec::new());
    }
    let port = 5000 + number as u16;
    let own = if is_ipv6 { "::1" } else { "127.0.0.1" };
    let own: IpAddr = own.parse().expect("an address");
    socket.bind(SocketAddr::new(own, port))?;
    let to = match their.local.ip() {
        address if address.is_unspecified() => own,
        address if address.is_ipv6() == is_ipv6 => address,
        _ => return Ok(Vec::new()),
    };
    if matches!(to, IpAddr::V6(to) if to.to_ipv4_mapped().is_some()) {
        return Ok(Vec::new());
    }
    // Where another socket may take the connection, this one would wait for it for ever.
    let takes = |other: &NetSocket| {
        let is_there = match other.local.ip() {
            IpAddr::V6(local) => local.to_ipv4_mapped().map_or(local.into(), IpAddr::V4),
            local => local,
        };
        other.state == SocketState::Listen
            && other.local.port() == their.local.port()
            && (is_there.is_unspecified() || is_there == to)
    };
    let mut others = sockets.list().iter().enumerate();
    if others.any(|(number, other)| number != at && takes(other)) {
        return Ok(Vec::new());
    }
    let remote = SocketAddr::new(to, their.local.port());
    socket.connect(remote)?;
    description.state = SocketState::Established;
    description.local = SocketAddr::new(own, port);
    description.remote = remote;
    let accepted = listener.accept()?;
    if cookies == SynCookies::Always {
        // The listener answered with a cookie.
        sockets.note_cookie(at, 0);
    }
    if choices.one_in(4) {
        // Whoever closes first keeps what is left of a connection.
        description.state = SocketState::TimeWait;
        let left = socket.cookie()?;
        drop(socket);
        description.cookie = left;
        return Ok(vec![(accepted, description)]);
    }
    let mapped = |end: SocketAddr| match end.ip() {
        IpAddr::V4(address) if their.is_ipv6() => {
            SocketAddr::new(IpAddr::V6(address.to_ipv6_mapped()), end.port())
        }
        _ => end,
    };
    let mut other = NetSocket::connection(mapped(remote), mapped(description.local));
    other.is_ipv6_only = their.is_ipv6_only;
    set_marks(&accepted, &mut other, number + 500)?;
    Ok(vec![(socket, description), (accepted, other)])
}

/// Has a host on the link of `v0` ask a listener for a connection, which it never confirms.
fn ask_for_connection(at: u16, listeners: &[usize], sockets: &mut Sockets) -> Result<(), Errno> {
    let Some(&number) = listeners.get(usize::from(at)) else {
        return Ok(());
    };
    let listener = sockets.list()[number].clone();
    let own: Ipv4Addr = [10, 9, 0, 1].into();
    // Which of several the kernel asks does not matter here.
    let at_port = |other: &&usize| sockets.list()[**other].local.port() == listener.local.port();
    let is_alone = listeners.iter().filter(at_port).count() == 1;
    let fits = is_alone
        && listener.takes_ipv4()
        && (listener.local.ip().is_unspecified() || listener.local_ipv4() == own)
        && [0, interface_index(c"v0")?].contains(&listener.device);
    if !fits {
        return Ok(());
    }
    let (peer, port): (Ipv4Addr, u16) = ([10, 9, 0, 77].into(), 6000 + at);
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x10, 0x02, 0, 0, 0, 0, 0x77, 0x08, 0x00];
    let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
    frame.extend([&ip[..], &peer.octets(), &own.octets()].concat());
    let check = checksum(&frame[14..34], 0);
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(listener.local.port().to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x10, 0, 0, 0, 0, 0]);
    let check = checksum(&frame[26..54], 6 + 20);
    frame[50..52].copy_from_slice(&check.to_be_bytes());
    let link = PacketSocket::open(interface_index(c"v1")?, PacketLayer::Link)?;
    link.send(&frame)?;
    wait_for_request(port)?;
    let map = |address: Ipv4Addr| match listener.is_ipv6() {
        true => IpAddr::V6(address.to_ipv6_mapped()),
        false => IpAddr::V4(address),
    };
    let local = SocketAddr::new(map(own), listener.local.port());
    let mut request = NetSocket::connection(local, SocketAddr::new(map(peer), port));
    request.state = SocketState::NewSynRecv;
    request.device = listener.device;
    // Pairs of devices tell the queue.
    request.queue = Some(0);
    request.is_ipv6_only = listener.is_ipv6_only;
    sockets.add(request);
    Ok(())
}

/// Waits until the kernel has a request from a port: on a busy machine it takes packets later.
fn wait_for_request(port: u16) -> Result<(), Errno> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        for table in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
            let table = std::fs::read_to_string(table).map_err(Errno::from)?;
            // Columns: number, local address, remote address, state.
            let is_there = table.lines().any(|line| {
                let mut columns = line.split_whitespace().skip(2);
                let remote = columns.next().unwrap_or_default();
                remote.ends_with(&format!(":{port:04X}")) && columns.next() == Some("03")
            });
            if is_there {
                return Ok(());
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    const ETIMEDOUT: i32 = 110;
    Err(Errno(ETIMEDOUT))
}

/// The checksum of the Internet over bytes of even length, and a number.
fn checksum(bytes: &[u8], more: u32) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>() + more;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Description of a socket with the values that the kernel chose.
fn described_by(socket: &InetSocket, mut description: NetSocket) -> Result<NetSocket, Errno> {
    if description.state == SocketState::TimeWait {
        return Ok(description);
    }
    description.cookie = socket.cookie()?;
    if description.protocol == SocketProtocol::Tcp && description.state == SocketState::Established
    {
        let info = socket.tcp_info()?;
        for (name, at) in FIGURES {
            let is_wide = name.starts_with("bytes");
            let value = match is_wide {
                true => info
                    .get(*at..at + 8)
                    .map(|it| u64::from_ne_bytes(it.try_into().unwrap())),
                false => (info.get(*at..at + 4))
                    .map(|it| u32::from_ne_bytes(it.try_into().unwrap()).into()),
            };
            assert!(description.tcp.set(name, value.unwrap_or(0)), "{name}");
        }
    }
    Ok(description)
}

/// Figures that `struct tcp_info` has too, with their places in it.
const FIGURES: &[(&str, usize)] = &[
    ("snd_cwnd", 80),
    ("snd_ssthresh", 76),
    ("mss_cache", 16),
    ("rtt_min", 148),
    ("total_retrans", 100),
    ("segs_in", 140),
    ("data_segs_in", 152),
    ("segs_out", 136),
    ("data_segs_out", 156),
    ("bytes_received", 128),
    ("bytes_acked", 120),
    ("dsack_dups", 216),
    ("delivered", 192),
    ("delivered_ce", 196),
];
