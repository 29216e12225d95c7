//! The operations of a map behind its journal: what they change is noted first.

use std::sync::Arc;

use spec::Errno;
use vm::network::NetSocket;
use vm::{ArenaObject, CellSlice, Cursor, MapFunction, MapOperations, Samples, TailTable, ValueOf};

use super::super::resources::{Resources, StoredProgram};
use super::super::syscall_operations::Entries;
use super::super::{ProgramClass, RunGuard, StoredMap, SyscallOperations};
use super::Journal;

/// Operations that change nothing which a journal notes: those of the map behind it.
macro_rules! of_inner {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
            self.inner.$name($($argument),*)
        })*
    };
}

impl MapOperations for Journal {
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let found = self.inner.lookup(guard, cpu, key)?;
        self.note_found(key);
        Some(found)
    }

    fn direct_output(self: Arc<Self>) -> Option<MapFunction> {
        None
    }

    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        self.inner.find(guard, what)
    }

    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        self.inner.entry_at(guard, address)
    }

    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        self.note_whole();
        self.inner.next_entry(guard, cpu, cursor)
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.note_update(key);
        self.inner.update(cpu, key, value, flags)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result<(), Errno> {
        self.note(key);
        self.inner.delete(cpu, key)
    }

    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        self.note_whole();
        self.inner.push(value, flags)
    }

    fn pop(&self, out: &mut [u8]) -> Result<(), Errno> {
        self.note_whole();
        self.inner.pop(out)
    }

    of_inner! {
        fn direct_value(&self) -> Option<CellSlice<'_>>;
        fn disown(&self, owner: u64) -> Result<(), Errno>;
        fn covers(&self, address: u64, len: usize) -> bool;
        fn peek(&self, out: &mut [u8]) -> Result<(), Errno>;
        fn output(&self, record: &[u8], flags: u64) -> Result<(), Errno>;
        fn reserve(&self, len: u64, flags: u64) -> Option<(CellSlice<'_>, u64)>;
        fn submit(&self, record: u64, is_discarded: bool);
        fn query(&self, what: u64) -> u64;
        fn perf_output(&self, index: u32, cpu: u32, record: &[u8]) -> Result<(), Errno>;
        fn inner(&self, guard: &RunGuard, key: &[u8]) -> Option<u64>;
        fn tail_table(&self) -> Option<Arc<TailTable>>;
        fn arena(&self) -> Option<&dyn ArenaObject>;
        fn samples(&self) -> Option<&dyn Samples>;
        fn cgroup(&self, index: u32) -> Result<u64, Errno>;
        fn socket(&self, key: &[u8]) -> Option<u64>;
        fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result<(), Errno>;
    }
}

impl SyscallOperations for Journal {
    fn store(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        match self.is_queue() {
            true => self.note_whole(),
            false => self.note_update(key),
        }
        self.inner.store(key, value, flags, resources)
    }

    fn copy_object(
        &self,
        key: &[u8],
        out: &mut [u8],
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        self.inner.copy_object(key, out, resources)
    }

    fn delete_object(&self, key: &[u8], resources: &dyn Resources) -> Result<(), Errno> {
        self.note(key);
        self.inner.delete_object(key, resources)
    }

    fn take(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        match self.is_queue() {
            true => self.note_whole(),
            false => self.note(key),
        }
        self.inner.take(key, out)
    }

    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        if delete {
            self.note_whole();
        }
        self.inner.read_bucket(bucket, most, delete)
    }

    of_inner! {
        fn reset(&self);
        fn copy(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno>;
        fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno>;
        fn buckets(&self) -> u32;
        fn admit(&self, class: &ProgramClass) -> Result<(), Errno>;
        fn program(&self, index: u32) -> Option<Arc<StoredProgram>>;
        fn inner_maps(&self) -> Vec<Arc<StoredMap>>;
        fn release(&self);
    }
}
