//! `perf_event_array`: perf buffers by index, usually by CPU.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spec::{Errno, Result};
use vm::MapOperations;

use super::resources::Resources;
use super::slots::{self, Slots};
use super::{Definition, SyscallOperations};

/// Buffers that programs write records to.
#[derive(Debug)]
pub(super) struct PerfEventArray {
    slots: Slots<PerfBuffer>,
}

impl PerfEventArray {
    pub(super) fn new(map: &Definition) -> Result<PerfEventArray> {
        Ok(PerfEventArray {
            slots: Slots::new(map.params.max_entries)?,
        })
    }
}

impl MapOperations for PerfEventArray {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        self.slots.delete(key)
    }

    fn perf_output(&self, index: u32, cpu: u32, record: &[u8]) -> Result {
        let key = index.to_le_bytes();
        let index = self.slots.index(&key).ok_or(Errno::E2BIG)?;
        let buffer = self.slots.get(index).ok_or(Errno::ENOENT)?;
        buffer.write(cpu, record)
    }
}

impl SyscallOperations for PerfEventArray {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.slots.index_to_store(key, flags, 0)?;
        let buffer = resources.perf_buffer(slots::number(value)?);
        self.slots.set(index, Some(buffer.ok_or(Errno::EBADF)?));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.slots.next_key(key, next)
    }
}

/// Records that programs wrote for the host, up to a number of bytes; what does not fit is
/// counted.
#[derive(Debug)]
pub struct PerfBuffer {
    /// CPU whose programs may write to it.
    cpu: u32,
    capacity: usize,
    state: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    waiting: VecDeque<Box<[u8]>>,
    bytes: usize,
    lost: u64,
}

impl PerfBuffer {
    /// An empty buffer for programs on a CPU.
    pub fn new(cpu: u32, capacity: usize) -> PerfBuffer {
        PerfBuffer {
            cpu,
            capacity,
            state: Mutex::default(),
        }
    }

    /// Adds a record of a program on a CPU. EOPNOTSUPP if the buffer is another CPU's,
    /// ENOSPC if the record does not fit.
    pub fn write(&self, cpu: u32, record: &[u8]) -> Result {
        Errno::EOPNOTSUPP.when(cpu != self.cpu)?;
        let mut records = self.records();
        if records.bytes + record.len() > self.capacity {
            records.lost += 1;
            return Err(Errno::ENOSPC);
        }
        records.bytes += record.len();
        records.waiting.push_back(record.into());
        Ok(())
    }

    /// Takes the oldest record.
    pub fn read(&self) -> Option<Box<[u8]>> {
        let mut records = self.records();
        let record = records.waiting.pop_front()?;
        records.bytes -= record.len();
        Some(record)
    }

    /// Records that did not fit.
    pub fn lost(&self) -> u64 {
        self.records().lost
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // The list is whole after every step, so a panic elsewhere does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
