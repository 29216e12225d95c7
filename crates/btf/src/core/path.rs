//! Access path of a relocation: from a root type to a field or enumerator
//! (`bpf_core_spec`).
//!
//! The access string has indices: `0:3:1` is member 1 of member 3 of element 0 of what a
//! pointer refers to. Only named members and array elements are steps, since those are
//! matched in the target; anonymous members add to the offset only.

use std::fmt;

use super::CoreError;
use crate::ext::{CoreKind, CoreSpec};
use crate::{Array, Btf, Kind, Name, Shape, StrOffset, Type, TypeId};

/// Maximum number of indices.
pub(crate) const MAX_STEPS: usize = 64;

/// Subject of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Field,
    Type,
    EnumValue,
}

impl Subject {
    pub(crate) fn of(kind: CoreKind) -> Option<Subject> {
        match kind {
            CoreKind::FIELD_BYTE_OFFSET
            | CoreKind::FIELD_BYTE_SIZE
            | CoreKind::FIELD_EXISTS
            | CoreKind::FIELD_SIGNED
            | CoreKind::FIELD_LEFT_SHIFT
            | CoreKind::FIELD_RIGHT_SHIFT => Some(Subject::Field),
            CoreKind::TYPE_ID_LOCAL
            | CoreKind::TYPE_ID_TARGET
            | CoreKind::TYPE_EXISTS
            | CoreKind::TYPE_SIZE
            | CoreKind::TYPE_MATCHES => Some(Subject::Type),
            CoreKind::ENUM_VALUE_EXISTS | CoreKind::ENUM_VALUE => Some(Subject::EnumValue),
            _ => None,
        }
    }
}

/// Step of a path: a named member, or an array element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Structure or union of the member, or type of the element, without modifiers.
    pub(crate) ty: TypeId,
    /// Index of the member or element.
    pub(crate) index: u32,
    /// Name of the member; empty for elements.
    pub(crate) name: StrOffset,
}

/// Access path in one BTF blob.
///
/// Its text is that of libbpf's messages: `<byte_off> [7] struct sock.sk_family (0:0:3 @
/// offset 16)`.
#[derive(Clone)]
pub struct Path<'b> {
    pub(crate) btf: &'b Btf<'b>,
    pub(crate) root: TypeId,
    pub(crate) kind: CoreKind,
    /// Named members and elements, outermost first.
    pub(crate) steps: Vec<Step>,
    /// All indices of the access string.
    pub(crate) numbers: Vec<u32>,
    /// Offset in bits from the start of the root type.
    pub(crate) bit_offset: u32,
}

