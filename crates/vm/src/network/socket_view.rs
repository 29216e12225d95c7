//! Descriptions of sockets, and the structures in which programs read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket that programs find by its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetSocket {
    /// TCP or UDP.
    #[doc(hidden)]
    pub protocol: SocketProtocol,
    /// Its state.
    #[doc(hidden)]
    pub state: SocketState,
    /// Address and port that it is bound to. Its family is that of the socket; a socket of IPv6
    /// has addresses of IPv4 in mapped form.
    pub local: SocketAddr,
    /// Address and port of the other end; of a socket that is not connected the unspecified
    /// address and 0.
    pub remote: SocketAddr,
    /// It takes no packets of IPv4 although it is of IPv6 (`IPV6_V6ONLY`).
    pub is_ipv6_only: bool,
    /// Index of the device that it is bound to (`SO_BINDTODEVICE`); 0 for none.
    pub device: u32,
    /// Mark of what it sends (`SO_MARK`).
    pub mark: u32,
    /// Priority of what it sends (`SO_PRIORITY`).
    pub priority: u32,
    /// A number that no other socket has.
    pub cookie: u64,
    /// Id of the owner.
    pub uid: u32,
    /// Id that the network namespace of the run has for that of the socket; `None` for a socket
    /// of the same one.
    pub namespace: Option<u32>,
    /// Group of sockets that share their port (`SO_REUSEPORT`); equal addresses and numbers make
    /// one group.
    pub group: Option<u32>,
    /// CPU whose packets it prefers (`SO_INCOMING_CPU`).
    pub incoming_cpu: Option<u32>,
    /// Queue of the device that its packets come from.
    pub queue: Option<u16>,
    /// Figures of its TCP connection.
    #[doc(hidden)]
    pub tcp: TcpFigures,
}

/// Protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl SocketProtocol {
    /// Its number in IP headers.
    pub const fn number(self) -> u32 {
        match self {
            SocketProtocol::Tcp => 6,
            SocketProtocol::Udp => 17,
        }
    }
}

/// State of a socket, with Linux's number. UDP sockets are `Established` when they are
/// connected, otherwise `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SocketState {
    /// Connected.
    Established = 1,
    /// A connection was asked for.
    SynSent,
    /// Both ends asked for a connection, or data came with the request.
    SynRecv,
    /// Closed here.
    FinWait1,
    /// Closed here, which the other end knows.
    FinWait2,
    /// Remainder of a connection, for segments that come late: no whole socket.
    TimeWait,
    /// Not connected.
    Close,
    /// Closed by the other end.
    CloseWait,
    /// Closed by both ends; the last acknowledgement is missing.
    LastAck,
    /// Waits for connections.
    Listen,
    /// Closed by both ends at once.
    Closing,
    /// A connection that a listener is asked for: no whole socket.
    NewSynRecv,
}

impl SocketState {
    /// All states by number, with their names in `ss`. That prints `SYN-RECV` for connections that
    /// a listener is asked for.
    pub const ALL: [(SocketState, &'static str); 12] = [
        (SocketState::Established, "ESTAB"),
        (SocketState::SynSent, "SYN-SENT"),
        (SocketState::SynRecv, "FAST-OPEN"),
        (SocketState::FinWait1, "FIN-WAIT-1"),
        (SocketState::FinWait2, "FIN-WAIT-2"),
        (SocketState::TimeWait, "TIME-WAIT"),
        (SocketState::Close, "UNCONN"),
        (SocketState::CloseWait, "CLOSE-WAIT"),
        (SocketState::LastAck, "LAST-ACK"),
        (SocketState::Listen, "LISTEN"),
        (SocketState::Closing, "CLOSING"),
        (SocketState::NewSynRecv, "SYN-RECV"),
    ];
}

impl NetSocket {
    /// A TCP socket that waits for connections at an address.
    pub const fn listener(local: SocketAddr) -> NetSocket {
        NetSocket::new(SocketProtocol::Tcp, SocketState::Listen, local)
    }

    /// A TCP connection.
    pub const fn connection(local: SocketAddr, remote: SocketAddr) -> NetSocket {
        NetSocket {
            remote,
            ..NetSocket::new(SocketProtocol::Tcp, SocketState::Established, local)
        }
    }

    /// A UDP socket that is not connected.
    pub const fn udp(local: SocketAddr) -> NetSocket {
        NetSocket::new(SocketProtocol::Udp, SocketState::Close, local)
    }

    const fn new(protocol: SocketProtocol, state: SocketState, local: SocketAddr) -> NetSocket {
        NetSocket {
            protocol,
            state,
            local,
            remote: match local {
                SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
                SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
            },
            is_ipv6_only: false,
            device: 0,
            mark: 0,
            priority: 0,
            cookie: 0,
            uid: 0,
            namespace: None,
            group: None,
            incoming_cpu: None,
            queue: None,
            tcp: TcpFigures::NONE,
        }
    }

