//! Seccomp filters of processes, on systems other than Linux, where there are none.

use isa::classic::SockFilter;

use crate::Errno;

/// ENOSYS.
pub fn seccomp_filters(_: i32) -> Result<Vec<Vec<SockFilter>>, Errno> {
    Err(Errno::ENOSYS)
}
