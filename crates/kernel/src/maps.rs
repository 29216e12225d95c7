//! Maps with the results and error numbers of Linux 6.18.
//!
//! A [`Map`] has two interfaces, as in Linux: programs look up, update and delete through
//! helpers ([`vm::MapOperations`]), the host calls the operations of bpf(2), with their checks of
//! flags and permissions ([`Map::lookup`] and the like, `kernel/bpf/syscall.c`), and beneath
//! them [`SyscallOperations`]. Each kind is one file, which implements both.
//!
//! Readers never block. A value that a program got a pointer to stays valid memory until the
//! run's [`RunGuard`] is dropped; after a deletion it holds what it holds in Linux (see each
//! kind).

mod arena;
mod array;
mod array_of_maps;
mod batch;
mod bloom_filter;
mod cgroup_array;
mod cgroup_storage;
mod cpumap;
mod create;
mod devmap;
mod flags;
mod hash;
mod hash_of_maps;
mod host;
mod journal;
mod key;
mod local_storage;
mod lpm_trie;
mod memory;
mod perf_event_array;
mod pool;
mod prog_array;
mod queue;
mod resources;
mod reuseport_sockarray;
mod ringbuf;
mod slots;
mod socket;
mod sockhash;
mod sockmap;
mod special;
mod spin_lock;
mod stack_trace;
mod syscall_operations;
mod template;
#[cfg(test)]
mod tests;
mod user_ringbuf;
mod value;
mod xskmap;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Result};
use vm::{LockedValue, MapAttributes, MapHandle};

pub use arena::Arena;
pub use batch::{Batch, LookupBatch};
pub use host::Host;
pub use journal::{Journal, Written};
pub use local_storage::{CURRENT_TASK, LocalStorage, PACKET_SOCKET};
pub use memory::MapMemory;
pub use perf_event_array::PerfBuffer;
pub use resources::{Cgroup, NoResources, ProgramClass, Resources, StoredMap, StoredProgram};
pub use ringbuf::Ring;
pub use socket::{Socket, SocketKind};
pub use syscall_operations::{Entries, SyscallOperations};
pub use user_ringbuf::{UserRing, UserSample, UserSamples};
pub use value::ValueLayout;
pub use vm::RunGuard;

/// Definition of a map: its parameters, kind and value layout.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) params: MapParams,
    pub(crate) kind: MapKind,
    pub(crate) value: ValueLayout,
}

impl Definition {
    fn is_percpu(&self) -> bool {
        self.kind.is_percpu()
    }

    /// What programs need of the map, whatever its kind.
    fn attributes(&self, host: &Host, charge: memory::Charge) -> MapAttributes {
        let ValueLayout { size, owning, .. } = &self.value;
        let (has_timers, owns) = (self.value.timers().next().is_some(), !owning.is_empty());
        MapAttributes {
            kind: self.kind,
            max_entries: self.params.max_entries,
            key_size: self.params.key_size as usize,
            value_size: *size,
            flags: self.params.flags,
            copies: if self.is_percpu() { host.cpus } else { 1 },
            timers: has_timers.then(|| Arc::clone(&host.timers)),
            objects: owns.then(|| (Arc::clone(&host.objects), owning.clone())),
            charge: Some(Box::new(charge)),
        }
    }

    /// Seed of the map's hash function.
    fn seed(&self, host: &Host) -> u64 {
        match self.params.flags.has(MapFlags::ZERO_SEED) {
            true => 0,
            false => host.seed,
        }
    }
}

/// A BPF map: its definition, the operations of its kind, and whether it is frozen.
#[derive(Debug)]
pub struct Map {
    definition: Definition,
    operations: Arc<dyn SyscallOperations>,
    /// The map as programs reach it.
    handle: MapHandle,
    /// The parameters of the maps that it holds.
    inner: Option<MapParams>,
    is_frozen: AtomicBool,
}

impl Map {
    /// Its kind.
    pub fn kind(&self) -> MapKind {
        self.definition.kind
    }

    /// The parameters of its creation.
    pub fn params(&self) -> &MapParams {
        &self.definition.params
    }

    /// The parameters of the maps that it holds, if it is a map of maps.
    pub fn inner_params(&self) -> Option<&MapParams> {
        self.inner.as_ref()
    }

    /// The layout of its values.
    pub fn value_layout(&self) -> &ValueLayout {
        &self.definition.value
    }

    /// Checks a program that uses the map, when it is loaded (`bpf_prog_map_compatible`).
    ///
    /// # Errors
    /// EINVAL if the map is a program array that belongs to programs of another class.
    pub fn admit(&self, class: &ProgramClass) -> Result {
        self.operations.admit(class)
    }

    /// Ends the use of the map by users: a program array is emptied, as in Linux when its
    /// last descriptor is closed and no file names it. Programs that it holds and that refer
    /// to it would otherwise keep each other.
    pub fn release(&self) {
        self.operations.release();
    }

    /// The operations of its kind.
    pub fn operations(&self) -> &dyn SyscallOperations {
        &*self.operations
    }

    /// The map of a kind, if it is of that kind.
    pub fn of_kind<T: SyscallOperations>(&self) -> Option<&T> {
        let operations: &dyn Any = &*self.operations;
        operations.downcast_ref()
    }

    /// The map as programs reach it.
    pub fn handle(&self) -> &MapHandle {
        &self.handle
    }

