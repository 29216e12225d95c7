//! The typed walk: what lies at an offset of a structure (`btf_struct_walk` in
//! kernel/bpf/btf.c): a number, a pointer to another structure, or nothing that may be
//! read.
//!
//! The walk descends into nested structures and arrays until it reaches a member that
//! starts at the offset or contains it. Complexity: members of the structures on the way.

use std::fmt;

use crate::{Btf, Kind, Name, Shape, TypeId};

/// Result of a lookup by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundAt<'b> {
    /// A number.
    Scalar,
    /// A pointer to a structure or union.
    Pointer {
        /// The structure or union.
        id: TypeId,
        /// Memory that the pointer's tag states.
        memory: Option<PointerTag>,
        /// True if the way to the member leads through a union of several members.
        is_in_union: bool,
        /// Name of the member.
        field: Name<'b>,
    },
    /// A pointer to anything else.
    OtherPointer,
}

/// Type tag of a pointer that states which memory it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerTag {
    /// `__user`.
    User,
    /// `__percpu`.
    Percpu,
    /// `__rcu`.
    Rcu,
}

/// Reason why nothing may be read at an offset. The text is the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessFault {
    /// The type is no structure or union.
    NotStruct(String),
    /// The access ends after the structure.
    Beyond {
        /// Name of the structure.
        name: String,
        /// Offset in bytes.
        off: i64,
        /// Size in bytes.
        size: i64,
    },
    /// The member has no size.
    Sizeless(String),
    /// The access covers a pointer not exactly.
    PartOfPointer {
        /// Name of the member.
        field: String,
        /// Offset of the member in bytes.
        start: i64,
        /// Name of the structure.
        name: String,
        /// Offset in bytes.
        off: i64,
        /// Size in bytes.
        size: i64,
    },
    /// The access ends after the member.
    BeyondMember {
        /// Name of the member.
        field: String,
        /// End of the member in bytes.
        end: i64,
        /// Name of the structure.
        name: String,
        /// Offset in bytes.
        off: i64,
        /// Size in bytes.
        size: i64,
    },
    /// No member is there.
    NoMember {
        /// Name of the structure.
        name: String,
        /// Offset in bytes.
        off: i64,
    },
}

impl AccessFault {
    /// The kernel's error number, positive.
    pub fn errno(&self) -> i32 {
        match self {
            AccessFault::NotStruct(_) | AccessFault::NoMember { .. } => 22,
            AccessFault::Sizeless(_) => 14,
            AccessFault::Beyond { .. }
            | AccessFault::PartOfPointer { .. }
            | AccessFault::BeyondMember { .. } => 13,
        }
    }
}

impl fmt::Display for AccessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessFault::NotStruct(name) => write!(f, "Type '{name}' is not a struct"),
            AccessFault::Beyond { name, off, size } => {
                write!(f, "access beyond struct {name} at off {off} size {size}")
            }
            AccessFault::Sizeless(field) => write!(f, "field {field} doesn't have size"),
            AccessFault::PartOfPointer {
                field,
                start,
                name,
                off,
                size,
            } => write!(
                f,
                "cannot access ptr member {field} with moff {start} in struct {name} with off {off} size {size}"
            ),
            AccessFault::BeyondMember {
                field,
                end,
                name,
                off,
                size,
            } => write!(
                f,
                "access beyond the end of member {field} (mend:{end}) in struct {name} with off {off} size {size}"
            ),
            AccessFault::NoMember { name, off } => {
                write!(f, "struct {name} doesn't have field at offset {off}")
            }
        }
    }
}

impl std::error::Error for AccessFault {}

impl Btf<'_> {
    /// Looks up `size` bytes at `off` of a structure. Kernels before 6.6 do not mark what lies in a
    /// union (`marks_unions`), and hold accesses to its members.
    ///
    /// # Errors
    /// The kernel's refusal of the access, with its error number and text.
    pub fn find_at(
        &self,
        id: TypeId,
        off: i32,
        size: u32,
        marks_unions: bool,
    ) -> Result<FoundAt<'_>, AccessFault> {
        find(self, id, off, size, marks_unions)
    }

    /// True if the structure at `off` of `id`, or one that it begins with, is `expected`
    /// (`btf_struct_ids_match`); `is_strict` allows only `id` itself.
    ///
    /// # Errors
    /// Where it is not, the kernel's words about the member that it finds instead.
    #[doc(alias = "btf_struct_ids_match")]
    pub fn begins_with(
        &self,
        id: TypeId,
        expected: TypeId,
        off: i32,
        is_strict: bool,
    ) -> Result<bool, AccessFault> {
        begins_with(self, id, expected, off, is_strict)
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

fn find<'b>(
    btf: &'b Btf<'_>,
    id: TypeId,
    off: i32,
    size: u32,
    marks_unions: bool,
) -> Result<FoundAt<'b>, AccessFault> {
    let mut id = id;
    let mut off = i64::from(off);
    let mut is_in_union = false;
    loop {
        let mark = marks_unions.then_some(&mut is_in_union);
        match walk(btf, id, off, size.into(), mark)? {
            Step::Inner(inner) => (id, off) = (inner, 0),
            Step::Found(found) => return Ok(found),
        }
    }
}

