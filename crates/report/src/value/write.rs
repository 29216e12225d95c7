//! JSON as values of a type.

use std::net::{IpAddr, Ipv6Addr};

use btf::{Btf, Composite, Encoding, Member, Shape, TypeId};
use serde_json::{Map, Value};

use super::format::{hex, of_type};
use super::{DEEPEST, Formats, field_bits};
use crate::terminal::cut;

/// Writes a value into the bytes of a type. Members that are not named keep their bytes; arrays
/// have all their elements.
///
/// # Errors
/// The mismatch, with its place in the value.
pub fn from_json(
    types: &Btf<'_>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
) -> Result<(), String> {
    from_json_as(types, ty, value, into, Formats::NONE)
}

/// As [`from_json`], with chosen forms.
///
/// # Errors
/// As [`from_json`].
pub fn from_json_as(
    types: &Btf<'_>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
    formats: &Formats,
) -> Result<(), String> {
    let mut writer = Writer {
        types,
        formats,
        path: Vec::new(),
        depth: 0,
        is_checking: false,
    };
    writer.value(ty, None, value, into)
}

/// Writes a whole value into the bytes of a type, which are zero, and returns the members that it
/// leaves out, which stay zero: at most [`MOST_LEFT_OUT`].
///
/// # Errors
/// As [`from_json`].
pub fn fill_from_json(
    types: &Btf<'_>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
) -> Result<Vec<String>, String> {
    fill_from_json_as(types, ty, value, into, Formats::NONE)
}

/// As [`fill_from_json`], with chosen forms.
///
/// # Errors
/// As [`from_json`].
pub fn fill_from_json_as(
    types: &Btf<'_>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
    formats: &Formats,
) -> Result<Vec<String>, String> {
    from_json_as(types, ty, value, into, formats)?;
    let mut left_out = LeftOut {
        types,
        names: Vec::new(),
        left: VISITS_OF_VALUE * (64 + values(value)),
    };
    left_out.of_value(ty, value, "", DEEPEST);
    Ok(left_out.names)
}

/// Members that are listed at most.
pub const MOST_LEFT_OUT: usize = 8;

/// Visits of a value within a value, on average: it may be one of several unnamed unions in others,
/// which are twice as many with each level.
const VISITS_OF_VALUE: usize = 16;

/// The number of values within a value, itself included.
fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

/// Members that a value leaves out.
struct LeftOut<'b> {
    types: &'b Btf<'b>,
    names: Vec<String>,
    /// Values that may still be visited.
    left: usize,
}

impl LeftOut<'_> {
    fn of_value(&mut self, ty: TypeId, value: &Value, place: &str, depth: u32) {
        let types = self.types;
        let found = types.skip_modifiers(ty).and_then(|ty| types.get(ty));
        let is_over = depth == 0 || self.left == 0 || self.names.len() >= MOST_LEFT_OUT;
        let Some(found) = found.filter(|_| !is_over) else {
            return;
        };
        self.left -= 1;
        match (found.shape(), value) {
            (Shape::Array(array), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.of_value(array.element, item, &format!("{place}[{at}]"), depth - 1);
                }
            }
            (Shape::Struct(of), Value::Object(given)) => {
                for member in of.members() {
                    self.of_member(&member, given, place, depth);
                }
            }
            (Shape::Union(of), Value::Object(given)) => {
                let members = of.members().filter(|member| self.is_given(member, given));
                let members: Vec<Member> = members.collect();
                for member in &members {
                    self.of_member(member, given, place, depth);
                }
                if members.is_empty() {
                    let names = member_names(types, of).join(" or ");
                    self.add(match place {
                        "" => names,
                        place => format!("{place}.{names}"),
                    });
                }
            }
            _ => {}
        }
    }

    fn of_member(&mut self, member: &Member, given: &Map<String, Value>, place: &str, depth: u32) {
        let types = self.types;
        let name = types.string(member.name).to_string();
        if name.is_empty() {
            let inner = Value::Object(self.inner(member, given));
            return self.of_value(member.ty, &inner, place, depth - 1);
        }
        let place = match place {
            "" => name.to_string(),
            place => format!("{place}.{name}"),
        };
        match given.get(&*name) {
            Some(value) => self.of_value(member.ty, value, &place, depth - 1),
            None if self.is_of_kernel(member) || types.size_of(member.ty) == Some(0) => {}
            None => self.add(place),
        }
    }

    fn add(&mut self, place: String) {
        if self.names.len() < MOST_LEFT_OUT {
            self.names.push(place);
        }
    }

    /// The members of an unnamed member that are given as if they were those of its structure, or
    /// in an object without a name.
    fn inner(&self, member: &Member, given: &Map<String, Value>) -> Map<String, Value> {
        let of = composite_of(self.types, member.ty);
        let names = of.map_or_else(Vec::new, |of| member_names(self.types, of));
        let own = given.iter().filter(|(name, _)| names.contains(name));
        let mut inner: Map<_, _> = own
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let unnamed = given.get("").and_then(Value::as_object);
        if let Some(unnamed) = unnamed.filter(|given| given.keys().all(|it| names.contains(it))) {
            inner.extend(unnamed.clone());
        }
        inner
    }

    fn is_given(&self, member: &Member, given: &Map<String, Value>) -> bool {
        match self.types.string(member.name).to_string() {
            name if name.is_empty() => !self.inner(member, given).is_empty(),
            name => given.contains_key(&*name),
        }
    }

    /// True for locks, timers and the like, which the kernel sets.
    fn is_of_kernel(&self, member: &Member) -> bool {
        let ty = self.types.skip_modifiers(member.ty);
        let ty = ty.and_then(|ty| self.types.get(ty));
        ty.is_some_and(|ty| {
            matches!(ty.shape(), Shape::Struct(_)) && ty.name().to_string().starts_with("bpf_")
        })
    }
}

