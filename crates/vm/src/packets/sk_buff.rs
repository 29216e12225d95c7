//! The context of a socket filter, laid out as `struct __sk_buff`.

use packet::Packet;
use spec::context::{
    self, CPU, Field, HAS_DEVICE, HASH, HATYPE, IFINDEX, LEN, MARK, PKT_TYPE, PROTOCOL,
    QUEUE_MAPPING, SK_BUFF_SIZE, VLAN_PRESENT, VLAN_PROTO, VLAN_TCI,
};

use crate::PacketRules;

/// The context of a socket filter, to which `r1` points.
#[derive(Clone, Debug)]
#[repr(C, align(8))]
pub struct SkBuff([u32; SK_BUFF_SIZE / 4]);

impl SkBuff {
    /// All fields zero.
    pub const EMPTY: SkBuff = SkBuff([0; SK_BUFF_SIZE / 4]);

    /// Sets one field.
    #[inline(always)]
    fn set(&mut self, field: Field, value: u32) {
        self.0[field.offset as usize / 4] = value;
    }

    /// Describes a packet in all fields, the length as the rules define it.
    #[inline(always)]
    pub fn describe(&mut self, packet: &Packet<'_>, rules: PacketRules) {
        self.describe_metadata(packet);
        self.describe_length(packet, rules);
    }

    /// Sets the length of a packet as the rules define it, which is all that most filters
    /// read.
    #[inline(always)]
    pub fn describe_length(&mut self, packet: &Packet<'_>, rules: PacketRules) {
        let len = match rules {
            PacketRules::Capture => packet.wire_len(),
            // Linux 6.18 knows one length.
            PacketRules::Kernel => packet.data().len() as u32,
        };
        self.set(LEN, len);
    }

    /// Sets all fields but the length.
    #[inline(never)]
    fn describe_metadata(&mut self, packet: &Packet<'_>) {
        let meta = packet.meta();
        let device = meta.device.unwrap_or(packet::Device {
            ifindex: 0,
            hatype: 0,
        });
        let vlan = meta.vlan.unwrap_or(packet::VlanTag {
            protocol: 0,
            tci: 0,
        });
        self.set(PKT_TYPE, u32::from(meta.pkt_type & 7));
        self.set(MARK, meta.mark);
        self.set(QUEUE_MAPPING, u32::from(meta.queue));
        self.set(PROTOCOL, u32::from(meta.protocol.swap_bytes()));
        self.set(VLAN_PRESENT, u32::from(packet.stripped_tag().is_some()));
        self.set(VLAN_TCI, u32::from(vlan.tci));
        self.set(VLAN_PROTO, u32::from(vlan.protocol.swap_bytes()));
        self.set(IFINDEX, device.ifindex);
        self.set(HASH, meta.hash);
        self.set(HAS_DEVICE, u32::from(meta.device.is_some()));
        self.set(HATYPE, u32::from(device.hatype));
        self.set(CPU, meta.cpu);
    }
}

const _: () = assert!(size_of::<SkBuff>() == context::SK_BUFF_SIZE);
