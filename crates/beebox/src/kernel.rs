//! Descriptions of kernels, for which objects are linked and programs verified.

pub use spec::kernel::{
    Features, Kernel, KernelConfig, KernelField, KernelVersion, Mitigations, Module, Privileges,
    Source, SymbolAddress, SymbolTable, Symbols,
};
pub use sys::kernel::running;
