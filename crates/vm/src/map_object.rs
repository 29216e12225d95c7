//! Maps as programs reach them.

use std::fmt;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spec::Errno;
use spec::maps::MapKind;

use crate::network::NetSocket;
use crate::{ArenaObject, CellSlice, Cursor, DirectAccess, MapFunction, RunGuard, TailTable};

/// A value that a helper finds otherwise than by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOf<'a> {
    /// That of an object in local storage, by its identity; made of the bytes if it has none.
    Owner(u64, Option<&'a [u8]>),
    /// That of the program's control group on a CPU.
    Local(u32),
    /// The oldest sample of a user ring buffer.
    Sample,
    /// The 16 bytes in which the reader of a user ring buffer gets each sample.
    SampleDynptr,
}

/// The samples of a user ring buffer.
pub trait Samples {
    /// Starts to read. EBUSY while another run does.
    fn start(&self) -> Result<SamplesReader, Errno>;

    /// Bytes of the oldest sample; 0 without one.
    fn oldest_len(&self) -> u32;

    /// Ends the reading of the oldest sample, whose room is the host's again.
    fn release(&self);
}

/// The only run that reads a user ring buffer, until this is dropped.
#[derive(Debug)]
pub struct SamplesReader(Arc<AtomicBool>);

impl SamplesReader {
    /// The reader, if no other one has set the flag.
    pub fn new(is_busy: &Arc<AtomicBool>) -> Option<SamplesReader> {
        let was_busy = is_busy.swap(true, Ordering::Acquire);
        (!was_busy).then(|| SamplesReader(Arc::clone(is_busy)))
    }
}

impl Drop for SamplesReader {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A map as helpers reach it. Keys and values have the map's sizes; the caller checks that.
pub trait MapObject: fmt::Debug + Send + Sync {
    /// The kind.
    fn kind(&self) -> MapKind;

    /// Most entries.
    fn max_entries(&self) -> u32;

    /// Bytes of a key.
    fn key_size(&self) -> usize;

    /// Bytes of a value.
    fn value_size(&self) -> usize;

    /// Values of an entry: the possible CPUs in per-CPU maps, otherwise 1.
    fn copies(&self) -> u32;

    /// A number that identifies the map as long as it exists.
    fn identity(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// A value that is not found by its key.
    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        let _ = (guard, what);
        None
    }

    /// Removes the value of an object from local storage. ENOENT if it has none.
    fn disown(&self, owner: u64) -> Result<(), Errno> {
        let _ = owner;
        Err(Errno::EINVAL)
    }

    /// The memory of an arena.
    fn arena(&self) -> Option<&dyn ArenaObject> {
        None
    }

    /// The samples of a user ring buffer.
    fn samples(&self) -> Option<&dyn Samples> {
        None
    }

    /// Id of the control group at an index. E2BIG if it is out of range, EAGAIN if there is
    /// none.
    fn cgroup(&self, index: u32) -> Result<u64, Errno> {
        let _ = index;
        Err(Errno::EINVAL)
    }

    /// The cookie of the socket that a map of sockets holds under a key.
    fn socket(&self, key: &[u8]) -> Option<u64> {
        let _ = key;
        None
    }

    /// Puts a socket of the network into a map of sockets.
    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result<(), Errno> {
        let _ = (key, socket, flags);
        Err(Errno::EOPNOTSUPP)
    }

    /// True if bytes at an address on the host are in the map's values, or in those of maps
    /// in it.
    fn covers(&self, address: u64, len: usize) -> bool {
        let _ = (address, len);
        false
    }

    /// True if values have timers.
    fn has_timers(&self) -> bool {
        false
    }

