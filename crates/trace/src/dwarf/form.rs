//! Types of debug information by what they are made of.

use super::types::{Base, Type};
use super::{Debug, Variable};
use crate::type_ref::{FieldOf, NumberForm, TypeForm, TypeRef};

impl Debug {
    /// The type of a variable.
    pub(crate) fn type_of(&self, variable: &Variable) -> TypeRef<'_> {
        TypeRef::Debug(self, variable.kind)
    }

    /// The name of a type in C.
    pub(crate) fn name_of_type(&self, kind: Option<usize>) -> String {
        self.types.name(kind)
    }

    /// Bytes of a type.
    pub(crate) fn size_of_type(&self, kind: usize) -> Option<usize> {
        self.types.size(kind)
    }

    /// What a type is made of.
    pub(crate) fn form(&self, kind: Option<usize>) -> TypeForm<'_> {
        let of = |kind: Option<usize>| TypeRef::Debug(self, kind);
        match self.types.resolved(kind) {
            Some(Type::Base { base, .. }) => TypeForm::Number(match base {
                Base::Bool => NumberForm::Bool,
                Base::Signed => NumberForm::Signed,
                Base::Unsigned => NumberForm::Unsigned,
                Base::SignedChar => NumberForm::SignedChar,
                Base::UnsignedChar => NumberForm::UnsignedChar,
                Base::Float => NumberForm::Float,
            }),
            Some(Type::Pointer(target)) => TypeForm::Pointer(of(*target)),
            Some(Type::Composite { members, .. }) => {
                let members = members.iter().map(|member| FieldOf {
                    name: member.name.clone(),
                    kind: of(member.kind),
                    bit_offset: member.bit_offset,
                    bits: member.bits,
                });
                TypeForm::Composite(members.collect())
            }
            Some(Type::Array { of: element, count }) => TypeForm::Array {
                of: of(*element),
                count: *count,
            },
            Some(Type::Enum { values, .. }) => TypeForm::Enum {
                is_signed: values.iter().any(|(_, value)| *value < 0),
                values: values.clone(),
            },
            Some(Type::Typedef { .. } | Type::Modifier { .. } | Type::Function) | None => {
                TypeForm::Opaque
            }
        }
    }

    /// First slots of the ranges in which a function is inlined into another one, from the first
    /// slot of that one on.
    pub(crate) fn inlined_starts(&self, function: &super::Function, name: &str) -> Vec<u32> {
        let inlined = function.inlined.iter().filter(|it| it.name == name);
        let starts = inlined.filter_map(|it| {
            let first = it.ranges.iter().map(|range| range.start).min()?;
            let offset = first.checked_sub(function.addresses.start)?;
            u32::try_from(offset / 8).ok()
        });
        starts.collect()
    }
}