/// A value in a message, cut if it is long.
fn quoted(value: &Value) -> String {
    const LONGEST: usize = 120;
    cut(&value.to_string(), LONGEST).into_owned()
}

/// Writes bytes as [`bytes_to_json`](super::bytes_to_json) shows them, or a list of numbers or of
/// strings in hexadecimal, as bpftool has them.
pub fn bytes_from_json(value: &Value, into: &mut [u8]) -> Result<(), String> {
    if let Some(bytes) = value.as_str().and_then(hex) {
        if bytes.len() != into.len() {
            let (given, size) = (bytes.len(), into.len());
            return Err(format!("{} has {given} bytes of {size}", quoted(value)));
        }
        into.copy_from_slice(&bytes);
        return Ok(());
    }
    let items = value.as_array().filter(|items| items.len() == into.len());
    let items =
        items.ok_or_else(|| format!("{} is no array of {} bytes", quoted(value), into.len()))?;
    for (byte, item) in into.iter_mut().zip(items) {
        let number = number(item).and_then(|number| u8::try_from(number).ok());
        *byte = number.ok_or_else(|| format!("{} is no byte", quoted(item)))?;
    }
    Ok(())
}

/// Bytes of any number, in the forms of [`bytes_from_json`].
///
/// # Errors
/// As [`bytes_from_json`].
pub fn all_bytes_from_json(value: &Value) -> Result<Vec<u8>, String> {
    let of_text = value.as_str().and_then(hex).map(|bytes| bytes.len());
    let len = of_text.or_else(|| value.as_array().map(Vec::len));
    let mut bytes = vec![0; len.unwrap_or_default()];
    bytes_from_json(value, &mut bytes).map(|()| bytes)
}

/// As [`bytes_from_json`], in the form that is chosen for the value.
///
/// # Errors
/// As [`bytes_from_json`].
pub fn bytes_from_json_as(value: &Value, into: &mut [u8], formats: &Formats) -> Result<(), String> {
    match formats
        .of_value()
        .and_then(|format| format.read_exactly(value, into))
    {
        Some(()) => Ok(()),
        None => bytes_from_json(value, into),
    }
}

/// The bytes of an IPv6 address.
fn ipv6_of(value: &Value) -> Option<[u8; 16]> {
    let address: Ipv6Addr = value.as_str()?.parse().ok()?;
    Some(address.octets())
}

struct Writer<'b> {
    types: &'b Btf<'b>,
    formats: &'b Formats,
    /// Names of the members that lead to a value, if forms are chosen.
    path: Vec<String>,
    depth: u32,
    /// True while members that may overlap are compared: those inside them have been.
    is_checking: bool,
}

