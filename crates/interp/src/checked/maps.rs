//! Maps in the virtual address space of a checked run.
//!
//! The pointer to the map of index `n` is `n` × 64 KiB above [`Addresses::maps`]; there programs read
//! its structure, if it is known. Keys and values get addresses from [`Addresses::values`] on in the order in
//! which they are first asked for, so far apart that no constant offset leads from one into
//! another. Finding one is a binary search.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use vm::addresses::IN_VALUES;
use vm::{Addresses, CellSlice, Cursor, MapHandle, MapObject, RunGuard, ValueOf};

use super::memory::{Access, AccessError, BadAccess, GAP, NoRoom, Permission, RegionInfo};

/// Addresses from the pointer to a map to that of the next one.
const MAP_STRIDE: u64 = 0x1_0000;
/// Most maps, so that their structures lie in front of the values.
const MOST_MAPS: usize = 1 << 20;

/// The maps of a program.
#[derive(Default)]
pub(super) struct Maps<'m> {
    /// The places of structures and values.
    addresses: Addresses,
    /// By index.
    list: Vec<Mapped<'m>>,
    /// Indices of maps in maps, by the address of their handle.
    inner: HashMap<u64, u32>,
    /// Keys and values of all maps: their addresses, which ascend, the map, and the number
    /// in it.
    places: Vec<(u64, u32, u32)>,
    /// Addresses of keys and values that are used, in bytes.
    used: u64,
}

struct Mapped<'m> {
    name: Cow<'m, str>,
    map: &'m MapObject,
    guard: &'m RunGuard,
    permission: Permission,
    /// Bytes that programs read through the pointer to the map.
    structure: &'m [u8],
    /// From one value to the next.
    pitch: u64,
    /// Keys and values in the order of their addresses.
    values: Vec<CellSlice<'m>>,
    /// Their addresses.
    starts: Vec<u64>,
    /// Indices of values by their address on the host.
    known: HashMap<usize, usize>,
    /// Indices of those that are keys, which programs only read.
    keys: HashSet<usize>,
    /// Records of a ring buffer that the program writes: index of the value, name in the
    /// ring buffer.
    records: Vec<(usize, u64)>,
}

/// The value that contains an address or precedes it.
struct Place<'p, 'm> {
    mapped: &'p Mapped<'m>,
    /// Index of the map.
    index: u32,
    start: u64,
    number: usize,
    offset: u64,
}

