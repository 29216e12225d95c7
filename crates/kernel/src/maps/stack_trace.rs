//! `stack_trace`: stack traces by identifier. No helper here records a stack, so it stays
//! empty.

use spec::{Errno, Result};
use vm::MapOperations;

use super::resources::Resources;
use super::{Definition, SyscallOperations};

/// Places for stack traces.
#[derive(Debug)]
pub(super) struct StackTrace {
    /// Identifiers, from 0: a power of two.
    buckets: u32,
}

impl StackTrace {
    pub(super) fn new(map: &Definition) -> StackTrace {
        StackTrace {
            buckets: map.params.max_entries.next_power_of_two(),
        }
    }
}

impl MapOperations for StackTrace {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let id = super::slots::number(key)?;
        Err(match id < self.buckets {
            true => Errno::ENOENT,
            false => Errno::E2BIG,
        })
    }
}

impl SyscallOperations for StackTrace {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOENT)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64, _: &dyn Resources) -> Result {
        Err(Errno::EINVAL)
    }

    fn take(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOENT)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::ENOENT)
    }
}
