//! What lies at an offset of a kernel structure (`btf_struct_walk` in
//! kernel/bpf/btf.c): a number, a pointer to another structure, or nothing that may be
//! read.
//!
//! The walk descends into nested structures and arrays until it reaches a member that
//! starts at the offset or contains it. Complexity: members of the structures on the way.

use std::borrow::Cow;

use btf::{Btf, Kind, Name, Shape, TypeId};

use crate::state::TypeFlags;

const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const EFAULT: i32 = 14;

/// What lies at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A number.
    Scalar,
    /// A pointer to a structure.
    Pointer {
        /// The structure.
        id: TypeId,
        /// What the member's tags and the way to it say.
        flags: TypeFlags,
        /// Name of the member.
        field: String,
    },
    /// A pointer to anything else.
    UntrustedMem,
}

/// Why nothing may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Error number, positive.
    pub(super) errno: i32,
    /// The kernel's words.
    pub(super) message: String,
}

fn fault<T>(errno: i32, message: String) -> Result<T, Fault> {
    Err(Fault { errno, message })
}

/// The name of a type or member as the kernel's messages have it.
fn named(name: Name<'_>) -> Cow<'_, str> {
    match name.is_empty() {
        true => Cow::Borrowed("(anon)"),
        false => name.to_string_lossy(),
    }
}

/// A member's type below modifiers and arrays (`__btf_resolve_size`).
struct Resolved {
    id: TypeId,
    /// Bytes of the member.
    size: i64,
    /// Elements, if it is an array.
    count: Option<i64>,
}

fn resolve(btf: &Btf<'_>, id: TypeId) -> Option<Resolved> {
    let size = btf.size_of(id)?;
    let mut id = btf.skip_modifiers(id)?;
    let mut count = None;
    while let Shape::Array(array) = btf.get(id)?.shape() {
        count = Some(count.unwrap_or(1) * i64::from(array.count));
        id = btf.skip_modifiers(array.element)?;
    }
    Some(Resolved {
        id,
        size: size.into(),
        count,
    })
}

/// Finds what `size` bytes at `off` of structure `id` are.
pub(super) fn find(btf: &Btf<'_>, id: TypeId, off: i32, size: u32) -> Result<Found, Fault> {
    let mut id = id;
    let mut off = i64::from(off);
    let size = i64::from(size);
    let mut flags = TypeFlags::NONE;
    'again: loop {
        id = btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
        let ty = btf.at(id);
        let name = named(ty.name());
        let Some(composite) = ty.as_composite() else {
            return fault(EINVAL, format!("Type '{name}' is not a struct"));
        };
        let count = composite.members().len();
        if ty.kind() == Kind::Union && count != 1 {
            flags = flags.with(TypeFlags::PTR_UNTRUSTED);
        }
        if off + size > i64::from(composite.size) {
            let beyond = format!("access beyond struct {name} at off {off} size {size}");
            match flexible_array(btf, id, off) {
                Some((element, _, _)) if btf.at(element).kind() == Kind::Int => {
                    return Ok(Found::Scalar);
                }
                Some((element, start, each)) if each > 0 => {
                    off = (off - start) % each;
                    id = element;
                    continue 'again;
                }
                _ => return fault(EACCES, beyond),
            }
        }
        for member in composite.members() {
            let mut start = i64::from(member.bit_offset / 8);
            if off + size <= start {
                break;
            }
            if member.bits != 0 {
                let end = i64::from((member.bit_offset + member.bits).div_ceil(8));
                if off <= start && end <= off + size {
                    return Ok(Found::Scalar);
                }
                continue;
            }
            if off < start {
                break;
            }
            let field = named(btf.string(member.name));
            let Some(resolved) = resolve(btf, member.ty) else {
                return fault(EFAULT, format!("field {field} doesn't have size"));
            };
            let end = start + resolved.size;
            if off >= end {
                continue;
            }
            let mut member_size = resolved.size;
            if let Some(count) = resolved.count {
                if start == end || count == 0 {
                    continue;
                }
                member_size /= count;
                start += (off - start) / member_size * member_size;
            }
            let inner = btf.at(resolved.id);
            if inner.kind().is_composite() {
                off -= start;
                id = resolved.id;
                continue 'again;
            }
            if let Shape::Ptr(target) = inner.shape() {
                if member_size != size || off != start {
                    return fault(
                        EACCES,
                        format!(
                            "cannot access ptr member {field} with moff {start} in struct {name} with off {off} size {size}"
                        ),
                    );
                }
                return Ok(pointer(btf, target, flags, field.into()));
            }
            if off + size > end && !flags.has(TypeFlags::PTR_UNTRUSTED) {
                return fault(
                    EACCES,
                    format!(
                        "access beyond the end of member {field} (mend:{end}) in struct {name} with off {off} size {size}"
                    ),
                );
            }
            return Ok(Found::Scalar);
        }
        return fault(
            EINVAL,
            format!("struct {name} doesn't have field at offset {off}"),
        );
    }
}

