//! What programs left in given memory and contexts, beside what is expected.

use std::sync::Arc;

use btf::{Btf, Shape, TypeId};
use vm::{GivenAccess, GivenMemory};

use super::answer::ModelCall;
use super::memory::{Label, ModelMemory};
use super::model_calls::Model;
use super::names::{Place, member, type_of};
use super::value::{ModelError, ModelValue};
use super::write::Target;

impl Model {
    /// The first field of the context of the last run that differs from what is expected, in words.
    ///
    /// # Errors
    /// If the context has no fields, or not this one, or it takes no such value.
    pub fn compare_context(&mut self, value: &ModelValue) -> Result<Option<String>, ModelError> {
        let ModelValue::Fields {
            ty: None, fields, ..
        } = value
        else {
            return Err(format!("ctx takes {{FIELD: VALUE}}, not {value}").into());
        };
        for (path, value) in fields {
            let difference = self.memory.compare(self.context(), path, value);
            let difference =
                difference.map_err(|error| error.within(path.written.map(|(name, _)| name)))?;
            if difference.is_some() {
                return Ok(difference);
            }
        }
        Ok(None)
    }

    /// How a member of a named object differs from what is expected, in words.
    ///
    /// # Errors
    /// As [`Model::compare_context`], and if there is no such object.
    pub fn compare_member(
        &mut self,
        name: &str,
        path: &[String],
        value: &ModelValue,
    ) -> Result<Option<String>, ModelError> {
        let address = self.memory.address(name)?;
        self.memory.compare(address, path, value)
    }

    /// The first argument of a call that differs from what is expected, in words.
    ///
    /// # Errors
    /// If an argument is unknown or takes no such value.
    pub fn compare_call(
        &mut self,
        call: &ModelCall,
        expected: &[(String, ModelValue)],
    ) -> Result<Option<String>, ModelError> {
        let (name, signature) = self.signature(&call.function)?;
        let word = type_of(&self.memory.types, "u64")?;
        for (argument, value) in expected {
            let number = signature.place(&name, argument)?;
            let got = call.arguments[number];
            if let (ModelValue::Text(text), Some(found)) = (value, &call.texts[number]) {
                match text == found {
                    true => continue,
                    false => {
                        return Ok(Some(format!("{argument}: expected {value}, got {found:?}")));
                    }
                }
            }
            let ty = signature.type_of(number).unwrap_or(word);
            let target = Target {
                types: self.memory.types.clone(),
                object: 0,
                offset: 0,
                label: Label {
                    path: argument.clone(),
                    owner: String::new(),
                },
                is_user: false,
            };
            let wanted = self.memory.word(&target, ty, value)?;
            let bits = 8 * self.memory.types.size_of(ty).unwrap_or(8).clamp(1, 8);
            let mask = u64::MAX >> (64 - bits);
            if got & mask != wanted & mask {
                let got = self.show_word(got & mask);
                return Ok(Some(format!("{argument}: expected {value}, got {got}")));
            }
        }
        Ok(None)
    }

    /// A call in words.
    pub fn show_call(&self, call: &ModelCall) -> String {
        let Ok((name, signature)) = self.signature(&call.function) else {
            return call.function.clone();
        };
        let shown = signature.names().enumerate().map(|(number, name)| {
            let word = match &call.texts[number] {
                Some(text) if signature.is_pointer(&self.memory.types, number) => {
                    format!("{text:?}")
                }
                _ => self.show_word(call.arguments[number]),
            };
            format!("{name}: {word}")
        });
        let shown: Vec<String> = shown.collect();
        format!("{name} {{{}}}", shown.join(", "))
    }

    fn show_word(&self, word: u64) -> String {
        match self.memory.name_of(word) {
            Some(name) => format!("@{name}"),
            None if word > u64::from(u32::MAX) => format!("{word:#x}"),
            None => word.to_string(),
        }
    }
}

/// What is compared: an object of which types, and the name of a place in it.
struct Expecting {
    types: Arc<Btf<'static>>,
    object: u64,
    name: String,
}

/// What a pointer leads to.
fn pointee(types: &Btf<'_>, ty: TypeId) -> Option<TypeId> {
    match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Ptr(to) => Some(to),
        _ => None,
    }
}

