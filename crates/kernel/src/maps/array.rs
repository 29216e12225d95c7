//! Arrays: `array` and `percpu_array`. All elements exist from the start and are zero.

use std::slice;
use std::sync::Arc;
use vm::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::{Errno, Result};
use vm::{CellSlice, Cells, Cursor, DirectAccess, Elements, MapOperations};

use super::flags::{EXIST, LOCK, NOEXIST};
use super::key;
use super::memory::Charge;
use super::resources::Resources;
use super::special::SpecialFields;
use super::{Definition, Host, RunGuard, SyscallOperations, ValueLayout};

/// Values by index, one for each CPU in `percpu_array`.
#[derive(Debug)]
pub(super) struct Array {
    values: Elements,
    value: ValueLayout,
    special: SpecialFields,
    is_percpu: bool,
}

impl Array {
    pub(super) fn new(map: &Definition, host: &Host, charge: &Charge) -> Result<Array> {
        let is_percpu = map.is_percpu();
        let copies = if is_percpu { host.cpus } else { 1 };
        let entries = map.params.max_entries;
        let cells = map.value.cells();
        let count = Elements::cells(entries, copies, cells).unwrap_or(usize::MAX);
        let values = match entries {
            // Its pages are there once they are written to.
            1 => Cells::zeroed(count).map_err(|_| Errno::ENOMEM)?,
            _ => charge.cells(count)?,
        };
        let values = Elements::new(values, entries, copies, cells);
        Ok(Array {
            values: values.ok_or(Errno::ENOMEM)?,
            value: map.value.clone(),
            special: SpecialFields::new(map, host),
            is_percpu,
        })
    }

    /// Number of values, of each CPU in `percpu_array`.
    fn entries(&self) -> u32 {
        self.values.entries()
    }

    /// Bytes of a value.
    pub(super) fn value_size(&self) -> usize {
        self.value.size
    }

    /// The index that a key is, if it is in range.
    pub(super) fn index(&self, key: &[u8]) -> Option<u32> {
        let index = u32::from_le_bytes(key.try_into().ok()?);
        (index < self.entries()).then_some(index)
    }

    /// The cells of an element's value on a CPU.
    fn element(&self, index: u32, cpu: u32) -> &[AtomicU64] {
        self.values.value(index, cpu)
    }

    fn check_update(&self, key: &[u8], flags: u64) -> Result<u32> {
        Errno::EINVAL.when(flags & !LOCK > EXIST)?;
        let index = self.index(key).ok_or(Errno::E2BIG)?;
        Errno::EEXIST.when(flags & NOEXIST != 0)?;
        Errno::EINVAL.when(flags & LOCK != 0 && self.value.lock.is_none())?;
        Ok(index)
    }

    /// Writes a value, under its lock if the flags say so.
    fn write(&self, cells: &[AtomicU64], value: &[u8], flags: u64) -> Result {
        let _locked = match flags & LOCK {
            0 => None,
            _ => self.value.lock(cells)?,
        };
        self.value.write(cells, value);
        self.special.free(cells);
        Ok(())
    }

    /// An entry with its key in a cell of the guard.
    fn entry<'g>(&'g self, key: &'g AtomicU64, index: u32, cpu: u32) -> [CellSlice<'g>; 2] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&index.to_le_bytes());
        key.store(u64::from_ne_bytes(bytes), Relaxed);
        [
            CellSlice::new(slice::from_ref(key), bytes.len() / 2),
            CellSlice::new(self.element(index, cpu), self.value.size),
        ]
    }
}

impl MapOperations for Array {
    fn lookup<'g>(&'g self, _: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let index = self.index(key)?;
        Some(CellSlice::new(self.element(index, cpu), self.value.size))
    }

    fn next_entry<'g>(
        &'g self,
        guard: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        let index = u32::try_from(cursor.position).ok()?;
        if index >= self.entries() {
            return None;
        }
        cursor.position += 1;
        let cell = *cursor.key_cell.get_or_insert_with(|| guard.take_key_cell());
        Some(self.entry(guard.key_cell(cell), index, cpu))
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        super::special::covers(self.values.as_slice(), address, len)
    }

    fn entry_at<'g>(&'g self, guard: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        let start = self.values.as_slice().as_ptr().addr() as u64;
        let offset = address.checked_sub(start)? % self.values.copy_stride();
        let index = u32::try_from(offset / self.values.stride()).ok()?;
        let cell = guard.take_key_cell();
        let is_there = index < self.entries() && self.covers(address, 1);
        is_there.then(|| self.entry(guard.key_cell(cell), index, 0))
    }

    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        Some(DirectAccess::Elements(self.values.clone()))
    }

    fn direct_value(&self) -> Option<CellSlice<'_>> {
        let has_one = self.entries() == 1 && !self.is_percpu;
        has_one.then(|| CellSlice::new(self.element(0, 0), self.value.size))
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result {
        let index = self.check_update(key, flags)?;
        self.write(self.element(index, cpu), value, flags)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::EINVAL)
    }
}

impl SyscallOperations for Array {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let index = self.index(key).ok_or(Errno::ENOENT)?;
        for (cpu, out) in (0..).zip(out.chunks_mut(out.len() / self.values.copies() as usize)) {
            self.value.read(self.element(index, cpu), out);
        }
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result {
        Errno::EINVAL.when(self.is_percpu && flags > EXIST)?;
        let index = self.check_update(key, flags)?;
        for (cpu, value) in (0..).zip(value.chunks(value.len() / self.values.copies() as usize)) {
            self.write(self.element(index, cpu), value, flags)?;
        }
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let index = key.and_then(|key| self.index(key));
        key::write_next_index(index, self.entries(), next)
    }
}
