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
    let Some((name, element)) = last_array(types, ty) else {
        read(Some(types), ty, value, &mut bytes, &Formats::default())?;
        return Ok(bytes);
    };
    // The array has as many elements as are given.
    let mut members = value.as_object().cloned().unwrap_or_default();
    let elements = members.remove(&name);
    let others = match value.is_object() {
        true => Value::Object(members),
        false => value.clone(),
    };
    read(Some(types), ty, &others, &mut bytes, &Formats::default())?;
    let elements = match elements {
        None => Vec::new(),
        Some(Value::Array(elements)) => elements,
        Some(other) => return Err(format!("{name}: a list is expected, not {other}")),
    };
    for value in elements {
        let mut one = vec![0; types.size_of(element).unwrap_or(0) as usize];
        let form = Formats::default();
        read(Some(types), element, &value, &mut one, &form)
            .map_err(|what| format!("{name}: {what}"))?;
        bytes.extend(one);
    }
    Ok(bytes)
}

/// Name and elements of an array without a length at the end of a structure.
fn last_array(types: &Btf<'_>, ty: TypeId) -> Option<(String, TypeId)> {
    let composite = types.get(types.skip_modifiers(ty)?)?.as_composite()?;
    let last = composite.members().last()?;
    match types.get(types.skip_modifiers(last.ty)?)?.shape() {
        Shape::Array(array) if array.count == 0 => {
            Some((types.string(last.name).to_string(), array.element))
        }
        _ => None,
    }
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
