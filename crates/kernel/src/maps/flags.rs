//! Flags of maps and of operations on their elements (`include/uapi/linux/bpf.h`).

use spec::maps::MapFlags;

/// Update only what exists not.
pub(super) const NOEXIST: u64 = 1;
/// Update only what exists.
pub(super) const EXIST: u64 = 2;
/// Copy under the value's spin lock.
pub(super) const LOCK: u64 = 4;

pub(super) const NO_PREALLOC: u32 = MapFlags::NO_PREALLOC.0;
pub(super) const ZERO_SEED: u32 = MapFlags::ZERO_SEED.0;
pub(super) const INNER_MAP: u32 = MapFlags::INNER_MAP.0;
pub(super) const SEGV_ON_FAULT: u32 = MapFlags::SEGV_ON_FAULT.0;
pub(super) const NO_USER_CONV: u32 = MapFlags::NO_USER_CONV.0;
pub(super) const RDONLY: u32 = MapFlags::RDONLY.0;
pub(super) const WRONLY: u32 = MapFlags::WRONLY.0;
