//! Pointers: values that lead to other objects, which are made where they are not named.

use std::sync::Arc;

use btf::{Btf, TypeId};

use super::memory::ModelMemory;
use super::names::{begins_with, type_name, type_of};
use super::value::{ModelError, ModelValue};
use super::write::Target;

/// Addresses of sockets of each family stand for `sockaddr` without having it as a member.
const FAMILIES: &str = "sockaddr_";

impl ModelMemory {
    /// The address that a value is for a pointer to a type.
    pub(super) fn pointer(
        &mut self,
        at: &Target,
        to: TypeId,
        value: &ModelValue,
    ) -> Result<u64, ModelError> {
        let types = at.types.clone();
        let path = at.label.path.clone();
        let pointee = types.skip_modifiers(to).unwrap_or(TypeId::VOID);
        let is_composite = types
            .get(pointee)
            .is_some_and(|ty| ty.as_composite().is_some());
        let takes = || match is_composite {
            true => format!("{path} takes @NAME, {{…}} or null, not {value}"),
            false if pointee.is_void() => {
                format!(
                    "{path}, which is void *, takes @NAME, TYPE {{…}}, a text, hex or null, not {value}"
                )
            }
            false => format!("{path} takes @NAME, a text, [...], hex or null, not {value}"),
        };
        match value {
            ModelValue::Word(word) if word == "null" => Ok(0),
            ModelValue::Word(_) | ModelValue::BigEndian(_) => Err(takes().into()),
            // A mistake for @NAME: no object is there.
            ModelValue::Number(1..4096) if is_composite => Err(takes().into()),
            ModelValue::Number(number) => {
                u64::try_from(*number).map_err(|_| format!("{path}: {number} is no address").into())
            }
            ModelValue::Object(name, members) => {
                let (address, ty) = self.member(name, members)?;
                let is_family = type_name(&types, pointee) == "sockaddr"
                    && type_name(&self.types, ty).starts_with(FAMILIES);
                let is_other = !is_family && !begins_with(&self.types, ty, (&types, pointee));
                match is_composite && is_other {
                    true => Err(format!(
                        "{path} points to {}, and {value} is a {}",
                        type_name(&types, pointee),
                        type_name(&self.types, ty)
                    )
                    .into()),
                    false => Ok(address),
                }
            }
            ModelValue::User(inner) => {
                let at = Target {
                    is_user: true,
                    ..at.clone()
                };
                self.pointer(&at, to, inner)
            }
            ModelValue::Text(_) if is_composite => Err(takes().into()),
            ModelValue::Text(text) => {
                let bytes = [text.as_bytes(), &[0]].concat();
                self.allocate_bytes(at, &bytes)
            }
            ModelValue::Bytes(bytes) => self.allocate_bytes(at, bytes),
            ModelValue::Fields { ty, .. } => {
                let (types, id) = match ty {
                    Some(name) => (self.types.clone(), type_of(&self.types, name)?),
                    None if is_composite => (types, pointee),
                    None => {
                        return Err(format!(
                            "{path} points to {}: the type of the object is needed, as TYPE {{…}}",
                            type_name(&types, to)
                        )
                        .into());
                    }
                };
                let wanted = type_name(&at.types, pointee);
                let given = type_name(&types, id);
                let is_family = wanted == "sockaddr" && given.starts_with(FAMILIES);
                if is_composite && !is_family && !begins_with(&self.types, id, (&at.types, pointee))
                {
                    return Err(format!("{path} points to {wanted}, not to {given}").into());
                }
                let size = types.size_of(id).unwrap_or(0) as usize;
                self.allocate_typed(at, (types, id), size, |memory, inner| {
                    memory.put(inner, id, value)
                })
            }
            ModelValue::List(values) => {
                let each = match pointee.is_void() {
                    true => return Err(takes().into()),
                    false => types.size_of(pointee).unwrap_or(0) as usize,
                };
                let size = each.saturating_mul(values.len());
                let target = (types, TypeId::VOID);
                self.allocate_typed(at, target, size, |memory, inner| {
                    for (number, value) in values.iter().enumerate() {
                        let mut element = inner.clone();
                        element.offset = number * each;
                        element.label.path = format!("{}[{number}]", inner.label.path);
                        memory.put(&element, pointee, value)?;
                    }
                    Ok(())
                })
            }
        }
    }

    fn allocate_bytes(&mut self, at: &Target, bytes: &[u8]) -> Result<u64, ModelError> {
        let target = (at.types.clone(), TypeId::VOID);
        self.allocate_typed(at, target, bytes.len(), |memory, inner| {
            memory.store(inner, bytes);
            Ok(())
        })
    }

    /// Makes an object that a pointer leads to, and fills it.
    fn allocate_typed(
        &mut self,
        at: &Target,
        (types, ty): (Arc<Btf<'static>>, TypeId),
        size: usize,
        fill: impl FnOnce(&mut ModelMemory, &Target) -> Result<(), ModelError>,
    ) -> Result<u64, ModelError> {
        let object = self.allocate((types.clone(), ty), size, at.label.clone(), at.is_user)?;
        let inner = Target {
            types,
            object,
            offset: 0,
            label: at.label.clone(),
            is_user: at.is_user,
        };
        fill(self, &inner)?;
        Ok(object)
    }
}
