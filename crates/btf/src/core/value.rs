//! Value of a relocation at the end of an access path, and its effect on the instruction
//! (`bpf_core_calc_relo`).

use super::CoreError;
use super::path::{Path, Subject};
use crate::ext::CoreKind;
use crate::{Btf, Kind, Shape, StrOffset, TypeId};

/// Effect of a relocation on its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// The target lacks the access: the instruction becomes a call of a non-existent
    /// helper and must be unreachable.
    Poison,
    /// The operand is replaced.
    Value {
        /// Operand that the compiler must have written; `None` if it may choose (bit
        /// fields, type ids).
        expected: Option<u64>,
        /// Operand for the target.
        value: u64,
        /// Change of the size of a load or store.
        access: Access,
    },
}

/// Change of a load or store with the size of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Unchanged.
    AsIs,
    /// Change of size, for pointers and unsigned numbers.
    Resize {
        /// Size in the object in bytes.
        from: u32,
        /// Size in the target in bytes.
        to: u32,
    },
    /// The access would read a wrong value: a load or store is poisoned.
    Refuse,
}

/// Value at the end of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    value: u64,
    /// False if a compiler may have written another value.
    is_sure: bool,
    /// Size and type of the field that a load or store accesses; 0 and `void` for other
    /// kinds of relocation and for bit fields.
    size: u32,
    ty: TypeId,
}

impl Measure {
    fn of(value: u64) -> Measure {
        Measure {
            value,
            is_sure: true,
            size: 0,
            ty: TypeId::VOID,
        }
    }

    /// Value of a relocation in the type of its path.
    pub(crate) fn take(path: &Path<'_>) -> Result<Measure, CoreError> {
        match Subject::of(path.kind) {
            Some(Subject::Field) => Measure::take_field(path),
            Some(Subject::Type) => Measure::take_type(path),
            Some(Subject::EnumValue) => Ok(Measure::take_value(path)),
            None => Err(CoreError::UnknownKind { kind: path.kind }),
        }
    }

    /// Value if the target lacks the access; `None` if there is none.
    fn take_absent(kind: CoreKind) -> Option<Measure> {
        let is_answer = Subject::of(kind) == Some(Subject::Type)
            || matches!(kind, CoreKind::FIELD_EXISTS | CoreKind::ENUM_VALUE_EXISTS);
        is_answer.then_some(Measure::of(0))
    }

    fn take_type(path: &Path<'_>) -> Result<Measure, CoreError> {
        let number = Measure {
            is_sure: false,
            ..Measure::of(path.root.0.into())
        };
        match path.kind {
            CoreKind::TYPE_ID_LOCAL | CoreKind::TYPE_ID_TARGET => Ok(number),
            CoreKind::TYPE_SIZE => {
                let size = path.btf.size_of(path.root);
                let size = size.ok_or(CoreError::Unmeasurable { kind: path.kind })?;
                Ok(Measure::of(size.into()))
            }
            _ => Ok(Measure::of(1)),
        }
    }

    fn take_value(path: &Path<'_>) -> Measure {
        let found = path.steps.first().and_then(|step| {
            let Shape::Enum(of) = path.btf.at(step.ty).shape() else {
                return None;
            };
            let value = of.values().nth(step.index as usize)?;
            // A 32-bit enumerator is sign-extended, whatever its type.
            Some(match of.wide {
                true => value.value,
                false => value.value as i32 as u64,
            })
        });
        match path.kind {
            CoreKind::ENUM_VALUE => Measure::of(found.unwrap_or_default()),
            _ => Measure::of(1),
        }
    }

    fn take_field(path: &Path<'_>) -> Result<Measure, CoreError> {
        let kind = path.kind;
        if kind == CoreKind::FIELD_EXISTS {
            return Ok(Measure::of(1));
        }
        let unmeasurable = CoreError::Unmeasurable { kind };
        let step = path.steps.last().ok_or(unmeasurable)?;
        if step.name == StrOffset::EMPTY {
            return match kind {
                CoreKind::FIELD_BYTE_OFFSET => Ok(Measure {
                    size: element_size(path.btf, step.ty).ok_or(unmeasurable)?,
                    ty: step.ty,
                    ..Measure::of((path.bit_offset / 8).into())
                }),
                CoreKind::FIELD_BYTE_SIZE => {
                    let size = path.btf.size_of(step.ty).ok_or(unmeasurable)?;
                    Ok(Measure::of(size.into()))
                }
                _ => Err(unmeasurable),
            };
        }
        let composite = path.btf.at(step.ty).as_composite().ok_or(unmeasurable)?;
        let member = composite.member(step.index as usize).ok_or(unmeasurable)?;
        let ty = path
            .btf
            .skip_modifiers(member.ty)
            .ok_or(CoreError::TypeCycle)?;
        let place = match member.bits {
            0 => Place::of_whole(path, ty).ok_or(unmeasurable)?,
            bits => Place::of_bits(path, ty, bits)?,
        };
        let is_bit_field = member.bits != 0;
        let sure = |value: u64| Ok(Measure::of(value));
        let ambiguous = |value: u32| {
            Ok(Measure {
                is_sure: !is_bit_field,
                ..Measure::of(value.into())
            })
        };
        match kind {
            CoreKind::FIELD_BYTE_OFFSET if !is_bit_field => Ok(Measure {
                size: element_size(path.btf, ty).ok_or(unmeasurable)?,
                ty,
                ..Measure::of(place.offset.into())
            }),
            CoreKind::FIELD_BYTE_OFFSET => ambiguous(place.offset),
            CoreKind::FIELD_BYTE_SIZE => ambiguous(place.size),
            CoreKind::FIELD_SIGNED => sure(match path.btf.at(ty).shape() {
                Shape::Enum(of) => of.signed.into(),
                Shape::Int(int) => int.encoding.is_signed().into(),
                _ => 0,
            }),
            CoreKind::FIELD_LEFT_SHIFT => ambiguous(place.left_shift(path.bit_offset)),
            CoreKind::FIELD_RIGHT_SHIFT => sure(64u32.wrapping_sub(place.bits).into()),
            _ => Err(unmeasurable),
        }
    }
}

