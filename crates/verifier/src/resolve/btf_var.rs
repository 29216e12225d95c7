//! Variables and functions of the kernel by BTF id (`check_pseudo_btf_id`).

use btf::{Btf, Kind, Shape, TypeId};

use spec::behaviour::Behaviour;
use spec::kernel::SymbolAddress;
use spec::kfuncs::KernelFunction;

use crate::input::Input;
use crate::log::Sink;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::{Result, Stop};

/// Result of a load of the address of `id` (`check_pseudo_btf_id`, `__check_pseudo_btf_id`).
#[doc(alias = "check_pseudo_btf_id")]
#[doc(alias = "__check_pseudo_btf_id")]
pub(super) fn resolve(
    input: &Input<'_>,
    env: &mut Sink<'_>,
    id: u32,
    module: i32,
) -> Result<RegState> {
    let index = usize::try_from(module)
        .ok()
        .and_then(|at| at.checked_sub(1));
    let there = index.and_then(|at| input.modules.get(at));
    if there.is_some_and(|module| KernelFunction::from_module(module, id as i32).is_some()) {
        return Ok(memory(0));
    }
    if module != 0 {
        return Err(Stop::unsupported("variable of a kernel module"));
    }
    let Some(vmlinux) = input.vmlinux else {
        return Err(Stop::unsupported("kernel variable without vmlinux BTF"));
    };
    let Some(ty) = vmlinux.get(TypeId(id)) else {
        return Err(refuse!(env => Program::InvalidBtfId { id: id as i32 }));
    };
    let var = match ty.shape() {
        Shape::Var(var) => Some(var),
        Shape::Func(_) if input.rules.has(Behaviour::KsymFunctions) => None,
        _ => {
            return Err(refuse!(env => Program::NotVariable { id: id as i32 }));
        }
    };
    let name = ty.name().to_string_lossy();
    let address = input.symbols.map(|symbols| symbols.address(&name));
    refuse_if!(address == Some(SymbolAddress::Missing), env => Program::UnknownSymbol { name });
    let Some(var) = var else {
        return Ok(memory(0));
    };
    let object = RegKind::BtfId {
        ty: TypeRef::vmlinux(var.ty.0),
    };
    if is_percpu(vmlinux, TypeId(id)) {
        return Ok(RegState::pointer(object, TypeFlags::MEM_PERCPU));
    }
    let target = vmlinux.skip_modifiers(var.ty).unwrap_or(TypeId::VOID);
    if matches!(vmlinux.at(target).kind(), Kind::Struct | Kind::Union) {
        return Ok(RegState::pointer(object, TypeFlags::NONE));
    }
    match vmlinux.size_of(target) {
        Some(size) => Ok(memory(size)),
        None => {
            let name = vmlinux.at(target).name().to_string_lossy().into_owned();
            Err(refuse!(env => Program::UnsizedVariable { name }))
        }
    }
}

fn memory(size: u32) -> RegState {
    RegState::pointer(RegKind::memory(size), TypeFlags::MEM_RDONLY)
}

/// True if the variable exists once for each CPU (`find_btf_percpu_datasec`).
#[doc(alias = "find_btf_percpu_datasec")]
fn is_percpu(vmlinux: &Btf<'_>, var: TypeId) -> bool {
    vmlinux
        .datasecs()
        .filter(|section| section.name() == ".data..percpu")
        .any(|section| match section.shape() {
            Shape::Datasec(section) => section.vars().any(|placed| placed.var == var),
            _ => false,
        })
}