impl Writer<'_> {
    /// Writes the value of a type, which is that of a member of a name or of its elements.
    fn value(
        &mut self,
        ty: TypeId,
        of_member: Option<&str>,
        value: &Value,
        into: &mut [u8],
    ) -> Result<(), String> {
        if self.formatted(ty, of_member, value, into)? {
            return Ok(());
        }
        let types = self.types;
        let no_form = || "values of this type cannot be written".to_owned();
        if self.depth > DEEPEST {
            return Err(no_form());
        }
        let ty = types.skip_modifiers(ty).ok_or_else(no_form)?;
        let wrong = |what: &str| match value.as_str().and_then(|text| text.parse::<IpAddr>().ok()) {
            Some(_) => format!(
                "{} is no {what}: fields that hold addresses are known by their names and types \
                 (docs/run-objects.md, addresses and ports)",
                quoted(value)
            ),
            None => format!("{} is no {what}", quoted(value)),
        };
        let shape = types.get(ty).ok_or_else(no_form)?.shape();
        self.depth += 1;
        match shape {
            Shape::Int(int) if int.size <= 16 => {
                let number = match (value.as_bool(), value.as_str()) {
                    (Some(is_true), _) if int.encoding.is_bool() => Some(i128::from(is_true)),
                    (_, Some(text)) if int.encoding == Encoding::CHAR && text.len() == 1 => {
                        text.bytes().next().map(i128::from)
                    }
                    _ => number(value),
                };
                let number = number.ok_or_else(|| wrong("number"))?;
                put(number, int.size, int.encoding.is_signed(), into)?;
            }
            Shape::Ptr(_) => put(
                number(value).ok_or_else(|| wrong("number"))?,
                8,
                false,
                into,
            )?,
            Shape::Enum(of) => {
                let named = value.as_str().and_then(|text| {
                    let mut values = of.values();
                    let found = values.find(|value| types.string(value.name) == *text)?;
                    Some(match of.signed {
                        true => i128::from(found.value as i64),
                        false => i128::from(found.value),
                    })
                });
                let number = named.or_else(|| number(value));
                let number = number.ok_or_else(|| wrong("enumerator"))?;
                put(number, of.size, of.signed, into)?;
            }
            Shape::Array(array) => {
                let size = types.size_of(array.element).ok_or_else(no_form)? as usize;
                let count = array.count as usize;
                let too_long = || format!("{} has more than {count} elements", quoted(value));
                if let (Some(text), 1) = (value.as_str(), size) {
                    let place = into.get_mut(..text.len()).filter(|_| text.len() <= count);
                    place.ok_or_else(too_long)?.copy_from_slice(text.as_bytes());
                    // The text ends there: what is behind its end says nothing.
                    if let Some(end) = into.get_mut(text.len()).filter(|_| text.len() < count) {
                        *end = 0;
                    }
                } else if let Some(address) = ipv6_of(value).filter(|_| (count, size) == (4, 4)) {
                    // Four numbers are no text.
                    let place = into.get_mut(..address.len()).ok_or_else(no_form)?;
                    place.copy_from_slice(&address);
                } else {
                    let items = value.as_array().ok_or_else(|| wrong("array"))?;
                    if items.len() > count {
                        return Err(too_long());
                    }
                    // Elements without bytes are not shown.
                    if items.len() < count && size > 0 {
                        let (value, given) = (quoted(value), items.len());
                        return Err(format!("{value} has {given} of {count} elements"));
                    }
                    for (at, item) in items.iter().enumerate() {
                        let place = into.get_mut(at * size..(at + 1) * size);
                        let place = place.ok_or_else(no_form)?;
                        let written = self.value(array.element, of_member, item, place);
                        written.map_err(|error| format!("[{at}]: {error}"))?;
                    }
                }
            }
            Shape::Float(size) => put_float(value, into.get_mut(..size as usize))
                .ok_or_else(|| wrong("number of 4 or 8 bytes"))?,
            Shape::Struct(of) => self.members((of, false), value, into)?,
            Shape::Union(of) => self.members((of, true), value, into)?,
            Shape::Datasec(section) => {
                let form = || {
                    wrong(&format!(
                        "{{{:?}: [{{NAME: VALUE}}]}}",
                        types.at(ty).name().to_string()
                    ))
                };
                let name = types.at(ty).name().to_string();
                let vars = value.get(&*name).and_then(Value::as_array);
                for given in vars.ok_or_else(form)? {
                    for (name, value) in given.as_object().ok_or_else(form)? {
                        let found = section
                            .vars()
                            .find(|var| types.at(var.var).name() == **name);
                        let found = found.and_then(|var| match types.at(var.var).shape() {
                            Shape::Var(of) => Some((var.offset as usize, var.size as usize, of.ty)),
                            _ => None,
                        });
                        let (start, size, ty) =
                            found.ok_or_else(|| format!("there is no variable {name:?}"))?;
                        let place = into.get_mut(start..start + size).ok_or_else(no_form)?;
                        self.path.push(name.clone());
                        let written = self.value(ty, None, value, place);
                        self.path.pop();
                        written.map_err(|error| format!("{name}: {error}"))?;
                    }
                }
            }
            _ => return Err(no_form()),
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes a value that has a form of its own; false if it is read by its type.
    fn formatted(
        &self,
        ty: TypeId,
        name: Option<&str>,
        value: &Value,
        into: &mut [u8],
    ) -> Result<bool, String> {
        let size = self.types.size_of(ty).unwrap_or(0) as usize;
        let Some(place) = into.get_mut(..size) else {
            return Ok(false);
        };
        let chosen = (!self.formats.is_empty()).then(|| self.formats.at(&self.path));
        let chosen = chosen.flatten().filter(|format| format.fits(size));
        let Some(format) = chosen.or_else(|| of_type(self.types, ty, name)) else {
            return Ok(false);
        };
        let is_read = format.read_exactly(value, place).is_some();
        match is_read || !value.is_string() || number(value).is_some() {
            true => Ok(is_read),
            false => Err(format!("{} is no {}", quoted(value), format.name())),
        }
    }

    fn members(
        &mut self,
        (of, is_union): (Composite<'_>, bool),
        value: &Value,
        into: &mut [u8],
    ) -> Result<(), String> {
        let types = self.types;
        let object = value.as_object();
        let object = object.ok_or_else(|| format!("{} is no object", quoted(value)))?;
        for (key, value) in object {
            self.member(of, key, value, into)?;
        }
        let may_overlap = is_union
            || of
                .members()
                .any(|member| types.string(member.name).is_empty());
        if object.len() < 2 || !may_overlap || self.is_checking {
            return Ok(());
        }
        // Each member once more: what it changes is what another one wrote.
        self.is_checking = true;
        for (key, value) in object {
            let mut again = into.to_vec();
            self.member(of, key, value, &mut again)?;
            if again != into {
                return Err(format!(
                    "{key:?}: another member of the same bytes has another value"
                ));
            }
        }
        self.is_checking = false;
        Ok(())
    }

    fn member(
        &mut self,
        of: Composite<'_>,
        key: &str,
        value: &Value,
        into: &mut [u8],
    ) -> Result<(), String> {
        let types = self.types;
        let is_named = |member: &Member| !key.is_empty() && types.string(member.name) == *key;
        let Some(member) = of.members().find(is_named) else {
            // As in C, members of unnamed members are named as if they were its own; dumps
            // have them in an object of that name.
            let inner = match key {
                "" => value.clone(),
                key => serde_json::json!({ key: value }),
            };
            let Some(member) = unnamed_with(types, of, &inner, DEEPEST) else {
                let names = member_names(types, of);
                return Err(format!(
                    "there is no member {key:?}; members are {}",
                    names.join(", ")
                ));
            };
            let place = into.get_mut((member.bit_offset / 8) as usize..);
            let place = place.ok_or_else(|| format!("{key}: it lies outside of its type"))?;
            return self.value(member.ty, None, &inner, place);
        };
        if let Some(bits) = field_bits(types, member.ty, member.bits) {
            let put = put_bits(value, member.bit_offset, bits, into);
            return put.map_err(|error| format!("{key}: {error}"));
        }
        let place = into.get_mut((member.bit_offset / 8) as usize..);
        let place = place.ok_or_else(|| format!("{key}: it lies outside of its type"))?;
        let has_path = !self.formats.is_empty();
        if has_path {
            self.path.push(key.to_owned());
        }
        let written = self.value(member.ty, Some(key), value, place);
        if has_path {
            self.path.pop();
        }
        written.map_err(|error| format!("{key}: {error}"))
    }
}

/// The members of a structure or union; `None` for other types.
fn composite_of<'b>(types: &'b Btf<'b>, ty: TypeId) -> Option<Composite<'b>> {
    match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Struct(of) | Shape::Union(of) => Some(of),
        _ => None,
    }
}

/// Members that are looked at for their names: unnamed unions in others have twice as many with
/// each level.
const MOST_MEMBERS: usize = 1 << 12;

/// Names of members, with those of unnamed members.
fn member_names(types: &Btf<'_>, of: Composite<'_>) -> Vec<String> {
    let (mut names, mut left) = (Vec::new(), MOST_MEMBERS);
    add_names(types, of, DEEPEST, (&mut names, &mut left));
    names
}

fn add_names(
    types: &Btf<'_>,
    of: Composite<'_>,
    depth: u32,
    (names, left): (&mut Vec<String>, &mut usize),
) {
    for member in of.members() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match types.string(member.name).to_string() {
            name if !name.is_empty() => names.push(name),
            _ if depth == 0 => {}
            _ => {
                if let Some(inner) = composite_of(types, member.ty) {
                    add_names(types, inner, depth - 1, (names, left));
                }
            }
        }
    }
}

