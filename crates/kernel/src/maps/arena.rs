//! `arena`: sparse memory that programs and the host share (`kernel/bpf/arena.c` of Linux).
//! Programs allocate its pages by kfuncs, of which none runs here, so an arena has none.

use spec::Errno;

use super::{Definition, Operations, flags};

/// An arena without pages.
#[derive(Debug)]
pub(super) struct Arena;

/// Bytes of a page, and of the largest arena.
const PAGE: u64 = 4096;
const LARGEST: u64 = 1 << 32;

impl Arena {
    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        let bits = params.flags.0;
        let allowed = flags::MMAPABLE | flags::SEGV_ON_FAULT | flags::NO_USER_CONV;
        if params.key_size != 0
            || params.value_size != 0
            || params.max_entries == 0
            || bits & flags::MMAPABLE == 0
            || bits & !allowed != 0
            || !params.extra.is_multiple_of(PAGE)
        {
            return Err(Errno::EINVAL);
        }
        let bytes = u64::from(params.max_entries) * PAGE;
        if bytes > LARGEST {
            return Err(Errno::E2BIG);
        }
        // The addresses of the host differ in their lower half only.
        let last = params.extra.wrapping_add(bytes - 1);
        if params.extra >> 32 != last >> 32 {
            return Err(Errno::ERANGE);
        }
        Ok(())
    }
}

impl Operations for Arena {
    fn update(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
