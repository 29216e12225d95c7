//! `cgroup_storage` and `percpu_cgroup_storage`: a value for each control group and attach
//! type (`kernel/bpf/local_storage.c` of Linux). Attaching a program creates the values;
//! none is attached here, so bpf(2) finds none.

use spec::Errno;
use spec::maps::MapKind;

use super::flags::{self, EXIST, LOCK};
use super::{Definition, Operations};

/// Values of attached programs.
#[derive(Debug)]
pub(super) struct CgroupStorage {
    is_percpu: bool,
}

/// Bytes of `struct bpf_cgroup_storage_key`, and of the id of a control group.
const KEY_SIZES: [u32; 2] = [16, 8];

/// Most bytes of a value that exists once.
const MOST_VALUE: u32 = super::local_storage::MOST_VALUE;

impl CgroupStorage {
    pub(super) fn new(map: &Definition) -> CgroupStorage {
        CgroupStorage {
            is_percpu: map.kind == MapKind::PercpuCgroupStorage,
        }
    }

    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        let most = match map.kind {
            MapKind::PercpuCgroupStorage => MOST_VALUE.min(super::PERCPU_MAX_VALUE as u32),
            _ => MOST_VALUE,
        };
        if !KEY_SIZES.contains(&params.key_size) || params.value_size == 0 {
            return Err(Errno::EINVAL);
        }
        if params.value_size > most {
            return Err(Errno::E2BIG);
        }
        let allowed = flags::NUMA_NODE | flags::ACCESS;
        if params.flags.0 & !allowed != 0
            || !flags::access_is_consistent(params.flags.0)
            || params.max_entries != 0
        {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

impl Operations for CgroupStorage {
    fn update(&self, _: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store(key, value, flags)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }

    fn store(&self, _: &[u8], _: &[u8], flags: u64) -> Result<(), Errno> {
        let is_known = match self.is_percpu {
            true => flags == 0 || flags == EXIST,
            false => flags & !(LOCK | EXIST) == 0,
        };
        Err(match is_known {
            true => Errno::ENOENT,
            false => Errno::EINVAL,
        })
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }
}
