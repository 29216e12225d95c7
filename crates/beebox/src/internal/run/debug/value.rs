//! Values by type, and the trees that front ends show of them.

use trace::dwarf::ValueBytes;
use trace::{TypeForm, TypeRef, part};

use super::view::View;

/// Most children of a node that are shown at once.
pub(super) const MOST_CHILDREN: usize = 1000;
/// Most bytes that are read through a pointer.
const MOST_BYTES: usize = 1 << 16;

/// A value.
#[derive(Clone, Debug)]
pub struct Value<'r> {
    /// Its type; `None` for a number of 64 bits.
    pub kind: Option<TypeRef<'r>>,
    /// Its bytes.
    pub bytes: ValueBytes,
    /// Where it is.
    pub place: Place,
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: it is computed.
    None,
    /// At an address of the run.
    Memory(u64),
    /// In a register of a frame.
    Register {
        /// Number of the frame.
        frame: usize,
        /// The register.
        register: u8,
    },
    /// In the value of a key of a map.
    MapValue {
        /// Number of the map.
        map: u32,
        /// The key.
        key: Vec<u8>,
        /// Offset of the first byte.
        offset: usize,
    },
}

/// What a row of a tree is of.
#[derive(Clone, Debug)]
pub enum Node<'r> {
    /// A value.
    Value(Value<'r>),
    /// Why there is no value.
    Absent(String),
    /// Text, as the value of a field of the packet, with its address and length.
    Text(String, Option<(u64, usize)>),
    /// The map of a number.
    Map(u32),
    /// The fields of the packet.
    Packet,
    /// The values that an entry of a per-CPU map has.
    PerCpu(Vec<Value<'r>>),
}

/// A row of a tree.
#[derive(Clone, Debug)]
pub struct Row<'r> {
    /// Its name.
    pub name: String,
    /// Its type in C; empty for none.
    pub kind: String,
    /// What it is of.
    pub node: Node<'r>,
}

impl<'r> Value<'r> {
    /// A number that is computed.
    pub(super) fn number(number: i64) -> Value<'r> {
        Value {
            kind: None,
            bytes: ValueBytes::known(number.to_le_bytes().to_vec()),
            place: Place::None,
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
        let is_signed = self.kind.is_some_and(|kind| kind.is_signed());
        let unused = 64 - 8 * len.max(1) as u32;
        let number = match is_signed {
            true => number << unused >> unused,
            false => number,
        };
        is_number.then_some(number)
    }

    /// True for a value that is not 0.
    pub(super) fn is_true(&self) -> bool {
        self.bytes.bytes.iter().any(|byte| *byte != 0)
    }

    /// A part of it.
    fn part(&self, kind: TypeRef<'r>, range: (usize, usize)) -> Option<Value<'r>> {
        let place = match &self.place {
            Place::None => Place::None,
            Place::Memory(address) => Place::Memory(address.wrapping_add(range.0 as u64)),
            Place::Register { .. } => self.place.clone(),
            Place::MapValue { map, key, offset } => Place::MapValue {
                map: *map,
                key: key.clone(),
                offset: offset + range.0,
            },
        };
        Some(Value {
            kind: Some(kind),
            bytes: part(&self.bytes, range)?,
            place,
        })
    }
}

impl<'r> View<'_, 'r, '_> {
    /// A value as text.
    pub fn text(&self, value: &Value<'r>) -> String {
        let describe = |address| self.describe(address);
        match value.kind {
            Some(kind) => kind.show(&value.bytes, &describe),
            None if value.bytes.bytes.len() == 8 => match value.as_number() {
                Some(number) => match self.describe(number as u64) {
                    Some(what) => format!("{number:#x} = {what}"),
                    None => number.to_string(),
                },
                None => "?".to_owned(),
            },
            None => bytes_text(&value.bytes.bytes),
        }
    }

    /// The text of a row.
    pub fn node_text(&self, node: &Node<'r>) -> String {
        match node {
            Node::Value(value) => self.text(value),
            Node::Absent(why) => format!("<{why}>"),
            Node::Text(text, _) => text.clone(),
            Node::Map(map) => self.map_text(*map),
            Node::Packet => match self.packet() {
                Some(packet) => format!("{} bytes", packet.len()),
                None => "<the run has no packet>".to_owned(),
            },
            Node::PerCpu(values) => format!("values of {} CPUs", values.len()),
        }
    }

