//! The memory of a checked run: regions in a virtual address space.
//!
//! Addresses look like Linux's ([`vm::addresses`]) and depend on the seed and on the order in which
//! regions are added, not on the host: each region begins [`IN_PAGE`] bytes behind the next multiple
//! of 1 MiB from [`Addresses::regions`] on, after a gap of at least 64 KiB, so that no constant offset crosses from
//! one region into another. A packet has a few such places, one
//! after the other, for when helpers move it; its buffer begins with a page. Frame `n` of the
//! stack ends n × 64 KiB below [`Addresses::frames`]. Addresses of regions have one upper half, which loads
//! of a packet's addresses from the context add to the lower ones that it holds. Maps are in
//! `maps.rs`.
//!
//! Cost of an access: one comparison if the base register accessed the same region last,
//! otherwise linear in the number of regions.

mod access;
mod bad_access;
mod port;
mod region;
mod watch;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use spec::maps::MapKind;
use vm::addresses::IN_PAGE;
use vm::network::Sockets;
use vm::{
    Addresses, ArenaObject, CellSlice, GivenMemory, Iteration, MapHandle, MapObject, ModelPrograms,
    Objects, PacketBuffer, RunGuard, USER_REGISTERS,
};

use super::calls::CallFault;
use super::maps::Maps;
use super::model::Model;
use super::place::{MemoryPlace, RegionKind};

pub use bad_access::{Access, AccessError, BadAccess, NoRoom};
use port::no_map;
pub(super) use port::refused;
use region::{Bytes, Region};
pub use region::{Permission, RegionId, RegionInfo};
use watch::Watch;

const FRAME_STRIDE: u64 = 0x1_0000;
const REGION_ALIGNMENT: u64 = 0x10_0000;
pub(super) const GAP: u64 = 0x1_0000;
/// Places of a packet, which it gets in turn when it is moved.
const PACKET_PLACES: u64 = 4;
/// Most bytes that helpers add to a packet.
const MOST_GROWTH: u64 = 0x2_0000;

/// Most attempts to take a lock, between which other threads run.
const MOST_WAITS: u32 = 1 << 20;

/// The registers of a task that never was in user space (`struct pt_regs`).
static NO_REGISTERS: [u8; 168] = [0; 168];

/// The memory of a program: regions of the caller and, during a run, stack frames.
#[derive(Default)]
pub struct Memory<'m> {
    /// The places of what it holds.
    addresses: Addresses,
    /// The caller's regions, then the frames.
    regions: Vec<Region<'m>>,
    /// Names of the caller's regions.
    names: Vec<Cow<'m, str>>,
    frames: usize,
    /// Frames whose written bytes are noted.
    watch: Watch,
    /// Freed frames for reuse.
    spare: Vec<Box<[u8]>>,
    maps: Maps<'m>,
    /// The arena of the program.
    arena: Option<&'m dyn ArenaObject>,
    /// Addresses of the 8 bytes in frames that hold pointers into it.
    spilled: BTreeSet<u64>,
    context: Option<RegionId>,
    packet: Option<PacketRegion>,
    /// The socket that the packet belongs to.
    packet_socket: Option<RegionId>,
    /// The kernel's object of the packet, for contexts that point to it.
    packet_object: Option<RegionId>,
    /// Calls that the helper began which was called last.
    begun: Option<Box<dyn Iteration<Memory<'m>>>>,
    /// Address of the spin lock that the run holds.
    held_lock: Option<u64>,
    /// Resources held by the run.
    pub(super) model: Model,
    /// Bytes of the variables of the kernel, and of their block for a CPU.
    variables: Option<(u64, u64)>,
    /// The objects that programs allocate.
    pub(super) objects: Option<Arc<Objects>>,
    /// The programs of the host.
    pub(super) programs: Option<&'m dyn ModelPrograms>,
    /// Number of the program that executes.
    pub(super) program: u32,
    /// The memory that a test gives.
    pub(super) given: Option<&'m dyn GivenMemory>,
    /// The access of a helper to what was not given.
    pub(super) not_given: RefCell<Option<BadAccess>>,
}

