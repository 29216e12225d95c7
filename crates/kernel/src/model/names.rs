//! Members of types by their names, and the names of bytes.

use btf::{Btf, Kind, Shape, TypeId};

/// Most structures in structures.
const MOST_DEPTH: usize = 32;

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// In bytes; of a bit field that of the unit that holds it.
    pub(super) offset: usize,
    pub(super) ty: TypeId,
    /// First bit in the unit and number of bits of a bit field.
    pub(super) bits: Option<(u32, u32)>,
}

/// The structure, union or other type of a name.
pub(super) fn type_of(types: &Btf<'_>, name: &str) -> Result<TypeId, String> {
    let kinds = [Kind::Struct, Kind::Union, Kind::Typedef, Kind::Int];
    let found = kinds.iter().find_map(|kind| types.find(*kind, name));
    if let Some(found) = found {
        return Ok(found.id());
    }
    let known = types
        .of_kind(Kind::Struct)
        .filter_map(|ty| ty.name().to_str());
    let near = nearest(name, known);
    Err(format!("the kernel has no type {name}{near}"))
}

/// The member at the end of a path of names.
pub(super) fn member(types: &Btf<'_>, ty: TypeId, path: &[String]) -> Result<Place, String> {
    let mut place = Place {
        offset: 0,
        ty,
        bits: None,
    };
    for name in path {
        let found = find(types, place.ty, name, MOST_DEPTH);
        let found = found.ok_or_else(|| unknown(types, place.ty, name))?;
        place = Place {
            offset: place.offset + found.offset,
            ..found
        };
    }
    Ok(place)
}

fn unknown(types: &Btf<'_>, ty: TypeId, name: &str) -> String {
    let mut names = Vec::new();
    collect(types, ty, &mut names, MOST_DEPTH);
    let of = type_name(types, ty);
    if names.is_empty() {
        return format!("{of} has no members, and so no {name}");
    }
    let near = nearest(name, names.iter().map(String::as_str));
    format!("{of} has no member {name}{near}")
}

/// A member of a structure, or of an unnamed one in it.
fn find(types: &Btf<'_>, ty: TypeId, name: &str, depth: usize) -> Option<Place> {
    let id = types.skip_modifiers(ty)?;
    let composite = types.get(id)?.as_composite()?;
    composite.members().find_map(|member| {
        let offset = (member.bit_offset / 8) as usize;
        let of = types.string(member.name);
        if of.as_bytes() == name.as_bytes() {
            return Some(match member.bits {
                0 => Place {
                    offset,
                    ty: member.ty,
                    bits: None,
                },
                bits => {
                    let size = types.size_of(member.ty).filter(|size| *size > 0)?;
                    let unit = member.bit_offset / (8 * size);
                    Place {
                        offset: (unit * size) as usize,
                        ty: member.ty,
                        bits: Some((member.bit_offset - unit * 8 * size, bits)),
                    }
                }
            });
        }
        if !of.is_empty() || depth == 0 {
            return None;
        }
        let inner = find(types, member.ty, name, depth - 1)?;
        Some(Place {
            offset: offset + inner.offset,
            ..inner
        })
    })
}

/// Names of the members, those of unnamed structures among them.
fn collect(types: &Btf<'_>, ty: TypeId, names: &mut Vec<String>, depth: usize) {
    let composite = types
        .skip_modifiers(ty)
        .and_then(|id| types.get(id)?.as_composite());
    for member in composite.iter().flat_map(|it| it.members()) {
        match types.string(member.name).to_str() {
            Some("") if depth > 0 => collect(types, member.ty, names, depth - 1),
            Some(name) if !name.is_empty() => names.push(name.to_owned()),
            _ => {}
        }
    }
}

/// Name of a type, as C writes it without its keyword.
pub(super) fn type_name(types: &Btf<'_>, ty: TypeId) -> String {
    let Some(found) = types.get(ty) else {
        return "void".to_owned();
    };
    match found.shape() {
        Shape::Void => "void".to_owned(),
        Shape::Ptr(to) => format!("{} *", type_name(types, to)),
        Shape::Const(to) | Shape::Volatile(to) | Shape::Restrict(to) | Shape::TypeTag(to) => {
            type_name(types, to)
        }
        Shape::Array(array) => format!("{}[{}]", type_name(types, array.element), array.count),
        Shape::Proto(_) => "function".to_owned(),
        _ => found.name().or_anonymous().to_string(),
    }
}

/// The member that bytes at an offset belong to, as `.a.b[1]`; `None` between members. Of members of a union
/// that which begins there and has this size, if there is one.
pub(super) fn name_at(types: &Btf<'_>, ty: TypeId, offset: usize, len: usize) -> Option<String> {
    let found = search(types, ty, (offset, len), MOST_DEPTH)?;
    Some(found.0)
}

/// Name, and how well it fits: 2 for the bytes themselves.
fn search(
    types: &Btf<'_>,
    ty: TypeId,
    (offset, len): (usize, usize),
    depth: usize,
) -> Option<(String, u8)> {
    let id = types.skip_modifiers(ty)?;
    let size = types.size_of(id)? as usize;
    if offset >= size || depth == 0 {
        return None;
    }
    let fit = match (offset, size == len) {
        (0, true) => 2,
        (0, false) => 1,
        _ => 0,
    };
    match types.get(id)?.shape() {
        Shape::Struct(composite) | Shape::Union(composite) => {
            let mut best: Option<(String, u8)> = None;
            for member in composite.members() {
                let at = (member.bit_offset / 8) as usize;
                let Some(inside) = offset.checked_sub(at) else {
                    continue;
                };
                let found = match member.bits {
                    0 => search(types, member.ty, (inside, len), depth - 1),
                    bits => {
                        let end = (member.bit_offset % 8 + bits).div_ceil(8) as usize;
                        (inside < end).then(|| (String::new(), 1))
                    }
                };
                let Some((inner, fit)) = found else {
                    continue;
                };
                if best.as_ref().is_none_or(|(_, known)| *known < fit) {
                    let name = types.string(member.name);
                    let name = match name.is_empty() {
                        true => inner,
                        false => format!(".{name}{inner}"),
                    };
                    best = Some((name, fit));
                }
            }
            best
        }
        Shape::Array(array) => {
            let each = types.size_of(array.element)? as usize;
            let element = array.element;
            // Text is one thing.
            if each == 1 {
                return Some((String::new(), fit));
            }
            let number = offset / each.max(1);
            let inner = search(types, element, (offset % each.max(1), len), depth - 1);
            inner.map(|(inner, fit)| (format!("[{number}]{inner}"), fit))
        }
        _ => Some((String::new(), fit)),
    }
}

/// `; a similar one exists: 'NAME'`, if one is.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let near = known.map(|known| (strsim::damerau_levenshtein(known, name), known));
    match near.min() {
        Some((changes, known)) if 3 * changes <= name.chars().count() => {
            format!("; a similar one exists: '{known}'")
        }
        _ => String::new(),
    }
}
