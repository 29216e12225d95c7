//! `stack_trace`: stack traces by identifier. No helper here records a stack, so it stays
//! empty.

use spec::Errno;

use super::resources::Resources;
use super::{Definition, Operations, flags};

/// Places for stack traces.
#[derive(Debug)]
pub(super) struct StackTrace {
    /// Identifiers, from 0: a power of two.
    buckets: u32,
}

/// Bytes of an address, and of a build id with an offset (`struct bpf_stack_build_id`).
const ADDRESS: u32 = 8;
const BUILD_ID: u32 = 32;

/// Most frames of a stack (`kernel.perf_event_max_stack`).
const MOST_FRAMES: u32 = 127;

/// Most entries.
const MOST_ENTRIES: u32 = 1 << 31;

impl StackTrace {
    pub(super) fn new(map: &Definition) -> Result<StackTrace, Errno> {
        if map.params.max_entries > MOST_ENTRIES {
            return Err(Errno::E2BIG);
        }
        Ok(StackTrace {
            buckets: map.params.max_entries.next_power_of_two(),
        })
    }

    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        let bits = params.flags.0;
        let allowed = flags::NUMA_NODE | flags::RDONLY | flags::WRONLY | flags::STACK_BUILD_ID;
        let frame = match bits & flags::STACK_BUILD_ID {
            0 => ADDRESS,
            _ => BUILD_ID,
        };
        if bits & !allowed != 0
            || params.max_entries == 0
            || params.key_size != 4
            || params.value_size == 0
            || !params.value_size.is_multiple_of(frame)
            || params.value_size / frame > MOST_FRAMES
        {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

impl Operations for StackTrace {
    fn delete(&self, _: u32, key: &[u8]) -> Result<(), Errno> {
        let id = super::slots::number(key)?;
        Err(match id < self.buckets {
            true => Errno::ENOENT,
            false => Errno::E2BIG,
        })
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64, _: &dyn Resources) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn take(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }
}
