//! What programs left in given memory and contexts, beside what is expected.

use btf::{Shape, TypeId};

use super::answer::ModelCall;
use super::calls::Model;
use super::memory::{Label, ModelMemory};
use super::names::{member, nearest, type_of};
use super::value::ModelValue;
use super::write::Target;

impl Model {
    /// The first field of the context of the last run that differs from what is expected, in words.
    ///
    /// # Errors
    /// If the context has no fields, or not this one, or it takes no such value.
    pub fn compare_context(&mut self, value: &ModelValue) -> Result<Option<String>, String> {
        let ModelValue::Fields {
            ty: None, fields, ..
        } = value
        else {
            return Err(format!("ctx takes {{FIELD: VALUE}}, not {value}"));
        };
        for (path, value) in fields {
            let difference = self.memory.compare(self.context(), path, value)?;
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
    ) -> Result<Option<String>, String> {
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
    ) -> Result<Option<String>, String> {
        let (name, signature) = self.signature(&call.function)?;
        let names = self.argument_names(&signature);
        let word = type_of(&self.memory.types, "u64")?;
        for (argument, value) in expected {
            let number = names.iter().position(|known| known == argument);
            let number = number.filter(|number| *number < 5).ok_or_else(|| {
                let near = nearest(argument, names.iter().map(String::as_str));
                format!(
                    "{name} has no argument {argument}{near}; it has {}",
                    names.join(", ")
                )
            })?;
            let got = call.arguments[number];
            if let (ModelValue::Text(text), Some(found)) = (value, &call.texts[number]) {
                match text == found {
                    true => continue,
                    false => {
                        return Ok(Some(format!("{argument}: expected {value}, got {found:?}")));
                    }
                }
            }
            let parameter = signature
                .as_ref()
                .and_then(|(parameters, _)| parameters.get(number));
            let ty = parameter.map_or(word, |(_, ty)| *ty);
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
        let signature = self
            .signature(&call.function)
            .map(|(_, signature)| signature);
        let names =
            signature.map(|signature| (self.argument_names(&signature), signature.is_some()));
        let (names, is_known) = names.unwrap_or_default();
        let shown = names.iter().take(5).enumerate().map(|(number, name)| {
            let word = match &call.texts[number] {
                Some(text) if is_known => format!("{text:?}"),
                _ => self.show_word(call.arguments[number]),
            };
            format!("{name}: {word}")
        });
        let shown: Vec<String> = shown.collect();
        format!("{} {{{}}}", call.function, shown.join(", "))
    }

    fn show_word(&self, word: u64) -> String {
        match self.memory.name_of(word) {
            Some(name) => format!("@{name}"),
            None if word > u64::from(u32::MAX) => format!("{word:#x}"),
            None => word.to_string(),
        }
    }
}

impl ModelMemory {
    fn compare(
        &mut self,
        address: u64,
        path: &[String],
        value: &ModelValue,
    ) -> Result<Option<String>, String> {
        let (types, ty, bytes, given) = {
            let objects = self.objects();
            let object = objects.get(&address).filter(|object| !object.ty.is_void());
            let object = object.ok_or("the last run has no context with fields")?;
            let (bytes, given) = (object.bytes.clone(), object.given.clone());
            (object.types.clone(), object.ty, bytes, given)
        };
        let place = member(&types, ty, path)?;
        let target = Target {
            types: types.clone(),
            object: 0,
            offset: 0,
            label: Label {
                path: path.join("."),
                owner: String::new(),
            },
            is_user: false,
        };
        let (wanted, named) = self.encode(&target, place.ty, value)?;
        let end = (place.offset + wanted.len()).min(bytes.len());
        let range = place.offset.min(end)..end;
        let name = path.join(".");
        let (got, known) = (&bytes[range.clone()], &given[range]);
        let mut is_equal = true;
        for (at, is_named) in named.iter().enumerate().take(got.len()) {
            if *is_named && !known[at] {
                return Ok(Some(format!(
                    "expected {value}, {name} was not given and not written"
                )));
            }
            is_equal &= !is_named || got[at] == wanted[at];
        }
        let mut shown = self.show_bytes(&types, place.ty, got);
        if let Some((first, count)) = place.bits {
            let number = |bytes: &[u8]| {
                let mut wide = [0; 8];
                let len = bytes.len().min(8);
                wide[..len].copy_from_slice(&bytes[..len]);
                u64::from_le_bytes(wide)
            };
            let mask = if count >= 64 {
                u64::MAX
            } else {
                (1 << count) - 1
            };
            let bits = number(got) >> first & mask;
            is_equal = bits == number(&wanted) & mask;
            shown = bits.to_string();
        }
        Ok((!is_equal).then(|| format!("{name}: expected {value}, got {shown}")))
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
