//! Descriptions of kernels, for which objects are linked and programs verified.

pub use crate::kernel_image::{ImageFault, KernelImage};
pub use spec::kernel::{
    Features, InvalidPrivileges, InvalidVersion, Kernel, KernelConfig, KernelField, KernelVersion,
    Mitigations, Module, Privileges, Source, SymbolAddress, SymbolTable, Symbols,
};
pub use spec::since::newest_in;
pub use sys::kernel::{read_config, running};

/// Bit operations, which programs call as kernel functions.
pub mod bits {
    pub use spec::bits::{BitOp, HEADER, MODULE, header};
}