/// Result of one walk.
enum Step<'b> {
    /// A structure or union begins there.
    Inner(TypeId),
    /// What lies there.
    Found(FoundAt<'b>),
}

/// Walks to what begins at the offset or contains it (`btf_struct_walk`).
#[doc(alias = "btf_struct_walk")]
fn walk<'b>(
    btf: &'b Btf<'_>,
    id: TypeId,
    off: i64,
    size: i64,
    mut is_in_union: Option<&mut bool>,
) -> Result<Step<'b>, AccessFault> {
    let (mut id, mut off) = (id, off);
    'again: loop {
        id = btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
        let ty = btf.at(id);
        let name = ty.name().or_anonymous();
        let Some(composite) = ty.as_composite() else {
            return Err(AccessFault::NotStruct(name.to_string()));
        };
        let count = composite.members().len();
        if ty.kind() == Kind::Union
            && count != 1
            && let Some(mark) = &mut is_in_union
        {
            **mark = true;
        }
        if off + size > i64::from(composite.size) {
            match flexible_array(btf, id, off) {
                Some((element, _, _)) if btf.at(element).kind() == Kind::Int => {
                    return Ok(Step::Found(FoundAt::Scalar));
                }
                Some((element, start, each)) if each > 0 => {
                    off = (off - start) % each;
                    id = element;
                    continue 'again;
                }
                _ => {
                    let name = name.to_string();
                    return Err(AccessFault::Beyond { name, off, size });
                }
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
                    return Ok(Step::Found(FoundAt::Scalar));
                }
                continue;
            }
            if off < start {
                break;
            }
            let field = btf.string(member.name).or_anonymous();
            let Some(resolved) = resolve(btf, member.ty) else {
                return Err(AccessFault::Sizeless(field.to_string()));
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
                if off == start {
                    return Ok(Step::Inner(resolved.id));
                }
                off -= start;
                id = resolved.id;
                continue 'again;
            }
            if let Shape::Ptr(target) = inner.shape() {
                if member_size != size || off != start {
                    return Err(AccessFault::PartOfPointer {
                        field: field.to_string(),
                        start,
                        name: name.to_string(),
                        off,
                        size,
                    });
                }
                return Ok(Step::Found(pointer(
                    btf,
                    target,
                    is_marked(&is_in_union),
                    field,
                )));
            }
            if off + size > end && !is_marked(&is_in_union) {
                return Err(AccessFault::BeyondMember {
                    field: field.to_string(),
                    end,
                    name: name.to_string(),
                    off,
                    size,
                });
            }
            return Ok(Step::Found(FoundAt::Scalar));
        }
        let name = name.to_string();
        return Err(AccessFault::NoMember { name, off });
    }
}

fn is_marked(is_in_union: &Option<&mut bool>) -> bool {
    is_in_union.as_deref().is_some_and(|mark| *mark)
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

/// What a pointer to that type is, by its tag (`btf_type_tag_walk`).
#[doc(alias = "btf_type_tag_walk")]
fn pointer<'b>(btf: &Btf<'_>, target: TypeId, is_in_union: bool, field: Name<'b>) -> FoundAt<'b> {
    let tag = btf.at(target);
    let memory = match tag.shape() {
        Shape::TypeTag(_) if !tag.flag() => match tag.name().as_bytes() {
            b"user" => Some(PointerTag::User),
            b"percpu" => Some(PointerTag::Percpu),
            b"rcu" => Some(PointerTag::Rcu),
            _ => None,
        },
        _ => None,
    };
    match btf.skip_modifiers(target) {
        Some(id) if btf.at(id).kind().is_composite() => FoundAt::Pointer {
            id,
            memory,
            is_in_union,
            field,
        },
        _ => FoundAt::OtherPointer,
    }
}

fn begins_with(
    btf: &Btf<'_>,
    id: TypeId,
    expected: TypeId,
    off: i32,
    is_strict: bool,
) -> Result<bool, AccessFault> {
    let expected = btf.skip_modifiers(expected);
    let mut found = btf.skip_modifiers(id);
    let mut off = i64::from(off);
    while let Some(id) = found {
        if off == 0 && found == expected {
            return Ok(true);
        }
        if is_strict {
            return Ok(false);
        }
        found = match walk(btf, id, off, 1, Some(&mut false))? {
            Step::Inner(inner) => Some(inner),
            Step::Found(_) => None,
        };
        off = 0;
    }
    Ok(false)
}
