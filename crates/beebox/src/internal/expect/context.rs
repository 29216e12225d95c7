//! Contexts by the names of their fields, with the type that the program declares.

use ::kernel::model::ModelValue;
use btf::{Btf, Kind, Shape, TypeId};
use report::value::Formats;
use serde_json::Value;
use spec::programs::ProgramType;

use crate::internal::maps_json::{read, show};
use crate::internal::run::LoadedObject;

/// What comes of the structure that the context of a program is: the one that it declares; of netfilter the
/// state of the hook, which test runs of Linux take. `None` if there is none.
fn with_structure<R>(
    loaded: &LoadedObject,
    program: &str,
    run: impl FnOnce(&Btf<'_>, TypeId) -> R,
) -> Option<R> {
    let program = loaded.program_at_place(loaded.program_place(program)?);
    if program.kind() == ProgramType::Netfilter {
        let types = loaded.kernel_types()?;
        let state = types.find(Kind::Struct, "nf_hook_state")?.id();
        return Some(run(&types, state));
    }
    let types = program.btf()?;
    let info = program.func_info().first()?;
    let ty = parameter(types, info.type_id)?;
    Some(run(types, ty))
}

/// The first field of the context behind a run that differs from what is expected, in words.
///
/// # Errors
/// If the program declares no structure, it has no such field, or that takes no such value.
pub(super) fn compare_fields(
    loaded: &LoadedObject,
    program: &str,
    value: &ModelValue,
    got: &[u8],
) -> Result<Option<String>, String> {
    let compared = with_structure(loaded, program, |types, ty| differs(types, ty, value, got));
    compared.unwrap_or_else(|| {
        Err(format!(
            "program {program} declares no structure as its context: ctx HEX or ctx[OFFSET] HEX"
        ))
    })
}

fn differs(
    types: &Btf<'_>,
    ty: TypeId,
    value: &ModelValue,
    got: &[u8],
) -> Result<Option<String>, String> {
    let ModelValue::Fields {
        ty: None, fields, ..
    } = value
    else {
        return Err(format!("ctx takes {{FIELD: VALUE}}, not {value}"));
    };
    let mut bytes = got.to_vec();
    bytes.resize(types.size_of(ty).unwrap_or(0) as usize, 0);
    let form = Formats::default();
    let shown = show(Some(types), ty, &bytes, &form);
    let shown: Value = serde_json::from_str(&shown).unwrap_or_default();
    for (path, value) in fields {
        let mut expected = json(value)?;
        for name in path.iter().rev() {
            expected = Value::Object([(name.clone(), expected)].into_iter().collect());
        }
        let mut wanted = bytes.clone();
        read(Some(types), ty, &expected, &mut wanted, &form)?;
        if wanted != bytes {
            let got = path.iter().fold(&shown, |value, name| &value[name]);
            let name = path.join(".");
            return Ok(Some(format!("{name}: expected {value}, got {got}")));
        }
    }
    Ok(None)
}

/// A value as JSON.
fn json(value: &ModelValue) -> Result<Value, String> {
    Ok(match value {
        ModelValue::Number(number) => match (u64::try_from(*number), i64::try_from(*number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => return Err(format!("{number} has more than 64 bits")),
        },
        ModelValue::Text(text) => text.as_str().into(),
        ModelValue::Bytes(bytes) => bytes.as_slice().into(),
        ModelValue::Word(word) if word == "true" || word == "false" => (word == "true").into(),
        ModelValue::Word(word) => word.as_str().into(),
        ModelValue::List(values) => {
            Value::Array(values.iter().map(json).collect::<Result<_, _>>()?)
        }
        ModelValue::Fields { fields, .. } => {
            let fields = fields.iter();
            let members = fields.map(|(path, value)| Ok((path.join("."), json(value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        ModelValue::BigEndian(_) | ModelValue::Object(..) | ModelValue::User(_) => {
            return Err(format!("{value} is for runs in a model of the kernel"));
        }
    })
}

/// The bytes of the context of a program. Members that are not named are 0.
pub(super) fn context(
    loaded: &LoadedObject,
    program: &str,
    value: &Value,
) -> Result<Vec<u8>, String> {
    let made = with_structure(loaded, program, |types, ty| bytes_of(types, ty, value));
    made.unwrap_or_else(|| {
        Err(format!(
            "program {program} declares no structure as its context: ctx=HEX or a file"
        ))
    })
}

fn bytes_of(types: &Btf<'_>, ty: TypeId, value: &Value) -> Result<Vec<u8>, String> {
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