/// The region of a packet, which begins with the metadata.
#[derive(Clone, Copy)]
struct PacketRegion {
    id: RegionId,
    /// First address of its buffer at its first place.
    buffer: u64,
    /// Addresses between two places of it.
    stride: u64,
    /// Moves of the packet when it was added, at its first place.
    moves: u32,
}

impl<'m> Memory<'m> {
    /// Memory without regions, at the addresses of seed 0.
    pub fn new() -> Memory<'m> {
        Memory::default()
    }

    /// Memory without regions, at addresses that a seed chooses: equal ones for equal seeds.
    pub fn seeded(seed: u64) -> Memory<'m> {
        Memory::placed_at(Addresses::from_seed(seed))
    }

    /// Memory without regions, at these addresses.
    pub fn placed_at(addresses: Addresses) -> Memory<'m> {
        Memory {
            addresses,
            maps: Maps::placed_at(addresses),
            ..Memory::default()
        }
    }

    /// Adds a read-only region.
    pub fn add_read_only(
        &mut self,
        name: impl Into<Cow<'m, str>>,
        bytes: &'m [u8],
    ) -> Result<RegionId, NoRoom> {
        self.push(name.into(), Bytes::ReadOnly(bytes))
    }

    /// Adds a writable region.
    pub fn add(
        &mut self,
        name: impl Into<Cow<'m, str>>,
        bytes: &'m mut [u8],
    ) -> Result<RegionId, NoRoom> {
        self.push(name.into(), Bytes::ReadWrite(bytes))
    }

    /// Adds the task that runs, which programs only read, at the address that stands for it
    /// ([`Addresses::task`]). It is the last region.
    pub fn add_task(&mut self, task: &'m [u8]) {
        self.names.push("task".into());
        self.regions.push(Region {
            start: self.addresses.task,
            bytes: Bytes::ReadOnly(task),
        });
        self.names.push("registers of the task".into());
        self.regions.push(Region {
            start: self.addresses.task + USER_REGISTERS,
            bytes: Bytes::ReadOnly(&NO_REGISTERS),
        });
    }

    /// Adds the variables of the kernel, which programs only read, at the address that stands
    /// for them ([`Addresses::variables`]): a block for each CPU.
    pub fn add_variables(&mut self, blocks: &'m [u8], block: usize) {
        if blocks.is_empty() {
            return;
        }
        self.variables = Some((blocks.len() as u64, block as u64));
        self.names.push("variables of the kernel".into());
        self.regions.push(Region {
            start: self.addresses.variables,
            bytes: Bytes::ReadOnly(blocks),
        });
    }

    /// Adds the sockets of the network, which programs only read. Regions of other kinds are
    /// added before them.
    pub fn add_sockets(&mut self, sockets: &'m Sockets) {
        for (name, offset, bytes) in sockets.structures() {
            self.names.push(name.into());
            self.regions.push(Region {
                start: self.addresses.sockets + offset as u64,
                bytes: Bytes::ReadOnly(bytes),
            });
        }
    }

    /// Adds the socket that the packet belongs to, which programs only read.
    pub fn add_packet_socket(&mut self, view: &'m [u8]) -> Result<RegionId, NoRoom> {
        let id = self.add_read_only("socket of the packet", view)?;
        self.packet_socket = Some(id);
        Ok(id)
    }

    /// Adds the kernel's object of the packet (`struct sk_buff`), which programs only read, for
    /// contexts that point to it: functions take its address for the packet's.
    pub fn add_packet_object(&mut self, object: &'m [u8]) -> Result<RegionId, NoRoom> {
        let id = self.add_read_only("sk_buff of the packet", object)?;
        self.packet_object = Some(id);
        Ok(id)
    }

    /// Adds the context of the program. One that carries a packet gets its addresses.
    pub fn add_context(&mut self, bytes: &'m mut [u8]) -> Result<RegionId, NoRoom> {
        let region = self.add("context", bytes)?;
        self.context = Some(region);
        self.describe_packet();
        Ok(region)
    }

    /// Adds the packet that the context carries: its metadata and its linear part. When a
    /// helper moves it, the region gets another address, so that pointers from before are
    /// no longer valid.
    pub fn add_packet(&mut self, packet: &'m mut PacketBuffer) -> Result<RegionId, NoRoom> {
        let stride = packet.capacity() as u64 + MOST_GROWTH + GAP;
        let stride = stride.next_multiple_of(REGION_ALIGNMENT);
        let moves = packet.moves();
        let buffer = self.next_page();
        if stride * PACKET_PLACES > self.addresses.regions_end.saturating_sub(buffer) {
            return Err(NoRoom {
                len: packet.capacity(),
            });
        }
        let start = buffer + in_buffer(packet);
        let id = self.push_at(start, "packet".into(), Bytes::Packet(packet));
        self.packet = Some(PacketRegion {
            id,
            buffer,
            stride,
            moves,
        });
        self.describe_packet();
        Ok(id)
    }

    /// Addresses of the packet's metadata, first byte and end of the linear part.
    pub fn packet_bounds(&self) -> Option<[u64; 3]> {
        let region = &self.regions[self.packet?.id.0];
        let Bytes::Packet(packet) = &region.bytes else {
            return None;
        };
        let data = region.start + packet.metadata_len() as u64;
        Some([region.start, data, region.start + region.len()])
    }

    /// Puts the addresses and the length of the packet into its context; a context that points to
    /// the packet's object has no place for them.
    fn describe_packet(&mut self) {
        let (Some(context), Some(bounds)) = (self.context, self.packet_bounds()) else {
            return;
        };
        let Some(packet) = self.packet_buffer() else {
            return;
        };
        let (layout, len) = (packet.context(), packet.len() as u32);
        let context = self.regions[context.0].bytes.writable();
        if let Some(context) = context.filter(|context| context.len() >= layout.size) {
            layout.set_packet(context, bounds, len);
        }
    }

    /// The packet that was added.
    pub(super) fn packet_buffer(&self) -> Option<&PacketBuffer> {
        match &self.regions[self.packet?.id.0].bytes {
            Bytes::Packet(packet) => Some(packet),
            _ => None,
        }
    }

    /// The packet that was added, to change its bytes.
    pub(super) fn packet_buffer_mut(&mut self) -> Option<&mut PacketBuffer> {
        match &mut self.regions[self.packet?.id.0].bytes {
            Bytes::Packet(packet) => Some(packet),
            _ => None,
        }
    }

    /// Adds the next map of the program, whose indices count from 0: its name, and what
    /// programs may do to its values. The guard keeps values that programs look up.
    pub fn add_map(
        &mut self,
        name: impl Into<Cow<'m, str>>,
        map: &'m MapObject,
        guard: &'m RunGuard,
        permission: Permission,
    ) -> Result<(), NoRoom> {
        self.arena = self.arena.or(map.operations().arena());
        self.maps.push(name.into(), map, guard, permission)
    }

    /// Sets what programs read through the pointer to the map that was added last.
    pub fn describe_map(&mut self, structure: &'m [u8]) {
        self.maps.describe(structure);
    }

    /// Adds a map that a map of maps holds, behind the maps of the program. Without it lookups
    /// find no map.
    pub fn add_inner_map(
        &mut self,
        handle: &'m MapHandle,
        guard: &'m RunGuard,
    ) -> Result<(), NoRoom> {
        self.maps.push_inner(handle, guard)
    }

    /// The pointer to the map of an identity ([`MapObject::identity`]) with the addresses of key
    /// and value of the entry that has an address on the host in its value, which become
    /// regions on first use.
    pub fn entry_at(&mut self, map: u64, address: u64) -> Result<Option<[u64; 3]>, NoRoom> {
        self.maps.entry_at(map, address)
    }

    /// The pointer to the program's map of that index.
    pub fn map_pointer(&self, map: u32) -> Option<u64> {
        self.maps.pointer(map)
    }

    /// The index of the map that a pointer to a map refers to.
    pub fn map_at(&self, pointer: u64) -> Option<u32> {
        self.maps.index_of(pointer)
    }

    /// The kind of the map of that index.
    pub fn map_kind(&self, map: u32) -> Option<MapKind> {
        Some(self.maps.object(map)?.kind)
    }

    /// The address of a value of a map, which becomes a region on first use.
    pub fn map_value(&mut self, map: u32, value: CellSlice<'m>) -> Result<u64, NoRoom> {
        self.maps.value(map, value)
    }

    /// The address of the value of a map that became a region as the one of that number,
    /// counted from 0. The first one is what a program may address without a lookup.
    pub fn numbered_map_value(&self, map: u32, number: u32) -> Option<u64> {
        self.maps.numbered(map, number)
    }

    /// The address of what a program may access of a map without a lookup, in an arena that of
    /// user space.
    pub fn direct_value(&self, map: u32) -> Option<u64> {
        match self.maps.object(map)?.operations().arena() {
            Some(arena) => Some(arena.user_start()),
            None => self.maps.numbered(map, 0),
        }
    }

    /// Address of the end of the stack frame of that number, if a run is in it.
    pub fn frame_end(&self, number: usize) -> Option<u64> {
        (number < self.frames).then(|| self.end_of_frame(number))
    }

    /// Frees the lock that a run holds, which may have ended in any way.
    pub(super) fn free_held_lock(&mut self) {
        if let Some(address) = self.held_lock.take() {
            self.update_shared::<4>(address, |_| 0);
        }
    }

    /// Address of the spin lock that the run holds.
    pub(super) fn held_lock(&self) -> Option<u64> {
        self.held_lock
    }

    /// True if two addresses are in the same value of a map or the same object.
    pub(super) fn are_in_one_value(&self, first: u64, second: u64) -> bool {
        let start = |address| {
            let objects = self.objects.as_ref();
            let object = objects.and_then(|objects| objects.start(address));
            self.maps.start(address).or(object)
        };
        start(first).is_some() && start(first) == start(second)
    }

    /// Reads bytes of a value of a map, of an object, or of a fragment of the packet.
    pub(super) fn read_shared(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let objects = self.objects.as_ref();
        (self.maps.read(address, into))
            .or_else(|| objects.and_then(|objects| objects.read(address, into)))
            .or_else(|| {
                let fragment = self.fragment(address, into.len())?;
                into.copy_from_slice(fragment);
                Some(())
            })
    }

    /// Writes bytes of a value of a map, of an object, or of a fragment of the packet.
    fn write_shared(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let objects = self.objects.as_ref();
        (self.maps.write(address, bytes))
            .or_else(|| objects.and_then(|objects| objects.write(address, bytes)))
            .or_else(|| {
                let fragment = self.fragment_mut(address, bytes.len())?;
                fragment.copy_from_slice(bytes);
                Some(())
            })
    }

    /// Replaces the `N` bytes at an address, if it is aligned and in a value of a map or in an
    /// object, by what `update` makes of them; the old ones.
    pub(super) fn update_shared<const N: usize>(
        &self,
        address: u64,
        update: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        if !address.is_multiple_of(N as u64) {
            return None;
        }
        let objects = self.objects.as_ref();
        (self.maps.update::<N>(address, &update))
            .or_else(|| objects.and_then(|objects| objects.update::<N>(address, &update)))
    }

    /// The calls that a helper began.
    pub(super) fn take_begun(&mut self) -> Option<Box<dyn Iteration<Memory<'m>>>> {
        self.begun.take()
    }

    /// The index of the map that a helper is called for.
    fn called_map(&self, pointer: u64) -> Result<u32, CallFault> {
        self.map_at(pointer).ok_or_else(|| no_map(pointer))
    }

    fn push(&mut self, name: Cow<'m, str>, bytes: Bytes<'m>) -> Result<RegionId, NoRoom> {
        let start = self.next_page() + IN_PAGE;
        let len = bytes.readable().len();
        if len as u64 > self.addresses.regions_end.saturating_sub(start) {
            return Err(NoRoom { len });
        }
        Ok(self.push_at(start, name, bytes))
    }

    fn push_at(&mut self, start: u64, name: Cow<'m, str>, bytes: Bytes<'m>) -> RegionId {
        self.regions.push(Region { start, bytes });
        self.names.push(name);
        RegionId(self.regions.len() - 1)
    }

    /// The first page of the next region.
    fn next_page(&mut self) -> u64 {
        self.drop_frames();
        let regions = self.addresses.regions;
        match (self.regions.last(), self.packet) {
            (None, _) => regions,
            (Some(_), Some(packet)) if packet.id.0 + 1 == self.regions.len() => {
                packet.buffer + packet.stride * PACKET_PLACES
            }
            (Some(last), _) => {
                let behind = last.start + last.len() + GAP - regions;
                regions + behind.next_multiple_of(REGION_ALIGNMENT)
            }
        }
    }

    /// The first address of a region.
    pub fn address(&self, region: RegionId) -> u64 {
        self.regions[region.0].start
    }

    /// The region that an address is in or ends at.
    pub(super) fn region_at(&self, address: u64) -> Option<(RegionId, RegionInfo)> {
        let index = self
            .locate(address, 1)
            .or_else(|| self.locate(address, 0))?;
        Some((RegionId(index), self.info(index)))
    }

    /// What a region is to an observer.
    pub(super) fn kind_of_region(&self, region: RegionId) -> RegionKind {
        match region.0.checked_sub(self.names.len()) {
            Some(frame) => RegionKind::Frame(frame),
            None if self.context == Some(region) => RegionKind::Context,
            None => RegionKind::Other,
        }
    }

    /// The value or key of a map that an address is in.
    pub(super) fn value_place(&self, address: u64) -> Option<MemoryPlace> {
        self.maps.value_place(address)
    }

    /// All regions, including the frames of the current or last run.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        (0..self.regions.len()).map(|index| self.info(index))
    }

    fn info(&self, index: usize) -> RegionInfo {
        let region = &self.regions[index];
        RegionInfo {
            name: match self.names.get(index) {
                Some(name) => name.to_string(),
                None => format!("stack frame {}", index - self.names.len()),
            },
            start: region.start,
            len: region.len(),
            permission: region.bytes.permission(),
        }
    }

    /// `len` bytes at an address; values of maps can only be copied.
    pub fn read(&self, address: u64, len: u64) -> Result<&[u8], BadAccess> {
        let found = self.locate(address, len).map(|index| {
            let region = &self.regions[index];
            let offset = (address - region.start) as usize;
            &region.bytes.readable()[offset..offset + len as usize]
        });
        found.ok_or_else(|| self.fault(address, len, Access::Read))
    }

    /// `len` bytes at an address, for writing; values of maps can only be copied.
    pub fn write(&mut self, address: u64, len: u64) -> Result<&mut [u8], BadAccess> {
        let writable = self
            .locate(address, len)
            .filter(|index| self.regions[*index].bytes.permission() == Permission::ReadWrite);
        let Some(index) = writable else {
            return Err(self.fault(address, len, Access::Write));
        };
        self.mark_spilled(address, len, false);
        self.note_write(address, len);
        let region = &mut self.regions[index];
        let offset = (address - region.start) as usize;
        let bytes = region.bytes.writable().unwrap_or_default();
        Ok(&mut bytes[offset..offset + len as usize])
    }

    /// Address of the end of the stack frame of a number.
    fn end_of_frame(&self, number: usize) -> u64 {
        self.addresses.frames - number as u64 * FRAME_STRIDE
    }

    /// The places of what it holds.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }
}

/// Offset of the metadata of a packet in its buffer.
fn in_buffer(packet: &PacketBuffer) -> u64 {
    (packet.start() - packet.metadata_len()) as u64
}
