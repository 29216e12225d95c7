//! Search for the access path of a relocation in a type of the target.
//!
//! Members are found by name, in the structure itself and in anonymous structures and
//! unions inside it. A member with the right name and an incompatible type ends the
//! search.

use super::compatible::Comparison;
use super::path::{MAX_STEPS, Path, Step, Subject};
use super::{CoreError, essential_name};
use crate::ext::CoreKind;
use crate::{Shape, TypeId};

/// Result of a search among members.
pub(super) enum Found {
    /// No member with this name.
    Nothing,
    /// A member with this name and an incompatible type, which is this.
    Misfit(TypeId),
    /// A member of this type.
    Member(TypeId),
}

/// Path in type `root` of the target; `None` if the type lacks it.
pub(crate) fn find_in<'b>(
    local: &Path<'b>,
    types: &mut Comparison<'b>,
    root: TypeId,
) -> Result<Option<Path<'b>>, CoreError> {
    let mut path = Path::empty(types.target, root, local.kind);
    let is_found = match Subject::of(local.kind) {
        Some(Subject::Type) if local.kind == CoreKind::TYPE_MATCHES => {
            types.types_match((local.root, root))?
        }
        Some(Subject::Type) => types.types_fit((local.root, root))?,
        Some(Subject::EnumValue) => find_value(local, types, &mut path)?,
        Some(Subject::Field) => find_field(local, types, &mut path)?,
        None => return Err(CoreError::UnknownKind { kind: local.kind }),
    };
    Ok(is_found.then_some(path))
}

fn find_value<'b>(
    local: &Path<'b>,
    types: &mut Comparison<'b>,
    path: &mut Path<'b>,
) -> Result<bool, CoreError> {
    let target = types.target;
    let plain = types.plain_target(path.root)?;
    let ty = plain.id();
    let (Shape::Enum(of), Some(wanted)) = (plain.shape(), local.steps.first()) else {
        return Ok(false);
    };
    let wanted = essential_name(local.name(wanted).as_bytes());
    for (value, index) in of.values().zip(0..) {
        types.step()?;
        if essential_name(target.string(value.name).as_bytes()) == wanted {
            let name = value.name;
            path.steps.push(Step { ty, index, name });
            path.numbers.push(index);
            return Ok(true);
        }
    }
    Ok(false)
}

fn find_field<'b>(
    local: &Path<'b>,
    types: &mut Comparison<'b>,
    path: &mut Path<'b>,
) -> Result<bool, CoreError> {
    let mut ty = path.root;
    for (at, step) in local.steps.iter().enumerate() {
        if let Some(wanted) = Wanted::of(local, step) {
            match find_member(&wanted, types, path, ty)? {
                Found::Member(below) => ty = below,
                Found::Nothing | Found::Misfit(_) => return Ok(false),
            }
            continue;
        }
        ty = types.plain_target(ty)?.id();
        // The first index is over the elements that a pointer refers to, which is no
        // array.
        if at > 0 {
            let Shape::Array(array) = types.target.at(ty).shape() else {
                return Ok(false);
            };
            if !path.reaches(array, step.index) {
                return Ok(false);
            }
            ty = types.plain_target(array.element)?.id();
        }
        if path.numbers.len() == MAX_STEPS {
            return Err(CoreError::TooDeep);
        }
        let size = types.target.size_of(ty);
        let size = size.ok_or(CoreError::TargetSize { id: ty })?;
        path.push_element(ty, step.index, size);
        path.numbers.push(step.index);
    }
    Ok(true)
}

/// Member to find.
pub(super) struct Wanted<'b> {
    name: &'b [u8],
    pub(super) ty: TypeId,
}

impl<'b> Wanted<'b> {
    pub(super) fn of(path: &Path<'b>, step: &Step) -> Option<Wanted<'b>> {
        let name = path.name(step).as_bytes();
        let composite = path.btf.at(step.ty).as_composite()?;
        let member = composite.member(step.index as usize)?;
        (!name.is_empty()).then_some(Wanted {
            name,
            ty: member.ty,
        })
    }
}

/// Searches a member in a type and in anonymous members inside it, and appends it to the
/// path.
pub(super) fn find_member<'b>(
    wanted: &Wanted<'b>,
    types: &mut Comparison<'b>,
    path: &mut Path<'b>,
    ty: TypeId,
) -> Result<Found, CoreError> {
    let target = types.target;
    let plain = types.plain_target(ty)?;
    let ty = plain.id();
    let Some(composite) = plain.as_composite() else {
        return Ok(Found::Nothing);
    };
    for (member, index) in composite.members().zip(0..) {
        types.step()?;
        if path.numbers.len() == MAX_STEPS {
            return Err(CoreError::TooDeep);
        }
        let before = path.bit_offset;
        path.bit_offset = before.wrapping_add(member.bit_offset);
        path.numbers.push(index);
        let name = target.string(member.name);
        if name.is_empty() {
            match find_member(wanted, types, path, member.ty)? {
                Found::Nothing => {}
                found => return Ok(found),
            }
        } else if name.as_bytes() == wanted.name {
            if !types.fields_fit((wanted.ty, member.ty))? {
                return Ok(Found::Misfit(member.ty));
            }
            let name = member.name;
            path.steps.push(Step { ty, index, name });
            return Ok(Found::Member(member.ty));
        }
        path.bit_offset = before;
        path.numbers.pop();
    }
    Ok(Found::Nothing)
}
