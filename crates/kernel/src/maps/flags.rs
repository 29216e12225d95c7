//! Flags of operations on their elements (`include/uapi/linux/bpf.h`).

/// Update only what exists not.
pub(super) const NOEXIST: u64 = 1;
/// Update only what exists.
pub(super) const EXIST: u64 = 2;
/// Copy under the value's spin lock.
pub(super) const LOCK: u64 = 4;
