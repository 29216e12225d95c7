//! Extern symbols: names that an object expects of the kernel (`__ksym`, `__kconfig`),
//! their types, and what they resolved to.

use btf::TypeId;

/// Index of an extern symbol of a program or object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternId(pub u32);

/// An extern symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternSymbol {
    /// Name.
    pub name: String,
    /// BTF id of the variable or function, in the program's BTF.
    pub type_id: TypeId,
    /// True if it may be missing.
    pub is_weak: bool,
    /// Kind of symbol.
    pub kind: ExternSymbolKind,
    /// What it resolved to.
    pub resolution: ExternResolution,
}

/// Kind of an extern symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternSymbolKind {
    /// A value of the kernel's configuration, in the map of such values.
    Kconfig,
    /// A symbol without a type, used by its address.
    Address,
    /// A kernel variable of this type in the program's BTF.
    Variable(TypeId),
    /// A kfunc of this prototype in the program's BTF.
    Kfunc(TypeId),
}

/// What an extern symbol resolved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternResolution {
    /// Nothing: the kernel lacks it and the symbol is weak.
    #[default]
    Missing,
    /// A value in the map of configuration values.
    Kconfig,
    /// An address.
    Address(u64),
    /// A variable or function of the kernel's BTF.
    Btf {
        /// BTF id.
        id: TypeId,
        /// Module that has the id: 0 is vmlinux, n is entry n - 1 of the program's
        /// modules.
        module: u16,
    },
}

impl ExternSymbol {
    /// Number of the module that has the symbol; `None` if it resolved to no BTF id.
    pub fn module(&self) -> Option<u16> {
        match self.resolution {
            ExternResolution::Btf { module, .. } => Some(module),
            ExternResolution::Missing
            | ExternResolution::Kconfig
            | ExternResolution::Address(_) => None,
        }
    }
}
