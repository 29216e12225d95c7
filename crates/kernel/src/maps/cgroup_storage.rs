//! `cgroup_storage` and `percpu_cgroup_storage`: a value for each control group and attach
//! type (`kernel/bpf/local_storage.c` of Linux). Attaching a program creates the values;
//! none is attached here, so bpf(2) finds none.

use spec::maps::MapKind;
use spec::{Errno, Result};
use vm::{CellSlice, Cells, MapOperations, ValueOf};

use super::flags::{EXIST, LOCK};
use super::resources::Resources;
use super::{Definition, Host, RunGuard, SyscallOperations, ValueLayout};

/// Values of attached programs.
#[derive(Debug)]
pub(super) struct CgroupStorage {
    is_percpu: bool,
    value: ValueLayout,
    /// The value of the program that runs, for each CPU or once: test runs make one for
    /// themselves.
    cells: Cells,
}

impl CgroupStorage {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<CgroupStorage> {
        let is_percpu = map.kind == MapKind::PercpuCgroupStorage;
        let copies = if is_percpu { host.cpus as usize } else { 1 };
        let cells = Cells::zeroed(map.value.cells().saturating_mul(copies));
        Ok(CgroupStorage {
            is_percpu,
            value: map.value.clone(),
            cells: cells.map_err(|_| Errno::ENOMEM)?,
        })
    }
}

impl MapOperations for CgroupStorage {
    fn find<'g>(&'g self, _: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        let ValueOf::Local(cpu) = what else {
            return None;
        };
        let (all, one) = (self.cells.as_slice(), self.value.cells());
        let copy = match self.is_percpu {
            true => cpu as usize % (all.len() / one),
            false => 0,
        };
        let cells = &all[copy * one..(copy + 1) * one];
        Some(CellSlice::new(cells, self.value.size))
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::EINVAL)
    }
}

impl SyscallOperations for CgroupStorage {
    fn reset(&self) {
        let zeros = vec![0; self.cells.as_slice().len() * 8];
        self.cells.slice(0, zeros.len()).write(0, &zeros);
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOENT)
    }

    fn store(&self, _: &[u8], _: &[u8], flags: u64, _: &dyn Resources) -> Result {
        let is_known = match self.is_percpu {
            true => flags == 0 || flags == EXIST,
            false => flags & !(LOCK | EXIST) == 0,
        };
        Err(match is_known {
            true => Errno::ENOENT,
            false => Errno::EINVAL,
        })
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::ENOENT)
    }
}
