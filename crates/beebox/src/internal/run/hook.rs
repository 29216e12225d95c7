//! The objects that the context of a netfilter program points to, as the kernel declares them:
//! `struct nf_hook_state`, `struct sk_buff` with its buffer, and the loopback device. The members
//! that Linux's test run sets are set, the others are zero.

use std::cell::OnceCell;

use ::kernel::programs::NetfilterHook;
use btf::{Btf, Kind};
use interp::checked::{Memory, NoRoom};
use vm::System;

use super::task::member_of;

/// Most structures in structures on the way to a member.
const MOST_DEPTH: u32 = 8;

/// Offsets of members in a structure of the kernel.
#[derive(Clone, Debug)]
struct Layout {
    size: usize,
    /// Names, offsets and sizes.
    members: Vec<(&'static str, usize, usize)>,
}

impl Layout {
    fn of(types: &Btf<'_>, name: &str, members: &[&'static str]) -> Option<Layout> {
        let structure = types.find(Kind::Struct, name)?;
        let place = |&name: &&'static str| {
            let (offset, size) = member_of(types, structure, name, MOST_DEPTH)?;
            Some((name, offset, size))
        };
        Some(Layout {
            size: types.size_of(structure.id())? as usize,
            members: members.iter().filter_map(place).collect(),
        })
    }

    /// An object with these values of members.
    fn object(&self, values: &[(&str, u64)]) -> Vec<u8> {
        let mut object = vec![0; self.size];
        for &(name, value) in values {
            let place = self.members.iter().find(|(member, ..)| *member == name);
            let Some(&(_, offset, size)) = place else {
                continue;
            };
            // A member without size marks the byte of bit fields behind it.
            let size = size.clamp(1, 8);
            if let Some(place) = object.get_mut(offset..offset + size) {
                place.copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
        object
    }
}

/// The layouts of the objects.
#[derive(Clone, Debug)]
pub(super) struct HookLayout {
    state: Layout,
    packet: Layout,
    device: Layout,
}

impl HookLayout {
    /// Those of a kernel's types, if it has them.
    pub(super) fn of(types: &Btf<'_>) -> Option<HookLayout> {
        const PACKET: &[&str] = &[
            "dev",
            "len",
            "__pkt_type_offset",
            "protocol",
            "transport_header",
            "network_header",
            "mac_header",
            "tail",
            "end",
            "head",
            "data",
            "truesize",
            "users",
        ];
        Some(HookLayout {
            state: Layout::of(types, "nf_hook_state", &["hook", "pf", "out"])?,
            packet: Layout::of(types, "sk_buff", PACKET)?,
            device: Layout::of(types, "net_device", &["ifindex", "mtu"])?,
        })
    }

    /// The objects of a frame at a hook.
    pub(super) fn objects(
        &self,
        hook: NetfilterHook,
        frame: &[u8],
        system: &System,
    ) -> HookObjects<'_> {
        let used = NetfilterHook::HEADROOM + frame.len();
        let all = used + NetfilterHook::SHARED_INFO;
        let end = all.next_power_of_two() - NetfilterHook::SHARED_INFO;
        let mut buffer = vec![0; end];
        buffer[NetfilterHook::HEADROOM..used].copy_from_slice(frame);
        let index = System::LOOPBACK;
        let mtu = system.network.device(index).map_or(0, |device| device.mtu);
        HookObjects {
            layout: self,
            hook,
            used,
            device: self
                .device
                .object(&[("ifindex", index.into()), ("mtu", mtu.into())]),
            buffer,
            state: OnceCell::new(),
            packet: OnceCell::new(),
        }
    }
}

/// Bytes of `struct sk_buff` that count for the memory of a packet.
const OWN_SIZE: usize = 256;

/// The objects of a run.
#[derive(Debug)]
pub(super) struct HookObjects<'l> {
    layout: &'l HookLayout,
    hook: NetfilterHook,
    /// Bytes of the buffer up to the end of the packet.
    used: usize,
    device: Vec<u8>,
    buffer: Vec<u8>,
    state: OnceCell<Vec<u8>>,
    packet: OnceCell<Vec<u8>>,
}

impl HookObjects<'_> {
    /// Adds the objects to the memory of a program; the addresses of the hook's state and of the
    /// packet.
    pub(super) fn add<'m>(&'m self, memory: &mut Memory<'m>) -> Result<[u64; 2], NoRoom> {
        let device = memory.add_read_only("device of the packet", &self.device)?;
        let device = memory.address(device);
        let head = memory.add_read_only("buffer of the packet", &self.buffer)?;
        let head = memory.address(head);
        let hook = &self.hook;
        let only = |is_there: bool, value: u64| if is_there { value } else { 0 };
        let state = self.state.get_or_init(|| {
            self.layout.state.object(&[
                ("hook", hook.hook.into()),
                ("pf", hook.family.into()),
                ("out", only(hook.has_output, device)),
            ])
        });
        let link_header = NetfilterHook::HEADROOM as u64;
        let (data, network_header, mac_header) = match hook.is_received {
            true => {
                let network = link_header + NetfilterHook::LINK_HEADER as u64;
                (network, network, link_header)
            }
            false => (link_header, 0, UNSET),
        };
        let end = self.buffer.len();
        let packet = self.packet.get_or_init(|| {
            self.layout.packet.object(&[
                ("dev", only(hook.is_received, device)),
                ("len", self.used as u64 - data),
                ("__pkt_type_offset", hook.packet_type.into()),
                ("protocol", hook.protocol().swap_bytes().into()),
                ("transport_header", UNSET),
                ("network_header", network_header),
                ("mac_header", mac_header),
                ("tail", self.used as u64),
                ("end", end as u64),
                ("head", head),
                ("data", head + data),
                (
                    "truesize",
                    (end + NetfilterHook::SHARED_INFO + OWN_SIZE) as u64,
                ),
                ("users", 1),
            ])
        });
        let state = memory.add_read_only("state of the hook", state)?;
        let packet = memory.add_packet_object(packet)?;
        Ok([state, packet].map(|region| memory.address(region)))
    }
}

/// The offset of a header that is not set.
const UNSET: u64 = 0xffff;
