//! Maps with the results and error numbers of Linux 6.18.
//!
//! A [`Map`] has two interfaces, as in Linux: programs look up, update and delete through
//! helpers ([`Operations`]), the host calls the operations of bpf(2), with their checks of
//! flags and permissions ([`Map::lookup`] and the like, `kernel/bpf/syscall.c`). Each kind
//! is one file.
//!
//! Readers never block. What programs got a pointer to stays valid memory until their
//! [`RunGuard`] is dropped; what it holds after a deletion is as in Linux (see each kind).

mod arena;
mod array;
mod array_of_maps;
mod batch;
mod bloom_filter;
mod cgroup_array;
mod cgroup_storage;
mod cpumap;
mod devmap;
mod flags;
mod hash;
mod hash_of_maps;
mod host;
mod key;
mod local_storage;
mod lpm_trie;
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
mod struct_ops;
mod template;
#[cfg(test)]
mod tests;
mod user_ringbuf;
mod value;
mod xskmap;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::network::NetSocket;
use vm::{
    ArenaObject, CellSlice, Cursor, DirectAccess, LockedValue, MapFunction, MapHandle, MapObject,
    Objects, Samples, TailTable, Timers, ValueOf,
};

pub use arena::Arena;
pub use batch::{Batch, LookupBatch};
pub use host::Host;
pub use local_storage::{LocalStorage, PACKET_SOCKET};
pub use perf_event_array::PerfBuffer;
pub use resources::{Cgroup, NoResources, ProgramClass, Resources, StoredMap, StoredProgram};
pub use ringbuf::{Record, Ring};
pub use socket::{Socket, SocketKind};
pub use user_ringbuf::{UserRing, UserSample, UserSamples};
pub use value::ValueLayout;
pub use vm::RunGuard;

/// Most bytes that the kernel allocates at once (`KMALLOC_MAX_SIZE`).
const KMALLOC_MAX: u32 = 4 << 20;

/// Most bytes of a value that exists for each CPU (`PCPU_MIN_UNIT_SIZE`).
const PERCPU_MAX_VALUE: usize = 32 << 10;

