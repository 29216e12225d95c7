//! Contexts by the names of their fields, with the type that the program declares.

use btf::{Btf, Shape, TypeId};
use report::value::Formats;
use serde_json::Value;

use crate::internal::maps_json::read;
use crate::internal::run::LoadedObject;

/// The bytes of the context of a program. Members that are not named are 0.
pub(super) fn context(
    loaded: &LoadedObject,
    program: &str,
    value: &Value,
) -> Result<Vec<u8>, String> {
    let place = loaded.program_place(program);
    let program_of = place.map(|place| loaded.program_at_place(place));
    let typed = program_of.and_then(|of| {
        let types = of.btf()?;
        let info = of.func_info().first()?;
        Some((types, parameter(types, info.type_id)?))
    });
    let Some((types, ty)) = typed else {
        return Err(format!(
            "program {program} declares no structure as its context: ctx=HEX or a file"
        ));
    };
    let size = types.size_of(ty).unwrap_or(0) as usize;
    let mut bytes = vec![0; size];
    read(Some(types), ty, value, &mut bytes, &Formats::default())?;
    Ok(bytes)
}

/// The structure that the first parameter of a function points to.
fn parameter(types: &Btf<'_>, function: TypeId) -> Option<TypeId> {
    let Shape::Func(function) = types.get(function)?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = types.get(function.proto)?.shape() else {
        return None;
    };
    let first = proto.params().next()?.ty;
    let Shape::Ptr(to) = types.get(types.skip_modifiers(first)?)?.shape() else {
        return None;
    };
    let id = types.skip_modifiers(to)?;
    matches!(types.get(id)?.shape(), Shape::Struct(_)).then_some(id)
}
