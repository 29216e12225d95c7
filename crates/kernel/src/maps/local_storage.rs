//! `sk_storage`, `inode_storage`, `task_storage` and `cgrp_storage`: a value for each object
//! of a kind (`kernel/bpf/bpf_local_storage.c` of Linux).
//!
//! Programs name an object by its identity, bpf(2) by a descriptor ([`Resources::owner`]).
//! Values that a program got stay valid memory until its run is over.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use spec::maps::MapKind;
use spec::{Errno, Result};
use vm::{Addresses, CellSlice, Cells, MapOperations, RunGuard, ValueOf};

use super::flags::{EXIST, NOEXIST};
use super::memory::Charge;
use super::resources::{NoResources, Resources};
use super::{Definition, Host, SyscallOperations, ValueLayout, slots};

/// Values by the identity of the object that they belong to.
#[derive(Debug)]
pub struct LocalStorage {
    kind: MapKind,
    value: ValueLayout,
    values: RwLock<HashMap<u64, Arc<Cells>>>,
    charge: Charge,
}

/// The owner that stands for the socket of the packet, which exists for one test run.
pub const PACKET_SOCKET: u64 = u64::MAX;

/// The owner that stands for the task that runs, whatever its address is.
pub const CURRENT_TASK: u64 = Addresses::DEFAULT.task;

impl LocalStorage {
    pub(super) fn new(map: &Definition, host: &Host) -> LocalStorage {
        LocalStorage {
            kind: map.kind,
            value: map.value.clone(),
            values: RwLock::default(),
            charge: Charge::new(&host.memory),
        }
    }

    /// The value of an object.
    pub fn get(&self, owner: u64) -> Option<Arc<Cells>> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        values.get(&owner).cloned()
    }

    /// Changes or adds the value of an object, as the flags of an update allow; the value.
    pub fn set(&self, owner: u64, value: &[u8], flags: u64) -> Result<Arc<Cells>> {
        Errno::EINVAL.when(flags > EXIST)?;
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        match values.get(&owner) {
            Some(_) if flags == NOEXIST => return Err(Errno::EEXIST),
            None if flags == EXIST => return Err(Errno::ENOENT),
            _ => {}
        }
        if !values.contains_key(&owner) {
            self.charge.add(self.value.rounded() as u64)?;
        }
        // Pointers to an old value still read it.
        let cells = Cells::zeroed(self.value.cells()).map_err(|_| Errno::ENOMEM)?;
        self.value.write(cells.as_slice(), value);
        let cells = Arc::new(cells);
        values.insert(owner, Arc::clone(&cells));
        Ok(cells)
    }

    /// The objects that have values, in order.
    pub fn owners(&self) -> Vec<u64> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut owners: Vec<u64> = values.keys().copied().collect();
        owners.sort_unstable();
        owners
    }

    /// The bytes of the value of an object.
    pub fn bytes(&self, owner: u64) -> Option<Vec<u8>> {
        let cells = self.get(owner)?;
        let mut bytes = vec![0; self.value.size];
        self.value.read(cells.as_slice(), &mut bytes);
        Some(bytes)
    }

    /// Removes the value of an object. ENOENT if it has none.
    pub fn remove(&self, owner: u64) -> Result {
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        values.remove(&owner).ok_or(Errno::ENOENT)?;
        self.charge.remove(self.value.rounded() as u64);
        Ok(())
    }

    fn owner(&self, key: &[u8], resources: &dyn Resources) -> Result<u64> {
        resources.owner(self.kind, slots::number(key)?)
    }
}

impl MapOperations for LocalStorage {
    fn disown(&self, owner: u64) -> Result {
        self.remove(owner)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result {
        self.delete_object(key, &NoResources)
    }

    fn find<'g>(&'g self, guard: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        let ValueOf::Owner(owner, initial) = what else {
            return None;
        };
        let found = self.get(owner);
        // Another run may have made it meanwhile.
        let found = found.or_else(|| match self.set(owner, initial?, NOEXIST) {
            Ok(cells) => Some(cells),
            Err(_) => self.get(owner),
        });
        Some(CellSlice::new(guard.keep(found?), self.value.size))
    }
}

impl SyscallOperations for LocalStorage {
    fn delete_object(&self, key: &[u8], resources: &dyn Resources) -> Result {
        self.remove(self.owner(key, resources)?)
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        self.copy_object(key, out, &NoResources)
    }

    fn copy_object(&self, key: &[u8], out: &mut [u8], resources: &dyn Resources) -> Result {
        let owner = self.owner(key, resources)?;
        let cells = self.get(owner).ok_or(Errno::ENOENT)?;
        self.value.read(cells.as_slice(), out);
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let owner = self.owner(key, resources)?;
        self.set(owner, value, flags).map(drop)
    }

    fn reset(&self) {
        let _ = self.remove(PACKET_SOCKET);
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }
}