/// The first unnamed member that has all members which an object names.
fn unnamed_with(types: &Btf<'_>, of: Composite<'_>, object: &Value, depth: u32) -> Option<Member> {
    let keys = object.as_object()?;
    of.members().find(|member| {
        let inner = composite_of(types, member.ty);
        let Some(inner) = inner.filter(|_| depth > 0 && types.string(member.name) == *"") else {
            return false;
        };
        let names = member_names(types, inner);
        let is_there = |(key, value): (&String, &Value)| match &**key {
            "" => unnamed_with(types, inner, value, depth - 1).is_some(),
            key => names.iter().any(|name| name == key),
        };
        keys.iter().all(is_there)
    })
}

/// Writes a number into a bit field: an unsigned one, or one of two's complement, that has so many
/// bits.
fn put_bits(value: &Value, bit_offset: u32, bits: u32, into: &mut [u8]) -> Result<(), String> {
    let number = number(value).ok_or_else(|| format!("{} is no number", quoted(value)))?;
    let bits = bits.min(64);
    let fits = (-(1i128 << (bits.max(1) - 1))..1 << bits).contains(&number);
    let (start, shift) = ((bit_offset / 8) as usize, bit_offset % 8);
    let end = bit_offset.saturating_add(bits).div_ceil(8) as usize;
    let place = into.get_mut(start..end).filter(|_| fits);
    let place = place.ok_or_else(|| format!("{number} does not fit a bit field of {bits} bits"))?;
    let mut wide = [0; 16];
    wide[..place.len()].copy_from_slice(place);
    let mask = ((1u128 << bits) - 1) << shift;
    let kept = u128::from_le_bytes(wide) & !mask;
    let new = kept | (number as u128) << shift & mask;
    place.copy_from_slice(&new.to_le_bytes()[..end - start]);
    Ok(())
}

