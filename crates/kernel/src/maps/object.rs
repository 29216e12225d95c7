//! Maps as the machine and native code reach them: each operation is passed on to the kind.

use std::sync::Arc;

use spec::Errno;
use spec::maps::MapKind;
use vm::network::NetSocket;
use vm::{
    ArenaObject, CellSlice, Cursor, DirectAccess, MapFunction, MapHandle, MapObject, RunGuard,
    Samples, TailTable, ValueOf,
};

use super::Map;

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
            || inner.iter().any(|inner| inner.map.covers(address, len))
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
        let inner = self.operations.inner_maps();
        inner.iter().map(|inner| inner.handle.clone()).collect()
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
