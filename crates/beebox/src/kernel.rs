//! Descriptions of kernels, for which objects are linked and programs verified.
//!
//! ```
//! use beebox::kernel;
//!
//! assert_eq!(kernel::linux_6_18().version().unwrap().to_string(), "6.18.44");
//! let missing = kernel::open("no-such-directory").unwrap_err();
//! assert!(missing.to_string().starts_with("no-such-directory: "));
//! ```

#[cfg(feature = "kernel-data")]
use std::path::Path;

#[cfg(feature = "kernel-data")]
use crate::failure::{Cause, Error};
#[cfg(feature = "kernel-data")]
use crate::internal::kernel::{Kernel, files};

#[cfg(feature = "kernel-data")]
pub use crate::internal::kernel::{linux_6_18, linux_6_18_minimal};
pub use spec::kernel::KernelVersion;

/// The kernel that a file of BTF describes (`vmlinux`, `/sys/kernel/btf/vmlinux`), or a directory
/// with files of its BTF, configuration, symbols and modules. Helpers, contexts and kfuncs are
/// those of the built-in kernel.
///
/// # Errors
/// [`ErrorKind::File`](crate::ErrorKind::File) if a file cannot be read or is not of its kind.
#[cfg(feature = "kernel-data")]
pub fn open(path: impl AsRef<Path>) -> Result<Kernel, Error> {
    files::open(path).map_err(|error| Cause::Kernel(error).into())
}

/// The running kernel, with the helpers, contexts and kfuncs of the built-in one.
///
/// # Errors
/// [`ErrorKind::File`](crate::ErrorKind::File) if its BTF cannot be read.
#[cfg(feature = "kernel-data")]
pub fn running() -> Result<Kernel, Error> {
    let path = Path::new("/sys/kernel/btf/vmlinux");
    files::running_with_registry().map_err(|error| Cause::File(path.to_owned(), error).into())
}