/// Writes a floating-point number of 4 or 8 bytes; null stands for what has no JSON form, and
/// leaves the bytes.
fn put_float(value: &Value, into: Option<&mut [u8]>) -> Option<()> {
    let into = into?;
    if value.is_null() {
        return Some(());
    }
    let number = value.as_f64()?;
    match into.len() {
        4 => into.copy_from_slice(&(number as f32).to_le_bytes()),
        8 => into.copy_from_slice(&number.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// A number, or one as a string, in decimal or after `0x`.
pub(super) fn number(value: &Value) -> Option<i128> {
    if let Some(text) = value.as_str() {
        return match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
    }
    let unsigned = value.as_u64().map(i128::from);
    unsigned.or_else(|| value.as_i64().map(i128::from))
}

fn put(number: i128, size: u32, is_signed: bool, into: &mut [u8]) -> Result<(), String> {
    if !(1..=16).contains(&size) {
        return Err(format!("numbers of {size} bytes cannot be written"));
    }
    let bits = size * 8;
    let fits = match (is_signed, bits) {
        (_, 128) => true,
        (true, _) => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&number),
        (false, _) => (0..1i128 << bits).contains(&number),
    };
    let place = into.get_mut(..size as usize).filter(|_| fits);
    let place = place.ok_or_else(|| {
        let kind = if is_signed { "a signed" } else { "an unsigned" };
        format!("{number} does not fit {kind} number of {bits} bits")
    })?;
    place.copy_from_slice(&number.to_le_bytes()[..size as usize]);
    Ok(())
}
