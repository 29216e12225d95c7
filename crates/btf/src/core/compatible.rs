//! Compatibility of a type of the object with one of the target
//! (`bpf_core_fields_are_compat`, `bpf_core_types_are_compat`).
//!
//! Modifiers are ignored. Fields are compatible if both are structures or unions,
//! pointers, or numbers of the same kind; enumerations if their names are equal or one is
//! anonymous; arrays if their elements are. For whole types, pointers and prototypes are
//! followed too.

use super::{CoreError, essential_name};
use crate::layout::MAX_MODIFIERS;
use crate::{Btf, Kind, Shape, StrOffset, Type, TypeId};

/// Maximum length of a chain of pointers, arrays and return types.
const MAX_CHAIN: usize = 32;
/// Maximum depth of prototypes.
const MAX_LEVELS: u32 = 32;
/// Maximum number of steps for one relocation: modifiers skipped, members visited, types
/// compared.
const MAX_WORK: u32 = 1 << 20;

/// BTF of object and target, with the remaining budget of steps.
pub(crate) struct Comparison<'b> {
    pub(crate) local: &'b Btf<'b>,
    pub(crate) target: &'b Btf<'b>,
    work: u32,
}

/// Type ids in the object and in the target.
pub(crate) type Pair = (TypeId, TypeId);

impl<'b> Comparison<'b> {
    pub(crate) fn new(local: &'b Btf<'b>, target: &'b Btf<'b>) -> Comparison<'b> {
        Comparison {
            local,
            target,
            work: MAX_WORK,
        }
    }

    /// Limits the steps to the rest of a shared budget.
    pub(crate) fn within(self, left: u32) -> Comparison<'b> {
        let work = self.work.min(left);
        Comparison { work, ..self }
    }

    /// Remaining number of steps.
    pub(crate) fn work_left(&self) -> u32 {
        self.work
    }

    /// Counts a step.
    pub(crate) fn step(&mut self) -> Result<(), CoreError> {
        self.work = self.work.checked_sub(1).ok_or(CoreError::TooComplex)?;
        Ok(())
    }

    /// Types below the modifiers.
    pub(crate) fn plain(&mut self, (local, target): Pair) -> Result<Types<'b>, CoreError> {
        Ok((
            self.skip(self.local, local)?,
            self.skip(self.target, target)?,
        ))
    }

    /// Type of the target below the modifiers.
    pub(crate) fn plain_target(&mut self, id: TypeId) -> Result<Type<'b>, CoreError> {
        self.skip(self.target, id)
    }

    fn skip(&mut self, btf: &'b Btf<'b>, id: TypeId) -> Result<Type<'b>, CoreError> {
        let mut ty = btf.at(id);
        for _ in 0..=MAX_MODIFIERS {
            self.step()?;
            match ty.referred() {
                Some(to) if ty.kind().is_modifier() => ty = btf.at(to),
                _ => return Ok(ty),
            }
        }
        Err(CoreError::TypeCycle)
    }

    /// True if a field of the first type can be read as one of the second
    /// (`bpf_core_fields_are_compat`).
    #[doc(alias = "bpf_core_fields_are_compat")]
    pub(crate) fn fields_fit(&mut self, pair: Pair) -> Result<bool, CoreError> {
        let mut pair = pair;
        for _ in 0..self.local.len() {
            let types = self.plain(pair)?;
            if types.0.kind().is_composite() && types.1.kind().is_composite() {
                return Ok(true);
            }
            if !have_one_kind(types) {
                return Ok(false);
            }
            return Ok(match (types.0.shape(), types.1.shape()) {
                (Shape::Ptr(_) | Shape::Float(_), _) => true,
                (Shape::Int(local), Shape::Int(target)) => local.offset == 0 && target.offset == 0,
                (Shape::Fwd(_) | Shape::Enum(_), _) => {
                    let local = essential_name(types.0.name().as_bytes());
                    let target = essential_name(types.1.name().as_bytes());
                    local.is_empty() || target.is_empty() || local == target
                }
                (Shape::Array(local), Shape::Array(target)) => {
                    pair = (local.element, target.element);
                    continue;
                }
                _ => false,
            });
        }
        Err(CoreError::TypeCycle)
    }

    /// True if two types of the same name are compatible (`bpf_core_types_are_compat`).
    #[doc(alias = "bpf_core_types_are_compat")]
    pub(crate) fn types_fit(&mut self, pair: Pair) -> Result<bool, CoreError> {
        self.types_fit_at(pair, MAX_LEVELS)
    }

    fn types_fit_at(&mut self, pair: Pair, level: u32) -> Result<bool, CoreError> {
        let mut pair = pair;
        for _ in 0..MAX_CHAIN {
            let types = self.plain(pair)?;
            if !have_one_kind(types) {
                return Ok(false);
            }
            pair = match (types.0.shape(), types.1.shape()) {
                (
                    Shape::Void
                    | Shape::Struct(_)
                    | Shape::Union(_)
                    | Shape::Enum(_)
                    | Shape::Fwd(_),
                    _,
                ) => return Ok(true),
                (Shape::Int(local), Shape::Int(target)) => {
                    return Ok(local.offset == 0 && target.offset == 0);
                }
                (Shape::Ptr(local), Shape::Ptr(target)) => (local, target),
                (Shape::Array(local), Shape::Array(target)) => (local.element, target.element),
                (Shape::Proto(local), Shape::Proto(target)) => {
                    if local.params().len() != target.params().len() {
                        return Ok(false);
                    }
                    for (local, target) in local.params().zip(target.params()) {
                        let level = level.checked_sub(1).ok_or(CoreError::TypeCycle)?;
                        if !self.types_fit_at((local.ty, target.ty), level)? {
                            return Ok(false);
                        }
                    }
                    (local.returns, target.returns)
                }
                _ => return Ok(false),
            };
        }
        Err(CoreError::TypeCycle)
    }

    /// True if the names are equal but for flavours.
    pub(crate) fn names_match(&self, local: StrOffset, target: StrOffset) -> bool {
        let local = essential_name(self.local.string(local).as_bytes());
        let target = essential_name(self.target.string(target).as_bytes());
        local == target
    }
}

/// A type of the object and one of the target.
pub(crate) type Types<'b> = (Type<'b>, Type<'b>);

/// True if both are of the same kind; ENUM and ENUM64 are one kind.
pub(crate) fn have_one_kind((local, target): Types<'_>) -> bool {
    let plain = |kind| match kind {
        Kind::Enum64 => Kind::Enum,
        kind => kind,
    };
    plain(local.kind()) == plain(target.kind())
}
