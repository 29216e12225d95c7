//! Descriptions of kernels, for which objects are linked and programs verified: by name, of files, or the
//! running one ([`Kernels`]).

#[cfg(feature = "kernel-data")]
use std::path::Path;

#[cfg(feature = "kernel-data")]
use crate::failure::{Cause, Error};
#[cfg(feature = "kernel-data")]
use crate::internal::kernel::{self, Kernel, files};
#[cfg(feature = "kernel-data")]
use kernel_presets::{UnknownPreset, select};

#[cfg(feature = "kernel-data")]
pub use kernel_presets::Preset;
pub use spec::kernel::{KernelVersion, Release};

/// Functions of [`Kernel`] that make one: by name, those whose series are cargo features (`kernel-6.12`,
/// or `all-kernels`) and Linux 6.18; of files; or the running one.
///
/// ```
/// use beebox::Kernel;
/// use beebox::kernel::Kernels as _;
///
/// let kernel = Kernel::preset("6.18")?;
/// assert_eq!(kernel.version().unwrap().to_string(), "6.18.44");
/// for preset in Kernel::presets() {
///     let kernel = preset.kernel();
///     println!("{}: compared with a kernel: {}", kernel.name(), preset.is_compared());
/// }
/// assert!(Kernel::preset("2.6").unwrap_err().to_string().contains("6.18.44"));
/// let missing = Kernel::open("no-such-directory").unwrap_err();
/// assert!(missing.to_string().starts_with("no-such-directory: "));
/// # Ok::<(), beebox::Error>(())
/// ```
#[cfg(feature = "kernel-data")]
pub trait Kernels: Sized {
    /// The kernel of a version (`6.12.117`), of a series (`6.12`), of a distribution (`debian-13`), or
    /// `6.18-minimal`: Linux 6.18 without modules, kprobes, trampolines and sched_ext. `6.18` is as
    /// Debian configures it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): none of these names is built in; the error
    /// lists the versions that are.
    fn preset(name: &str) -> Result<Self, Error>;

    /// Every kernel that is built in but `6.18-minimal`, oldest first, as a preset: its kernel is made
    /// when it is asked for.
    fn presets() -> &'static [Preset];

    /// The presets that a word means, oldest first: `all` (one of each series), `lts` (those with
    /// long-term support), a range of series (`5.10-`, `6.1-6.12`, `-6.1`), or the one of a name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): the word means none that is built in.
    fn select(word: &str) -> Result<Vec<&'static Preset>, Error>;

    /// The kernel of each series with long-term support, oldest first.
    fn all_lts() -> Vec<Self>;

    /// The kernel that a file of BTF describes (`vmlinux`, `/sys/kernel/btf/vmlinux`), or a directory
    /// with files of its BTF, configuration, symbols and modules. Helpers, contexts and kfuncs are
    /// those of the built-in kernel.
    ///
    /// # Errors
    /// [`ErrorKind::File`](crate::ErrorKind::File) or [`ErrorKind::Format`](crate::ErrorKind::Format) if
    /// a file cannot be read or is not of its kind.
    fn open(path: impl AsRef<Path>) -> Result<Self, Error>;

    /// The running kernel, with the helpers, contexts and kfuncs of the built-in one.
    ///
    /// # Errors
    /// [`ErrorKind::File`](crate::ErrorKind::File) if its BTF cannot be read.
    fn running() -> Result<Self, Error>;
}

#[cfg(feature = "kernel-data")]
impl Kernels for Kernel {
    fn preset(name: &str) -> Result<Kernel, Error> {
        if name == "6.18-minimal" {
            return Ok(kernel::linux_6_18_minimal());
        }
        let preset = Preset::named(name);
        let preset = preset.ok_or_else(|| Cause::Preset(UnknownPreset(name.to_owned())))?;
        Ok(preset.kernel())
    }

    fn presets() -> &'static [Preset] {
        Preset::all()
    }

    fn select(word: &str) -> Result<Vec<&'static Preset>, Error> {
        select(word).map_err(|error| Cause::Preset(error).into())
    }

    fn all_lts() -> Vec<Kernel> {
        let lts = select("lts").unwrap_or_default();
        lts.into_iter().map(Preset::kernel).collect()
    }

    fn open(path: impl AsRef<Path>) -> Result<Kernel, Error> {
        files::open(path).map_err(|error| Cause::Kernel(error).into())
    }

    fn running() -> Result<Kernel, Error> {
        let path = Path::new("/sys/kernel/btf/vmlinux");
        files::running_with_registry().map_err(|error| Cause::File(path.to_owned(), error).into())
    }
}
