//! Descriptions of kernels, for which objects are linked and programs verified.

pub use crate::kernel_image::{ImageFault, KernelImage};
pub use spec::kernel::{
    Features, InvalidPrivileges, InvalidVersion, Kernel, KernelConfig, KernelField, KernelVersion,
    Mitigations, Module, Privileges, Source, SymbolAddress, SymbolTable, Symbols,
};
pub use spec::since::newest_in;
pub use sys::kernel::{read_config, running};

/// The built-in description of Linux 6.18 for x86-64, without modules. It is made once; each call
/// returns a clone, which shares its data.
#[cfg(feature = "kernel-data")]
pub fn linux_6_18() -> Kernel {
    static KERNEL: std::sync::OnceLock<Kernel> = std::sync::OnceLock::new();
    KERNEL.get_or_init(kernel_data::linux_6_18).clone()
}

/// Bit operations, which programs call as kernel functions.
pub mod bits {
    pub use spec::bits::{BitOp, HEADER, MODULE, header};
}
