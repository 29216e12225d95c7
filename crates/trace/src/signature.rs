//! What BTF and the instructions say of a function: parameters, what it returns, registers that it
//! reads; and numbers by their types.

use btf::{Btf, Kind, Shape, TypeId};
use isa::ebpf::{Insn, RegSet};
use program::Program;

/// A number as a value of a type; `None` for types that are no numbers.
pub(crate) fn typed_text(types: &Btf<'_>, ty: TypeId, number: u64) -> Option<String> {
    if ty.is_void() {
        return Some("nothing".to_owned());
    }
    let ty = types.skip_modifiers(ty)?;
    let bits = 8 * types.size_of(ty).filter(|size| (1..=8).contains(size))?;
    let unsigned = number << (64 - bits) >> (64 - bits);
    let signed = (number << (64 - bits)) as i64 >> (64 - bits);
    match types.get(ty)?.shape() {
        Shape::Int(int) if int.encoding.is_bool() => Some((unsigned != 0).to_string()),
        Shape::Int(int) if int.encoding.is_signed() => Some(signed.to_string()),
        Shape::Int(_) if unsigned <= 0xffff => Some(unsigned.to_string()),
        Shape::Int(_) => Some(format!("{unsigned:#x}")),
        Shape::Enum(of) => {
            let mut values = of.values();
            let found = values.find(|one| one.value == unsigned || one.value as i64 == signed);
            Some(match found {
                Some(one) => types.string(one.name).to_string(),
                None if of.signed => signed.to_string(),
                None => unsigned.to_string(),
            })
        }
        _ => None,
    }
}

/// The registers of arguments that the function at a slot reads before it writes them.
pub(crate) fn used(program: &Program, start: u32) -> RegSet {
    let insns = program.decode();
    let mut later = program.subprogs().iter().map(|subprog| subprog.start);
    let end = later.find(|slot| *slot > start);
    let end = end.map_or(insns.len(), |slot| slot as usize);
    let insns = insns.get(start as usize..end).unwrap_or_default();
    let (mut used, mut written) = (RegSet::EMPTY, RegSet::EMPTY);
    for insn in insns {
        // What a call reads depends on the function: it may be nothing.
        if !matches!(insn, Insn::Call(_) | Insn::CallReg { .. }) {
            used = used.union(insn.reads().without(written));
        }
        written = written.union(insn.writes());
    }
    used
}

/// The function at a slot by BTF, and its prototype.
pub(crate) fn declared(program: &Program, start: u32) -> Option<(btf::Func, btf::Proto<'_>)> {
    let types = program.btf()?;
    let mut functions = program.func_info().iter();
    let found = functions.find(|function| function.insn == start)?;
    let Shape::Func(function) = types.get(found.type_id)?.shape() else {
        return None;
    };
    match types.get(function.proto)?.shape() {
        Shape::Proto(proto) => Some((function, proto)),
        _ => None,
    }
}

/// Names and types of the parameters of the function at a slot.
pub(crate) fn parameters(program: &Program, start: u32) -> Vec<(String, TypeId)> {
    let (Some(types), Some((_, proto))) = (program.btf(), declared(program, start)) else {
        return Vec::new();
    };
    let parameters = proto.params();
    parameters
        .map(|parameter| (types.string(parameter.name).to_string(), parameter.ty))
        .collect()
}

/// A type in C.
pub(crate) fn type_name(types: &Btf<'_>, ty: TypeId) -> String {
    let Some(found) = types.get(ty).filter(|_| !ty.is_void()) else {
        return "void".to_owned();
    };
    let name = found.name();
    match (found.kind(), found.shape()) {
        (_, Shape::Ptr(of)) => {
            let of = type_name(types, of);
            match of.ends_with('*') {
                true => format!("{of}*"),
                false => format!("{of} *"),
            }
        }
        (_, Shape::Array(array)) => format!("{}[{}]", type_name(types, array.element), array.count),
        (Kind::Struct, _) => format!("struct {name}"),
        (Kind::Union, _) => format!("union {name}"),
        (Kind::Enum | Kind::Enum64, _) => format!("enum {name}"),
        (_, Shape::Const(of)) => format!("const {}", type_name(types, of)),
        (_, Shape::Volatile(of)) => format!("volatile {}", type_name(types, of)),
        (_, Shape::Restrict(of) | Shape::TypeTag(of)) => type_name(types, of),
        _ => name.to_string(),
    }
}