    /// The key and the value that has an address in it, where timers are.
    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, address);
        None
    }

    /// The value of a key, as a program on this CPU gets it.
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>>;

    /// The value that programs may address without a lookup, if the map has one.
    fn direct_value(&self) -> Option<CellSlice<'_>>;

    /// The address of the handle of the map that a map of maps holds under a key. It is valid
    /// while the guard exists.
    fn inner(&self, guard: &RunGuard, key: &[u8]) -> Option<u64> {
        let _ = (guard, key);
        None
    }

    /// The maps that a map of maps holds now.
    fn inner_maps(&self) -> Vec<MapHandle> {
        Vec::new()
    }

    /// Inlined lookup of native code, without the helper, if there is one.
    fn direct_lookup(&self) -> Option<DirectAccess> {
        None
    }

    /// The function that adds records of native code in place of the helper, if there is
    /// one.
    fn direct_output(&self) -> Option<MapFunction> {
        None
    }

    /// Table of a program array for native code; `None` for other maps, and if there is no
    /// memory for it or it holds a program without native code.
    fn tail_table(&self) -> Option<Arc<TailTable>> {
        None
    }

    /// Adds or changes an entry.
    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno>;

    /// Removes an entry.
    fn delete(&self, cpu: u32, key: &[u8]) -> Result<(), Errno>;

    /// Adds a value to a map without keys.
    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        let _ = (value, flags);
        Err(Errno::ENOTSUPP)
    }

    /// Removes the next value of a map without keys. Without one, writes zeros.
    fn pop(&self, out: &mut [u8]) -> Result<(), Errno> {
        let _ = out;
        Err(Errno::ENOTSUPP)
    }

    /// Reads the next value of a map without keys; of a set, tests the given one.
    fn peek(&self, out: &mut [u8]) -> Result<(), Errno> {
        let _ = out;
        Err(Errno::ENOTSUPP)
    }

    /// Adds a record to a ring buffer.
    fn output(&self, record: &[u8], flags: u64) -> Result<(), Errno> {
        let _ = (record, flags);
        Err(Errno::EINVAL)
    }

    /// Reserves a record of `len` bytes in a ring buffer, if there is room: its bytes, and
    /// its name in [`MapObject::submit`].
    fn reserve(&self, len: u64, flags: u64) -> Option<(CellSlice<'_>, u64)> {
        let _ = (len, flags);
        None
    }

    /// Ends the writing of a record that was reserved. A discarded one does not reach the
    /// host.
    fn submit(&self, record: u64, is_discarded: bool) {
        let _ = (record, is_discarded);
    }

    /// Adds a record of a program on this CPU to the perf buffer at an index.
    fn perf_output(&self, index: u32, cpu: u32, record: &[u8]) -> Result<(), Errno> {
        let _ = (index, cpu, record);
        Err(Errno::EINVAL)
    }

    /// The key and the value of the next entry that a program on this CPU visits. An entry
    /// that is there during the whole visit is visited once; changes end no visit and make
    /// none endless.
    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, cpu, cursor);
        None
    }

    /// A number about a ring buffer (`bpf_ringbuf_query`).
    fn query(&self, what: u64) -> u64 {
        let _ = what;
        0
    }
}

/// A map at an address that stands for it in the instructions of verified programs.
#[derive(Clone, Debug)]
pub struct MapHandle(Arc<MapEntry>);

/// Structure at the address of a handle. Native code reads its fields.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct MapEntry {
    pub(crate) map: Arc<dyn MapObject>,
    /// Of an array with one value for each index the address of the first; otherwise 0.
    elements: u64,
    /// Number of its indices, and bytes from one to the next.
    entries: u32,
    stride: u32,
}

impl MapHandle {
    /// A handle of this map. Its address is valid as long as it or a clone exists.
    pub fn new(map: Arc<dyn MapObject>) -> MapHandle {
        let mut entry = MapEntry {
            map,
            elements: 0,
            entries: 0,
            stride: 0,
        };
        if let Some(DirectAccess::Elements(elements)) = entry.map.direct_lookup()
            && elements.copies() == 1
            && let Ok(stride) = u32::try_from(elements.stride())
        {
            entry.elements = elements.address();
            entry.entries = elements.entries();
            entry.stride = stride;
        }
        MapHandle(Arc::new(entry))
    }

    /// Bytes from the address to that of the first value, a number of 8 bytes, of an array
    /// with one value for each index; the number is 0 for other maps.
    pub const ELEMENTS: usize = offset_of!(MapEntry, elements);

    /// Bytes from the address to the number of indices of such an array, 4 bytes.
    pub const ENTRIES: usize = offset_of!(MapEntry, entries);

    /// Bytes from the address to the distance of its values, 4 bytes.
    pub const STRIDE: usize = offset_of!(MapEntry, stride);

    /// The map.
    pub fn map(&self) -> &Arc<dyn MapObject> {
        &self.0.map
    }

    /// The address.
    pub fn address(&self) -> u64 {
        Arc::as_ptr(&self.0).expose_provenance() as u64
    }
}
