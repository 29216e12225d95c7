//! Values by type, and the trees that front ends show of them.

use trace::dwarf::ValueBytes;
use trace::{FieldOf, TypeForm, VariableType, part};

use super::int_type::IntType;
use super::places::ValuePlace;
use super::view::View;

/// Most children of a node that are shown at once.
pub(super) const MOST_CHILDREN: usize = 1000;
/// Most bytes that are read through a pointer.
const MOST_BYTES: usize = 1 << 16;

/// A value.
#[derive(Clone, Debug)]
pub struct DebugValue<'r> {
    /// Its type; `None` for a number that is computed.
    pub kind: Option<VariableType<'r>>,
    /// The type of a number that is computed.
    pub(super) int: IntType,
    /// Of a bit field its first bit in the bytes of its place, and its bits.
    pub(super) bits: Option<(u64, u32)>,
    /// Its bytes.
    pub bytes: ValueBytes,
    /// Where it is.
    pub place: ValuePlace,
}

/// What a row of a tree is of.
#[derive(Clone, Debug)]
pub enum TreeNode<'r> {
    /// A value.
    Value(DebugValue<'r>),
    /// Why there is no value.
    Absent(String),
    /// The place of an entry that is not there, and why.
    NoEntry(DebugValue<'r>, String),
    /// Text, as the value of a field of the packet, with its address and length.
    Text(String, Option<(u64, usize)>),
    /// The map of a number.
    Map(u32),
    /// The fields of the packet.
    Packet,
    /// The values that an entry of a per-CPU map has.
    PerCpu(Vec<DebugValue<'r>>),
}

/// A row of a tree.
#[derive(Clone, Debug)]
pub struct TreeRow<'r> {
    /// Its name.
    pub name: String,
    /// Its type in C; empty for none.
    pub kind: String,
    /// What it is of.
    pub node: TreeNode<'r>,
}

impl<'r> DebugValue<'r> {
    /// A number that is computed.
    pub(super) fn number(number: i64, int: IntType) -> DebugValue<'r> {
        let len = if int.is_wide { 8 } else { 4 };
        DebugValue {
            kind: None,
            int,
            bits: None,
            bytes: ValueBytes::known(number.to_le_bytes()[..len].to_vec()),
            place: ValuePlace::None,
        }
    }

    /// The type of its number after the promotions of C.
    pub(super) fn int_type(&self) -> IntType {
        match (self.kind, self.bits) {
            (None, _) => self.int,
            // An int holds all values of a bit field of fewer bits.
            (Some(_), Some((_, bits))) if bits < 32 => IntType::INT,
            (Some(kind), _) => IntType::of(self.bytes.bytes.len(), kind.is_signed()),
        }
    }

    /// The number that a value without parts is; `None` for others, and for those that are not
    /// known.
    pub(super) fn as_number(&self) -> Option<i64> {
        if self.bytes.known.contains(&false) || self.bytes.bytes.len() > 8 {
            return None;
        }
        let is_number = self.kind.is_none_or(|kind| {
            matches!(
                kind.form(),
                TypeForm::Number(_) | TypeForm::Enum { .. } | TypeForm::Pointer(_)
            )
        });
        let len = self.bytes.bytes.len();
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(&self.bytes.bytes);
        let number = i64::from_le_bytes(wide);
        let is_signed = self
            .kind
            .map_or(self.int.is_signed, |kind| kind.is_signed());
        let unused = 64 - 8 * len.max(1) as u32;
        let number = match is_signed {
            true => number << unused >> unused,
            false => number,
        };
        is_number.then_some(number)
    }

    /// A part of it.
    fn part(&self, kind: VariableType<'r>, range: (usize, usize)) -> Option<DebugValue<'r>> {
        Some(DebugValue {
            kind: Some(kind),
            int: IntType::INT,
            bits: None,
            bytes: part(&self.bytes, range)?,
            place: self.place.part(range),
        })
    }

    /// A member of it.
    fn field(&self, field: &FieldOf<'r>) -> Option<DebugValue<'r>> {
        let mut part = self.part(field.kind, field.range())?;
        part.bits = field.bits.map(|bits| (field.bit_offset % 8, bits));
        part.bytes = field.value(&part.bytes);
        Some(part)
    }
}

impl<'r> View<'_, 'r, '_> {
    /// A value as text.
    pub fn text(&self, value: &DebugValue<'r>) -> String {
        let describe = |address| self.describe(address);
        let known = &value.bytes.known;
        if !known.is_empty() && !known.contains(&true) {
            return "<not written>".to_owned();
        }
        match value.kind {
            Some(kind) => kind.show(&value.bytes, &describe),
            None if value.bytes.bytes.len() >= 4 => match value.as_number() {
                Some(number) => match self.describe(number as u64) {
                    Some(what) if value.int.is_wide => format!("{number:#x} = {what}"),
                    _ if value.int == IntType::UNSIGNED_LONG => (number as u64).to_string(),
                    _ => number.to_string(),
                },
                None => "?".to_owned(),
            },
            None => bytes_text(&value.bytes.bytes),
        }
    }

    /// The text of a row.
    pub fn node_text(&self, node: &TreeNode<'r>) -> String {
        match node {
            TreeNode::Value(value) => self.text(value),
            TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => format!("<{why}>"),
            TreeNode::Text(text, _) => text.clone(),
            TreeNode::Map(map) => self.map_text(*map),
            TreeNode::Packet => match self.packet() {
                Some(packet) => format!("{} bytes", packet.len()),
                None => "<the run has no packet>".to_owned(),
            },
            TreeNode::PerCpu(values) => format!("values of {} CPUs", values.len()),
        }
    }

    /// True if a row has rows below it.
    pub fn has_children(&self, node: &TreeNode<'r>) -> bool {
        match node {
            TreeNode::Value(value) => match value.kind.map(|kind| kind.form()) {
                Some(TypeForm::Composite(fields)) => !fields.is_empty(),
                Some(TypeForm::Array { count, .. }) => count > 0,
                Some(TypeForm::Pointer(_)) => self.target(value).is_some(),
                Some(TypeForm::Number(_) | TypeForm::Enum { .. } | TypeForm::Opaque) | None => {
                    false
                }
            },
            TreeNode::Absent(_) | TreeNode::NoEntry(..) | TreeNode::Text(..) => false,
            TreeNode::Map(_) | TreeNode::Packet | TreeNode::PerCpu(_) => true,
        }
    }

    /// The rows below a row.
    pub fn children(&self, node: &TreeNode<'r>) -> Vec<TreeRow<'r>> {
        let value = match node {
            TreeNode::Value(value) => value,
            TreeNode::Absent(_) | TreeNode::NoEntry(..) | TreeNode::Text(..) => return Vec::new(),
            TreeNode::Map(map) => return self.entries(*map),
            TreeNode::Packet => {
                let fields = self.packet_fields().into_iter();
                let rows = fields.map(|(field, text, address)| TreeRow {
                    name: field.path(),
                    kind: String::new(),
                    node: TreeNode::Text(text, Some((address, field.len))),
                });
                return rows.collect();
            }
            TreeNode::PerCpu(values) => {
                let rows = values.iter().enumerate().map(|(cpu, value)| TreeRow {
                    name: format!("cpu {cpu}"),
                    kind: value.kind.map_or_else(String::new, |kind| kind.name()),
                    node: TreeNode::Value(value.clone()),
                });
                return rows.collect();
            }
        };
        let row = |name: String, value: DebugValue<'r>| TreeRow {
            name,
            kind: value.kind.map_or_else(String::new, |kind| kind.name()),
            node: TreeNode::Value(value),
        };
        match value.kind.map(|kind| kind.form()) {
            Some(TypeForm::Composite(fields)) => {
                let rows = fields.iter().filter_map(|field| {
                    let part = value.field(field)?;
                    let name = match field.name.is_empty() {
                        true => "(unnamed)".to_owned(),
                        false => field.name.clone(),
                    };
                    Some(row(name, part))
                });
                rows.collect()
            }
            Some(TypeForm::Array { of, count }) => {
                let each = of.size().unwrap_or(0);
                let rows = (0..count.min(MOST_CHILDREN)).filter_map(|index| {
                    let part = value.part(of, (index * each, each))?;
                    Some(row(format!("[{index}]"), part))
                });
                rows.chain(more(count)).collect()
            }
            Some(TypeForm::Pointer(_)) => match self.target(value) {
                Some(target) => match target.kind.map(|kind| kind.form()) {
                    Some(TypeForm::Composite(_)) => self.children(&TreeNode::Value(target)),
                    _ => vec![row("*".to_owned(), target)],
                },
                None => Vec::new(),
            },
            Some(TypeForm::Number(_) | TypeForm::Enum { .. } | TypeForm::Opaque) | None => {
                Vec::new()
            }
        }
    }

    /// What a pointer points to, if it is there.
    pub(super) fn target(&self, pointer: &DebugValue<'r>) -> Option<DebugValue<'r>> {
        let TypeForm::Pointer(kind) = pointer.kind?.form() else {
            return None;
        };
        let address = pointer.as_number()? as u64;
        let len = kind.size().filter(|len| (1..=MOST_BYTES).contains(len))?;
        self.typed(kind, address, len)
    }

    /// The value of a type at an address; bytes of the stack that nothing wrote are not known.
    fn typed(&self, kind: VariableType<'r>, address: u64, len: usize) -> Option<DebugValue<'r>> {
        let mut bytes = ValueBytes::known(self.memory(address, len)?);
        if let Some(unwritten) = self.moment.memory.unwritten(address, len) {
            bytes.known = unwritten
                .into_iter()
                .map(|is_unwritten| !is_unwritten)
                .collect();
        }
        Some(DebugValue {
            kind: Some(kind),
            bytes,
            place: ValuePlace::Memory(address),
            ..DebugValue::number(0, IntType::INT)
        })
    }

    /// The member of a structure of a name, those of unnamed members included.
    pub(super) fn member(&self, value: &DebugValue<'r>, name: &str) -> Option<DebugValue<'r>> {
        let TypeForm::Composite(fields) = value.kind?.form() else {
            return None;
        };
        fields.iter().find_map(|field| {
            let part = value.field(field)?;
            if field.name.is_empty() {
                return self.member(&part, name);
            }
            (field.name == name).then_some(part)
        })
    }

    /// The element of an array, or behind a pointer, of an index.
    pub(super) fn element(
        &self,
        value: &DebugValue<'r>,
        index: i64,
    ) -> Result<DebugValue<'r>, String> {
        match value.kind.map(|kind| kind.form()) {
            Some(TypeForm::Array { of, count }) => {
                let each = of.size().unwrap_or(0);
                let found = usize::try_from(index)
                    .ok()
                    .filter(|index| *index < count)
                    .and_then(|index| value.part(of, (index * each, each)));
                found.ok_or_else(|| format!("the array has elements 0 to {}", count.max(1) - 1))
            }
            Some(TypeForm::Pointer(of)) => {
                let base = value.as_number().ok_or("the pointer is not known")?;
                let each = of.size().filter(|len| (1..=MOST_BYTES).contains(len));
                let each = each.ok_or("what it points to has no size")?;
                let address = (base as u64).wrapping_add_signed(index.wrapping_mul(each as i64));
                let found = self.typed(of, address, each);
                found.ok_or_else(|| format!("no memory is at {address:#x}"))
            }
            _ => Err("it is no array and no pointer".to_owned()),
        }
    }
}

/// The row that stands for children that are not shown.
pub(super) fn more<'r>(count: usize) -> Option<TreeRow<'r>> {
    let more = count.checked_sub(MOST_CHILDREN).filter(|more| *more > 0)?;
    Some(TreeRow {
        name: "…".to_owned(),
        kind: String::new(),
        node: TreeNode::Absent(format!("{more} more; name one by an expression")),
    })
}

/// Bytes in hexadecimals.
pub(super) fn bytes_text(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    let mut words: Vec<String> = bytes
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if bytes.len() > SHOWN {
        words.push("…".to_owned());
    }
    words.join(" ")
}

/// Bytes as a number, if they may be one, else in hexadecimals.
pub(super) fn content_text(bytes: &[u8]) -> String {
    match bytes.len() {
        1 | 2 | 4 | 8 => {
            let mut wide = [0; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            let number = u64::from_le_bytes(wide);
            match number {
                0..=0xffff => number.to_string(),
                _ => format!("{number:#x}"),
            }
        }
        _ => bytes_text(bytes),
    }
}

/// The number of a register: small ones in decimals too.
pub(super) fn register_text(value: u64) -> String {
    match value as i64 {
        small @ -4096..=9 => small.to_string(),
        small @ 10..=0xffff => format!("{small:#x} = {small}"),
        _ => format!("{value:#x}"),
    }
}
