//! Error numbers of Linux that the checks of BTF and libbpf return.

pub(crate) const ENOENT: i32 = 2;
pub(crate) const E2BIG: i32 = 7;
pub(crate) const EFAULT: i32 = 14;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ELOOP: i32 = 40;
/// Not in the uapi headers.
pub(crate) const ENOTSUPP: i32 = 524;
