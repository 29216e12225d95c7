//! Values put into given memory by type.

use std::net::Ipv4Addr;
use std::sync::Arc;

use btf::{Btf, Kind, Shape, TypeId};
use spec::Errno;

use super::memory::{Label, ModelMemory};
use super::names::{nearest, type_name};
use super::value::{ModelError, ModelValue};

/// Where a value goes.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) types: Arc<Btf<'static>>,
    /// Start of the object.
    pub(super) object: u64,
    /// Offset in it.
    pub(super) offset: usize,
    /// Its name in messages.
    pub(super) label: Label,
    /// Pointers that are made lead to memory of the process.
    pub(super) is_user: bool,
}

impl ModelMemory {
    /// Gives members of a named object.
    ///
    /// # Errors
    /// If a member is unknown or does not take its value, with the path of the member.
    pub fn give(&mut self, name: &str, value: &ModelValue) -> Result<(), ModelError> {
        let object = self.address(name)?;
        let (types, ty, label) = {
            let objects = self.objects();
            let of = &objects[&object];
            (of.types.clone(), of.ty, of.label.clone())
        };
        let target = Target {
            types,
            object,
            offset: 0,
            label,
            is_user: false,
        };
        self.put(&target, ty, value)
    }

    /// Puts a value of a type into a place.
    pub(super) fn put(
        &mut self,
        at: &Target,
        ty: TypeId,
        value: &ModelValue,
    ) -> Result<(), ModelError> {
        let types = at.types.clone();
        let id = types.skip_modifiers(ty).unwrap_or(TypeId::VOID);
        let size = types.size_of(id).unwrap_or(0) as usize;
        let path = &at.label.path;
        let Some(found) = types.get(id) else {
            return Err(format!("{path} has no type").into());
        };
        match found.shape() {
            Shape::Ptr(to) => {
                let address = self.pointer(at, to, value)?;
                self.store(at, &address.to_le_bytes());
                Ok(())
            }
            Shape::Struct(_) | Shape::Union(_) => self.put_composite(at, id, size, value),
            Shape::Array(array) => self.put_array(at, (array.element, array.count), value),
            Shape::Int(_) | Shape::Enum(_) => {
                let number = self.scalar(at, id, size, value)?;
                let mut bytes = number.to_le_bytes().to_vec();
                bytes.resize(size, 0);
                self.store(at, &bytes);
                Ok(())
            }
            _ => match value {
                ModelValue::Bytes(bytes) if bytes.len() == size => {
                    self.store(at, bytes);
                    Ok(())
                }
                _ => Err(format!(
                    "{path}, {}, takes {size} bytes as hex",
                    type_name(&types, ty)
                )
                .into()),
            },
        }
    }

    /// A value of a type as the word of 64 bits that an argument or a result is.
    pub(super) fn word(
        &mut self,
        at: &Target,
        ty: TypeId,
        value: &ModelValue,
    ) -> Result<u64, ModelError> {
        let types = at.types.clone();
        let id = types.skip_modifiers(ty).unwrap_or(TypeId::VOID);
        let size = types.size_of(id).unwrap_or(8) as usize;
        match types.get(id).map(|found| found.shape()) {
            Some(Shape::Ptr(to)) => self.pointer(at, to, value),
            Some(Shape::Int(_) | Shape::Enum(_)) => self.scalar(at, id, size.min(8), value),
            _ => Err(format!(
                "{}, {}, is no number and no pointer",
                at.label.path,
                type_name(&types, ty)
            )
            .into()),
        }
    }

    /// The bytes of a value of a type without a place, and which bits of them it names.
    pub(super) fn encode(
        &mut self,
        at: &Target,
        ty: TypeId,
        value: &ModelValue,
    ) -> Result<(Vec<u8>, Vec<u8>), ModelError> {
        let size = at.types.size_of(ty).unwrap_or(0) as usize;
        let place = (at.types.clone(), ty);
        let object = self.allocate(place, size, at.label.clone(), false)?;
        let mut at = at.clone();
        (at.object, at.offset) = (object, 0);
        self.put(&at, ty, value)?;
        let removed = self.objects_mut().remove(&object);
        Ok(removed
            .map(|object| (object.bytes, object.given))
            .unwrap_or_default())
    }

    /// Copies bytes to a place, which are given then.
    pub(super) fn store(&self, at: &Target, bytes: &[u8]) {
        let mut objects = self.objects_mut();
        if let Some(object) = objects.get_mut(&at.object) {
            let end = (at.offset + bytes.len()).min(object.bytes.len());
            let start = at.offset.min(end);
            object.bytes[start..end].copy_from_slice(&bytes[..end - start]);
            object.given[start..end].fill(0xff);
        }
    }

