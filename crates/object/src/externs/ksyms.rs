//! ksym externs: kernel symbols by address, variables and functions by BTF.
//!
//! A typeless ksym (`extern const void name __ksym`) is looked up in the symbols of the
//! kernel and becomes an address. A typed variable or kfunc is looked up in the BTF of
//! vmlinux, then of the modules, and becomes a BTF id; its type must be compatible. A
//! missing symbol is an error unless it is weak.

use btf::core::{are_compatible, essential_name};
use btf::{Btf, Kind, Type, TypeId};

use program::ExternResolution;

use super::{Extern, ExternFault, ExternKind, Externs};
use spec::Kernel;
use spec::kernel::SymbolAddress;

/// Resolves the ksym externs into `found`, which has an element for each extern.
pub(super) fn resolve(
    externs: &Externs,
    btf: &Btf<'_>,
    kernel: &Kernel,
    found: &mut [ExternResolution],
) -> Result<(), (usize, ExternFault)> {
    // Addresses are resolved before BTF ids, as in libbpf. If libbpf reads symbols at
    // all, it looks up typed variables there too: one that lacks BTF in the kernel then
    // gets type id 0, which the kernel refuses.
    let needs_symbols = externs
        .iter()
        .any(|known| known.kind == ExternKind::Address);
    for (index, known) in externs.iter().enumerate().filter(|_| needs_symbols) {
        let is_typed = matches!(known.kind, ExternKind::Variable(_));
        if externs.is_defined(known) {
            continue;
        }
        if is_typed || known.kind == ExternKind::Address {
            let address = address(known, kernel).map_err(|fault| (index, fault))?;
            found[index] = match address {
                ExternResolution::Address(_) if is_typed => ExternResolution::Btf {
                    id: TypeId::VOID,
                    module: 0,
                },
                ExternResolution::Unknown if is_typed => ExternResolution::Missing,
                address => address,
            };
        }
    }
    for (index, known) in externs.iter().enumerate() {
        if externs.is_defined(known) {
            continue;
        }
        let wanted = match known.kind {
            ExternKind::Variable(ty) => Wanted {
                kind: Kind::Var,
                ty,
            },
            ExternKind::Function(ty) => Wanted {
                kind: Kind::Func,
                ty,
            },
            ExternKind::Config(_) | ExternKind::Address => continue,
        };
        let resolution = wanted.find(known, btf, kernel);
        match resolution.map_err(|fault| (index, fault))? {
            ExternResolution::Missing => {}
            resolution => found[index] = resolution,
        }
    }
    Ok(())
}

fn address(known: &Extern, kernel: &Kernel) -> Result<ExternResolution, ExternFault> {
    let Some(symbols) = kernel.symbols() else {
        return Ok(ExternResolution::Unknown);
    };
    match symbols.address(&known.name) {
        SymbolAddress::Missing => Ok(ExternResolution::Missing),
        SymbolAddress::At(address) => Ok(ExternResolution::Address(address)),
        SymbolAddress::Several(first, second) => Err(ExternFault::Ambiguous { first, second }),
    }
}

/// A typed variable or kfunc to resolve.
struct Wanted {
    kind: Kind,
    /// Type of the variable, or prototype, in the object.
    ty: TypeId,
}

impl Wanted {
    fn find(
        &self,
        known: &Extern,
        btf: &Btf<'_>,
        kernel: &Kernel,
    ) -> Result<ExternResolution, ExternFault> {
        let vmlinux = kernel.btf().ok_or(ExternFault::NoKernelTypes)?;
        // Functions have flavours, as types have: a suffix after three underscores.
        let name = match self.kind {
            Kind::Func => essential_name(known.name.as_bytes()),
            _ => known.name.as_bytes(),
        };
        let Some((types, there, module)) = self.locate(name, vmlinux, kernel) else {
            return match known.weak {
                true => Ok(ExternResolution::Missing),
                false => Err(ExternFault::Missing),
            };
        };
        let of_target = match there.referred() {
            Some(ty) if self.kind == Kind::Var => types.skip_modifiers(ty),
            other => other,
        };
        let of_target = of_target.ok_or(ExternFault::TooComplex)?;
        let fits = are_compatible((btf, self.ty), (types, of_target));
        match (fits, self.kind) {
            (Ok(true), _) => Ok(ExternResolution::Btf {
                id: there.id(),
                module,
            }),
            (_, Kind::Func) if known.weak => Ok(ExternResolution::Missing),
            (Err(_), _) => Err(ExternFault::TooComplex),
            (Ok(false), Kind::Func) => Err(ExternFault::OtherPrototype {
                module: module_name(kernel, module),
            }),
            (Ok(false), _) => Err(ExternFault::OtherType {
                expected: describe(btf.at(self.ty)),
                found: describe(types.at(of_target)),
            }),
        }
    }

    /// BTF that has the name, its type, and the module number.
    fn locate<'t>(
        &self,
        name: &[u8],
        vmlinux: &'t Btf<'static>,
        kernel: &'t Kernel,
    ) -> Option<(&'t Btf<'static>, Type<'t>, u16)> {
        let modules = kernel.modules().iter().map(|module| &*module.btf);
        let mut all = std::iter::once(vmlinux).chain(modules).zip(0..=u16::MAX);
        all.find_map(|(types, module)| {
            let id = types.find_all(self.kind, name).next()?.id();
            Some((types, types.at(id), module))
        })
    }
}

fn module_name(kernel: &Kernel, number: u16) -> Option<String> {
    let index = usize::from(number).checked_sub(1)?;
    let module = kernel.modules().get(index);
    module.map(|module| module.name.clone())
}

fn describe(ty: Type<'_>) -> String {
    format!("{} {}", ty.kind().name(), ty.name())
        .trim_end()
        .to_owned()
}