/// What one kind of map does. Keys and values have the map's sizes; the caller checks that.
///
/// The first group is what programs call through helpers, the second what bpf(2) does. What
/// a kind leaves out answers as the kernel's kinds do that lack the operation.
pub trait Operations: fmt::Debug + Send + Sync {
    /// The value of a key, as a program on this CPU gets it.
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let _ = (guard, cpu, key);
        None
    }

    /// The value that programs may address without a lookup, if the kind has one.
    fn direct_value(&self) -> Option<CellSlice<'_>> {
        None
    }

    /// How native code looks up keys without the helper, if there is such a way.
    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        None
    }

    /// The function that adds records of native code in place of the helper, if there is
    /// one.
    fn direct_output(self: Arc<Self>) -> Option<MapFunction> {
        None
    }

    /// A value that is not found by its key; see [`MapObject::find`].
    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        let _ = (guard, what);
        None
    }

    /// True if bytes at an address on the host are in values; see [`MapObject::covers`].
    fn covers(&self, address: u64, len: usize) -> bool {
        let _ = (address, len);
        false
    }

    /// The key and the value that has an address in it; see [`MapObject::entry_at`].
    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, address);
        None
    }

    /// Forgets what belongs to one test run: sets the value of the program that runs to zero,
    /// removes that of the packet's socket.
    fn reset(&self) {}

    /// The next entry that a program visits; see [`MapObject::next_entry`].
    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, cpu, cursor);
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

    /// Reads the value of a key, of all CPUs where there is one for each.
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno>;

    /// Writes the value of a key, of all CPUs where there is one for each.
    fn store(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno>;

    /// Writes the value of a key, which may name objects of the host.
    fn store_object(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        let _ = resources;
        self.store(key, value, flags)
    }

    /// Reads the value of a key, which may name an object of the host.
    fn copy_object(
        &self,
        key: &[u8],
        out: &mut [u8],
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        let _ = resources;
        self.copy(key, out)
    }

    /// Removes the entry of a key, which may name an object of the host.
    fn delete_object(&self, key: &[u8], resources: &dyn Resources) -> Result<(), Errno> {
        let _ = resources;
        self.delete(0, key)
    }

    /// Number of buckets of a hash.
    fn buckets(&self) -> u32 {
        0
    }

    /// Keys and values in a bucket of a hash, removed with `delete`; `None` if there are
    /// more than `most`.
    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        let _ = (bucket, most, delete);
        None
    }

    /// Checks a program that uses the map, when it is loaded: the first program of a program
    /// array decides which others it takes. EINVAL if this one does not fit.
    fn admit(&self, class: &ProgramClass) -> Result<(), Errno> {
        let _ = class;
        Ok(())
    }

    /// The program at an index, for a tail call.
    fn program(&self, index: u32) -> Option<Arc<StoredProgram>> {
        let _ = index;
        None
    }

    /// What native code sees of a program array.
    fn tail_table(&self) -> Option<Arc<TailTable>> {
        None
    }

    /// Forgets what only users keep in it, when the last of them has gone
    /// (`map_release_uref`).
    fn release(&self) {}

    /// The map of a key in a map of maps.
    fn inner(&self, key: &[u8]) -> Option<Arc<StoredMap>> {
        let _ = key;
        None
    }

    /// The address of the handle of the map of a key in a map of maps. It is valid while the
    /// guard exists.
    fn inner_address(&self, guard: &RunGuard, key: &[u8]) -> Option<u64> {
        let _ = (guard, key);
        None
    }

    /// The maps that a map of maps holds now.
    fn inner_maps(&self) -> Vec<MapHandle> {
        Vec::new()
    }

    /// The perf buffer at an index. E2BIG if it is out of range, ENOENT if there is none.
    fn perf_buffer(&self, index: u32) -> Result<Arc<PerfBuffer>, Errno> {
        let _ = index;
        Err(Errno::EINVAL)
    }

    /// The ring of a ring buffer.
    fn ring(&self) -> Option<&Ring> {
        None
    }

    /// The ring of a user ring buffer.
    fn user_ring(&self) -> Option<&UserRing> {
        None
    }

    /// The memory of an arena.
    fn arena(&self) -> Option<&Arena> {
        None
    }

    /// The values of local storage.
    fn local_storage(&self) -> Option<&LocalStorage> {
        None
    }

    /// The socket of a key in a map of sockets.
    fn socket(&self, key: &[u8]) -> Option<Arc<Socket>> {
        let _ = key;
        None
    }

    /// Puts a socket of the network into a map of sockets.
    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result<(), Errno> {
        let _ = (key, socket, flags);
        Err(Errno::EOPNOTSUPP)
    }

    /// The control group at an index. E2BIG if it is out of range, EAGAIN if there is none.
    fn cgroup(&self, index: u32) -> Result<Arc<Cgroup>, Errno> {
        let _ = index;
        Err(Errno::EINVAL)
    }

    /// Reads the value of a key and removes it.
    fn take(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        let _ = (key, out);
        Err(Errno::ENOTSUPP)
    }

    /// The key after this one in the order of iteration; the first one after none and
    /// after a key that is not there. ENOENT after the last.
    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno>;
}

/// Keys with their values.
pub type Entries = Vec<(Box<[u8]>, Box<[u8]>)>;

/// What a map is made of: its parameters, kind and value layout.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) params: MapParams,
    pub(crate) kind: MapKind,
    pub(crate) value: ValueLayout,
}

impl Definition {
    fn is_percpu(&self) -> bool {
        use MapKind::{LruPercpuHash, PercpuArray, PercpuHash};
        matches!(
            self.kind,
            PercpuArray | PercpuHash | LruPercpuHash | MapKind::PercpuCgroupStorage
        )
    }

    fn is_lru(&self) -> bool {
        matches!(self.kind, MapKind::LruHash | MapKind::LruPercpuHash)
    }

    /// Seed of the map's hash function.
    fn seed(&self, host: &Host) -> u64 {
        match self.params.flags.0 & flags::ZERO_SEED {
            0 => host.seed,
            _ => 0,
        }
    }
}

/// A map.
#[derive(Debug)]
pub struct Map {
    definition: Definition,
    operations: Arc<dyn Operations>,
    cpus: u32,
    is_frozen: AtomicBool,
    /// The timers of the host, if values have some.
    timers: Option<Arc<Timers>>,
    /// The objects of the host, if values own some.
    objects: Option<Arc<Objects>>,
}

