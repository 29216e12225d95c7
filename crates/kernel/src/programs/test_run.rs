//! Packets given to programs as `BPF_PROG_TEST_RUN` gives them: which sizes it takes, what
//! the context holds, and what comes out.

use spec::Errno;
use spec::programs::ProgramType;

use super::packet::{MAX_LINEAR, PacketBuffer};
use super::{PacketContext, SKB, XDP};

/// Bytes of the link-layer header, that of Ethernet.
pub const LINK_HEADER: usize = 14;
/// Most bytes of a packet of the socket buffer types.
const MAX_SKB: usize = 3712;
/// Most bytes of a packet of XDP: a page for each of 17 fragments behind the linear part.
const MAX_XDP: usize = MAX_LINEAR + 17 * 4096;
/// The device that packets come from: the loopback device, the first of a namespace.
const IFINDEX: u32 = 1;

/// A program type that gets packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketProgram {
    context: PacketContext,
    /// True if the packet begins with the link-layer header.
    has_link_header: bool,
}

/// Packet and context of a run, before it and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketInput {
    program: PacketProgram,
    /// The packet.
    pub packet: PacketBuffer,
    /// The context.
    pub context: Vec<u8>,
    /// The link-layer header, if it is not part of the packet.
    link_header: Vec<u8>,
}

impl PacketProgram {
    /// `None` for types that get no packets, and those that are not built.
    pub fn of(kind: ProgramType) -> Option<PacketProgram> {
        let (context, has_link_header) = match kind {
            ProgramType::Xdp => (XDP, true),
            ProgramType::SchedCls | ProgramType::SchedAct => (SKB, true),
            ProgramType::SocketFilter | ProgramType::CgroupSkb => (SKB, false),
            _ => return None,
        };
        Some(PacketProgram {
            context,
            has_link_header,
        })
    }

    /// A frame for a test run.
    ///
    /// # Errors
    /// The kernel's for frames of a size that it does not take.
    pub fn test_input(self, frame: &[u8]) -> Result<PacketInput, Errno> {
        self.check_size(frame)?;
        Ok(match self.context == XDP {
            true => self.input(frame, PacketBuffer::with_linear_part(frame, MAX_LINEAR)),
            false => self.captured(frame),
        })
    }

    /// A frame of any length, in one piece.
    pub fn captured(self, frame: &[u8]) -> PacketInput {
        let data = match self.has_link_header {
            true => frame,
            false => &frame[LINK_HEADER.min(frame.len())..],
        };
        self.input(frame, PacketBuffer::linear(data))
    }

    /// The sizes that a test run takes for a frame like this one, in bytes.
    pub fn sizes(self, frame: &[u8]) -> (usize, usize) {
        let most = if self.context == XDP {
            MAX_XDP
        } else {
            MAX_SKB
        };
        let network_header = match ethertype(frame) {
            _ if self.context == XDP => 0,
            Some(0x0800) => 20,
            Some(0x86dd) => 40,
            _ => 0,
        };
        (LINK_HEADER + network_header, most)
    }

    fn check_size(self, frame: &[u8]) -> Result<(), Errno> {
        let (least, most) = self.sizes(frame);
        match frame.len() {
            len if len < least => Err(Errno::EINVAL),
            len if len > most && self.context == XDP => Err(Errno::ENOMEM),
            len if len > most => Err(Errno::EINVAL),
            _ => Ok(()),
        }
    }

    fn input(self, frame: &[u8], packet: PacketBuffer) -> PacketInput {
        let mut context = vec![0; self.context.size];
        match self.context == XDP {
            true => put(&mut context, xdp::INGRESS_IFINDEX, IFINDEX),
            false => fill_skb(&mut context, frame, packet.len()),
        }
        let link_header = match self.has_link_header {
            true => Vec::new(),
            false => frame[..LINK_HEADER.min(frame.len())].to_vec(),
        };
        PacketInput {
            program: self,
            packet,
            context,
            link_header,
        }
    }
}

impl PacketInput {
    /// Sets the index of the interface that the packet comes from.
    pub fn set_ifindex(&mut self, ifindex: u32) {
        let at = match self.program.context == XDP {
            true => xdp::INGRESS_IFINDEX,
            false => skb::IFINDEX,
        };
        put(&mut self.context, at, ifindex);
    }

    /// Writes the addresses of the packet's linear part into the context.
    pub fn set_addresses(&mut self, address: u32) {
        let linear = self.packet.linear_len() as u32;
        let all = self.packet.len() as u32;
        let context = &mut self.context;
        (self.program.context).set_packet(context, address, linear, all);
    }