/// The value that a pointer leads to; `None` for an address.
fn leads(value: &ModelValue) -> Option<&ModelValue> {
    match value {
        ModelValue::User(inner) => leads(inner),
        ModelValue::Text(_) | ModelValue::Bytes(_) | ModelValue::Fields { .. } => Some(value),
        ModelValue::Number(_)
        | ModelValue::BigEndian(_)
        | ModelValue::Word(_)
        | ModelValue::Object(..)
        | ModelValue::List(_) => None,
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(wide)
}

impl ModelMemory {
    fn compare(
        &mut self,
        address: u64,
        path: &[String],
        value: &ModelValue,
    ) -> Result<Option<String>, ModelError> {
        let (types, ty) = {
            let objects = self.objects();
            let object = objects.get(&address).filter(|object| !object.ty.is_void());
            let object = object.ok_or("the last run has no context with fields")?;
            (object.types.clone(), object.ty)
        };
        // Up to the first pointer on the path, which leads to another object.
        for end in 1..path.len() {
            let place = member(&types, ty, &path[..end])?;
            if place.bits.is_none() && pointee(&types, place.ty).is_some() {
                let led = match self.word_at(address, place.offset) {
                    Ok(led) => led,
                    Err(missing) => return Ok(Some(format!("expected {value}, {missing}"))),
                };
                if !self.objects().contains_key(&led) {
                    let name = path[..end].join(".");
                    return Ok(Some(format!(
                        "expected {value}, and {name} leads to no object that is given"
                    )));
                }
                return self.compare(led, &path[end..], value);
            }
        }
        let place = member(&types, ty, path)?;
        let at = Expecting {
            types,
            object: address,
            name: path.join("."),
        };
        self.compare_place(&at, place, value)
    }

    fn compare_place(
        &mut self,
        at: &Expecting,
        place: Place,
        value: &ModelValue,
    ) -> Result<Option<String>, ModelError> {
        let (types, name) = (&at.types, &at.name);
        if place.bits.is_none()
            && let Some(to) = pointee(types, place.ty)
            && let Some(led) = leads(value)
        {
            return match self.word_at(at.object, place.offset) {
                Ok(address) => self.compare_led(at, (address, to), led),
                Err(missing) => Ok(Some(format!("expected {value}, {missing}"))),
            };
        }
        let target = Target {
            types: types.clone(),
            object: 0,
            offset: 0,
            label: Label {
                path: name.clone(),
                owner: String::new(),
            },
            is_user: false,
        };
        let (mut wanted, mut named) = self.encode(&target, place.ty, value)?;
        if let Some((first, count)) = place.bits {
            let mask = u64::MAX >> (64 - count.clamp(1, 64));
            let number = word_of(&wanted) & mask;
            wanted = (number << first).to_le_bytes()[..wanted.len().min(8)].to_vec();
            named = (mask << first).to_le_bytes()[..wanted.len()].to_vec();
        }
        let (bytes, given) = {
            let objects = self.objects();
            let object = &objects[&at.object];
            let end = (place.offset + wanted.len()).min(object.bytes.len());
            let range = place.offset.min(end)..end;
            (
                object.bytes[range.clone()].to_vec(),
                object.given[range].to_vec(),
            )
        };
        let mut is_equal = bytes.len() == wanted.len();
        for (at, named) in named.iter().enumerate().take(bytes.len()) {
            if named & !given[at] != 0 {
                return Ok(Some(format!(
                    "expected {value}, {name} was not given and not written"
                )));
            }
            is_equal &= (bytes[at] ^ wanted[at]) & named == 0;
        }
        let shown = match place.bits {
            Some((first, count)) => {
                let bits = word_of(&bytes) >> first & u64::MAX >> (64 - count.clamp(1, 64));
                bits.to_string()
            }
            None => self.show_bytes(types, place.ty, &bytes),
        };
        Ok((!is_equal).then(|| format!("{name}: expected {value}, got {shown}")))
    }

    /// The word at an offset of an object, or that it was not given.
    fn word_at(&self, object: u64, offset: usize) -> Result<u64, String> {
        let mut bytes = [0; 8];
        match self.read(object + offset as u64, &mut bytes) {
            GivenAccess::Done => Ok(u64::from_le_bytes(bytes)),
            GivenAccess::NotGiven(what) => Err(format!("{what} was not given and not written")),
            GivenAccess::Absent => Err("the object is not there".to_owned()),
        }
    }

    /// Compares what a pointer leads to.
    fn compare_led(
        &mut self,
        at: &Expecting,
        (address, to): (u64, TypeId),
        value: &ModelValue,
    ) -> Result<Option<String>, ModelError> {
        let name = &at.name;
        let read = |len: usize| {
            let mut bytes = vec![0; len];
            let access = match self.read(address, &mut bytes) {
                GivenAccess::Absent => self.read_user(address, &mut bytes),
                access => access,
            };
            match access {
                GivenAccess::Done => Ok(bytes),
                GivenAccess::NotGiven(what) => Err(format!("{what} was not given")),
                GivenAccess::Absent => Err(format!("no given object is at {address:#x}")),
            }
        };
        let wanted = match value {
            ModelValue::Text(text) => [text.as_bytes(), &[0]].concat(),
            ModelValue::Bytes(bytes) => bytes.clone(),
            _ => Vec::new(),
        };
        if !wanted.is_empty() {
            return Ok(match read(wanted.len()) {
                Ok(got) if got == wanted => None,
                Ok(got) => {
                    let void = TypeId::VOID;
                    let got = self.show_bytes(&at.types, void, &got);
                    Some(format!("{name}: expected {value}, got {got}"))
                }
                Err(missing) => Some(format!("{name}: expected {value}, {missing}")),
            });
        }
        let (types, ty, fields) = match value {
            ModelValue::Fields {
                ty: Some(ty),
                fields,
                ..
            } => (self.types.clone(), type_of(&self.types, ty)?, fields),
            ModelValue::Fields { fields, .. } => (at.types.clone(), to, fields),
            _ => return Err(format!("{name} is compared with @NAME, {{…}}, a text or hex").into()),
        };
        let found = {
            let objects = self.objects();
            let found = objects.range(..=address).next_back();
            found
                .filter(|(start, object)| address - **start < object.bytes.len() as u64)
                .map(|(start, _)| *start)
        };
        let Some(object) = found else {
            return Ok(Some(format!(
                "{name}: expected {value}, no given object is at {address:#x}"
            )));
        };
        for (path, value) in fields {
            let place = member(&types, ty, path)?;
            let place = Place {
                offset: place.offset + (address - object) as usize,
                ..place
            };
            let inner = Expecting {
                types: types.clone(),
                object,
                name: format!("{name}.{}", path.join(".")),
            };
            let difference = self.compare_place(&inner, place, value)?;
            if difference.is_some() {
                return Ok(difference);
            }
        }
        Ok(None)
    }

    /// Bytes of a type in words.
    fn show_bytes(&self, types: &btf::Btf<'_>, ty: TypeId, bytes: &[u8]) -> String {
        let id = types.skip_modifiers(ty).unwrap_or(TypeId::VOID);
        let wide = bytes
            .iter()
            .rev()
            .fold(0u128, |all, byte| all << 8 | u128::from(*byte));
        match types.get(id).map(|ty| ty.shape()) {
            Some(Shape::Ptr(_)) => match self.name_of(wide as u64) {
                Some(name) => format!("@{name}"),
                None => format!("{wide:#x}"),
            },
            Some(Shape::Int(int)) if bytes.len() <= 8 => match int.encoding.is_signed() {
                true => {
                    let shift = 64 - 8 * bytes.len();
                    (((wide as u64) << shift) as i64 >> shift).to_string()
                }
                false => wide.to_string(),
            },
            Some(Shape::Enum(_)) => wide.to_string(),
            _ => {
                let end = bytes
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(bytes.len());
                match std::str::from_utf8(&bytes[..end]) {
                    Ok(text) if end > 0 && !text.chars().any(char::is_control) => {
                        format!("{text:?}")
                    }
                    _ => {
                        let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
                        format!("hex {}", hex.collect::<String>())
                    }
                }
            }
        }
    }
}
