//! Packet metadata outside the context (fields of `sk_buff`).

/// Packet metadata outside the context (fields of `sk_buff`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketState {
    /// Position of the link-layer header.
    pub link_header: usize,
    /// Position of the network header.
    pub network_header: usize,
    /// Bytes of the link-layer header, when a helper last measured it; 0 before.
    pub measured_link_header: usize,
    /// Position of the transport header, if it is known.
    pub transport_header: Option<usize>,
    /// Checksum state from the device.
    pub checksum: Checksum,
    /// A program put a header in front of the network header.
    pub is_encapsulated: bool,
    /// A lightweight tunnel sends it.
    pub is_sent: bool,
    /// Programs of the type that gets it only read it.
    pub is_read_only: bool,
    /// Index of the device of its route, if a program changed that.
    pub route_device: Option<u32>,
    /// The hash in the context is valid.
    pub has_hash: bool,
    /// The tunnel that a program chose.
    pub tunnel: Option<Tunnel>,
    /// Redirect target set by the last call.
    pub redirect: Option<Redirect>,
    /// Copies that a program sent.
    pub clones: Vec<ClonedPacket>,
}

impl PacketState {
    /// Makes it that of another packet, whose first byte is at a position: all else is the default.
    #[inline]
    pub(crate) fn reset(&mut self, first: usize) {
        let PacketState {
            link_header,
            network_header,
            measured_link_header,
            transport_header,
            checksum,
            is_encapsulated,
            is_sent,
            is_read_only,
            route_device,
            has_hash,
            tunnel,
            redirect,
            clones,
        } = self;
        (*link_header, *network_header) = (first, first);
        *measured_link_header = 0;
        *transport_header = None;
        *checksum = Checksum::None;
        (*is_encapsulated, *is_sent, *is_read_only) = (false, false, false);
        *route_device = None;
        *has_hash = false;
        if tunnel.is_some() {
            *tunnel = None;
        }
        *redirect = None;
        if !clones.is_empty() {
            clones.clear();
        }
    }
}

/// Checksum state of a packet, from the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing.
    #[default]
    None,
    /// The checksums of so many layers and one more are correct.
    Unnecessary(u8),
    /// The sum of all bytes behind the link-layer header.
    Complete(u32),
}

/// A tunnel as `bpf_skb_set_tunnel_key` and `bpf_skb_set_tunnel_opt` describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tunnel {
    /// Tunnel id.
    pub id: u32,
    /// Remote address; IPv4 in the first word.
    pub remote: [u32; 4],
    /// Local address; IPv4 in the first word.
    pub local: [u32; 4],
    /// Type of service.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Flow label of IPv6.
    pub label: u32,
    /// True for IPv6.
    pub is_ipv6: bool,
    /// `TUNNEL_` flags (`include/uapi/linux/if_tunnel.h`).
    pub flags: u16,
    /// Options.
    pub options: Vec<u8>,
}

/// Redirect target of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redirect {
    /// To an interface (`bpf_redirect`).
    Interface {
        /// Its index.
        index: u32,
        /// Flags of the call.
        flags: u64,
    },
    /// To the neighbour that the routes say, on an interface (`bpf_redirect_neigh`).
    Neighbour {
        /// Its index.
        index: u32,
    },
    /// To the other end of an interface (`bpf_redirect_peer`).
    Peer {
        /// Its index.
        index: u32,
    },
    /// To the target in a map (`bpf_redirect_map`).
    Map {
        /// Key.
        key: u32,
        /// Flags of the call.
        flags: u64,
    },
    /// To an AF_XDP socket in a map (`bpf_redirect_map`).
    Socket {
        /// Its cookie.
        cookie: u64,
        /// It gets the packet: it is bound to the queue that the packet came from.
        is_delivered: bool,
    },
}

/// A copy of a packet that a program sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonedPacket {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Index of the interface.
    pub interface: u32,
    /// True if the interface received it instead of sending it.
    pub is_ingress: bool,
}
