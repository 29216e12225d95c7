//! Descriptions of kernels, for which objects are linked and programs verified.
//!
//! ```
//! use beebox::internal::kernel;
//!
//! assert_eq!(kernel::linux_6_18().version().map(|version| version.to_string()).as_deref(), Some("6.18.0"));
//! let missing = kernel::open("no-such-directory");
//! assert!(missing.is_err_and(|error| error.to_string().starts_with("no-such-directory: ")));
//! ```

pub use crate::internal::kernel::{Kernel, KernelVersion};
#[cfg(feature = "kernel-data")]
pub use crate::internal::kernel::{
    files::{KernelFileError, open, running_with_registry as running},
    linux_6_18,
};
