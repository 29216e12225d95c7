//! Descriptions of kernels, for which objects are linked and programs verified.

#[cfg(feature = "decompress")]
pub use crate::internal::kernel_image::{ImageFault, KernelImage};
pub use spec::kernel::{
    Features, InvalidPrivileges, InvalidVersion, Kernel, KernelConfig, KernelField, KernelVersion,
    Mitigations, Module, Privileges, Source, SymbolAddress, SymbolTable, Symbols,
};
pub use spec::since::newest_in;
pub use sys::kernel::{read_config, running};

/// The built-in description of Linux 6.18 for x86-64 as Debian configures it, without modules. It is
/// made once; each call returns a clone, which shares its data.
#[cfg(feature = "kernel-data")]
pub fn linux_6_18() -> Kernel {
    static KERNEL: std::sync::OnceLock<Kernel> = std::sync::OnceLock::new();
    KERNEL.get_or_init(kernel_data::linux_6_18).clone()
}

/// The built-in description of Linux 6.18 for x86-64 in a minimal configuration: without modules,
/// kprobes, trampolines and sched_ext. It is made once; each call returns a clone, which shares its
/// data.
#[cfg(feature = "kernel-data")]
pub fn linux_6_18_minimal() -> Kernel {
    static KERNEL: std::sync::OnceLock<Kernel> = std::sync::OnceLock::new();
    KERNEL.get_or_init(kernel_data::linux_6_18_minimal).clone()
}

/// Kernels that files and directories describe, and the running one with the built-in registry of
/// helpers, contexts and kfuncs.
///
/// ```
/// let missing = beebox::internal::kernel::files::open("no-such-directory");
/// assert!(missing.is_err_and(|error| error.to_string().starts_with("no-such-directory: ")));
/// ```
#[cfg(feature = "kernel-data")]
pub mod files {
    pub use crate::internal::kernel_files::{
        BTF_FILES, KernelFileError, module_name, open, running_with_registry, with_btf_file,
        with_config_file, with_module_files, with_version_of_types,
    };
}

/// Bit operations, which programs call as kernel functions.
pub mod bits {
    pub use spec::bits::{BitOp, HEADER, MODULE, header};
}
