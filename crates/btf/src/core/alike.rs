//! Structural match of a type of the object with one of the target: the relocation
//! `type_matches` (`bpf_core_type_matches`).
//!
//! Names must be equal but for flavours, integers must have equal size and sign, and the
//! target must have every part of the object's type: members with matching types,
//! enumerators by name, parameters in order. Behind a pointer the name of a structure
//! suffices, and the target may have a forward declaration.

use super::CoreError;
use super::compatible::{Comparison, Pair};
use crate::{Composite, Enum, FwdKind, Shape};

/// Maximum depth of nesting.
const MAX_LEVELS: u32 = 32;
/// Maximum length of a chain of pointers, arrays and return types.
const MAX_CHAIN: usize = 32;

impl<'b> Comparison<'b> {
    /// True if the type of the object matches that of the target (`bpf_core_types_match`).
    #[doc(alias = "bpf_core_types_match")]
    pub(crate) fn types_match(&mut self, pair: Pair) -> Result<bool, CoreError> {
        self.types_match_at(pair, false, MAX_LEVELS)
    }

    fn types_match_at(
        &mut self,
        pair: Pair,
        behind_pointer: bool,
        level: u32,
    ) -> Result<bool, CoreError> {
        if level == 0 {
            return Err(CoreError::TypeCycle);
        }
        let mut pair = pair;
        let mut behind_pointer = behind_pointer;
        for _ in 0..MAX_CHAIN {
            let types = self.plain(pair)?;
            if !self.names_match(types.0.name_offset(), types.1.name_offset()) {
                return Ok(false);
            }
            pair = match (types.0.shape(), types.1.shape()) {
                (Shape::Void, Shape::Void) => return Ok(true),
                (Shape::Int(local), Shape::Int(target)) => {
                    let signs = (local.encoding.is_signed(), target.encoding.is_signed());
                    return Ok(local.size == target.size && signs.0 == signs.1);
                }
                (Shape::Enum(local), Shape::Enum(target)) => {
                    return self.values_match(local, target);
                }
                (Shape::Fwd(local), Shape::Fwd(target)) => return Ok(local == target),
                (Shape::Struct(_), Shape::Struct(_)) | (Shape::Union(_), Shape::Union(_))
                    if behind_pointer =>
                {
                    return Ok(true);
                }
                (Shape::Struct(local), Shape::Struct(target))
                | (Shape::Union(local), Shape::Union(target)) => {
                    return self.members_match(local, target, level);
                }
                (Shape::Struct(_), Shape::Fwd(FwdKind::Struct))
                | (Shape::Union(_), Shape::Fwd(FwdKind::Union))
                | (Shape::Fwd(FwdKind::Struct), Shape::Struct(_))
                | (Shape::Fwd(FwdKind::Union), Shape::Union(_)) => return Ok(behind_pointer),
                (Shape::Ptr(local), Shape::Ptr(target)) => {
                    behind_pointer = true;
                    (local, target)
                }
                (Shape::Array(local), Shape::Array(target)) => {
                    if local.count != target.count {
                        return Ok(false);
                    }
                    (local.element, target.element)
                }
                (Shape::Proto(local), Shape::Proto(target)) => {
                    if local.params().len() != target.params().len() {
                        return Ok(false);
                    }
                    for (local, target) in local.params().zip(target.params()) {
                        let pair = (local.ty, target.ty);
                        if !self.types_match_at(pair, behind_pointer, level - 1)? {
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

    /// True if the target's enumeration has an enumerator with each name.
    fn values_match(&mut self, local: Enum<'b>, target: Enum<'b>) -> Result<bool, CoreError> {
        if local.size != target.size || local.values().len() > target.values().len() {
            return Ok(false);
        }
        for wanted in local.values() {
            let mut is_there = false;
            for value in target.values() {
                self.step()?;
                if self.names_match(wanted.name, value.name) {
                    is_there = true;
                    break;
                }
            }
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if the target's structure has a matching member for each member.
    fn members_match(
        &mut self,
        local: Composite<'b>,
        target: Composite<'b>,
        level: u32,
    ) -> Result<bool, CoreError> {
        if local.members().len() > target.members().len() {
            return Ok(false);
        }
        for wanted in local.members() {
            let mut is_there = false;
            for member in target.members() {
                self.step()?;
                if self.names_match(wanted.name, member.name)
                    && self.types_match_at((wanted.ty, member.ty), false, level - 1)?
                {
                    is_there = true;
                    break;
                }
            }
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