    /// True unless it is only what is left of a connection, or one that is asked for.
    #[doc(hidden)]
    pub fn is_whole(&self) -> bool {
        !matches!(self.state, SocketState::TimeWait | SocketState::NewSynRecv)
    }

    /// True if it takes packets of IPv4: a socket of IPv6 does so at any address, and at one of
    /// IPv4 in mapped form.
    #[doc(hidden)]
    pub fn takes_ipv4(&self) -> bool {
        match self.local.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => {
                let has_ipv4 = address.is_unspecified() || address.to_ipv4_mapped().is_some();
                has_ipv4 && !self.is_ipv6_only
            }
        }
    }

    /// True if it is of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.local.is_ipv6()
    }

    /// The address that packets of IPv4 find it at.
    pub fn local_ipv4(&self) -> Ipv4Addr {
        // Linux 6.18 has this one for sockets that have none.
        as_ipv4(self.local.ip()).unwrap_or(Ipv4Addr::new(127, 0, 0, 6))
    }

    /// The address of IPv4 of its other end; the unspecified one for an address of IPv6.
    pub fn remote_ipv4(&self) -> Ipv4Addr {
        as_ipv4(self.remote.ip()).unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    /// True if Linux 6.18 keeps the addresses of a socket of IPv4 in mapped form too.
    fn has_mapped_addresses(&self) -> bool {
        let is_connection = !matches!(self.state, SocketState::Listen | SocketState::Close);
        self.protocol == SocketProtocol::Tcp && is_connection && self.is_whole()
    }

    /// The `struct bpf_sock` that programs read.
    #[doc(hidden)]
    pub fn view(&self) -> SocketView {
        let mut view = SocketView::default();
        let (family, kind) = match (self.is_ipv6(), self.protocol) {
            (false, SocketProtocol::Tcp) => (AF_INET, SOCK_STREAM),
            (false, SocketProtocol::Udp) => (AF_INET, SOCK_DGRAM),
            (true, SocketProtocol::Tcp) => (AF_INET6, SOCK_STREAM),
            (true, SocketProtocol::Udp) => (AF_INET6, SOCK_DGRAM),
        };
        view.put(SocketView::DEVICE, &self.device.to_le_bytes());
        view.put(SocketView::FAMILY, &family.to_le_bytes());
        view.put(SocketView::TYPE, &kind.to_le_bytes());
        view.put(SocketView::PROTOCOL, &self.protocol.number().to_le_bytes());
        view.put(SocketView::MARK, &self.mark.to_le_bytes());
        view.put(SocketView::PRIORITY, &self.priority.to_le_bytes());
        view.put(SocketView::LOCAL_IPV4, &self.local_ipv4().octets());
        view.put(SocketView::REMOTE_IPV4, &self.remote_ipv4().octets());
        let ends = [
            (SocketView::LOCAL_IPV6, self.local.ip()),
            (SocketView::REMOTE_IPV6, self.remote.ip()),
        ];
        for (at, address) in ends {
            match address {
                IpAddr::V6(address) => view.put(at, &address.octets()),
                IpAddr::V4(address) if self.has_mapped_addresses() => {
                    view.put(at, &address.to_ipv6_mapped().octets());
                }
                IpAddr::V4(_) => {}
            }
        }
        let local_port = u32::from(self.local.port());
        view.put(SocketView::LOCAL_PORT, &local_port.to_le_bytes());
        let remote_port = self.remote.port();
        view.put(SocketView::REMOTE_PORT, &remote_port.to_be_bytes());
        view.put(SocketView::STATE, &(self.state as u32).to_le_bytes());
        let queue = self.queue.map_or(-1, i32::from);
        view.put(SocketView::QUEUE, &queue.to_le_bytes());
        view
    }
}

/// The address of IPv4 that an address stands for.
fn as_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(address) => address.to_ipv4_mapped(),
    }
}

/// Family of Unix sockets.
pub const AF_UNIX: u32 = 1;
/// Family of IPv4.
pub const AF_INET: u32 = 2;
/// Family of IPv6.
pub const AF_INET6: u32 = 10;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;

/// The bytes of a `struct bpf_sock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketView(pub [u8; SocketView::SIZE]);

impl SocketView {
    /// Bytes of the structure.
    pub const SIZE: usize = 80;

