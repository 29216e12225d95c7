//! From Python values to bytes. Faults name the place and what fits there.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMapping, PyString};

use super::decode::number;
use super::{Codec, Enum, Struct, bit_range, range};
use crate::errors::Fault;

impl Codec {
    /// Writes a value over bytes, of which there are [`Codec::size`]. `place` names it.
    ///
    /// # Errors
    /// `DataTypeError` with the place and what fits there.
    pub(crate) fn encode(
        &self,
        value: &Bound<'_, PyAny>,
        into: &mut [u8],
        place: &str,
    ) -> PyResult<()> {
        // Bytes of the right length are what the value is, whatever its type.
        if let Some(bytes) = as_bytes(value)
            && !matches!(self, Codec::Text { .. })
        {
            return match bytes.len() == self.size() {
                true => {
                    into[..bytes.len()].copy_from_slice(&bytes);
                    Ok(())
                }
                false => {
                    let length = format!("bytes of length {}", bytes.len());
                    Err(self.unfit(place, &length))
                }
            };
        }
        match self {
            Codec::Int { size, is_signed } => {
                let limits = range(*size, *is_signed);
                put(self.integer(value, place, limits)?, *size, into);
            }
            Codec::Bool { size } => match value.cast::<PyBool>() {
                Ok(value) => put(i128::from(value.is_true()), *size, into),
                Err(_) => put(self.integer(value, place, (0, 1))?, *size, into),
            },
            Codec::Enum(it) => put(it.value(self, value, place)?, it.size, into),
            Codec::Float { size } => {
                let is_number = value.cast::<PyFloat>().is_ok() || value.cast::<PyInt>().is_ok();
                let number: f64 = match is_number {
                    true => value.extract()?,
                    false => return Err(self.unfit(place, &describe(value))),
                };
                match size {
                    4 => into[..4].copy_from_slice(&(number as f32).to_le_bytes()),
                    _ => into[..8].copy_from_slice(&number.to_le_bytes()),
                }
            }
            Codec::Text { size } => {
                let bytes = match value.cast::<PyString>() {
                    Ok(text) => text.to_str()?.as_bytes().to_vec(),
                    Err(_) => as_bytes(value).ok_or_else(|| self.unfit(place, &describe(value)))?,
                };
                if bytes.len() > *size {
                    return Err(self.unfit(place, &format!("{} bytes", bytes.len())));
                }
                into[..*size].fill(0);
                into[..bytes.len()].copy_from_slice(&bytes);
            }
            // A list of numbers, or an address of `ipaddress`.
            Codec::Bytes { size } => {
                let packed = value.getattr("packed").ok();
                let packed = packed.as_ref().unwrap_or(value);
                let bytes: Option<Vec<u8>> = match value.cast::<PyString>() {
                    Ok(_) => None,
                    Err(_) => packed.extract().ok(),
                };
                match bytes.filter(|bytes| bytes.len() == *size) {
                    Some(bytes) => into[..*size].copy_from_slice(&bytes),
                    None => return Err(self.unfit(place, &describe(value))),
                }
            }
            Codec::Array {
                element,
                size,
                count,
            } => {
                let is_text = value.cast::<PyString>().is_ok();
                let length = value.len().ok().filter(|_| !is_text);
                let length = length.ok_or_else(|| self.unfit(place, &describe(value)))?;
                if length != *count {
                    return Err(self.unfit(place, &format!("a list of {length}")));
                }
                for (at, item) in value.try_iter()?.take(*count).enumerate() {
                    element.encode(&item?, &mut into[at * size..], &format!("{place}[{at}]"))?;
                }
            }
            Codec::Struct(it) => it.encode(self, value, into, place)?,
        }
        Ok(())
    }

    fn integer(
        &self,
        value: &Bound<'_, PyAny>,
        place: &str,
        (least, most): (i128, i128),
    ) -> PyResult<i128> {
        if value.cast::<PyFloat>().is_ok() {
            return Err(self.unfit(place, &describe(value)));
        }
        // `__index__`: numbers of numpy and of ctypes too.
        let number = match value.extract::<i128>() {
            Ok(number) => number,
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
                return Err(self.unfit(place, &describe(value)));
            }
            Err(_) => return Err(self.unfit(place, &value.repr()?.to_string())),
        };
        match (least..=most).contains(&number) {
            true => Ok(number),
            false => Err(self.unfit(place, &number.to_string())),
        }
    }

    fn unfit(&self, place: &str, got: &str) -> PyErr {
        Fault::of_type(format!("{place}: {} fits, got {got}", self.expected())).into()
    }
}