    /// True if values have special fields (locks, timers, kptrs and the like).
    pub fn has_special_fields(&self) -> bool {
        !self.definition.value.special.is_empty()
    }

    /// Bytes of a value in the operations of bpf(2): of per-CPU maps the values of all CPUs, each
    /// rounded up to 8.
    pub fn value_len(&self) -> usize {
        match self.definition.is_percpu() {
            true => self.definition.value.rounded() * self.handle.copies as usize,
            false => self.definition.value.size,
        }
    }

    /// `BPF_MAP_LOOKUP_ELEM` where no descriptor is open. EINVAL for a key or value of another
    /// length than the map's.
    pub fn lookup(&self, key: &[u8], out: &mut [u8], flags: u64) -> Result {
        self.lookup_with(key, out, flags, &NoResources)
    }

    /// `BPF_MAP_LOOKUP_ELEM`; keys may name objects of the host.
    pub fn lookup_with(
        &self,
        key: &[u8],
        out: &mut [u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result {
        self.check_read()?;
        self.check_sizes(Some(key), Some(out.len()))?;
        self.check_flags(flags, flags::LOCK)?;
        let guard = RunGuard::new();
        let _locked = match self.definition.value.lock {
            Some(offset) if flags & flags::LOCK != 0 => self.lock_value(&guard, key, offset)?,
            _ => None,
        };
        self.operations.copy_object(key, out, resources)
    }

    /// Takes the spin lock of the value of a key, if there is one.
    fn lock_value<'g>(
        &'g self,
        guard: &'g RunGuard,
        key: &[u8],
        offset: usize,
    ) -> Result<Option<LockedValue<'g>>> {
        match self.operations.lookup(guard, 0, key) {
            Some(value) => LockedValue::lock(value, offset)
                .map(Some)
                .ok_or(Errno::EBUSY),
            None => Ok(None),
        }
    }

    /// `BPF_MAP_UPDATE_ELEM` where no descriptor is open.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> Result {
        self.update_with(key, value, flags, &NoResources)
    }

    /// `BPF_MAP_UPDATE_ELEM`; values may name objects of the host.
    pub fn update_with(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result {
        self.check_write()?;
        self.check_sizes(Some(key), Some(value.len()))?;
        self.check_flags(flags, u64::MAX)?;
        self.operations.store(key, value, flags, resources)
    }

    /// The checks of an update or deletion that come before its key and value are read.
    ///
    /// # Errors
    /// EPERM if the map cannot be written to, EINVAL for flags that it does not know.
    pub(crate) fn check_update(&self, flags: u64) -> Result {
        self.check_write()?;
        self.check_flags(flags, u64::MAX)
    }

    /// `BPF_MAP_DELETE_ELEM` where no descriptor is open.
    pub fn delete(&self, key: &[u8]) -> Result {
        self.delete_with(key, &NoResources)
    }

    /// `BPF_MAP_DELETE_ELEM`; keys may name objects of the host.
    pub fn delete_with(&self, key: &[u8], resources: &dyn Resources) -> Result {
        self.check_write()?;
        self.check_sizes(Some(key), None)?;
        self.operations.delete_object(key, resources)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
    pub fn lookup_and_delete(&self, key: &[u8], out: &mut [u8], flags: u64) -> Result {
        Errno::EINVAL.when(flags & !flags::LOCK != 0)?;
        self.check_read()?;
        self.check_write()?;
        self.check_sizes(Some(key), Some(out.len()))?;
        self.check_flags(flags, flags::LOCK)?;
        self.operations.take(key, out)
    }

    /// `BPF_MAP_GET_NEXT_KEY`.
    pub fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.check_read()?;
        self.check_sizes(key, None)?;
        self.check_sizes(Some(next), None)?;
        Errno::EINVAL.when(key.is_some_and(<[u8]>::is_empty))?;
        self.operations.next_key(key, next)
    }

    /// `BPF_MAP_FREEZE`: bpf(2) no longer changes it, only programs do. EPERM if users cannot
    /// write to it, or it is frozen already.
    pub fn freeze(&self) -> Result {
        let is_read_only = self.params().flags.has(MapFlags::RDONLY);
        match is_read_only || self.is_frozen.swap(true, Ordering::AcqRel) {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    /// True if neither programs nor users change its values again.
    pub fn is_constant(&self) -> bool {
        self.params().flags.has(MapFlags::RDONLY_PROG) && self.is_frozen.load(Ordering::Acquire)
    }

    fn check_read(&self) -> Result {
        match self.params().flags.has(MapFlags::WRONLY) {
            false => Ok(()),
            true => Err(Errno::EPERM),
        }
    }

    fn check_write(&self) -> Result {
        let is_read_only = self.params().flags.has(MapFlags::RDONLY);
        match is_read_only || self.is_frozen.load(Ordering::Acquire) {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    fn check_sizes(&self, key: Option<&[u8]>, value: Option<usize>) -> Result {
        let key_size = self.params().key_size as usize;
        let fits = key.is_none_or(|key| key.len() == key_size)
            && value.is_none_or(|value| value == self.value_len());
        if fits { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// The flags of an operation: only the allowed ones, and no lock where values have none.
    fn check_flags(&self, flags: u64, allowed: u64) -> Result {
        let has_lock = self.definition.value.lock.is_some();
        match flags & !allowed != 0 || flags & flags::LOCK != 0 && !has_lock {
            true => Err(Errno::EINVAL),
            false => Ok(()),
        }
    }
}
