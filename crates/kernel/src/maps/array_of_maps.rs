//! `array_of_maps`: maps of one definition by index.
//!
//! Programs read the address of the map's handle from a cell. A map that is replaced stays
//! until the runs that began before are over.

use std::sync::{Arc, Mutex, PoisonError};
use vm::sync::atomic::Ordering::{Acquire, Release};

use spec::{Errno, Result};
use vm::{Cells, DirectAccess, Elements, MapOperations};

use super::resources::{Resources, StoredMap};
use super::slots::{self, Slots};
use super::template::Template;
use super::{Definition, Map, RunGuard, SyscallOperations};

/// Maps by index.
#[derive(Debug)]
pub(super) struct ArrayOfMaps {
    slots: Slots<StoredMap>,
    /// By index the address of the map's handle, or 0.
    addresses: Cells,
    template: Template,
    order: Mutex<()>,
}

impl ArrayOfMaps {
    pub(super) fn new(map: &Definition, inner: Option<&Map>) -> Result<ArrayOfMaps> {
        Ok(ArrayOfMaps {
            template: Template::of(inner)?,
            order: Mutex::new(()),
            slots: Slots::new(map.params.max_entries)?,
            addresses: Cells::zeroed(map.params.max_entries as usize).map_err(|_| Errno::ENOMEM)?,
        })
    }

    /// Replaces the map at an index in range; true if there was one.
    fn set(&self, index: u32, inner: Option<Arc<StoredMap>>) -> bool {
        let address = inner
            .as_ref()
            .map_or(0, |inner| inner.map.handle().address());
        // The cell follows the slot in each thread; a lock orders those of several.
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = self.slots.set(index, inner);
        self.addresses.as_slice()[index as usize].store(address, Release);
        let was_there = replaced.is_some();
        retire(replaced);
        was_there
    }
}

impl MapOperations for ArrayOfMaps {
    fn inner(&self, _: &RunGuard, key: &[u8]) -> Option<u64> {
        let index = self.slots.index(key)?;
        let address = self.addresses.as_slice()[index as usize].load(Acquire);
        (address != 0).then_some(address)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let index = self.slots.index(key).ok_or(Errno::E2BIG)?;
        Errno::ENOENT.when(!self.set(index, None))
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        any_covers(&self.inner_maps(), address, len)
    }

    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        let cells = self.addresses.clone();
        let elements = Elements::new(cells, self.slots.count(), 1, 1);
        elements.map(DirectAccess::Maps)
    }
}

impl SyscallOperations for ArrayOfMaps {
    fn inner_maps(&self) -> Vec<Arc<StoredMap>> {
        self.slots.all().collect()
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let index = self.slots.index(key).ok_or(Errno::ENOENT)?;
        let inner = self.slots.get(index).ok_or(Errno::ENOENT)?;
        out.copy_from_slice(&inner.id.to_le_bytes());
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.slots.index_to_store(key, flags, 0)?;
        let inner = self.template.find(slots::number(value)?, resources)?;
        self.set(index, Some(inner));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.slots.next_key(key, next)
    }
}

/// True if bytes at an address on the host are in values of one of the maps.
pub(super) fn any_covers(maps: &[Arc<StoredMap>], address: u64, len: usize) -> bool {
    let mut maps = maps.iter();
    maps.any(|inner| inner.map.operations().covers(address, len))
}

/// Drops what runs may still use when those that exist now are over.
pub(super) fn retire<T: Send + 'static>(replaced: Option<T>) {
    if let Some(replaced) = replaced {
        let guard = RunGuard::new();
        guard.defer(move || drop(replaced));
        guard.flush();
    }
}