    /// True if a row has rows below it.
    pub fn has_children(&self, node: &Node<'r>) -> bool {
        match node {
            Node::Value(value) => match value.kind.map(|kind| kind.form()) {
                Some(TypeForm::Composite(fields)) => !fields.is_empty(),
                Some(TypeForm::Array { count, .. }) => count > 0,
                Some(TypeForm::Pointer(_)) => self.target(value).is_some(),
                Some(TypeForm::Number(_) | TypeForm::Enum { .. } | TypeForm::Opaque) | None => {
                    false
                }
            },
            Node::Absent(_) | Node::Text(..) => false,
            Node::Map(_) | Node::Packet | Node::PerCpu(_) => true,
        }
    }

    /// The rows below a row.
    pub fn children(&self, node: &Node<'r>) -> Vec<Row<'r>> {
        let value = match node {
            Node::Value(value) => value,
            Node::Absent(_) | Node::Text(..) => return Vec::new(),
            Node::Map(map) => return self.entries(*map),
            Node::Packet => {
                let fields = self.packet_fields().into_iter();
                let rows = fields.map(|(field, text, address)| Row {
                    name: field.path(),
                    kind: String::new(),
                    node: Node::Text(text, Some((address, field.len))),
                });
                return rows.collect();
            }
            Node::PerCpu(values) => {
                let rows = values.iter().enumerate().map(|(cpu, value)| Row {
                    name: format!("cpu {cpu}"),
                    kind: value.kind.map_or_else(String::new, |kind| kind.name()),
                    node: Node::Value(value.clone()),
                });
                return rows.collect();
            }
        };
        let row = |name: String, value: Value<'r>| Row {
            name,
            kind: value.kind.map_or_else(String::new, |kind| kind.name()),
            node: Node::Value(value),
        };
        match value.kind.map(|kind| kind.form()) {
            Some(TypeForm::Composite(fields)) => {
                let rows = fields.iter().filter_map(|field| {
                    let mut part = value.part(field.kind, field.range())?;
                    part.bytes = field.value(&part.bytes);
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
                    Some(TypeForm::Composite(_)) => self.children(&Node::Value(target)),
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
    pub(super) fn target(&self, pointer: &Value<'r>) -> Option<Value<'r>> {
        let TypeForm::Pointer(kind) = pointer.kind?.form() else {
            return None;
        };
        let address = pointer.as_number()? as u64;
        let len = kind.size().filter(|len| (1..=MOST_BYTES).contains(len))?;
        Some(Value {
            kind: Some(kind),
            bytes: ValueBytes::known(self.memory(address, len)?),
            place: Place::Memory(address),
        })
    }

    /// The member of a structure of a name, those of unnamed members included.
    pub(super) fn member(&self, value: &Value<'r>, name: &str) -> Option<Value<'r>> {
        let TypeForm::Composite(fields) = value.kind?.form() else {
            return None;
        };
        fields.iter().find_map(|field| {
            let mut part = value.part(field.kind, field.range())?;
            if field.name.is_empty() {
                return self.member(&part, name);
            }
            part.bytes = field.value(&part.bytes);
            (field.name == name).then_some(part)
        })
    }

    /// The element of an array, or behind a pointer, of an index.
    pub(super) fn element(&self, value: &Value<'r>, index: i64) -> Result<Value<'r>, String> {
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
                let bytes = self.memory(address, each);
                let bytes = bytes.ok_or_else(|| format!("no memory is at {address:#x}"))?;
                Ok(Value {
                    kind: Some(of),
                    bytes: ValueBytes::known(bytes),
                    place: Place::Memory(address),
                })
            }
            _ => Err("it is no array and no pointer".to_owned()),
        }
    }
}

/// The row that stands for children that are not shown.
pub(super) fn more<'r>(count: usize) -> Option<Row<'r>> {
    let more = count.checked_sub(MOST_CHILDREN).filter(|more| *more > 0)?;
    Some(Row {
        name: "…".to_owned(),
        kind: String::new(),
        node: Node::Absent(format!("{more} more; name one by an expression")),
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
