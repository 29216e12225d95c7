//! Packets as filters see them: bytes, captured and wire length, header offsets, and
//! metadata of the device.
//!
//! # Modules
//!
//! `fields.rs` names the fields of headers; `header_walk.rs` finds the start of the payload, as the
//! kernel's flow dissector does; `flow_fields.rs` reads addresses, protocol and ports, as filter
//! expressions do;
//! `netlink.rs` finds netlink attributes; `compose.rs` makes packets of words, `checksum.rs` their checksums.
#![forbid(unsafe_code)]

mod checksum;
mod compose;
mod fields;
mod flow_fields;
mod header_walk;
mod netlink;

pub use checksum::{WrongChecksum, set_checksums, wrong_checksums};
pub use compose::{ComposeError, compose, is_packet_text};
pub use fields::{FirstHeader, HeaderField, fields, summary};
pub use flow_fields::{FlowFields, flow_fields};
pub use header_walk::payload_offset;
pub use netlink::{netlink_attribute, netlink_nested_attribute};

/// Metadata of a packet. Packets borrow it, because one value usually serves many packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Link-layer protocol (an EtherType), host byte order.
    pub protocol: u16,
    /// Packet type: 0 to us, 1 broadcast, 2 multicast, 3 other host, 4 outgoing.
    pub pkt_type: u8,
    /// The receiving device; `None` for packets without one (AF_UNIX).
    pub device: Option<Device>,
    /// Firewall mark.
    pub mark: u32,
    /// Queue mapping.
    pub queue: u16,
    /// Flow hash.
    pub hash: u32,
    /// CPU that runs the filter.
    pub cpu: u32,
    /// The VLAN tag that the device stripped.
    pub vlan: Option<VlanTag>,
    /// Offset of the link-layer header from the start of the data (may be negative); `None`
    /// if it is not set.
    pub link_header: Option<i32>,
    /// Offset of the network header from the start of the data.
    pub network_header: i32,
}

impl Metadata {
    /// Metadata of a packet without a device: no link-layer header, network header at its
    /// start, as of a datagram on an AF_UNIX socket.
    pub const UNKNOWN: Metadata = Metadata {
        protocol: 0,
        pkt_type: 0,
        device: None,
        mark: 0,
        queue: 0,
        hash: 0,
        cpu: 0,
        vlan: None,
        link_header: None,
        network_header: 0,
    };

    /// Offset from the start of the data that the offset of a packet load stands for by
    /// Linux's rules: offsets from -0x100000 (`SKF_NET_OFF`) on are relative to the network
    /// header, those from -0x200000 (`SKF_LL_OFF`) on to the link-layer header.
    pub fn offset_of_load(&self, offset: i32) -> Option<i64> {
        const NETWORK: i32 = -0x10_0000;
        const LINK: i32 = -0x20_0000;
        Some(match offset {
            0.. => i64::from(offset),
            NETWORK.. => i64::from(offset - NETWORK) + i64::from(self.network_header),
            LINK.. => i64::from(offset - LINK) + i64::from(self.link_header?),
            _ => return None,
        })
    }

    /// Unknown metadata but for the CPU that the packet is on.
    pub const fn from_cpu(cpu: u32) -> Metadata {
        let mut metadata = Metadata::UNKNOWN;
        metadata.cpu = cpu;
        metadata
    }
}

/// A network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Interface index.
    pub ifindex: u32,
    /// ARP hardware type (1 for Ethernet).
    pub hatype: u16,
}

/// A VLAN tag stripped from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Protocol, host byte order (0x8100 or 0x88a8).
    pub protocol: u16,
    /// Tag control information.
    pub tci: u16,
}

/// A borrowed packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    buffer: &'a [u8],
    /// Offset of the data in the buffer; bytes before it (a link-layer header that the
    /// socket does not see) are readable by negative offsets only.
    start: usize,
    wire_len: u32,
    meta: &'a Metadata,
}

impl<'a> Packet<'a> {
    /// A captured packet: `data` of `wire_len` bytes on the wire.
    pub const fn captured(data: &'a [u8], wire_len: u32, meta: &'a Metadata) -> Packet<'a> {
        Packet {
            buffer: data,
            start: 0,
            wire_len,
            meta,
        }
    }

    /// A whole packet, as a socket sees it.
    pub const fn whole(data: &'a [u8], meta: &'a Metadata) -> Packet<'a> {
        Packet {
            buffer: data,
            start: 0,
            wire_len: data.len() as u32,
            meta,
        }
    }

    /// A whole packet whose data starts `start` bytes into `buffer` (at its end
    /// when the buffer is shorter).
    pub fn with_head(buffer: &'a [u8], start: usize, meta: &'a Metadata) -> Packet<'a> {
        let start = start.min(buffer.len());
        Packet {
            buffer,
            start,
            wire_len: (buffer.len() - start) as u32,
            meta,
        }
    }

    /// The captured bytes.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        &self.buffer[self.start..]
    }

    /// Length on the wire, in a valid capture at least that of the data.
    pub const fn wire_len(&self) -> u32 {
        self.wire_len
    }

    /// Metadata of the packet.
    pub const fn meta(&self) -> &'a Metadata {
        self.meta
    }

    /// The VLAN tag that the device stripped. As in Linux, a tag whose protocol and control
    /// information are both zero is none.
    pub fn stripped_tag(&self) -> Option<VlanTag> {
        self.meta
            .vlan
            .filter(|tag| tag.protocol != 0 || tag.tci != 0)
    }

    /// `len` bytes at `offset` from the start of the data, which may be negative; `None`
    /// unless all of them exist.
    pub fn bytes(&self, offset: i64, len: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(self.start as i64 + offset).ok()?;
        self.buffer.get(start..start.checked_add(len)?)
    }

    /// `len` bytes at the offset of a packet load by Linux's rules
    /// ([`Metadata::offset_of_load`]).
    pub fn bytes_at_offset(&self, offset: i32, len: usize) -> Option<&'a [u8]> {
        self.bytes(self.meta.offset_of_load(offset)?, len)
    }
}