impl Enum {
    fn value(&self, codec: &Codec, value: &Bound<'_, PyAny>, place: &str) -> PyResult<i128> {
        let Ok(text) = value.cast::<PyString>() else {
            return codec.integer(value, place, range(self.size, self.is_signed));
        };
        let text = text.to_str()?;
        let found = self.values.iter().find(|(name, _)| name == text);
        match found {
            Some((_, value)) => Ok(*value),
            None => Err(codec.unfit(place, &format!("{text:?}"))),
        }
    }
}

impl Struct {
    /// Members that a dict leaves out are zero.
    fn encode(
        &self,
        codec: &Codec,
        value: &Bound<'_, PyAny>,
        into: &mut [u8],
        place: &str,
    ) -> PyResult<()> {
        let given = members_of(value)?.ok_or_else(|| codec.unfit(place, &describe(value)))?;
        into[..self.size].fill(0);
        let mut used = 0;
        for member in &self.members {
            let Some(value) = given.get_item(&member.name)? else {
                continue;
            };
            used += 1;
            let place = format!("{place}.{}", member.text);
            let inside = &mut into[member.offset..];
            match member.bits {
                None => member.codec.encode(&value, inside, &place)?,
                Some((from, width)) => {
                    let limits = bit_range(width, member.codec.is_signed());
                    let field = match &member.codec {
                        Codec::Enum(it) => it.value(&member.codec, &value, &place)?,
                        codec => codec.integer(&value, &place, limits)?,
                    };
                    if !(limits.0..=limits.1).contains(&field) {
                        let what = format!("an int from {} to {}", limits.0, limits.1);
                        let what = format!("{place}: {what} fits in {width} bits, got {field}");
                        return Err(Fault::of_type(what).into());
                    }
                    let mask = (u64::MAX >> (64 - width)) << from;
                    let size = member.codec.size();
                    let unit = number(inside, size, false) as u64 & !mask;
                    let unit = unit | ((field as u64) << from & mask);
                    put(unit.into(), size, inside);
                }
            }
        }
        if used == given.len() {
            return Ok(());
        }
        let known = |name: &str| self.members.iter().any(|member| member.text == name);
        let mut unknown = Vec::new();
        for name in given.keys() {
            let name = name.str()?.to_string();
            if !known(&name) {
                unknown.push(name);
            }
        }
        let what = format!("no member {}", unknown.join(", "));
        Err(codec.unfit(place, &what))
    }
}

/// The members that a dict, another mapping, a dataclass or a named tuple gives.
fn members_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(Some(dict.clone()));
    }
    let py = value.py();
    let dict = PyDict::new(py);
    if let Ok(mapping) = value.cast::<PyMapping>() {
        dict.update(mapping)?;
        return Ok(Some(dict));
    }
    for names in ["__dataclass_fields__", "_fields"] {
        let Ok(names) = value.getattr(names) else {
            continue;
        };
        for name in names.try_iter()? {
            let name = name?;
            let name = name.cast::<PyString>()?;
            dict.set_item(name, value.getattr(name)?)?;
        }
        return Ok(Some(dict));
    }
    Ok(None)
}

fn as_bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().to_vec());
    }
    value.cast::<PyByteArray>().ok().map(|bytes| bytes.to_vec())
}

/// A value for messages: its type, and its text if it is short.
fn describe(value: &Bound<'_, PyAny>) -> String {
    let kind = value.get_type().name().map(|name| name.to_string());
    let kind = kind.unwrap_or_default();
    match value.repr() {
        Ok(text) if text.len().is_ok_and(|len| len <= 40) => format!("{kind} {text}"),
        _ => kind,
    }
}

/// Writes the low bytes of a number.
fn put(value: i128, size: usize, into: &mut [u8]) {
    into[..size].copy_from_slice(&(value as u64).to_le_bytes()[..size]);
}
