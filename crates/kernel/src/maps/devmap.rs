//! `devmap` and `devmap_hash`: network interfaces by index or key, to redirect to.
//!
//! A value is `struct bpf_devmap_val`: index of the interface and, where values have 8
//! bytes, a program: its descriptor in an update, its id in a lookup.

use spec::programs::AttachType;
use spec::{Errno, Result};
use vm::{CellSlice, MapOperations};

use super::array::Array;
use super::flags::{EXIST, NOEXIST};
use super::hash::Hash;
use super::memory::Charge;
use super::resources::Resources;
use super::{Definition, Host, RunGuard, SyscallOperations, slots};

/// The value of an update with ids in place of descriptors.
fn resolve(value: &[u8], resources: &dyn Resources) -> Result<Vec<u8>> {
    let interface = slots::number(&value[..4])?;
    Errno::EINVAL.when(interface != 0 && !resources.has_interface(interface))?;
    let descriptor = value[4..]
        .as_array()
        .map_or(0, |bytes| i32::from_le_bytes(*bytes));
    Errno::EINVAL.when(interface == 0 && descriptor > 0)?;
    let mut stored = value.to_vec();
    let id = super::cpumap::program_id(descriptor, AttachType::XdpDevmap, resources)?;
    stored[4..].copy_from_slice(&id.to_le_bytes()[..value.len() - 4]);
    Ok(stored)
}

/// Interfaces by index. An empty element has interface 0.
#[derive(Debug)]
pub(super) struct Devmap(Array);

impl Devmap {
    pub(super) fn new(map: &Definition, host: &Host, charge: &Charge) -> Result<Devmap> {
        Ok(Devmap(Array::new(map, host, charge)?))
    }
}

impl MapOperations for Devmap {
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let value = self.0.lookup(guard, cpu, key)?;
        let mut interface = [0; 4];
        value.read(0, &mut interface);
        (interface != [0; 4]).then_some(value)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result {
        super::cpumap::clear(&self.0, cpu, key)
    }
}

impl SyscallOperations for Devmap {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        super::cpumap::copy_filled(&self.0, key, out)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        super::cpumap::check_update(&self.0, key, flags)?;
        self.0.store(key, &resolve(value, resources)?, 0, resources)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}

/// Interfaces by key.
#[derive(Debug)]
pub(super) struct DevmapHash(Hash);

impl DevmapHash {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<DevmapHash> {
        Ok(DevmapHash(Hash::new(map, host)?))
    }
}

impl MapOperations for DevmapHash {
    fn lookup<'g>(&'g self, guard: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        self.0.lookup(guard, cpu, key)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result {
        self.0.delete(cpu, key)
    }
}

impl SyscallOperations for DevmapHash {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        self.0.copy(key, out)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        Errno::EINVAL.when(flags > EXIST || value[..4] == [0; 4])?;
        if flags == NOEXIST && self.0.copy(key, &mut vec![0; value.len()]).is_ok() {
            return Err(Errno::EEXIST);
        }
        // Linux 6.18 adds an entry for BPF_EXIST too.
        let stored = resolve(value, resources)?;
        self.0.store(key, &stored, flags & NOEXIST, resources)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}
