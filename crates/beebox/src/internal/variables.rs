//! Global variables of objects that are set before programs are loaded, by path.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;

use btf::{Btf, Kind, Shape, TypeId};
use object::Object;

/// Form of an assignment, for messages.
pub const FORM: &str = "NAME = VALUE, such as limit = 10, ports[2].low = -1 or mode = FAST";

/// An assignment to a global variable of an object, or a part of it, before programs are loaded.
///
/// It is `NAME = VALUE`, as veristat's `-G` takes it. The name goes on into members and elements
/// (`config.ports[2].low`); the value is a number or the name of an enumerator, and so is an index.
#[cfg_attr(
    all(feature = "run", feature = "kernel-data"),
    doc = r#"
```
use beebox::{Assignment, Loader, Object};

fn main() -> Result<(), beebox::Error> {
#   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let object = Object::open("examples/packets/dispatch.bpf.o")?;
    let loader = Loader::default().assign([Assignment::parse("others = 0x10")?]);
    assert_eq!(loader.load(&object)?.global::<u64>("others")?, 16);
    let absent = Loader::default().assign([Assignment::parse("other = 1")?]);
    assert!(absent.load(&object).is_err());
    Ok(())
}
```
"#
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
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

impl Assignment {
    /// Reads `NAME = VALUE`, as [`FORM`] shows.
    ///
    /// # Errors
    /// If the text is no assignment.
    pub fn parse(text: &str) -> Result<Assignment, crate::Error> {
        Ok(Assignment::try_parse(text)?)
    }

    /// As [`Assignment::parse`], with the error as data.
    #[doc(hidden)]
    pub fn try_parse(text: &str) -> Result<Assignment, VariableError> {
        let wrong = || VariableError {
            path: text.to_owned(),
            fault: VariableFault::NoAssignment,
        };
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
        let path = path.to_owned();
        match parse_value(value) {
            Some(value) => Ok(Assignment {
                path,
                variable: variable.to_owned(),
                steps,
                value,
            }),
            None => Err(VariableError {
                path,
                fault: VariableFault::NoValue(value.trim().to_owned()),
            }),
        }
    }

    /// Sets the variable of an object, before it is linked.
    ///
    /// # Errors
    /// If the object has no such variable, member or element, if it is no number or enumeration,
    /// or if the value does not fit.
    #[doc(hidden)]
    pub fn apply(&self, object: &mut Object<'_>) -> Result<(), VariableError> {
        self.set(object).map_err(|fault| VariableError {
            path: self.path.clone(),
            fault,
        })
    }

    fn set(&self, object: &mut Object<'_>) -> Result<(), VariableFault> {
        let absent = || {
            let mut known: Vec<String> = object.globals().map(|global| global.name).collect();
            known.sort_unstable();
            VariableFault::NoVariable { known }
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
        let mut bytes = object
            .read_global(&self.variable)
            .map_err(|error| VariableFault::Object(Box::new(error)))?;
        let end = place.offset.checked_add(value.len());
        let target = end.and_then(|end| bytes.get_mut(place.offset..end));
        target.ok_or(VariableFault::End)?.copy_from_slice(&value);
        let written = object.write_global(&self.variable, &bytes);
        written.map_err(|error| VariableFault::Object(Box::new(error)))
    }
}

/// A part of a variable.
struct Place {
    ty: TypeId,
    /// Bytes from the start of the variable.
    offset: usize,
}

impl Place {
    fn member(&self, types: &Btf<'_>, name: &str) -> Result<Place, VariableFault> {
        let absent = || VariableFault::NoMember(name.to_owned());
        let (ty, bit_offset, bits) = find_member(types, self.ty, name).ok_or_else(absent)?;
        if bits != 0 {
            return Err(VariableFault::BitField(name.to_owned()));
        }
        let offset = self.offset.checked_add(bit_offset as usize / 8);
        let offset = offset.ok_or(VariableFault::End)?;
        Ok(Place { ty, offset })
    }