    /// Offset of the index of the device, 4 bytes.
    pub const DEVICE: usize = 0;
    /// Offset of the family, 4 bytes.
    pub const FAMILY: usize = 4;
    /// Offset of the type, 4 bytes.
    pub const TYPE: usize = 8;
    /// Offset of the protocol, 4 bytes.
    pub const PROTOCOL: usize = 12;
    /// Offset of the mark, 4 bytes.
    pub const MARK: usize = 16;
    /// Offset of the priority, 4 bytes.
    pub const PRIORITY: usize = 20;
    /// Offset of the own address of IPv4.
    pub const LOCAL_IPV4: usize = 24;
    /// Offset of the own address of IPv6.
    pub const LOCAL_IPV6: usize = 28;
    /// Offset of the own port, 4 bytes in the machine's order.
    pub const LOCAL_PORT: usize = 44;
    /// Offset of the port of the other end, 2 bytes in network order.
    pub const REMOTE_PORT: usize = 48;
    /// Offset of the address of IPv4 of the other end.
    pub const REMOTE_IPV4: usize = 52;
    /// Offset of the address of IPv6 of the other end.
    pub const REMOTE_IPV6: usize = 56;
    /// Offset of the state, 4 bytes.
    pub const STATE: usize = 72;
    const QUEUE: usize = 76;

    /// The socket of the packet of a test run: of no family and no protocol, not connected.
    pub const OF_TEST_RUN: SocketView = {
        let mut bytes = [0; SocketView::SIZE];
        bytes[SocketView::STATE] = SocketState::Close as u8;
        let mut at = SocketView::QUEUE;
        while at < SocketView::SIZE {
            bytes[at] = 0xff;
            at += 1;
        }
        SocketView(bytes)
    };

    /// Writes bytes at an offset.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Default for SocketView {
    fn default() -> SocketView {
        SocketView([0; SocketView::SIZE])
    }
}

/// Defines the figures of a TCP connection from the members of `struct bpf_tcp_sock`, in
/// their order.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// Figures of a TCP connection, named as in `struct bpf_tcp_sock`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct TcpFigures {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl TcpFigures {
            /// All figures zero.
            pub const NONE: TcpFigures = TcpFigures { $($name: 0,)* };

            /// Names of the figures, in order.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// Sets the figure of a name; false if none has it or the value is too large for it.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($name) => match <$kind>::try_from(value) {
                        Ok(value) => self.$name = value,
                        Err(_) => return false,
                    },)*
                    _ => return false,
                }
                true
            }

            /// Names of the figures with their places and sizes in `struct bpf_tcp_sock`.
            pub fn places() -> impl Iterator<Item = (&'static str, usize, usize)> {
                let sizes = [$((stringify!($name), size_of::<$kind>()),)*];
                let mut end = 0;
                sizes.into_iter().map(move |(name, size)| {
                    end += size;
                    (name, end - size, size)
                })
            }

            /// The `struct bpf_tcp_sock` that programs read.
            pub fn view(&self) -> [u8; TcpFigures::SIZE] {
                let mut bytes = [0; TcpFigures::SIZE];
                let mut at = 0;
                $(
                    let figure = self.$name.to_le_bytes();
                    bytes[at..at + figure.len()].copy_from_slice(&figure);
                    at += figure.len();
                )*
                debug_assert!(at == TcpFigures::SIZE, "the figures fill the structure");
                bytes
            }
        }
    };
}

figures! {
    /// Congestion window, in segments.
    snd_cwnd: u32,
    /// Smoothed round trip time, in eighths of microseconds.
    srtt_us: u32,
    /// Least round trip time, in microseconds.
    rtt_min: u32,
    /// Threshold of slow start.
    snd_ssthresh: u32,
    /// The sequence number that is to be received next.
    rcv_nxt: u32,
    /// The sequence number that is to be sent next.
    snd_nxt: u32,
    /// The first sequence number that is not acknowledged.
    snd_una: u32,
    /// Bytes of a segment.
    mss_cache: u32,
    /// Flags of explicit congestion notification.
    ecn_flags: u32,
    /// Segments of the last measured rate.
    rate_delivered: u32,
    /// Time of the last measured rate, in microseconds.
    rate_interval_us: u32,
    /// Segments that are on their way.
    packets_out: u32,
    /// Segments that were sent again and are on their way.
    retrans_out: u32,
    /// Segments that were sent again.
    total_retrans: u32,
    /// Segments received.
    segs_in: u32,
    /// Segments with data received.
    data_segs_in: u32,
    /// Segments sent.
    segs_out: u32,
    /// Segments with data sent.
    data_segs_out: u32,
    /// Segments that are taken for lost.
    lost_out: u32,
    /// Segments that were acknowledged out of order.
    sacked_out: u32,
    /// Bytes received.
    bytes_received: u64,
    /// Bytes acknowledged.
    bytes_acked: u64,
    /// Segments that arrived twice at the other end.
    dsack_dups: u32,
    /// Segments that were delivered.
    delivered: u32,
    /// Segments that were delivered with a mark of congestion.
    delivered_ce: u32,
    /// Times that the timer of the oldest segment has passed.
    icsk_retransmits: u32,
}

impl TcpFigures {
    /// Bytes of the structure.
    pub const SIZE: usize = 112;
}

impl Default for TcpFigures {
    fn default() -> TcpFigures {
        TcpFigures::NONE
    }
}