    /// The packet after a run, as a test run returns it: in front of a packet without
    /// link-layer header are as many zeros.
    pub fn data_out(&self) -> Vec<u8> {
        let mut data = vec![0; self.link_header.len()];
        data.extend_from_slice(&self.packet.to_vec());
        data
    }

    /// The frame after a run: at most so many bytes of the packet, with the link-layer
    /// header in front.
    pub fn kept_frame(&self, most: usize) -> Vec<u8> {
        let packet = self.packet.to_vec();
        let kept = &packet[..most.min(packet.len())];
        [&self.link_header[..], kept].concat()
    }

    /// The context after a run, as a test run returns it.
    pub fn context_out(&self) -> Vec<u8> {
        let mut out = vec![0; self.context.len()];
        if self.program.context == XDP {
            put(&mut out, xdp::DATA_END, self.packet.linear_len() as u32);
            return out;
        }
        for &(at, len) in skb::RETURNED {
            out[at..at + len].copy_from_slice(&self.context[at..at + len]);
        }
        out
    }
}

/// What a frame from the loopback device has in its `struct __sk_buff`.
fn fill_skb(context: &mut [u8], frame: &[u8], len: usize) {
    put(context, skb::IFINDEX, IFINDEX);
    put(context, skb::PACKET_TYPE, packet_type(frame));
    put(context, skb::PROTOCOL, u32::from(protocol(frame).to_be()));
    put(context, skb::WIRE_LEN, len as u32);
    let network = frame.get(LINK_HEADER..).unwrap_or(&[]);
    // A socket of the packet's addresses belongs to it: from is here, to is there.
    match ethertype(frame) {
        Some(0x0800) if network.len() >= 20 => {
            put(context, skb::FAMILY, 2);
            copy(context, skb::LOCAL_IP4, &network[12..16]);
            copy(context, skb::REMOTE_IP4, &network[16..20]);
        }
        Some(0x86dd) if network.len() >= 40 => {
            put(context, skb::FAMILY, 10);
            copy(context, skb::LOCAL_IP6, &network[8..24]);
            copy(context, skb::REMOTE_IP6, &network[24..40]);
        }
        _ => {}
    }
}

fn ethertype(frame: &[u8]) -> Option<u16> {
    let bytes = frame.get(12..14)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// `eth_type_trans`: the type of the frame; a length is LLC, or Novell's form of it.
fn protocol(frame: &[u8]) -> u16 {
    const LEAST_TYPE: u16 = 0x0600;
    const NOVELL: u16 = 1;
    const LLC: u16 = 4;
    match ethertype(frame) {
        Some(found) if found >= LEAST_TYPE => found,
        _ if frame.get(14..16) == Some(&[0xff, 0xff]) => NOVELL,
        _ => LLC,
    }
}

/// Whom the frame is for, seen from the loopback device, whose address and broadcast
/// address are 0.
fn packet_type(frame: &[u8]) -> u32 {
    const HOST: u32 = 0;
    const MULTICAST: u32 = 2;
    const OTHER_HOST: u32 = 3;
    match frame.first_chunk::<6>() {
        Some([0, 0, 0, 0, 0, 0]) => HOST,
        Some([first, ..]) if first & 1 != 0 => MULTICAST,
        _ => OTHER_HOST,
    }
}

fn put(context: &mut [u8], at: usize, value: u32) {
    copy(context, at, &value.to_le_bytes());
}

fn copy(context: &mut [u8], at: usize, bytes: &[u8]) {
    context[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Offsets in `struct xdp_md`.
mod xdp {
    pub(super) const DATA_END: usize = 4;
    pub(super) const INGRESS_IFINDEX: usize = 12;
}

/// Offsets in `struct __sk_buff`.
mod skb {
    pub(super) const PACKET_TYPE: usize = 4;
    pub(super) const PROTOCOL: usize = 16;
    pub(super) const IFINDEX: usize = 40;
    pub(super) const FAMILY: usize = 88;
    pub(super) const REMOTE_IP4: usize = 92;
    pub(super) const LOCAL_IP4: usize = 96;
    pub(super) const REMOTE_IP6: usize = 100;
    pub(super) const LOCAL_IP6: usize = 116;
    pub(super) const WIRE_LEN: usize = 160;

    /// What a test run returns: mark, priority, ingress_ifindex, ifindex, cb, tstamp,
    /// wire_len, gso_segs, hwtstamp.
    pub(super) const RETURNED: &[(usize, usize)] = &[
        (8, 4),
        (32, 4),
        (36, 4),
        (40, 4),
        (48, 20),
        (152, 8),
        (160, 4),
        (164, 4),
        (184, 8),
    ];
}
