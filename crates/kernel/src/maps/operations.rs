//! The interface of a map kind.

use std::fmt;
use std::sync::Arc;

use spec::Errno;
use vm::network::NetSocket;
use vm::{CellSlice, Cursor, DirectAccess, MapFunction, RunGuard, TailTable, ValueOf};

use super::{
    Arena, Cgroup, LocalStorage, NoResources, PerfBuffer, ProgramClass, Resources, Ring, Socket,
    StoredMap, StoredProgram, UserRing,
};

/// Operations of a map kind. Keys and values have the map's sizes; the caller checks that.
///
/// Programs call the first group through helpers, bpf(2) the second. An operation that a kind
/// does not define fails as in the kernel's kinds without it.
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

    /// Bytes of memory that it takes as long as it exists.
    fn fixed_bytes(&self) -> u64 {
        0
    }

    /// Inlined lookup of native code, without the helper, if there is one.
    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        None
    }

    /// The function that adds records of native code in place of the helper, if there is
    /// one.
    fn direct_output(self: Arc<Self>) -> Option<MapFunction> {
        None
    }

    /// A value that is not found by its key; see [`vm::MapObject::find`].
    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        let _ = (guard, what);
        None
    }

    /// True if bytes at an address on the host are in values; see [`vm::MapObject::covers`].
    fn covers(&self, address: u64, len: usize) -> bool {
        let _ = (address, len);
        false
    }

    /// The key and the value that has an address in it; see [`vm::MapObject::entry_at`].
    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, address);
        None
    }

    /// Forgets what belongs to one test run: sets the value of the program that runs to zero,
    /// removes that of the packet's socket.
    fn reset(&self) {}

    /// The next entry that a program visits; see [`vm::MapObject::next_entry`].
    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        let _ = (guard, cpu, cursor);
        None
    }

    /// Adds or changes an entry; as bpf(2) does without open descriptors, if the kind does not
    /// distinguish the two.
    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let _ = cpu;
        self.store(key, value, flags, &NoResources)
    }

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

    /// Writes the value of a key, of all CPUs where there is one for each. Key and value may
    /// name objects of the host.
    fn store(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno>;

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

    /// Table of a program array for native code.
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
    fn inner_maps(&self) -> Vec<Arc<StoredMap>> {
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
