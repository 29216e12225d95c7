//! Flags of maps and of operations on their elements (`include/uapi/linux/bpf.h`).

use spec::maps::MapFlags;

/// Update only what exists not.
pub(super) const NOEXIST: u64 = 1;
/// Update only what exists.
pub(super) const EXIST: u64 = 2;
/// Copy under the value's spin lock.
pub(super) const LOCK: u64 = 4;

pub(super) const NO_PREALLOC: u32 = MapFlags::NO_PREALLOC.0;
pub(super) const NO_COMMON_LRU: u32 = MapFlags::NO_COMMON_LRU.0;
pub(super) const NUMA_NODE: u32 = MapFlags::NUMA_NODE.0;
pub(super) const ZERO_SEED: u32 = MapFlags::ZERO_SEED.0;
pub(super) const MMAPABLE: u32 = MapFlags::MMAPABLE.0;
pub(super) const INNER_MAP: u32 = MapFlags::INNER_MAP.0;
pub(super) const PRESERVE_ELEMS: u32 = MapFlags::PRESERVE_ELEMS.0;
pub(super) const STACK_BUILD_ID: u32 = MapFlags::STACK_BUILD_ID.0;
pub(super) const CLONE: u32 = MapFlags::CLONE.0;
pub(super) const SEGV_ON_FAULT: u32 = MapFlags::SEGV_ON_FAULT.0;
pub(super) const NO_USER_CONV: u32 = MapFlags::NO_USER_CONV.0;
pub(super) const TOKEN_FD: u32 = MapFlags::TOKEN_FD.0;
pub(super) const RDONLY: u32 = MapFlags::RDONLY.0;
pub(super) const WRONLY: u32 = MapFlags::WRONLY.0;
const PROG_ACCESS: u32 = MapFlags::RDONLY_PROG.0 | MapFlags::WRONLY_PROG.0;

/// Flags that limit who may read and write.
pub(super) const ACCESS: u32 = RDONLY | WRONLY | PROG_ACCESS;

/// True unless programs may neither read nor write.
pub(super) fn access_is_consistent(flags: u32) -> bool {
    flags & PROG_ACCESS != PROG_ACCESS
}