    fn element(&self, types: &Btf<'_>, index: &Value) -> Result<Place, VariableFault> {
        let ty = types.skip_modifiers(self.ty).unwrap_or_default();
        let Shape::Array(array) = types.at(ty).shape() else {
            return Err(VariableFault::NoArray);
        };
        let index = number_of(types, index)?;
        let size = types.size_of(array.element).unwrap_or(0);
        let at = usize::try_from(index).ok();
        match at.filter(|_| index < array.count.into()) {
            Some(at) => {
                let distance = at.checked_mul(size as usize);
                let offset = distance.and_then(|distance| self.offset.checked_add(distance));
                let offset = offset.ok_or(VariableFault::End)?;
                Ok(Place {
                    ty: array.element,
                    offset,
                })
            }
            None => Err(VariableFault::NoElement {
                index,
                count: array.count,
            }),
        }
    }

    /// The bytes of a value of the place's type.
    fn encode(&self, types: &Btf<'_>, value: &Value) -> Result<Vec<u8>, VariableFault> {
        let ty = types.at(types.skip_modifiers(self.ty).unwrap_or_default());
        let (size, is_signed) = match ty.shape() {
            Shape::Int(int) => (int.size, int.encoding.is_signed()),
            Shape::Enum(of) => (of.size, of.signed),
            _ => (0, false),
        };
        if !matches!(size, 1 | 2 | 4 | 8 | 16) {
            return Err(VariableFault::Kind(ty.kind()));
        }
        let value = match (value, ty.shape()) {
            (Value::Enumerator(name), Shape::Int(int)) => match &**name {
                "true" if int.encoding.is_bool() => 1,
                "false" if int.encoding.is_bool() => 0,
                _ => return Err(VariableFault::NoEnumeration),
            },
            _ => number_of(types, value)?,
        };
        // Numbers are read as 128 bits with a sign.
        let (least, most) = match (is_signed, 8 * size) {
            (true, bits) => (i128::MIN >> (128 - bits), i128::MAX >> (128 - bits)),
            (false, 128) => (0, i128::MAX),
            (false, bits) => (0, (1 << bits) - 1),
        };
        if value < least || value > most {
            return Err(VariableFault::Range { value, least, most });
        }
        Ok(value.to_le_bytes()[..size as usize].to_vec())
    }
}

/// Anonymous members inside each other that are followed.
const MAX_DEPTH: u32 = 32;

/// Type, offset in bits and width of a member, also one of an anonymous member. Each structure is
/// searched once: one without the member has it nowhere.
fn find_member(types: &Btf<'_>, ty: TypeId, name: &str) -> Option<(TypeId, u32, u32)> {
    fn search(
        types: &Btf<'_>,
        ty: TypeId,
        name: &str,
        depth: u32,
        searched: &mut HashSet<TypeId>,
    ) -> Option<(TypeId, u32, u32)> {
        let ty = types.skip_modifiers(ty)?;
        if depth == MAX_DEPTH || !searched.insert(ty) {
            return None;
        }
        types.at(ty).as_composite()?.members().find_map(|member| {
            if types.string(member.name) == name {
                return Some((member.ty, member.bit_offset, member.bits));
            }
            if !types.string(member.name).is_empty() {
                return None;
            }
            let (ty, offset, bits) = search(types, member.ty, name, depth + 1, searched)?;
            Some((ty, member.bit_offset.checked_add(offset)?, bits))
        })
    }
    search(types, ty, name, 0, &mut HashSet::new())
}

fn number_of(types: &Btf<'_>, value: &Value) -> Result<i128, VariableFault> {
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
    found.ok_or_else(|| VariableFault::NoEnumerator(name.clone()))
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

/// Reason why a variable is not set.
#[derive(Debug)]
pub struct VariableError {
    /// The variable with its members and elements, or the whole text if it is no assignment.
    pub path: String,
    /// The fact.
    #[doc(hidden)]
    pub fault: VariableFault,
}

/// Kinds of faults of assignments.
#[derive(Debug)]
#[non_exhaustive]
pub enum VariableFault {
    /// The text is no assignment ([`FORM`]).
    NoAssignment,
    /// The text behind `=` is no value.
    NoValue(String),
    /// The object has no variable of this name.
    NoVariable {
        /// The variables of the object that have types, sorted.
        known: Vec<String>,
    },
    /// A structure has no member of this name.
    NoMember(String),
    /// The member is a bit field, which is not set.
    BitField(String),
    /// An index stands behind what is no array.
    NoArray,
    /// The array has no such element.
    NoElement {
        /// The index.
        index: i128,
        /// Number of elements.
        count: u32,
    },
    /// The variable is of a kind that is not set: no number and no enumeration.
    Kind(Kind),
    /// The value is an enumerator, and the variable a number.
    NoEnumeration,
    /// The value does not fit.
    Range {
        /// The value.
        value: i128,
        /// The least value that fits.
        least: i128,
        /// The largest value that fits.
        most: i128,
    },
    /// No enumerator of the object has this name.
    NoEnumerator(String),
    /// The variable ends before the place of the value.
    End,
    /// The object's contents cannot be read or written.
    Object(Box<object::Error>),
}

impl fmt::Display for VariableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariableFault::NoAssignment => write!(f, "it is no assignment"),
            VariableFault::NoValue(text) => {
                write!(
                    f,
                    "{text:?} is neither a number nor the name of an enumerator"
                )
            }
            VariableFault::NoVariable { known } if known.is_empty() => {
                write!(f, "the object has no variables with types")
            }
            VariableFault::NoVariable { .. } => write!(f, "the object has no such variable"),
            VariableFault::NoMember(name) => write!(f, "no member is called {name:?}"),
            VariableFault::BitField(name) => {
                write!(
                    f,
                    "the member {name:?} is a bit field, which cannot be set alone"
                )
            }
            VariableFault::NoArray => write!(f, "an index, but no array"),
            VariableFault::NoElement { index, count } => {
                write!(f, "no element {index}: the array has {count}")
            }
            VariableFault::Kind(kind) => write!(
                f,
                "it is a {}: only numbers and enumerations are set",
                kind.name()
            ),
            VariableFault::NoEnumeration => write!(f, "it is a number, not an enumeration"),
            VariableFault::Range { value, least, most } => {
                write!(f, "{value} does not fit: it holds {least} to {most}")
            }
            VariableFault::NoEnumerator(name) => write!(f, "no enumerator is called {name:?}"),
            VariableFault::End => write!(f, "the variable ends before it"),
            VariableFault::Object(error) => error.fmt(f),
        }
    }
}

