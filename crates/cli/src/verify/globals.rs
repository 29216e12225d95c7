//! Global variables that are set before programs are loaded: veristat's `-G`.
//!
//! An assignment is `NAME = VALUE`. The name goes on into members and elements
//! (`config.ports[2].low`); the value is a number or the name of an enumerator, and so
//! is an index.

use beebox::btf::{Btf, Shape, TypeId};
use beebox::object::Object;

use crate::answer::Failure;

/// Form of an assignment, for messages.
const FORM: &str = "NAME = VALUE, such as limit = 10, ports[2].low = -1 or mode = FAST";

/// An assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The name with its members and elements, as it was written.
    path: String,
    variable: String,
    steps: Vec<Step>,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Element(Value),
}

/// A number, or the name of an enumerator.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(i128),
    Enumerator(String),
}

/// Reads assignments; `@FILE` is a file with one on each line, `#` begins a comment.
pub(crate) fn read(texts: &[String]) -> Result<Vec<Assignment>, Failure> {
    let mut all = Vec::new();
    for text in texts {
        let Some(path) = text.strip_prefix('@') else {
            all.push(parse(text)?);
            continue;
        };
        for line in super::filter::lines_of(path)? {
            all.push(parse(&line)?);
        }
    }
    Ok(all)
}

fn parse(text: &str) -> Result<Assignment, Failure> {
    let wrong = || Failure::new(format_args!("global {text:?} is no assignment")).hint(FORM);
    let (path, value) = text.split_once('=').ok_or_else(wrong)?;
    let path = path.trim();
    let (variable, mut rest) = take_name(path).ok_or_else(wrong)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(member) = rest.strip_prefix('.') {
            let (name, behind) = take_name(member).ok_or_else(wrong)?;
            steps.push(Step::Member(name.to_owned()));
            rest = behind;
        } else {
            let inside = rest.strip_prefix('[').ok_or_else(wrong)?;
            let (index, behind) = inside.split_once(']').ok_or_else(wrong)?;
            steps.push(Step::Element(parse_value(index).ok_or_else(wrong)?));
            rest = behind.trim_start();
        }
    }
    Ok(Assignment {
        path: path.to_owned(),
        variable: variable.to_owned(),
        steps,
        value: parse_value(value).ok_or_else(wrong)?,
    })
}

/// The name at the start of a text, and what follows it.
fn take_name(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    (!name.is_empty()).then(|| (name, rest.trim_start()))
}

fn parse_value(text: &str) -> Option<Value> {
    let text = text.trim();
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        let (name, rest) = take_name(text)?;
        return rest.is_empty().then(|| Value::Enumerator(name.to_owned()));
    }
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.ok().map(|number| Value::Number(sign * number))
}

/// Sets the variables of an object.
///
/// # Errors
/// If the object has no such variable, member or element, if it is no number, or if the
/// value does not fit.
pub(crate) fn apply(object: &mut Object<'_>, all: &[Assignment]) -> Result<(), Failure> {
    for assignment in all {
        let set = assignment.apply(object);
        set.map_err(|failure| failure.within(format_args!("global {}", assignment.path)))?;
    }
    Ok(())
}

impl Assignment {
    fn apply(&self, object: &mut Object<'_>) -> Result<(), Failure> {
        let absent = || {
            let mut names: Vec<String> = object.globals().map(|global| global.name).collect();
            names.sort_unstable();
            match names.is_empty() {
                true => Failure::new("the object has no variables with types"),
                false => Failure::new("the object has no such variable")
                    .hint(format_args!("one of {}", names.join(", "))),
            }
        };
        let global = object.global(&self.variable).ok_or_else(absent)?;
        let types = object.btf().ok_or_else(absent)?;
        let mut place = Place {
            ty: global.ty,
            offset: 0,
        };
        for step in &self.steps {
            place = match step {
                Step::Member(name) => place.member(types, name)?,
                Step::Element(index) => place.element(types, index)?,
            };
        }
        let value = place.encode(types, &self.value)?;
        let mut bytes = object.read_global(&self.variable).map_err(Failure::new)?;
        let end = place.offset.checked_add(value.len());
        let target = end.and_then(|end| bytes.get_mut(place.offset..end));
        target
            .ok_or_else(|| Failure::new("the variable ends before it"))?
            .copy_from_slice(&value);
        let written = object.write_global(&self.variable, &bytes);
        written.map_err(Failure::new)
    }
}

/// A part of a variable.
struct Place {
    ty: TypeId,
    /// Bytes from the start of the variable.
    offset: usize,
}

