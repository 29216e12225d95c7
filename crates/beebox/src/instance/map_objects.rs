//! Maps of kinds that hold objects instead of values: programs, maps, sockets, records, arenas.

use spec::Errno;
use spec::maps::MapKind;

use super::{Map, Program};
use crate::failure::Error;
use crate::internal::run::{Arena, RunRecord, StorageOwner};

impl Map {
    /// Puts a program of the same instance into a slot of a program array, or empties the slot.
    /// Tail calls reach it from the next one on.
    ///
    /// # Errors
    /// EINVAL for maps of other kinds, and programs of other instances and of another class than
    /// the array's; E2BIG beyond the array, ENOENT if the slot is empty already.
    pub fn set_program(&self, index: u32, program: Option<&Program>) -> Result<(), Error> {
        let is_array = self.kind() == MapKind::ProgArray;
        if !is_array || program.is_some_and(|program| !program.is_of(self.instance())) {
            return Err(self.failed(Errno::EINVAL));
        }
        let loaded = &self.instance().0.loaded;
        let set = loaded.set_tail_call(self.name(), index, program.map(Program::name));
        set.map_err(|errno| self.failed(errno))
    }

    /// Takes the complete records of a ring buffer, or of the perf buffers of a CPU.
    pub fn take_records(&self, cpu: u32) -> Vec<RunRecord> {
        self.object_map().take_records(cpu)
    }

    /// Number of records that had no room in the perf buffer of a CPU.
    #[doc(hidden)]
    pub fn lost_records(&self, cpu: u32) -> u64 {
        self.object_map().lost_records(cpu)
    }

    /// True if perf buffers were opened in it.
    #[doc(hidden)]
    pub fn has_perf_buffers(&self) -> bool {
        self.object_map().has_perf_buffers()
    }

    /// Puts a record into a user ring buffer, for programs that read it
    /// (`bpf_user_ringbuf_drain`).
    ///
    /// # Errors
    /// EINVAL if it is no user ring buffer, E2BIG if the record is larger than it, ENOSPC if there
    /// is no room now.
    pub fn write_user_record(&self, record: &[u8]) -> Result<(), Error> {
        let loaded = &self.instance().0.loaded;
        Ok(loaded.write_user_record(self.name(), record)?)
    }

    /// Creates a map that fits this map of maps, with zeros in it. No program sees it before
    /// [`Map::set_inner`].
    ///
    /// # Errors
    /// EINVAL for maps of other kinds, ENOMEM beyond the limit of the memory of maps.
    pub fn create_inner(&self) -> Result<Map, Error> {
        let instance = self.instance();
        let created = instance.0.loaded.create_inner_of(self.object_map());
        let created = created.map_err(|errno| self.failed(errno))?;
        Ok(Map::inner(instance.clone(), created))
    }

    /// Puts a map into this map of maps, in place of the one that is there: each lookup of a
    /// program finds one of them. The map that was there stays as long as runs use it.
    ///
    /// # Errors
    /// EINVAL for maps of other kinds and an inner map that does not fit, E2BIG beyond the map.
    pub fn set_inner<K: crate::Pod>(&self, key: &K, inner: &Map) -> Result<(), Error> {
        self.set_inner_bytes(&crate::internal::pod::bytes(key), inner)
    }

    /// As [`Map::set_inner`], for the bytes of a key.
    #[doc(hidden)]
    pub fn set_inner_bytes(&self, key: &[u8], inner: &Map) -> Result<(), Error> {
        let loaded = &self.instance().0.loaded;
        let put = loaded.put_inner(self.object_map(), key, &inner.object_map().map);
        put.map_err(|errno| self.failed(errno))
    }

    /// Puts the socket of a cookie, one of the network, into a map of sockets.
    ///
    /// # Errors
    /// ENOENT for maps of other kinds, EBADF if the network has no such socket; otherwise those of
    /// the kernel: E2BIG beyond the map, EOPNOTSUPP for sockets that the map does not take.
    pub fn set_socket<K: crate::Pod>(&self, key: &K, cookie: u64) -> Result<(), Error> {
        let loaded = &self.instance().0.loaded;
        let set = loaded.set_socket(self.name(), &crate::internal::pod::bytes(key), cookie);
        set.map_err(|errno| self.failed(errno))
    }

    /// The cookie of the socket that a map of sockets holds under a key.
    pub fn socket<K: crate::Pod>(&self, key: &K) -> Option<u64> {
        let loaded = &self.instance().0.loaded;
        loaded.socket_at(self.object_map(), &crate::internal::pod::bytes(key))
    }

    /// The memory of an arena.
    #[doc(hidden)]
    pub fn arena(&self) -> Option<&Arena> {
        self.object_map().map.of_kind::<Arena>()
    }

    /// The values of local storage by the objects that they belong to; none of other maps.
    #[doc(hidden)]
    pub fn owned_values(&self) -> Vec<(StorageOwner, Vec<u8>)> {
        self.object_map().owned_values()
    }

    /// Sets the value of an object in local storage.
    ///
    /// # Errors
    /// ENOTSUPP for other maps, EINVAL for a value of another length.
    #[doc(hidden)]
    pub fn set_owned_value(&self, owner: StorageOwner, value: &[u8]) -> Result<(), Error> {
        let set = self.object_map().set_owned_value(owner, value);
        set.map_err(|errno| self.failed(errno))
    }
}
