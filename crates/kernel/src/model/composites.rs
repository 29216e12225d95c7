//! Values of structures, bit fields and arrays.

use std::net::{Ipv4Addr, Ipv6Addr};

use btf::TypeId;

use super::memory::ModelMemory;
use super::names::{Place, member, type_name, type_of};
use super::value::{MemberPath, ModelError, ModelValue};
use super::write::Target;

/// Bits of a structure that a member has: the first one, and that behind the last.
#[derive(Clone, Copy)]
struct Bits(usize, usize);

impl Bits {
    fn of(place: Place, size: usize) -> Bits {
        let (first, count) = match place.bits {
            None => (0, 8 * size),
            Some((first, count)) => (first as usize, count as usize),
        };
        let start = 8 * place.offset + first;
        Bits(start, start + count)
    }

    fn meet(self, other: Bits) -> bool {
        self.0 < other.1 && other.0 < self.1
    }
}

impl ModelMemory {
    /// Puts a structure or union.
    pub(super) fn put_composite(
        &mut self,
        at: &Target,
        id: TypeId,
        size: usize,
        value: &ModelValue,
    ) -> Result<(), ModelError> {
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
                    )
                    .into()),
                };
            }
            _ => {
                return Err(format!(
                    "{path}, {}, takes {{…}}, not {value}",
                    type_name(&types, id)
                )
                .into());
            }
        };
        if let Some(given) = ty
            && type_name(&types, id) != *given
        {
            let is_it = type_of(&types, given)
                .ok()
                .and_then(|ty| types.skip_modifiers(ty));
            if is_it != Some(id) {
                return Err(format!("{path} is a {}, not a {given}", type_name(&types, id)).into());
            }
        }
        if others_are_zero {
            let mut objects = self.objects_mut();
            if let Some(object) = objects.get_mut(&at.object) {
                let end = (at.offset + size).min(object.given.len());
                object.given[at.offset.min(end)..end].fill(0xff);
            }
        }
        let mut taken: Vec<(Bits, &MemberPath)> = Vec::new();
        for (names, value) in fields {
            let (name_at, value_at) = names.written.unzip();
            let place = match member(&types, id, names) {
                Ok(place) => place,
                Err(error) => match self.put_location(at, id, names, value)? {
                    true => continue,
                    false => return Err(ModelError::from(error).within(name_at)),
                },
            };
            let bits = Bits::of(place, types.size_of(place.ty).unwrap_or(0) as usize);
            if let Some((_, other)) = taken.iter().find(|(known, _)| known.meet(bits)) {
                let what = format!(
                    "{path}.{} has bytes of {path}.{}, which is given beside it",
                    names.join("."),
                    other.join(".")
                );
                return Err(ModelError::from(what).within(name_at));
            }
            taken.push((bits, names));
            let mut inner = at.clone();
            inner.offset += place.offset;
            inner.label.path = format!("{path}.{}", names.join("."));
            let put = match place.bits {
                None => self.put(&inner, place.ty, value),
                Some(bits) => self.put_bits(&inner, place, bits, value),
            };
            put.map_err(|error| error.within(value_at))?;
        }
        Ok(())
    }

    /// Puts a bit field into its unit.
    fn put_bits(
        &mut self,
        at: &Target,
        place: Place,
        (first, count): (u32, u32),
        value: &ModelValue,
    ) -> Result<(), ModelError> {
        let size = at.types.size_of(place.ty).unwrap_or(0).min(8) as usize;
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
            return Err(format!("{path}: {value} does not fit into {count} bits").into());
        }
        let mut unit = [0; 8];
        {
            let objects = self.objects();
            let bytes = &objects[&at.object].bytes;
            let end = (at.offset + size).min(bytes.len());
            let start = at.offset.min(end);
            unit[..end - start].copy_from_slice(&bytes[start..end]);
        }
        let old = u64::from_le_bytes(unit);
        let new = old & !(mask << first) | (number & mask) << first;
        let mut objects = self.objects_mut();
        if let Some(object) = objects.get_mut(&at.object) {
            let end = (at.offset + size).min(object.bytes.len());
            let start = at.offset.min(end);
            object.bytes[start..end].copy_from_slice(&new.to_le_bytes()[..end - start]);
            let bits = (mask << first).to_le_bytes();
            for (given, bits) in object.given[start..end].iter_mut().zip(bits) {
                *given |= bits;
            }
            if !object.units.contains(&(start, end - start)) {
                object.units.push((start, end - start));
            }
        }
        Ok(())
    }

    /// Puts the text of a field of a tracepoint behind its record; false if there is no such field.
    fn put_location(
        &mut self,
        at: &Target,
        id: TypeId,
        names: &[String],
        value: &ModelValue,
    ) -> Result<bool, ModelError> {
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
            object.given.resize(behind + bytes.len(), 0xff);
            behind
        };
        let word = (bytes.len() as u32) << 16 | behind as u32 & 0xffff;
        let mut inner = at.clone();
        inner.offset += place.offset;
        self.store(&inner, &word.to_le_bytes());
        Ok(true)
    }

    /// Puts an array.
    pub(super) fn put_array(
        &mut self,
        at: &Target,
        (element, count): (TypeId, u32),
        value: &ModelValue,
    ) -> Result<(), ModelError> {
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
                    )
                    .into());
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
            ModelValue::List(_) => return Err(format!("{path} has {count} elements").into()),
            _ => {
                let what = if each == 1 {
                    "a text, hex or [...]"
                } else {
                    "[...] or hex"
                };
                return Err(format!("{path} takes {what}, not {value}").into());
            }
        };
        self.store(at, &bytes);
        Ok(())
    }
}
