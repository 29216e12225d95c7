//! `cgroup_array`: control groups by index, to compare packets and tasks with.

use spec::{Errno, Result};
use vm::MapOperations;

use super::resources::{Cgroup, Resources};
use super::slots::{self, Slots};
use super::{Definition, SyscallOperations};

/// Control groups.
#[derive(Debug)]
pub(super) struct CgroupArray(Slots<Cgroup>);

impl CgroupArray {
    pub(super) fn new(map: &Definition) -> Result<CgroupArray> {
        Ok(CgroupArray(Slots::new(map.params.max_entries)?))
    }
}

impl MapOperations for CgroupArray {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        self.0.delete(key)
    }

    fn cgroup(&self, index: u32) -> Result<u64> {
        let key = index.to_le_bytes();
        let index = self.0.index(&key).ok_or(Errno::E2BIG)?;
        let cgroup = self.0.get(index).ok_or(Errno::EAGAIN)?;
        Ok(cgroup.id)
    }
}

impl SyscallOperations for CgroupArray {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.0.index_to_store(key, flags, 0)?;
        let cgroup = resources.cgroup(slots::number(value)?);
        self.0.set(index, Some(cgroup.ok_or(Errno::EBADF)?));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}