/// Bytes that contain a field.
struct Place {
    /// Offset in bytes from the start of the type.
    offset: u32,
    /// Size in bytes.
    size: u32,
    /// Width of the field in bits.
    bits: u32,
}

impl Place {
    fn of_whole(path: &Path<'_>, ty: TypeId) -> Option<Place> {
        let size = path.btf.size_of(ty)?;
        Some(Place {
            offset: path.bit_offset / 8,
            size,
            bits: size.wrapping_mul(8),
        })
    }

    /// Smallest load, not smaller than the declared type, that contains a bit field.
    fn of_bits(path: &Path<'_>, ty: TypeId, bits: u32) -> Result<Place, CoreError> {
        let declared = match path.btf.at(ty).shape() {
            Shape::Int(int) => int.size,
            Shape::Enum(of) => of.size,
            _ => 0,
        };
        let unmeasurable = CoreError::Unmeasurable { kind: path.kind };
        let mut size = Some(declared)
            .filter(|&size| size != 0)
            .ok_or(unmeasurable)?;
        let end = u64::from(path.bit_offset) + u64::from(bits);
        loop {
            let offset = path.bit_offset / 8 / size * size;
            if end <= (u64::from(offset) + u64::from(size)) * 8 {
                return Ok(Place { offset, size, bits });
            }
            if size >= 8 {
                return Err(CoreError::WideBitField);
            }
            size *= 2;
        }
    }

    /// Distance of the field's last bit from the last of 64.
    fn left_shift(&self, bit_offset: u32) -> u32 {
        let start = bit_offset.wrapping_sub(self.offset.wrapping_mul(8));
        64u32.wrapping_sub(start.wrapping_add(self.bits))
    }
}

/// Size in bytes of a type, or of the innermost element of an array.
fn element_size(btf: &Btf<'_>, ty: TypeId) -> Option<u32> {
    let mut ty = btf.skip_modifiers(ty)?;
    for _ in 0..btf.len() {
        match btf.at(ty).shape() {
            Shape::Array(array) => ty = btf.skip_modifiers(array.element)?,
            _ => return btf.size_of(ty),
        }
    }
    None
}

/// A path and the value at its end.
pub(crate) struct Measured<'p, 'b> {
    pub(crate) path: &'p Path<'b>,
    pub(crate) measure: Measure,
}

impl Resolution {
    /// Effect of a relocation with these values in object and target.
    pub(crate) fn new(local: &Measured<'_, '_>, target: Option<&Measured<'_, '_>>) -> Resolution {
        let (value, access) = match target {
            Some(target) => (target.measure.value, access(local, target)),
            None => match Measure::take_absent(local.path.kind) {
                Some(measure) => (measure.value, Access::AsIs),
                None => return Resolution::Poison,
            },
        };
        let measure = &local.measure;
        Resolution::Value {
            expected: measure.is_sure.then_some(measure.value),
            value,
            access,
        }
    }
}

fn access(local: &Measured<'_, '_>, target: &Measured<'_, '_>) -> Access {
    let sizes = (local.measure.size, target.measure.size);
    if sizes.0 == sizes.1 {
        return Access::AsIs;
    }
    let may_grow = |measured: &Measured<'_, '_>, kind: Kind| {
        let ty = measured.path.btf.at(measured.measure.ty);
        match ty.shape() {
            Shape::Int(int) => kind == Kind::Int && int.encoding != crate::Encoding::SIGNED,
            _ => ty.kind() == kind,
        }
    };
    let is_safe = [Kind::Ptr, Kind::Int]
        .into_iter()
        .any(|kind| may_grow(local, kind) && may_grow(target, kind));
    match is_safe {
        true => Access::Resize {
            from: sizes.0,
            to: sizes.1,
        },
        false => Access::Refuse,
    }
}