    /// An integer or enumeration, extended to 64 bits.
    pub(super) fn scalar(
        &mut self,
        at: &Target,
        id: TypeId,
        size: usize,
        value: &ModelValue,
    ) -> Result<u64, ModelError> {
        let size = size.clamp(1, 8);
        let (path, types) = (&at.label.path, &at.types);
        let name = || type_name(types, id);
        let number = match value {
            ModelValue::Number(number) => *number,
            ModelValue::Word(word) => self.constant(at, id, word)?,
            ModelValue::BigEndian(number) => {
                let mut bytes = number.to_be_bytes();
                if size < 8 && number >> (8 * size) != 0 {
                    return Err(format!("{path}: {number} has more than {size} bytes").into());
                }
                bytes.rotate_left(8 - size);
                bytes[size..].fill(0);
                i128::from(u64::from_le_bytes(bytes))
            }
            ModelValue::Text(text) => match text.parse::<Ipv4Addr>() {
                Ok(address) if size == 4 => i128::from(u32::from_le_bytes(address.octets())),
                _ if size == 4 && text.matches('.').count() == 3 => {
                    let what = "an IPv4 address or a number";
                    return Err(format!("{path}, {}, takes {what}, not {value}", name()).into());
                }
                _ => return Err(format!("{path}, {}, takes a number, not {value}", name()).into()),
            },
            ModelValue::Bytes(bytes) if bytes.len() == size => {
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(bytes);
                i128::from(u64::from_le_bytes(wide))
            }
            // Numbers that are addresses: registers, arguments of system calls.
            ModelValue::Object(..)
            | ModelValue::User(_)
            | ModelValue::Fields { ty: Some(_), .. }
                if size == 8 =>
            {
                i128::from(self.pointer(at, TypeId::VOID, value)?)
            }
            ModelValue::Object(..)
            | ModelValue::User(_)
            | ModelValue::Fields { .. }
            | ModelValue::List(_)
            | ModelValue::Bytes(_) => {
                return Err(format!("{path}, {}, takes a number, not {value}", name()).into());
            }
        };
        let bits = 8 * size as u32;
        let fits = number >= -(1i128 << (bits - 1)) && number < 1i128 << bits;
        match fits {
            true => Ok(number as u64),
            false => Err(format!(
                "{path}: {number} does not fit into {} ({bits} bits)",
                name()
            )
            .into()),
        }
    }

    /// The number that a word stands for: of the enumeration itself, of any, or an error.
    fn constant(&self, at: &Target, id: TypeId, word: &str) -> Result<i128, String> {
        let types = &at.types;
        match word {
            "true" => return Ok(1),
            "false" | "null" => return Ok(0),
            _ => {}
        }
        let (is_negative, name) = match word.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, word),
        };
        if let Some(error) = Errno::from_name(name) {
            let number = i128::from(error.0);
            return Ok(if is_negative { -number } else { number });
        }
        let values = |id: TypeId| match types.get(id).map(|ty| ty.shape()) {
            Some(Shape::Enum(of)) => of
                .values()
                .map(|value| (types.string(value.name), value.value, of.signed))
                .collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        let of_type = values(id);
        let is_it = |known: &(btf::Name<'_>, u64, bool)| known.0.as_bytes() == name.as_bytes();
        let number = |(_, value, signed): (btf::Name<'_>, u64, bool)| match signed {
            true => i128::from(value as i64),
            false => i128::from(value),
        };
        if let Some(found) = of_type.iter().find(|known| is_it(known)) {
            return Ok(number(*found));
        }
        let path = &at.label.path;
        if !of_type.is_empty() {
            let known = of_type.iter().filter_map(|(name, ..)| name.to_str());
            let near = nearest(name, known);
            return Err(format!(
                "{path}: {} has no value {word}{near}",
                type_name(types, id)
            ));
        }
        let enums = [Kind::Enum, Kind::Enum64];
        let all = enums.iter().flat_map(|kind| types.of_kind(*kind));
        for of in all {
            if let Some(found) = values(of.id()).into_iter().find(|known| is_it(known)) {
                return Ok(number(found));
            }
        }
        Err(format!(
            "{path}: the kernel has no enumerator {word}; macros of C as AF_INET are given as numbers, texts \
             have quotes, objects an @"
        ))
    }
}