impl Place {
    fn member(&self, types: &Btf<'_>, name: &str) -> Result<Place, Failure> {
        let absent = || Failure::new(format_args!("no member is called {name:?}"));
        let (ty, bit_offset, bits) = find_member(types, self.ty, name, 0).ok_or_else(absent)?;
        if bits != 0 {
            return Err(Failure::new(format_args!(
                "the member {name:?} is a bit field"
            )));
        }
        Ok(Place {
            ty,
            offset: self.offset + bit_offset as usize / 8,
        })
    }

    fn element(&self, types: &Btf<'_>, index: &Value) -> Result<Place, Failure> {
        let ty = types.skip_modifiers(self.ty).unwrap_or_default();
        let Shape::Array(array) = types.at(ty).shape() else {
            return Err(Failure::new("an index, but no array"));
        };
        let index = number_of(types, index)?;
        let size = types.size_of(array.element).unwrap_or(0);
        let at = usize::try_from(index).ok();
        match at.filter(|_| index < array.count.into()) {
            Some(at) => Ok(Place {
                ty: array.element,
                offset: self.offset + at * size as usize,
            }),
            None => Err(Failure::new(format_args!(
                "no element {index}: the array has {}",
                array.count
            ))),
        }
    }

    /// The bytes of a value of the place's type.
    fn encode(&self, types: &Btf<'_>, value: &Value) -> Result<Vec<u8>, Failure> {
        let ty = types.at(types.skip_modifiers(self.ty).unwrap_or_default());
        let (size, is_signed) = match ty.shape() {
            Shape::Int(int) => (int.size, int.encoding.is_signed()),
            Shape::Enum(of) => (of.size, of.signed),
            _ => {
                return Err(Failure::new(format_args!(
                    "it is a {}: only numbers and enumerations are set",
                    ty.kind().name()
                )));
            }
        };
        if matches!((value, ty.shape()), (Value::Enumerator(_), Shape::Int(_))) {
            return Err(Failure::new("it is a number, not an enumeration"));
        }
        let value = number_of(types, value)?;
        let bits = 8 * size.min(8);
        let (least, most) = match is_signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        if value < least || value > most {
            return Err(Failure::new(format_args!(
                "{value} does not fit: it holds {least} to {most}"
            )));
        }
        Ok(value.to_le_bytes()[..size.min(8) as usize].to_vec())
    }
}

/// Anonymous members inside each other that are followed.
const MAX_DEPTH: u32 = 32;

/// Type, offset in bits and width of a member, also one of an anonymous member.
fn find_member(types: &Btf<'_>, ty: TypeId, name: &str, depth: u32) -> Option<(TypeId, u32, u32)> {
    let structure = types.at(types.skip_modifiers(ty)?).as_composite()?;
    structure.members().find_map(|member| {
        if types.string(member.name) == name {
            return Some((member.ty, member.bit_offset, member.bits));
        }
        if !types.string(member.name).is_empty() || depth == MAX_DEPTH {
            return None;
        }
        let (ty, offset, bits) = find_member(types, member.ty, name, depth + 1)?;
        Some((ty, member.bit_offset.checked_add(offset)?, bits))
    })
}

fn number_of(types: &Btf<'_>, value: &Value) -> Result<i128, Failure> {
    let name = match value {
        Value::Number(number) => return Ok(*number),
        Value::Enumerator(name) => name,
    };
    let found = types.types().find_map(|ty| {
        let Shape::Enum(of) = ty.shape() else {
            return None;
        };
        let mut values = of.values();
        let value = values.find(|value| types.string(value.name) == name.as_str())?;
        Some(match of.signed {
            true => i128::from(value.value as i64),
            false => i128::from(value.value),
        })
    });
    found.ok_or_else(|| Failure::new(format_args!("no enumerator is called {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_members_and_elements() {
        let found = parse(" config.ports[2].low = -0x10 ").ok().unwrap();
        assert_eq!(found.variable, "config");
        let member = |name: &str| Step::Member(name.to_owned());
        let index = Step::Element(Value::Number(2));
        assert_eq!(found.steps, [member("ports"), index, member("low")]);
        assert_eq!(found.value, Value::Number(-16));
        let named = parse("table[LAST]=FAST").ok().unwrap();
        assert_eq!(named.value, Value::Enumerator("FAST".to_owned()));
        for wrong in [
            "", "a", "=1", "a=", "a=1x", "a[1=2", "a.=1", "a b=1", "a=b c",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