impl<'b> Path<'b> {
    /// Path without steps.
    pub(crate) fn empty(btf: &'b Btf<'b>, root: TypeId, kind: CoreKind) -> Path<'b> {
        Path {
            btf,
            root,
            kind,
            steps: Vec::new(),
            numbers: Vec::new(),
            bit_offset: 0,
        }
    }

    /// Path of a relocation in the BTF of its object.
    pub fn parse(btf: &'b Btf<'b>, spec: &CoreSpec) -> Result<Path<'b>, CoreError> {
        btf.get(spec.ty).ok_or(CoreError::NoType { id: spec.ty })?;
        let subject = Subject::of(spec.kind).ok_or(CoreError::UnknownKind { kind: spec.kind })?;
        let text = btf.string(spec.access);
        let mut path = Path::empty(btf, spec.ty, spec.kind);
        if subject == Subject::Type {
            let is_whole = text == "0";
            return is_whole.then_some(path).ok_or(CoreError::AccessText);
        }
        path.numbers = numbers(text)?;
        let ty = btf.skip_modifiers(spec.ty).ok_or(CoreError::TypeCycle)?;
        match subject {
            Subject::EnumValue => path.take_value(ty)?,
            _ => path.take_fields(ty)?,
        }
        Ok(path)
    }

    fn take_value(&mut self, ty: TypeId) -> Result<(), CoreError> {
        let nowhere = |step| CoreError::NoSuchPart { id: ty, step };
        let &[index] = &self.numbers[..] else {
            return Err(nowhere(1));
        };
        let Shape::Enum(of) = self.btf.at(ty).shape() else {
            return Err(nowhere(0));
        };
        let value = of.values().nth(index as usize).ok_or(nowhere(0))?;
        self.steps.push(Step {
            ty,
            index,
            name: value.name,
        });
        Ok(())
    }

    fn take_fields(&mut self, root: TypeId) -> Result<(), CoreError> {
        let mut ty = root;
        for step in 0..self.numbers.len() {
            let index = self.numbers[step];
            let nowhere = CoreError::NoSuchPart { id: ty, step };
            if step == 0 {
                self.take_element(ty, index)?;
                continue;
            }
            let below = match self.btf.at(ty).shape() {
                Shape::Struct(composite) | Shape::Union(composite) => {
                    let member = composite.member(index as usize).ok_or(nowhere)?;
                    self.bit_offset = self.bit_offset.wrapping_add(member.bit_offset);
                    if member.name != StrOffset::EMPTY {
                        if self.btf.string(member.name).is_empty() {
                            return Err(nowhere);
                        }
                        let name = member.name;
                        self.steps.push(Step { ty, index, name });
                    }
                    self.below(member.ty)?
                }
                Shape::Array(array) => {
                    if !self.reaches(array, index) {
                        return Err(nowhere);
                    }
                    let element = self.below(array.element)?;
                    self.take_element(element, index)?;
                    element
                }
                _ => return Err(nowhere),
            };
            ty = below;
        }
        Ok(())
    }

    fn below(&self, ty: TypeId) -> Result<TypeId, CoreError> {
        self.btf.skip_modifiers(ty).ok_or(CoreError::TypeCycle)
    }

    fn take_element(&mut self, ty: TypeId, index: u32) -> Result<(), CoreError> {
        let size = self
            .btf
            .size_of(ty)
            .ok_or(CoreError::LocalSize { id: ty })?;
        self.push_element(ty, index, size);
        Ok(())
    }

    /// Appends an element of `size` bytes.
    pub(crate) fn push_element(&mut self, ty: TypeId, index: u32, size: u32) {
        self.steps.push(Step {
            ty,
            index,
            name: StrOffset::EMPTY,
        });
        let bits = index.wrapping_mul(size).wrapping_mul(8);
        self.bit_offset = self.bit_offset.wrapping_add(bits);
    }

    /// True if the array at the end of the path has such an element. A flexible array at
    /// the end of its structure has all.
    pub(crate) fn reaches(&self, array: Array, index: u32) -> bool {
        let ends_structure = |step: &Step| {
            let is_member = step.name != StrOffset::EMPTY;
            is_member && step.index as usize + 1 == self.btf.at(step.ty).count()
        };
        let is_flexible = array.count == 0 && self.steps.last().is_some_and(ends_structure);
        is_flexible || index < array.count
    }

    /// Root type.
    pub fn root(&self) -> Type<'b> {
        self.btf.at(self.root)
    }

    /// Offset in bits from the start of the root type.
    pub fn bit_offset(&self) -> u32 {
        self.bit_offset
    }

    /// Accessed field or enumerator in C notation: `task_struct.pid`,
    /// `bpf_func_id::BPF_FUNC_loop`, or the name of the type alone.
    pub fn label(&self) -> String {
        let root = self.root();
        let mut label = match root.name() {
            name if name.is_empty() => format!("{} <anon>", noun(root.kind())),
            name => name.to_string(),
        };
        let is_value = Subject::of(self.kind) == Some(Subject::EnumValue);
        for (at, step) in self.steps.iter().enumerate() {
            if step.name != StrOffset::EMPTY {
                label.push_str(if is_value { "::" } else { "." });
                label.push_str(&self.name(step).to_string());
            } else if at > 0 || step.index > 0 {
                label.push_str(&format!("[{}]", step.index));
            }
        }
        label
    }

    pub(crate) fn name(&self, step: &Step) -> Name<'b> {
        self.btf.string(step.name)
    }
}

/// Numbers separated by colons.
fn numbers(text: Name<'_>) -> Result<Vec<u32>, CoreError> {
    let number = |digits: &[u8]| {
        // A larger number exceeds 31 bits and every count of members.
        let is_number = matches!(digits.len(), 1..=9) && digits.iter().all(u8::is_ascii_digit);
        let push = |number, &digit: &u8| number * 10 + u32::from(digit - b'0');
        is_number.then(|| digits.iter().fold(0, push))
    };
    let mut numbers = Vec::with_capacity(8);
    for digits in text.as_bytes().split(|&byte| byte == b':') {
        if numbers.len() == MAX_STEPS {
            return Err(CoreError::AccessTooLong);
        }
        numbers.push(number(digits).ok_or(CoreError::AccessText)?);
    }
    Ok(numbers)
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root();
        let spec = self.kind.name().unwrap_or("unknown");
        write!(f, "<{spec}> [{}] {} ", self.root, noun(root.kind()))?;
        match root.name() {
            name if name.is_empty() => write!(f, "<anon>")?,
            name => write!(f, "{name}")?,
        }
        match Subject::of(self.kind) {
            Some(Subject::EnumValue) => self.write_value(f),
            Some(Subject::Field) => self.write_field(f),
            _ => Ok(()),
        }
    }
}

impl Path<'_> {
    fn write_value(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(step) = self.steps.first() else {
            return Ok(());
        };
        let Shape::Enum(of) = self.btf.at(step.ty).shape() else {
            return Ok(());
        };
        let Some(value) = of.values().nth(step.index as usize) else {
            return Ok(());
        };
        write!(f, "::{} = ", self.btf.string(value.name))?;
        match of.signed {
            true => write!(f, "{}", value.value as i64),
            false => write!(f, "{}", value.value),
        }
    }

    fn write_field(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            if step.name != StrOffset::EMPTY {
                write!(f, ".{}", self.name(step))?;
            } else if at > 0 || step.index > 0 {
                write!(f, "[{}]", step.index)?;
            }
        }
        write!(f, " (")?;
        for (at, number) in self.numbers.iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{number}")?;
        }
        write!(f, " @ offset {}", self.bit_offset / 8)?;
        match self.bit_offset % 8 {
            0 => write!(f, ")"),
            bits => write!(f, ".{bits})"),
        }
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Name of a kind in lower case.
fn noun(kind: Kind) -> String {
    match kind {
        Kind::Void => "void".into(),
        kind => kind.name().to_ascii_lowercase(),
    }
}
