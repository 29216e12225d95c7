//! From BTF to codecs.

use btf::{Btf, Composite, Shape, Type, TypeId};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{Codec, DEEPEST, Enum, Member, Struct};

impl Codec {
    /// The codec of a type of so many bytes; of bytes where there is no type or another size.
    pub(crate) fn new(py: Python<'_>, types: Option<&Btf<'_>>, ty: TypeId, size: usize) -> Codec {
        let typed = types
            .filter(|_| !ty.is_void())
            .and_then(|types| compile(py, types, ty, DEEPEST));
        typed
            .filter(|codec| codec.size() == size)
            .unwrap_or(Codec::Bytes { size })
    }
}

/// The codec of a type; `None` if it has no size.
fn compile(py: Python<'_>, types: &Btf<'_>, ty: TypeId, depth: u32) -> Option<Codec> {
    let size = types.size_of(ty)? as usize;
    if depth == 0 {
        return Some(Codec::Bytes { size });
    }
    let found = types.get(types.skip_modifiers(ty)?)?;
    Some(match found.shape() {
        Shape::Int(_) if !matches!(size, 1 | 2 | 4 | 8) => Codec::Bytes { size },
        Shape::Int(int) if int.encoding.is_bool() => Codec::Bool { size },
        Shape::Int(int) => Codec::Int {
            size,
            is_signed: int.encoding.is_signed(),
        },
        Shape::Ptr(_) => Codec::Int {
            size,
            is_signed: false,
        },
        Shape::Enum(it) => Codec::Enum(enumeration(py, found, it, size)),
        Shape::Float(4 | 8) => Codec::Float { size },
        Shape::Array(array) => {
            let element_size = types.size_of(array.element)? as usize;
            let element = types.get(types.skip_modifiers(array.element)?)?;
            let name = element.name();
            match element.shape() {
                Shape::Int(int) if int.size == 1 && name.as_bytes() == b"char" => {
                    Codec::Text { size }
                }
                Shape::Int(int) if int.size == 1 && !int.encoding.is_bool() => {
                    Codec::Bytes { size }
                }
                _ => Codec::Array {
                    element: Box::new(compile(py, types, array.element, depth - 1)?),
                    size: element_size,
                    count: array.count as usize,
                },
            }
        }
        Shape::Struct(it) | Shape::Union(it) => {
            let name = found.name().to_string_lossy();
            let mut of = Struct {
                size,
                name: match name.is_empty() {
                    true => "an anonymous type".to_owned(),
                    false => name.into_owned(),
                },
                members: Vec::new(),
            };
            add_members(py, types, it, 0, depth - 1, &mut of);
            Codec::Struct(of)
        }
        _ => Codec::Bytes { size },
    })
}

/// Adds the members of a structure that lies so many bits inside, those of anonymous ones too.
fn add_members(
    py: Python<'_>,
    types: &Btf<'_>,
    composite: Composite<'_>,
    base: u32,
    depth: u32,
    to: &mut Struct,
) {
    for member in composite.members() {
        let at = base + member.bit_offset;
        let name = types.string(member.name);
        if name.is_empty() {
            let inside = types.skip_modifiers(member.ty).and_then(|ty| types.get(ty));
            let inside = inside.and_then(|ty| ty.as_composite());
            if let (Some(inside), true) = (inside, depth > 0) {
                add_members(py, types, inside, at, depth - 1, to);
            }
            continue;
        }
        let Some(codec) = compile(py, types, member.ty, depth) else {
            continue;
        };
        // Linux takes bit fields that lie in the unit of their type.
        let unit = codec.size() as u32 * 8;
        let width = bit_width(types, member.ty, member.bits);
        let (offset, bits) = match width {
            Some(width) if unit > 0 => {
                let start = at / unit * unit;
                (start / 8, Some((at - start, width)))
            }
            _ => (at / 8, None),
        };
        let fits = offset as usize + codec.size() <= to.size
            && bits.is_none_or(|(from, width)| from + width <= unit);
        if fits {
            let text = name.to_string_lossy().into_owned();
            to.members.push(Member {
                name: PyString::intern(py, &text).unbind(),
                text,
                offset: offset as usize,
                codec,
                bits,
            });
        }
    }
}

/// Width of a bit field; `None` for other members.
fn bit_width(types: &Btf<'_>, ty: TypeId, stated: u32) -> Option<u32> {
    if stated != 0 {
        return Some(stated);
    }
    match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Int(int) if int.bits < int.size * 8 => Some(int.bits),
        _ => None,
    }
}

fn enumeration(py: Python<'_>, found: Type<'_>, it: btf::Enum<'_>, size: usize) -> Enum {
    let name = found.name().to_string_lossy().into_owned();
    let name = match name.is_empty() {
        true => "anonymous_enum".to_owned(),
        false => name,
    };
    let value = |value: u64| match it.signed {
        true => i128::from(value as i64),
        false => i128::from(value),
    };
    let named = |one: btf::Enumerator| found.btf().string(one.name).to_string_lossy().into_owned();
    let values: Vec<_> = it
        .values()
        .map(|one| (named(one), value(one.value)))
        .collect();
    let make = || {
        let make = py.import("beebox._struct")?.getattr("make_enum")?;
        make.call1((name.as_str(), values.clone()))
    };
    Enum {
        size,
        is_signed: it.signed,
        // Python refuses some names, such as `mro`.
        class: make().ok().map(Bound::unbind),
        name,
        values,
    }
}