/// Element type, start and element size of the array without size at the end.
fn flexible_array(btf: &Btf<'_>, id: TypeId, off: i64) -> Option<(TypeId, i64, i64)> {
    let last = btf.at(id).as_composite()?.members().last()?;
    let ty = btf.skip_modifiers(last.ty)?;
    let Shape::Array(array) = btf.at(ty).shape() else {
        return None;
    };
    let start = i64::from(last.bit_offset / 8);
    if array.count != 0 || off < start {
        return None;
    }
    let element = btf.skip_modifiers(array.element)?;
    let fits = matches!(
        btf.at(element).kind(),
        Kind::Int | Kind::Struct | Kind::Union
    );
    let size = btf.size_of(element)?;
    fits.then_some((element, start, size.into()))
}

fn pointer(btf: &Btf<'_>, target: TypeId, flags: TypeFlags, field: String) -> Found {
    let tag = btf.at(target);
    let by_tag = match tag.shape() {
        Shape::TypeTag(_) if !tag.flag() => match tag.name().as_bytes() {
            b"user" => TypeFlags::MEM_USER,
            b"percpu" => TypeFlags::MEM_PERCPU,
            b"rcu" => TypeFlags::MEM_RCU,
            _ => TypeFlags::NONE,
        },
        _ => TypeFlags::NONE,
    };
    match btf.skip_modifiers(target) {
        Some(id) if btf.at(id).kind().is_composite() => Found::Pointer {
            id,
            flags: flags.with(by_tag),
            field,
        },
        _ => Found::UntrustedMem,
    }
}

/// The structure that starts at `off` of structure `id`, if one does.
fn nested(btf: &Btf<'_>, id: TypeId, off: i64) -> Option<TypeId> {
    let (mut id, mut off) = (id, off);
    'again: loop {
        for member in btf.at(id).as_composite()?.members() {
            let mut start = i64::from(member.bit_offset / 8);
            if off < start {
                return None;
            }
            if member.bits != 0 {
                continue;
            }
            let resolved = resolve(btf, member.ty)?;
            if off >= start + resolved.size {
                continue;
            }
            if let Some(count) = resolved.count {
                let each = resolved.size / count.max(1);
                if each == 0 {
                    continue;
                }
                start += (off - start) / each * each;
            }
            if !btf.at(resolved.id).kind().is_composite() {
                return None;
            }
            if off == start {
                return Some(resolved.id);
            }
            off -= start;
            id = resolved.id;
            continue 'again;
        }
        return None;
    }
}

/// True if the structure at `off` of `id`, or one that it begins with, is `expected`
/// (`btf_struct_ids_match`); `is_strict` allows only `id` itself.
pub(crate) fn begins_with(
    btf: &Btf<'_>,
    id: TypeId,
    expected: TypeId,
    off: i32,
    is_strict: bool,
) -> bool {
    let expected = btf.skip_modifiers(expected);
    let mut found = btf.skip_modifiers(id);
    let mut off = i64::from(off);
    while let Some(id) = found {
        if off == 0 && found == expected {
            return true;
        }
        if is_strict {
            return false;
        }
        found = nested(btf, id, off);
        off = 0;
    }
    false
}
