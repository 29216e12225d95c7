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
#[cfg(feature = "kernel-data")]
pub use kernel_presets::{Preset, UnknownPreset, select};
pub use spec::kernel::{BadRelease, KernelVersion, Release};

/// Kernels by name: those whose series are cargo features (`kernel-6.12`, or `all-kernels`), and
/// Linux 6.18.
///
/// ```
/// use beebox::Kernel;
/// use beebox::kernel::Presets as _;
///
/// let kernel = Kernel::preset("6.18")?;
/// assert_eq!(kernel.version().unwrap().to_string(), "6.18.44");
/// for preset in Kernel::presets() {
///     let kernel = preset.kernel();
///     println!("{}: compared with a kernel: {}", kernel.name(), preset.is_compared());
/// }
/// assert!(Kernel::preset("2.6").unwrap_err().to_string().contains("6.18.44"));
/// # Ok::<(), beebox::kernel::UnknownPreset>(())
/// ```
#[cfg(feature = "kernel-data")]
pub trait Presets {
    /// The kernel of a version (`6.12.117`), of a series (`6.12`), or of a distribution (`debian-13`).
    ///
    /// # Errors
    /// [`UnknownPreset`]: none of these names is built in; the error lists those that are.
    fn preset(name: &str) -> Result<Kernel, UnknownPreset>;

    /// Every kernel that is built in, oldest first, as a preset: its kernel is made when it is asked for.
    fn presets() -> &'static [Preset];

    /// The kernel of each series with long-term support, oldest first.
    fn all_lts() -> Vec<Kernel>;
}

#[cfg(feature = "kernel-data")]
impl Presets for Kernel {
    fn preset(name: &str) -> Result<Kernel, UnknownPreset> {
        let preset = Preset::named(name).ok_or_else(|| UnknownPreset(name.to_owned()))?;
        Ok(preset.kernel())
    }

    fn presets() -> &'static [Preset] {
        Preset::all()
    }

    fn all_lts() -> Vec<Kernel> {
        let lts = select("lts").unwrap_or_default();
        lts.into_iter().map(Preset::kernel).collect()
    }
}

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
