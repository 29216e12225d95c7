//! The way from a type to the field, or to the value of an enumeration, that a
//! relocation is about.
//!
//! The compiler writes it as numbers: `0:3:1` is member 1 of member 3 of element
//! 0 of what a pointer points to. What counts in another layout are the names on
//! the way and the elements of arrays, so members without a name leave no step of
//! their own; only the place keeps what they add.

use std::fmt;

use super::CoreError;
use crate::ext::{CoreKind, CoreQuestion};
use crate::{Array, Btf, Kind, Name, Shape, StrOffset, Type, TypeId};

/// The most numbers in a way.
pub(crate) const MAX_STEPS: usize = 64;

/// What a question is about.
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

/// One step: a member with a name, or an element of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The structure or union whose member it is, or the type of the element; no
    /// modifier.
    pub(crate) ty: TypeId,
    /// Which member or element.
    pub(crate) index: u32,
    /// The member's name; empty for elements.
    pub(crate) name: StrOffset,
}

/// A way into a type of one blob.
///
/// Its text is the one that libbpf gives in messages:
/// `<byte_off> [7] struct sock.sk_family (0:0:3 @ offset 16)`.
#[derive(Clone)]
pub struct Path<'b> {
    pub(crate) btf: &'b Btf<'b>,
    pub(crate) root: TypeId,
    pub(crate) kind: CoreKind,
    /// Elements and members with names, from the outermost.
    pub(crate) steps: Vec<Step>,
    /// Every element and member, as the compiler numbers them.
    pub(crate) numbers: Vec<u32>,
    /// Bits from the start of the type.
    pub(crate) bit_offset: u32,
}

impl<'b> Path<'b> {
    /// A way of no steps.
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

    /// The way that a relocation asks about, against the types of the object it belongs to.
    pub fn parse(btf: &'b Btf<'b>, question: &CoreQuestion) -> Result<Path<'b>, CoreError> {
        btf.get(question.ty)
            .ok_or(CoreError::NoType { id: question.ty })?;
        let subject = Subject::of(question.kind).ok_or(CoreError::UnknownKind {
            kind: question.kind,
        })?;
        let text = btf.string(question.access);
        let mut path = Path::empty(btf, question.ty, question.kind);
        if subject == Subject::Type {
            let is_whole = text == "0";
            return is_whole.then_some(path).ok_or(CoreError::AccessText);
        }
        path.numbers = numbers(text)?;
        let ty = btf.skip_modifiers(question.ty).ok_or(CoreError::Endless)?;
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
        self.btf.skip_modifiers(ty).ok_or(CoreError::Endless)
    }

    fn take_element(&mut self, ty: TypeId, index: u32) -> Result<(), CoreError> {
        let size = self
            .btf
            .size_of(ty)
            .ok_or(CoreError::LocalSize { id: ty })?;
        self.push_element(ty, index, size);
        Ok(())
    }

    /// Goes to an element of `size` bytes.
    pub(crate) fn push_element(&mut self, ty: TypeId, index: u32, size: u32) {
        self.steps.push(Step {
            ty,
            index,
            name: StrOffset::EMPTY,
        });
        let bits = index.wrapping_mul(size).wrapping_mul(8);
        self.bit_offset = self.bit_offset.wrapping_add(bits);
    }

    /// Has the array, to which the last step leads, such an element? One without
    /// elements has all of them, if it ends its structure.
    pub(crate) fn reaches(&self, array: Array, index: u32) -> bool {
        let ends_structure = |step: &Step| {
            let is_member = step.name != StrOffset::EMPTY;
            is_member && step.index as usize + 1 == self.btf.at(step.ty).count()
        };
        let is_flexible = array.count == 0 && self.steps.last().is_some_and(ends_structure);
        is_flexible || index < array.count
    }

    /// The type that it starts at.
    pub fn root(&self) -> Type<'b> {
        self.btf.at(self.root)
    }

    /// Bits from the start of that type to where it leads.
    pub fn bit_offset(&self) -> u32 {
        self.bit_offset
    }

    /// What it leads to, as people write it: `task_struct.pid`,
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

/// Numbers with colons between.
fn numbers(text: Name<'_>) -> Result<Vec<u32>, CoreError> {
    let number = |digits: &[u8]| {
        // More would not fit 31 bits, and there is no such member.
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
        let question = self.kind.name().unwrap_or("unknown");
        write!(f, "<{question}> [{}] {} ", self.root, noun(root.kind()))?;
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

/// A kind in small letters.
fn noun(kind: Kind) -> String {
    match kind {
        Kind::Void => "void".into(),
        kind => kind.name().to_ascii_lowercase(),
    }
}
