//! Prototypes of kernel functions that native code can call (`btf_distill_func_proto`):
//! which arguments and results fit into registers.

use btf::{Btf, Kind, Shape, Type, TypeId};

use crate::log::Sink;
use crate::{Result, refuse};

/// Most arguments of a kernel function (`MAX_BPF_FUNC_ARGS`).
const MAX_ARGUMENTS: usize = 12;

/// Largest argument that is passed by value, in bytes.
const MAX_ARGUMENT_SIZE: u32 = 16;

/// Checks the prototype of a kernel function that a program calls (`btf_distill_func_proto`).
///
/// # Errors
/// EINVAL for too many or variable arguments, and for arguments or a result that do not fit.
#[doc(alias = "btf_distill_func_proto")]
pub(crate) fn check_func_proto(
    pass: &mut Sink<'_>,
    types: &Btf<'_>,
    func: Type<'_>,
) -> Result<u32> {
    let name = func.name();
    let Shape::Func(shape) = func.shape() else {
        return Ok(0);
    };
    let Shape::Proto(proto) = types.at(shape.proto).shape() else {
        return Err(refuse!(pass => Program::KfuncPrototype { id: func.id().0 }));
    };
    let params: Vec<TypeId> = proto.params().map(|param| param.ty).collect();
    if params.len() > MAX_ARGUMENTS {
        return Err(refuse!(pass => Program::KfuncArguments { name, count: params.len() }));
    }
    let (size, kind) = size_of(types, proto.returns);
    let Some(returned) = size.filter(|_| !matches!(kind, Kind::Struct | Kind::Union)) else {
        return Err(refuse!(pass => Program::KfuncReturn { name, kind: kind.name() }));
    };
    for (index, &param) in params.iter().enumerate() {
        if param.is_void() && index + 1 == params.len() {
            return Err(refuse!(pass => Program::KfuncVariadic { name }));
        }
        match size_of(types, param) {
            (Some(0), _) => {
                return Err(refuse!(pass => Program::KfuncVoidArgument { name }));
            }
            (Some(size), _) if size <= MAX_ARGUMENT_SIZE => {}
            (_, kind) => {
                return Err(refuse!(pass => Program::KfuncArgument {
                    name, index, kind: kind.name()
                }));
            }
        }
    }
    Ok(returned)
}

/// Bytes of a value as an argument, and its kind below modifiers; `None` for what is no number,
/// pointer or structure, 0 for void (`__get_type_size`).
#[doc(alias = "__get_type_size")]
fn size_of(types: &Btf<'_>, id: TypeId) -> (Option<u32>, Kind) {
    let id = types.skip_modifiers(id).unwrap_or(TypeId::VOID);
    let ty = types.at(id);
    let size = match ty.shape() {
        Shape::Void => Some(0),
        Shape::Ptr(_) | Shape::Int(_) | Shape::Enum(_) | Shape::Struct(_) | Shape::Union(_) => {
            types.size_of(id)
        }
        _ => None,
    };
    (size, ty.kind())
}