impl Map {
    /// Creates a map by the kernel's rules. `value` is the layout of its values, of the size
    /// that the parameters say. Maps of maps are made by [`Map::create_with`].
    ///
    /// # Errors
    /// Those of `BPF_MAP_CREATE`; [`Errno::ENOTSUPP`] for kinds that are not built yet.
    pub fn create(params: &MapParams, value: ValueLayout, host: &Host) -> Result<Map, Errno> {
        Map::create_with(params, value, host, None)
    }

    /// Creates a map, of whose kind the maps in it have to be: `inner` is the template of a
    /// map of maps.
    ///
    /// # Errors
    /// As [`Map::create`]; EBADF for a map of maps without a template.
    pub fn create_with(
        params: &MapParams,
        value: ValueLayout,
        host: &Host,
        inner: Option<&Map>,
    ) -> Result<Map, Errno> {
        use MapKind::{
            Arena, Array, ArrayOfMaps, BloomFilter, CgroupArray, CgroupStorage, CgrpStorage,
            Cpumap, Devmap, DevmapHash, Hash, HashOfMaps, InodeStorage, InsnArray, LpmTrie,
            LruHash, LruPercpuHash, PercpuArray, PercpuCgroupStorage, PercpuHash, PerfEventArray,
            ProgArray, Queue, ReuseportSockarray, Rhash, Ringbuf, SkStorage, Sockhash, Sockmap,
            Stack, StackTrace, StructOps, TaskStorage, UserRingbuf, Xskmap,
        };
        let kind = params.kind().ok_or(Errno::EINVAL)?;
        if params.extra != 0 && !matches!(kind, BloomFilter | MapKind::Arena) {
            return Err(Errno::EINVAL);
        }
        let accesses = flags::RDONLY | flags::WRONLY;
        let has_node = params.flags.0 & flags::NUMA_NODE != 0;
        if params.flags.0 & accesses == accesses || has_node && params.numa_node != 0 {
            return Err(Errno::EINVAL);
        }
        // The flag is checked last: there are no tokens.
        let token = params.flags.0 & flags::TOKEN_FD;
        let definition = Definition {
            params: MapParams {
                flags: MapFlags(params.flags.0 & !token),
                ..*params
            },
            kind,
            value,
        };
        let map = &definition;
        match kind {
            Array | PercpuArray => array::Array::check(map)?,
            Hash | PercpuHash | LruHash | LruPercpuHash => hash::Hash::check(map)?,
            LpmTrie => lpm_trie::LpmTrie::check(map)?,
            Queue | Stack => queue::Queue::check(map)?,
            BloomFilter => bloom_filter::BloomFilter::check(map)?,
            ProgArray | PerfEventArray | CgroupArray | ArrayOfMaps => {
                array::Array::check_objects(map)?;
            }
            HashOfMaps => hash_of_maps::HashOfMaps::check(map)?,
            Devmap | DevmapHash => devmap::check(map)?,
            Cpumap => cpumap::Cpumap::check(map)?,
            Xskmap => xskmap::Xskmap::check(map)?,
            Ringbuf | UserRingbuf => ringbuf::Ring::check(map)?,
            StackTrace => stack_trace::StackTrace::check(map)?,
            CgroupStorage | PercpuCgroupStorage => cgroup_storage::CgroupStorage::check(map)?,
            SkStorage | InodeStorage | TaskStorage | CgrpStorage => {
                local_storage::LocalStorage::check(map)?;
            }
            ReuseportSockarray => reuseport_sockarray::ReuseportSockarray::check(map)?,
            Sockmap => sockmap::Sockmap::check(map)?,
            Sockhash => sockhash::Sockhash::check(map)?,
            Arena => arena::Arena::check(map)?,
            StructOps => struct_ops::check(map)?,
            // Linux 6.18 does not know them.
            InsnArray | Rhash => return Err(Errno::EINVAL),
        }
        if token != 0 {
            return Err(Errno::EINVAL);
        }
        let operations: Arc<dyn Operations> = match kind {
            Array | PercpuArray => Arc::new(array::Array::new(map, host)?),
            Hash | PercpuHash | LruHash | LruPercpuHash => Arc::new(hash::Hash::new(map, host)?),
            LpmTrie => Arc::new(lpm_trie::LpmTrie::new(map, host)?),
            Queue | Stack => Arc::new(queue::Queue::new(map)),
            BloomFilter => Arc::new(bloom_filter::BloomFilter::new(map, host)?),
            ProgArray => Arc::new(prog_array::ProgArray::new(map, host)?),
            PerfEventArray => Arc::new(perf_event_array::PerfEventArray::new(map)?),
            ArrayOfMaps => Arc::new(array_of_maps::ArrayOfMaps::new(map, inner)?),
            HashOfMaps => Arc::new(hash_of_maps::HashOfMaps::new(map, host, inner)?),
            Devmap => Arc::new(devmap::Devmap::new(map, host)?),
            DevmapHash => Arc::new(devmap::DevmapHash::new(map, host)?),
            Cpumap => Arc::new(cpumap::Cpumap::new(map, host)?),
            Xskmap => Arc::new(xskmap::Xskmap::new(map)?),
            Ringbuf => Arc::new(ringbuf::Ring::new(map)?),
            UserRingbuf => Arc::new(user_ringbuf::UserRing::new(map)?),
            CgroupArray => Arc::new(cgroup_array::CgroupArray::new(map)?),
            StackTrace => Arc::new(stack_trace::StackTrace::new(map)?),
            CgroupStorage | PercpuCgroupStorage => {
                Arc::new(cgroup_storage::CgroupStorage::new(map, host)?)
            }
            SkStorage | InodeStorage | TaskStorage | CgrpStorage => {
                Arc::new(local_storage::LocalStorage::new(map))
            }
            ReuseportSockarray => Arc::new(reuseport_sockarray::ReuseportSockarray::new(map)?),
            Sockmap => Arc::new(sockmap::Sockmap::new(map)?),
            Sockhash => Arc::new(sockhash::Sockhash::new(map)?),
            Arena => Arc::new(arena::Arena::new(map)?),
            // The check refuses them.
            StructOps | InsnArray | Rhash => return Err(Errno::ENOTSUPP),
        };
        let has_timers = definition.value.timers().next().is_some();
        Ok(Map {
            cpus: host.cpus,
            is_frozen: AtomicBool::new(false),
            timers: has_timers.then(|| Arc::clone(&host.timers)),
            objects: match definition.value.owning.is_empty() {
                true => None,
                false => Some(Arc::clone(&host.objects)),
            },
            definition,
            operations,
        })
    }