impl Error for VariableFault {}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            VariableFault::NoAssignment => write!(f, "global {:?} is no assignment", self.path),
            fault => write!(f, "global {}: {fault}", self.path),
        }
    }
}

impl Error for VariableError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.fault {
            VariableFault::Object(error) => Some(&**error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_members_and_elements() {
        let found = Assignment::parse(" config.ports[2].low = -0x10 ")
            .ok()
            .unwrap();
        assert_eq!(found.variable, "config");
        let member = |name: &str| Step::Member(name.to_owned());
        let index = Step::Element(Value::Number(2));
        assert_eq!(found.steps, [member("ports"), index, member("low")]);
        assert_eq!(found.value, Value::Number(-16));
        let named = Assignment::parse("table[LAST]=FAST").ok().unwrap();
        assert_eq!(named.value, Value::Enumerator("FAST".to_owned()));
        for wrong in [
            "", "a", "=1", "a=", "a=1x", "a[1=2", "a.=1", "a b=1", "a=b c",
        ] {
            assert!(Assignment::parse(wrong).is_err(), "{wrong}");
        }
    }
    fn place(size: u32, bits: u32, is_signed: bool) -> (Vec<u8>, Place) {
        let mut types = btf::Builder::new();
        let name = types.string("number");
        let encoding = match is_signed {
            true => btf::Encoding::SIGNED,
            false => btf::Encoding::NONE,
        };
        let int = btf::Int {
            size,
            bits,
            offset: 0,
            encoding,
        };
        let ty = types.int(name, int);
        (types.finish(), Place { ty, offset: 0 })
    }

    #[test]
    fn values_have_the_bytes_of_their_type() {
        let encode = |size, is_signed, value| {
            let (blob, place) = place(size, 8, is_signed);
            let types = Btf::parse(&blob).unwrap();
            place.encode(&types, &Value::Number(value))
        };
        assert_eq!(encode(16, true, -1).unwrap(), [0xff; 16]);
        assert_eq!(encode(8, false, u64::MAX.into()).unwrap(), [0xff; 8]);
        assert_eq!(encode(1, true, -128).unwrap(), [0x80]);
        assert!(encode(1, true, 128).is_err() && encode(1, false, -1).is_err());
        assert!(encode(8, false, 1 << 64).is_err());
        for size in [0, 3, 32] {
            assert!(encode(size, true, 0).is_err(), "{size}");
        }
    }
}
