//! Values put into given memory by type.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use btf::{Btf, Kind, Shape, TypeId};
use spec::Errno;

use super::memory::{Label, ModelMemory};
use super::names::{Place, member, nearest, type_name, type_of};
use super::value::ModelValue;

/// Largest error number of Linux (`MAX_ERRNO`) of those with names.
const LAST_ERRNO: i32 = 531;

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
    pub fn give(&mut self, name: &str, value: &ModelValue) -> Result<(), String> {
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
    ) -> Result<(), String> {
        let types = at.types.clone();
        let id = types.skip_modifiers(ty).unwrap_or(TypeId::VOID);
        let size = types.size_of(id).unwrap_or(0) as usize;
        let path = &at.label.path;
        let Some(found) = types.get(id) else {
            return Err(format!("{path} has no type"));
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
                )),
            },
        }
    }

    /// A value of a type as the word of 64 bits that an argument or a result is.
    pub(super) fn word(
        &mut self,
        at: &Target,
        ty: TypeId,
        value: &ModelValue,
    ) -> Result<u64, String> {
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
            )),
        }
    }

    /// The bytes of a value of a type without a place, and which of them it names.
    pub(super) fn encode(
        &mut self,
        at: &Target,
        ty: TypeId,
        value: &ModelValue,
    ) -> Result<(Vec<u8>, Vec<bool>), String> {
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
            object.given[start..end].fill(true);
        }
    }

    /// An integer or enumeration, extended to 64 bits.
    fn scalar(
        &mut self,
        at: &Target,
        id: TypeId,
        size: usize,
        value: &ModelValue,
    ) -> Result<u64, String> {
        let size = size.clamp(1, 8);
        let (path, types) = (&at.label.path, &at.types);
        let name = || type_name(types, id);
        let number = match value {
            ModelValue::Number(number) => *number,
            ModelValue::Word(word) => self.constant(at, id, word)?,
            ModelValue::BigEndian(number) => {
                let mut bytes = number.to_be_bytes();
                if size < 8 && number >> (8 * size) != 0 {
                    return Err(format!("{path}: {number} has more than {size} bytes"));
                }
                bytes.rotate_left(8 - size);
                bytes[size..].fill(0);
                i128::from(u64::from_le_bytes(bytes))
            }
            ModelValue::Text(text) => match text.parse::<Ipv4Addr>() {
                Ok(address) if size == 4 => i128::from(u32::from_le_bytes(address.octets())),
                _ => return Err(format!("{path}, {}, takes a number, not {value}", name())),
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
                return Err(format!("{path}, {}, takes a number, not {value}", name()));
            }
        };
        let bits = 8 * size as u32;
        let fits = number >= -(1i128 << (bits - 1)) && number < 1i128 << bits;
        match fits {
            true => Ok(number as u64),
            false => Err(format!(
                "{path}: {number} does not fit into {} ({bits} bits)",
                name()
            )),
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
        let mut errors = (1..=LAST_ERRNO).map(Errno);
        if let Some(error) = errors.find(|error| error.name() == Some(name)) {
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
            "{path}: the kernel has no enumerator {word}; texts have quotes, objects an @"
        ))
    }

    /// The address that a value is for a pointer to a type.
    fn pointer(&mut self, at: &Target, to: TypeId, value: &ModelValue) -> Result<u64, String> {
        let types = at.types.clone();
        let path = at.label.path.clone();
        let pointee = types.skip_modifiers(to).unwrap_or(TypeId::VOID);
        let is_composite = types
            .get(pointee)
            .is_some_and(|ty| ty.as_composite().is_some());
        let takes = || match is_composite {
            true => format!("{path} takes @NAME, {{…}} or null, not {value}"),
            false => format!("{path} takes @NAME, a text, [...], hex or null, not {value}"),
        };
        match value {
            ModelValue::Word(word) if word == "null" => Ok(0),
            ModelValue::Word(_) | ModelValue::BigEndian(_) => Err(takes()),
            ModelValue::Number(number) => {
                u64::try_from(*number).map_err(|_| format!("{path}: {number} is no address"))
            }
            ModelValue::Object(name, members) => {
                let (address, ty) = self.member(name, members)?;
                match is_composite && !begins_with(&self.types, ty, (&types, pointee)) {
                    true => Err(format!(
                        "{path} points to {}, and {value} is a {}",
                        type_name(&types, pointee),
                        type_name(&self.types, ty)
                    )),
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
            ModelValue::Text(_) if is_composite => Err(takes()),
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
                        ));
                    }
                };
                let size = types.size_of(id).unwrap_or(0) as usize;
                self.allocate_typed(at, (types, id), size, |memory, inner| {
                    memory.put(inner, id, value)
                })
            }
            ModelValue::List(values) => {
                let each = match pointee.is_void() {
                    true => return Err(takes()),
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

    fn allocate_bytes(&mut self, at: &Target, bytes: &[u8]) -> Result<u64, String> {
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
        fill: impl FnOnce(&mut ModelMemory, &Target) -> Result<(), String>,
    ) -> Result<u64, String> {
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

    fn put_composite(
        &mut self,
        at: &Target,
        id: TypeId,
        size: usize,
        value: &ModelValue,
    ) -> Result<(), String> {
        let types = at.types.clone();
        let path = &at.label.path;
        let (ty, fields, others_are_zero) = match value {
            ModelValue::Fields {
                ty,
                fields,
                others_are_zero,
            } => (ty, fields, *others_are_zero),
            ModelValue::Bytes(bytes) if bytes.len() == size => {
                self.store(at, bytes);
                return Ok(());
            }
            ModelValue::Text(text) if size == 16 => {
                let address = text.parse::<Ipv6Addr>();
                let address = address.map_err(|_| format!("{path}: {value} is no IPv6 address"))?;
                self.store(at, &address.octets());
                return Ok(());
            }
            // Wrappers of one member, as kuid_t and atomic_t.
            ModelValue::Number(_) | ModelValue::Word(_) => {
                let composite = types.get(id).and_then(|ty| ty.as_composite());
                let mut members = composite.iter().flat_map(|it| it.members());
                return match (members.next(), members.next()) {
                    (Some(only), None) => self.put(at, only.ty, value),
                    _ => Err(format!(
                        "{path}, {}, takes {{…}}, not {value}",
                        type_name(&types, id)
                    )),
                };
            }
            _ => {
                return Err(format!(
                    "{path}, {}, takes {{…}}, not {value}",
                    type_name(&types, id)
                ));
            }
        };
        if let Some(given) = ty
            && type_name(&types, id) != *given
        {
            let is_it = type_of(&types, given)
                .ok()
                .and_then(|ty| types.skip_modifiers(ty));
            if is_it != Some(id) {
                return Err(format!(
                    "{path} is a {}, not a {given}",
                    type_name(&types, id)
                ));
            }
        }
        if others_are_zero {
            let mut objects = self.objects_mut();
            if let Some(object) = objects.get_mut(&at.object) {
                object.given[at.offset..at.offset + size].fill(true);
            }
        }
        for (names, value) in fields {
            let place = match member(&types, id, names) {
                Ok(place) => place,
                Err(error) => match self.put_location(at, id, names, value)? {
                    true => continue,
                    false => return Err(error),
                },
            };
            let mut inner = at.clone();
            inner.offset += place.offset;
            inner.label.path = format!("{path}.{}", names.join("."));
            match place.bits {
                None => self.put(&inner, place.ty, value)?,
                Some(bits) => self.put_bits(&inner, place, bits, value)?,
            }
        }
        Ok(())
    }

    fn put_bits(
        &mut self,
        at: &Target,
        place: Place,
        (first, count): (u32, u32),
        value: &ModelValue,
    ) -> Result<(), String> {
        let size = at.types.size_of(place.ty).unwrap_or(0) as usize;
        let id = at.types.skip_modifiers(place.ty).unwrap_or(TypeId::VOID);
        let number = self.scalar(at, id, size, value)?;
        let mask = if count >= 64 {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        let negative = number as i64;
        if number & mask != number && negative >> (count - 1) != -1 {
            let path = &at.label.path;
            return Err(format!("{path}: {value} does not fit into {count} bits"));
        }
        let mut unit = [0; 8];
        {
            let objects = self.objects();
            let bytes = &objects[&at.object].bytes;
            let end = (at.offset + size).min(bytes.len());
            unit[..end - at.offset].copy_from_slice(&bytes[at.offset..end]);
        }
        let old = u64::from_le_bytes(unit);
        let new = old & !(mask << first) | (number & mask) << first;
        self.store(at, &new.to_le_bytes()[..size]);
        Ok(())
    }

    /// Puts the text of a field of a tracepoint behind its record; false if there is no such field.
    fn put_location(
        &mut self,
        at: &Target,
        id: TypeId,
        names: &[String],
        value: &ModelValue,
    ) -> Result<bool, String> {
        let [name] = names else {
            return Ok(false);
        };
        let location = [format!("__data_loc_{name}")];
        let (Ok(place), ModelValue::Text(text)) = (member(&at.types, id, &location), value) else {
            return Ok(false);
        };
        let bytes = [text.as_bytes(), &[0]].concat();
        let behind = {
            let mut objects = self.objects_mut();
            let Some(object) = objects.get_mut(&at.object) else {
                return Ok(false);
            };
            let behind = object.bytes.len();
            object.bytes.extend(&bytes);
            object.given.resize(behind + bytes.len(), true);
            behind
        };
        let word = (bytes.len() as u32) << 16 | behind as u32 & 0xffff;
        let mut inner = at.clone();
        inner.offset += place.offset;
        self.store(&inner, &word.to_le_bytes());
        Ok(true)
    }

    fn put_array(
        &mut self,
        at: &Target,
        (element, count): (TypeId, u32),
        value: &ModelValue,
    ) -> Result<(), String> {
        let types = at.types.clone();
        let each = types.size_of(element).unwrap_or(0) as usize;
        let size = each * count as usize;
        let path = &at.label.path;
        let is_char = type_name(&types, element) == "char";
        let bytes = match value {
            ModelValue::Text(text) if !is_char && text.parse::<Ipv4Addr>().is_ok() && size == 4 => {
                let address: Ipv4Addr = text.parse().unwrap_or(Ipv4Addr::UNSPECIFIED);
                address.octets().to_vec()
            }
            ModelValue::Text(text)
                if !is_char && text.parse::<Ipv6Addr>().is_ok() && size == 16 =>
            {
                let address: Ipv6Addr = text.parse().unwrap_or(Ipv6Addr::UNSPECIFIED);
                address.octets().to_vec()
            }
            ModelValue::Text(text) if each == 1 => {
                if text.len() >= size {
                    return Err(format!(
                        "{path} has room for {} bytes of text",
                        size.saturating_sub(1)
                    ));
                }
                let mut bytes = text.clone().into_bytes();
                bytes.resize(size, 0);
                bytes
            }
            ModelValue::Bytes(bytes) if bytes.len() <= size => bytes.clone(),
            ModelValue::List(values) if values.len() <= count as usize => {
                for (number, value) in values.iter().enumerate() {
                    let mut inner = at.clone();
                    inner.offset += number * each;
                    inner.label.path = format!("{path}[{number}]");
                    self.put(&inner, element, value)?;
                }
                return Ok(());
            }
            ModelValue::List(_) => return Err(format!("{path} has {count} elements")),
            _ => {
                let what = if each == 1 {
                    "a text, hex or [...]"
                } else {
                    "[...] or hex"
                };
                return Err(format!("{path} takes {what}, not {value}"));
            }
        };
        self.store(at, &bytes);
        Ok(())
    }
}

/// True if a type is another one, or has it as its first member and so on.
fn begins_with(types: &Btf<'_>, ty: TypeId, (others, other): (&Btf<'_>, TypeId)) -> bool {
    let wanted = type_name(others, other);
    let mut id = ty;
    for _ in 0..16 {
        let Some(found) = types.skip_modifiers(id) else {
            return false;
        };
        if type_name(types, found) == wanted {
            return true;
        }
        let composite = types.get(found).and_then(|ty| ty.as_composite());
        match composite.and_then(|composite| composite.member(0)) {
            Some(first) if first.bit_offset == 0 => id = first.ty,
            _ => return false,
        }
    }
    false
}