    /// Its kind.
    pub fn kind(&self) -> MapKind {
        self.definition.kind
    }

    /// The parameters of its creation.
    pub fn params(&self) -> &MapParams {
        &self.definition.params
    }

    /// Checks a program that uses the map, when it is loaded (`bpf_prog_map_compatible`).
    ///
    /// # Errors
    /// EINVAL if the map is a program array that belongs to programs of another class.
    pub fn admit(&self, class: &ProgramClass) -> Result<(), Errno> {
        self.operations.admit(class)
    }

    /// Ends the use of the map by users: a program array is emptied, as in Linux when its
    /// last descriptor is closed and no file names it. Programs that it holds and that refer
    /// to it would otherwise keep each other.
    pub fn release(&self) {
        self.operations.release();
    }

    /// What programs do with it.
    pub fn operations(&self) -> &dyn Operations {
        &*self.operations
    }

    /// Bytes of a value as the operations below exchange it: where there is one for each CPU
    /// those of all, each rounded up to 8.
    pub fn value_len(&self) -> usize {
        match self.definition.is_percpu() {
            true => self.definition.value.rounded() * self.cpus as usize,
            false => self.definition.value.size,
        }
    }

    /// `BPF_MAP_LOOKUP_ELEM` where no descriptor is open. EINVAL for a key or value of another
    /// length than the map's.
    pub fn lookup(&self, key: &[u8], out: &mut [u8], flags: u64) -> Result<(), Errno> {
        self.lookup_with(key, out, flags, &NoResources)
    }

    /// `BPF_MAP_LOOKUP_ELEM`; keys may name objects of the host.
    pub fn lookup_with(
        &self,
        key: &[u8],
        out: &mut [u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
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
    ) -> Result<Option<LockedValue<'g>>, Errno> {
        match self.operations.lookup(guard, 0, key) {
            Some(value) => LockedValue::lock(value, offset)
                .map(Some)
                .ok_or(Errno::EBUSY),
            None => Ok(None),
        }
    }