impl<'m> Maps<'m> {
    /// No maps, at these addresses.
    pub(super) fn placed_at(addresses: Addresses) -> Maps<'m> {
        Maps {
            addresses,
            ..Maps::default()
        }
    }

    pub(super) fn push(
        &mut self,
        name: Cow<'m, str>,
        map: &'m MapObject,
        guard: &'m RunGuard,
        permission: Permission,
    ) -> Result<(), NoRoom> {
        let value_size = map.value_size;
        if self.list.len() == MOST_MAPS {
            return Err(NoRoom { len: value_size });
        }
        self.list.push(Mapped {
            name,
            map,
            guard,
            permission,
            structure: &[],
            pitch: (longest(map) + GAP).next_multiple_of(GAP),
            values: Vec::new(),
            starts: Vec::new(),
            known: HashMap::new(),
            keys: HashSet::new(),
            records: Vec::new(),
        });
        if let Some(value) = map.operations().direct_value() {
            self.value(self.list.len() as u32 - 1, value)?;
        }
        Ok(())
    }

    /// Sets what programs read through the pointer to the last map.
    pub(super) fn describe(&mut self, structure: &'m [u8]) {
        if let Some(mapped) = self.list.last_mut() {
            mapped.structure = structure;
        }
    }

    /// Adds a map that a map of maps holds.
    pub(super) fn push_inner(
        &mut self,
        handle: &'m MapHandle,
        guard: &'m RunGuard,
    ) -> Result<(), NoRoom> {
        let index = self.list.len() as u32;
        let (map, permission) = (handle, Permission::ReadWrite);
        self.push("(inner)".into(), map, guard, permission)?;
        self.inner.insert(handle.address(), index);
        Ok(())
    }

    pub(super) fn object(&self, index: u32) -> Option<&'m MapObject> {
        self.list.get(index as usize).map(|mapped| mapped.map)
    }

    /// The address of the value of a key, or the pointer to the map of a key; 0 if it has none.
    pub(super) fn lookup(&mut self, index: u32, cpu: u32, key: &[u8]) -> Result<u64, NoRoom> {
        let mapped = &self.list[index as usize];
        match mapped.map.operations().lookup(mapped.guard, cpu, key) {
            Some(value) => self.value(index, value),
            None => {
                let inner = mapped.map.operations().inner(mapped.guard, key);
                let index = inner.and_then(|address| self.inner.get(&address).copied());
                Ok(index.and_then(|index| self.pointer(index)).unwrap_or(0))
            }
        }
    }

    /// The address of a value that is not found by its key; 0 if there is none.
    pub(super) fn find(&mut self, index: u32, what: ValueOf<'_>) -> Result<u64, NoRoom> {
        let mapped = &self.list[index as usize];
        match mapped.map.operations().find(mapped.guard, what) {
            Some(value) => self.value(index, value),
            None => Ok(0),
        }
    }

    /// Reserves a record of a ring buffer; its address, or 0 if there is no room.
    pub(super) fn reserve(&mut self, index: u32, len: u64, flags: u64) -> Result<u64, NoRoom> {
        let mapped = &self.list[index as usize];
        let Some((bytes, position)) = mapped.map.operations().reserve(len, flags) else {
            return Ok(0);
        };
        let address = self.value(index, bytes)?;
        let mapped = &mut self.list[index as usize];
        let number = mapped.known[&bytes.address().addr()];
        mapped.records.push((number, position));
        Ok(address)
    }

    /// Ends the writing of the record at an address, which is no memory from then on; false
    /// if there is none.
    pub(super) fn submit(&mut self, address: u64, is_discarded: bool) -> bool {
        let Some(place) = self.place(address).filter(|place| place.offset == 0) else {
            return false;
        };
        let (index, number) = (place.index, place.number);
        let mapped = &mut self.list[index as usize];
        let mut records = mapped.records.iter();
        let Some(at) = records.position(|(record, _)| *record == number) else {
            return false;
        };
        let (_, position) = mapped.records.swap_remove(at);
        mapped.known.remove(&mapped.values[number].address().addr());
        mapped.values[number] = CellSlice::new(&[], 0);
        mapped.map.operations().submit(position, is_discarded);
        true
    }

    /// The addresses of key and value of the next entry that a program visits.
    pub(super) fn next_entry(
        &mut self,
        index: u32,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Result<Option<[u64; 2]>, NoRoom> {
        let mapped = &self.list[index as usize];
        let Some([key, value]) = mapped
            .map
            .operations()
            .next_entry(mapped.guard, cpu, cursor)
        else {
            return Ok(None);
        };
        self.entry(index, [key, value]).map(Some)
    }

    /// The addresses of key and value of an entry.
    pub(super) fn entry(
        &mut self,
        index: u32,
        [key, value]: [CellSlice<'m>; 2],
    ) -> Result<[u64; 2], NoRoom> {
        let addresses = [self.value(index, key)?, self.value(index, value)?];
        let mapped = &mut self.list[index as usize];
        let number = mapped.known[&key.address().addr()];
        mapped.keys.insert(number);
        Ok(addresses)
    }

    /// The pointer to the map of an identity, and the addresses of key and value of the entry
    /// that has an address on the host in its value.
    pub(super) fn entry_at(
        &mut self,
        identity: u64,
        address: u64,
    ) -> Result<Option<[u64; 3]>, NoRoom> {
        let mut maps = (0..).zip(&self.list);
        let found = maps.find(|(_, mapped)| mapped.map.identity() == identity);
        let entry = found.and_then(|(index, mapped)| {
            let entry = mapped.map.operations().entry_at(mapped.guard, address)?;
            Some((index, self.pointer(index)?, entry))
        });
        let Some((index, pointer, entry)) = entry else {
            return Ok(None);
        };
        let [key, value] = self.entry(index, entry)?;
        Ok(Some([pointer, key, value]))
    }

    /// The first address of the value that an address is in.
    pub(super) fn start(&self, address: u64) -> Option<u64> {
        let place = self.place(address)?;
        place.is_inside(1).then_some(place.start)
    }

    /// The address on the host of a byte of a value.
    pub(super) fn host_address(&self, address: u64) -> Option<u64> {
        let place = self.place(address)?;
        let is_writable = place.is_inside(1) && place.is_writable();
        is_writable.then(|| place.cells().address().addr() as u64 + place.offset)
    }

    /// Ends a visit of entries.
    pub(super) fn end_entries(&mut self, index: u32, cursor: &mut Cursor) {
        if let Some(cell) = cursor.key_cell.take() {
            self.list[index as usize].guard.release_key_cell(cell);
        }
    }

    pub(super) fn pointer(&self, index: u32) -> Option<u64> {
        let is_there = (index as usize) < self.list.len();
        is_there.then(|| self.addresses.maps + u64::from(index) * MAP_STRIDE)
    }

    pub(super) fn index_of(&self, pointer: u64) -> Option<u32> {
        let (index, offset) = self.structure_at(pointer)?;
        (offset == 0 && (index as usize) < self.list.len()).then_some(index)
    }

    pub(super) fn numbered(&self, index: u32, number: u32) -> Option<u64> {
        let mapped = self.list.get(index as usize)?;
        mapped.starts.get(number as usize).copied()
    }

    pub(super) fn value(&mut self, index: u32, value: CellSlice<'m>) -> Result<u64, NoRoom> {
        let mapped = &mut self.list[index as usize];
        if let Some(number) = mapped.known.get(&value.address().addr()) {
            // A sample may have another length than the one before it.
            mapped.values[*number] = value;
            return Ok(mapped.starts[*number]);
        }
        let Addresses {
            values, values_end, ..
        } = self.addresses;
        if mapped.pitch > values_end - values - self.used {
            return Err(NoRoom { len: value.len() });
        }
        let (start, number) = (values + self.used + IN_VALUES, mapped.values.len());
        self.used += mapped.pitch;
        self.places.push((start, index, number as u32));
        mapped.known.insert(value.address().addr(), number);
        mapped.values.push(value);
        mapped.starts.push(start);
        Ok(start)
    }

    pub(super) fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let Some(place) = self.place(address) else {
            let (index, offset) = self.structure_at(address)?;
            let structure = self.list.get(index as usize)?.structure;
            let bytes = structure.get(offset..)?.get(..into.len())?;
            into.copy_from_slice(bytes);
            return Some(());
        };
        place.is_inside(into.len()).then(|| {
            place.cells().read(place.offset as usize, into);
        })
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Option<()> {
        let place = self.place(address)?;
        (place.is_inside(bytes.len()) && place.is_writable()).then(|| {
            place.cells().write(place.offset as usize, bytes);
        })
    }

    /// Replaces the `N` bytes at an aligned address by what `update` makes of them.
    pub(super) fn update<const N: usize>(
        &self,
        address: u64,
        update: impl Fn(u64) -> u64,
    ) -> Option<u64> {
        let place = self.place(address)?;
        if !place.is_inside(N) || !place.is_writable() {
            return None;
        }
        Some(place.cells().update::<N>(place.offset as usize, update))
    }

    /// The index of the map whose structure an address lies in or behind, and the offset in it.
    fn structure_at(&self, address: u64) -> Option<(u32, usize)> {
        let offset = address.checked_sub(self.addresses.maps)?;
        let index = u32::try_from(offset / MAP_STRIDE).ok()?;
        Some((index, (offset % MAP_STRIDE) as usize))
    }

    fn place(&self, address: u64) -> Option<Place<'_, 'm>> {
        let before = self.places.partition_point(|(start, ..)| *start <= address);
        let (start, index, number) = *self.places.get(before.checked_sub(1)?)?;
        let (mapped, offset) = (&self.list[index as usize], address - start);
        (offset < mapped.pitch).then_some(Place {
            mapped,
            index,
            start,
            number: number as usize,
            offset,
        })
    }

    /// The value or key that an address is in or ends at, for observers.
    pub(super) fn value_place(&self, address: u64) -> Option<super::MemoryPlace> {
        let place = self.place(address).filter(|place| place.is_inside(0))?;
        Some(super::MemoryPlace::Value {
            map: place.index,
            start: place.start,
            len: place.cells().len(),
            offset: place.offset,
            is_key: place.is_key(),
        })
    }

    /// The error of an access near a value of a map; `None` elsewhere.
    pub(super) fn fault(&self, address: u64, size: u64, access: Access) -> Option<BadAccess> {
        let place = self.place(address)?;
        let mapped = place.mapped;
        let value_size = place.cells().len() as u64;
        let inside = value_size.saturating_sub(place.offset);
        let error = match inside.min(size) {
            0 if size > 0 => AccessError::Outside,
            some if some < size => AccessError::Crosses(some),
            _ if access != Access::Read && !place.is_writable() => AccessError::ReadOnly,
            _ if access == Access::Update => AccessError::Misaligned,
            _ => AccessError::Shared,
        };
        Some(BadAccess {
            address,
            size,
            access,
            error,
            nearest: Some(RegionInfo {
                name: format!("{} {} of map {}", place.what(), place.number, mapped.name),
                start: place.start,
                len: value_size,
                permission: mapped.permission,
            }),
        })
    }
}

/// Bytes of the longest key or value of a map.
fn longest(map: &MapObject) -> u64 {
    match map.kind.is_ring() {
        true => map.max_entries.into(),
        false => map.value_size.max(map.key_size) as u64,
    }
}

impl<'m> Place<'_, 'm> {
    fn cells(&self) -> CellSlice<'m> {
        self.mapped.values[self.number]
    }

    fn is_inside(&self, len: usize) -> bool {
        self.offset + len as u64 <= self.cells().len() as u64
    }

    fn is_key(&self) -> bool {
        self.mapped.keys.contains(&self.number)
    }

    fn what(&self) -> &'static str {
        match self.is_key() {
            true => "key",
            false => "value",
        }
    }

    fn is_writable(&self) -> bool {
        self.mapped.permission == Permission::ReadWrite && !self.is_key()
    }
}
