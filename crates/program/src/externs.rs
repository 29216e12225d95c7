//! Extern symbols (`__ksym`, `__kconfig`): names, types and resolution.

use btf::TypeId;

/// Index of an extern symbol of a program or object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternId(pub u32);

/// Helper number of a call that replaces a missing kfunc, minus the index of the extern.
pub const KFUNC_POISON: i32 = 2_002_000_000;
/// Helper number of a call that replaces a map that is not created, minus the index of the map.
pub const MAP_POISON: i32 = 2_001_000_000;

/// Helper number of a call that replaces a failed CO-RE relocation.
pub const CORE_POISON: i32 = 0xbad_2310;

/// An extern symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternSymbol {
    /// Name.
    pub name: String,
    /// BTF id of the variable or function, in the program's BTF.
    pub type_id: TypeId,
    /// True if the symbol is weak: it may be missing.
    pub is_weak: bool,
    /// Kind of symbol.
    pub kind: ExternSymbolKind,
    /// Resolution in the kernel.
    pub resolution: ExternResolution,
}

/// Kind of an extern symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternSymbolKind {
    /// A value of the kernel's configuration, in the map `.kconfig`.
    Kconfig,
    /// A typeless ksym, used by its address.
    Address,
    /// A kernel variable of this type in the program's BTF.
    Variable(TypeId),
    /// A kfunc of this prototype in the program's BTF.
    Kfunc(TypeId),
}

/// Resolution of an extern symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternResolution {
    /// Unresolved: the symbol is weak and the kernel lacks it.
    #[default]
    Missing,
    /// Unknown: the symbols of the kernel are not known.
    Unknown,
    /// A value in the map `.kconfig`.
    Kconfig,
    /// An address.
    Address(u64),
    /// A variable or function of the kernel's BTF.
    Btf {
        /// BTF id.
        id: TypeId,
        /// Module whose BTF contains the id: 0 is vmlinux, n is entry n - 1 of the
        /// program's modules.
        module: u16,
    },
}

impl ExternSymbol {
    /// Number of the module that defines the symbol; `None` if it did not resolve to a
    /// BTF id.
    pub fn module(&self) -> Option<u16> {
        match self.resolution {
            ExternResolution::Btf { module, .. } => Some(module),
            ExternResolution::Missing
            | ExternResolution::Unknown
            | ExternResolution::Kconfig
            | ExternResolution::Address(_) => None,
        }
    }
}