    /// `BPF_MAP_UPDATE_ELEM` where no descriptor is open.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.update_with(key, value, flags, &NoResources)
    }

    /// `BPF_MAP_UPDATE_ELEM`; values may name objects of the host.
    pub fn update_with(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        self.check_write()?;
        self.check_sizes(Some(key), Some(value.len()))?;
        self.check_flags(flags, u64::MAX)?;
        self.operations.store_object(key, value, flags, resources)
    }

    /// The checks of an update or deletion that come before its key and value are read.
    ///
    /// # Errors
    /// EPERM if the map cannot be written to, EINVAL for flags that it does not know.
    pub(crate) fn check_update(&self, flags: u64) -> Result<(), Errno> {
        self.check_write()?;
        self.check_flags(flags, u64::MAX)
    }

    /// `BPF_MAP_DELETE_ELEM` where no descriptor is open.
    pub fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.delete_with(key, &NoResources)
    }

    /// `BPF_MAP_DELETE_ELEM`; keys may name objects of the host.
    pub fn delete_with(&self, key: &[u8], resources: &dyn Resources) -> Result<(), Errno> {
        self.check_write()?;
        self.check_sizes(Some(key), None)?;
        self.operations.delete_object(key, resources)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
    pub fn lookup_and_delete(&self, key: &[u8], out: &mut [u8], flags: u64) -> Result<(), Errno> {
        if flags & !flags::LOCK != 0 {
            return Err(Errno::EINVAL);
        }
        self.check_read()?;
        self.check_write()?;
        self.check_sizes(Some(key), Some(out.len()))?;
        self.check_flags(flags, flags::LOCK)?;
        self.operations.take(key, out)
    }

    /// `BPF_MAP_GET_NEXT_KEY`.
    pub fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        self.check_read()?;
        self.check_sizes(key, None)?;
        self.check_sizes(Some(next), None)?;
        if key.is_some_and(<[u8]>::is_empty) {
            return Err(Errno::EINVAL);
        }
        self.operations.next_key(key, next)
    }

    /// `BPF_MAP_FREEZE`: from now on only programs change it. EPERM if users cannot write to it,
    /// also because it is frozen already.
    pub fn freeze(&self) -> Result<(), Errno> {
        let is_read_only = self.params().flags.0 & flags::RDONLY != 0;
        match is_read_only || self.is_frozen.swap(true, Ordering::AcqRel) {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    /// True if neither programs nor users change its values again.
    pub fn is_constant(&self) -> bool {
        self.params().flags.0 & MapFlags::RDONLY_PROG.0 != 0
            && self.is_frozen.load(Ordering::Acquire)
    }

    /// Frees the objects that values own.
    fn free_objects(&self, objects: &Objects) {
        let guard = RunGuard::new();
        for cpu in 0..self.copies() {
            let mut cursor = Cursor::default();
            while let Some([_, value]) = self.next_entry(&guard, cpu, &mut cursor) {
                objects.free_fields(value, &self.definition.value.owning);
            }
            if let Some(cell) = cursor.key_cell.take() {
                guard.release_key_cell(cell);
            }
        }
    }

    fn check_read(&self) -> Result<(), Errno> {
        match self.params().flags.0 & flags::WRONLY {
            0 => Ok(()),
            _ => Err(Errno::EPERM),
        }
    }

    fn check_write(&self) -> Result<(), Errno> {
        let is_read_only = self.params().flags.0 & flags::RDONLY != 0;
        match is_read_only || self.is_frozen.load(Ordering::Acquire) {
            true => Err(Errno::EPERM),
            false => Ok(()),
        }
    }

    fn check_sizes(&self, key: Option<&[u8]>, value: Option<usize>) -> Result<(), Errno> {
        let key_size = self.params().key_size as usize;
        let fits = key.is_none_or(|key| key.len() == key_size)
            && value.is_none_or(|value| value == self.value_len());
        if fits { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// The flags of an operation: only the allowed ones, and no lock where values have none.
    fn check_flags(&self, flags: u64, allowed: u64) -> Result<(), Errno> {
        let has_lock = self.definition.value.lock.is_some();
        match flags & !allowed != 0 || flags & flags::LOCK != 0 && !has_lock {
            true => Err(Errno::EINVAL),
            false => Ok(()),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if let Some(timers) = &self.timers {
            timers.free_map(self.identity());
        }
        if let Some(objects) = &self.objects {
            self.free_objects(objects);
        }
    }
}

impl MapObject for Map {
    fn kind(&self) -> MapKind {
        self.definition.kind
    }

    fn max_entries(&self) -> u32 {
        self.params().max_entries
    }

    fn key_size(&self) -> usize {
        self.params().key_size as usize
    }

    fn value_size(&self) -> usize {
        self.definition.value.size
    }

    fn copies(&self) -> u32 {
        match self.definition.is_percpu() {
            true => self.cpus,
            false => 1,
        }
    }

    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        self.operations.lookup(guard, cpu, key)
    }

    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        self.operations.find(guard, what)
    }

    fn disown(&self, owner: u64) -> Result<(), Errno> {
        let storage = self.operations.local_storage().ok_or(Errno::EINVAL)?;
        storage.remove(owner)
    }

    fn arena(&self) -> Option<&dyn ArenaObject> {
        self.operations
            .arena()
            .map(|arena| arena as &dyn ArenaObject)
    }

    fn samples(&self) -> Option<&dyn Samples> {
        self.operations.user_ring().map(|ring| ring as &dyn Samples)
    }

    fn cgroup(&self, index: u32) -> Result<u64, Errno> {
        self.operations.cgroup(index).map(|cgroup| cgroup.id)
    }

    fn socket(&self, key: &[u8]) -> Option<u64> {
        self.operations.socket(key).map(|socket| socket.cookie)
    }

    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result<(), Errno> {
        self.operations.update_socket(key, socket, flags)
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        let inner = self.operations.inner_maps();
        self.operations.covers(address, len)
            || inner.iter().any(|map| map.map().covers(address, len))
    }

    fn has_timers(&self) -> bool {
        self.timers.is_some()
    }

    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        self.operations.entry_at(guard, address)
    }

    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        self.operations.next_entry(guard, cpu, cursor)
    }

    fn direct_value(&self) -> Option<CellSlice<'_>> {
        self.operations.direct_value()
    }

    fn inner(&self, guard: &RunGuard, key: &[u8]) -> Option<u64> {
        self.operations.inner_address(guard, key)
    }

    fn inner_maps(&self) -> Vec<MapHandle> {
        self.operations.inner_maps()
    }

    fn direct_lookup(&self) -> Option<DirectAccess> {
        Arc::clone(&self.operations).direct_lookup()
    }

    fn direct_output(&self) -> Option<MapFunction> {
        Arc::clone(&self.operations).direct_output()
    }

    fn tail_table(&self) -> Option<Arc<TailTable>> {
        self.operations.tail_table()
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.operations.update(cpu, key, value, flags)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result<(), Errno> {
        self.operations.delete(cpu, key)
    }

    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        self.operations.push(value, flags)
    }

    fn pop(&self, out: &mut [u8]) -> Result<(), Errno> {
        self.operations.pop(out)
    }

    fn peek(&self, out: &mut [u8]) -> Result<(), Errno> {
        self.operations.peek(out)
    }

    fn output(&self, record: &[u8], flags: u64) -> Result<(), Errno> {
        let ring = self.operations.ring().ok_or(Errno::EINVAL)?;
        ring.output(record, flags)
    }

    fn reserve(&self, len: u64, flags: u64) -> Option<(CellSlice<'_>, u64)> {
        let record = self.operations.ring()?.reserve(len, flags)?;
        Some((record.bytes, record.position))
    }

    fn submit(&self, record: u64, is_discarded: bool) {
        if let Some(ring) = self.operations.ring() {
            ring.submit(record, is_discarded);
        }
    }

    fn perf_output(&self, index: u32, cpu: u32, record: &[u8]) -> Result<(), Errno> {
        (self.operations.perf_buffer(index)?).write(cpu, record)
    }

    fn query(&self, what: u64) -> u64 {
        self.operations.ring().map_or(0, |ring| ring.query(what))
    }
}
