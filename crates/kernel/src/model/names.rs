//! Members of types by their names, and the names of bytes.

use btf::{Btf, Kind, Shape, TypeId};

/// Most structures in structures.
const MOST_DEPTH: usize = 32;
/// Most larger types that a message names.
const MOST_LARGER: usize = 3;

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
    if let Some(Shape::Ptr(to)) = types
        .skip_modifiers(ty)
        .and_then(|id| types.get(id))
        .map(|ty| ty.shape())
    {
        let to = type_name(types, to);
        return format!(
            "{name} is a member of the {to} that a pointer leads to: {{{name}: …}} gives it"
        );
    }
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

/// The member that bits of a byte belong to, as `.a.b[1]`; `None` between members. Of members of a union
/// that which begins there and has this size, if there is one.
pub(super) fn name_at(
    types: &Btf<'_>,
    ty: TypeId,
    (offset, len): (usize, usize),
    bits: u8,
) -> Option<String> {
    let found = search(types, ty, (offset, len, bits), MOST_DEPTH)?;
    Some(found.0)
}

/// Members at an offset of structures that begin with a type and are larger, as `tcp_sock.snd_cwnd`, those
/// first that have the length.
pub(super) fn larger_types(
    types: &Btf<'_>,
    ty: TypeId,
    (offset, len): (usize, usize),
) -> Vec<String> {
    let wanted = type_name(types, ty);
    let mut found: Vec<(u8, String)> = Vec::new();
    for larger in types.of_kind(Kind::Struct) {
        let id = larger.id();
        if types.size_of(id).unwrap_or(0) as usize <= offset
            || !begins_with(types, id, (types, ty))
            || type_name(types, id) == wanted
        {
            continue;
        }
        if let Some((field, fit)) = search(types, id, (offset, len, 0xff), MOST_DEPTH)
            && !field.is_empty()
        {
            found.push((2 - fit, format!("{}{field}", type_name(types, id))));
        }
    }
    found.sort();
    found.dedup();
    found.truncate(MOST_LARGER);
    found.into_iter().map(|(_, name)| name).collect()
}

/// True if a type is another one, or has it as its first member and so on.
pub(super) fn begins_with(
    types: &Btf<'_>,
    ty: TypeId,
    (others, other): (&Btf<'_>, TypeId),
) -> bool {
    let wanted = type_name(others, other);
    let mut id = ty;
    for _ in 0..MOST_DEPTH {
        let Some(found) = types.skip_modifiers(id) else {
            return false;
        };
        if type_name(types, found) == wanted {
            return true;
        }
        let composite = types.get(found).and_then(|ty| ty.as_composite());
        match composite.and_then(|composite| composite.member(0)) {
            Some(first) if first.bit_offset == 0 => id = first.ty,
            _ => return false,
        }
    }
    false
}

/// Name, and how well it fits: 2 for the bytes themselves.
fn search(
    types: &Btf<'_>,
    ty: TypeId,
    (offset, len, bits): (usize, usize, u8),
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
                    0 => search(types, member.ty, (inside, len, bits), depth - 1),
                    count => {
                        let first = (member.bit_offset % 8) as usize;
                        let is_it = |bit: &usize| {
                            let of_field = 8 * inside + bit;
                            bits & 1 << bit != 0
                                && (first..first + count as usize).contains(&of_field)
                        };
                        (0..8).find(is_it).map(|_| (String::new(), 1))
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
            let inside = (offset % each.max(1), len, bits);
            let inner = search(types, element, inside, depth - 1);
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
