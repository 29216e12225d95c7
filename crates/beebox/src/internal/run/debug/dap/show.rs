//! Trees of variables, frames and instructions as the protocol has them.

use serde_json::{Value, json};

use super::super::source::SourcePlace;
use super::super::value::{Node, Place, Row};
use super::super::view::View;

/// What a reference of variables is of.
#[derive(Clone)]
pub(super) enum Tree<'r> {
    /// A scope of a frame.
    Scope(Scope, usize),
    /// A row.
    Node(Node<'r>),
}

/// The scopes of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Locals,
    Globals,
    Maps,
    Packet,
    Registers,
}

/// References of variables, from 1 on, while the run is stopped.
#[derive(Default)]
pub(super) struct Trees<'r>(Vec<Tree<'r>>);

impl<'r> Trees<'r> {
    /// The reference of a tree.
    pub(super) fn refer(&mut self, tree: Tree<'r>) -> u64 {
        self.0.push(tree);
        self.0.len() as u64
    }

    pub(super) fn get(&self, reference: u64) -> Option<Tree<'r>> {
        let index = usize::try_from(reference).ok()?.checked_sub(1)?;
        self.0.get(index).cloned()
    }

    /// A row as a variable.
    fn variable(&mut self, view: &View<'_, 'r, '_>, row: Row<'r>) -> Value {
        let mut variable = json!({
            "name": row.name,
            "value": view.node_text(&row.node),
            "variablesReference": 0,
        });
        if !row.kind.is_empty() {
            variable["type"] = json!(row.kind);
        }
        let memory = match &row.node {
            Node::Value(value) => match value.place {
                Place::Memory(address) => Some(address),
                Place::None | Place::Register { .. } | Place::MapValue { .. } => None,
            },
            Node::Text(_, Some((address, _))) => Some(*address),
            Node::Text(_, None)
            | Node::Absent(_)
            | Node::Map(_)
            | Node::Packet
            | Node::PerCpu(_) => None,
        };
        if let Some(address) = memory {
            variable["memoryReference"] = json!(format!("{address:#x}"));
        }
        if let Node::Absent(_) = &row.node {
            variable["presentationHint"] = json!({ "attributes": ["readOnly"] });
        }
        if view.has_children(&row.node) {
            variable["variablesReference"] = json!(self.refer(Tree::Node(row.node)));
        }
        variable
    }

    /// The rows of a tree, from one on.
    pub(super) fn rows(&self, view: &View<'_, 'r, '_>, tree: &Tree<'r>) -> Vec<Row<'r>> {
        match tree {
            Tree::Node(node) => view.children(node),
            Tree::Scope(Scope::Locals, frame) => view.variables(*frame),
            Tree::Scope(Scope::Globals, _) => view.globals(),
            Tree::Scope(Scope::Maps, _) => view.map_rows(),
            Tree::Scope(Scope::Packet, _) => view.children(&Node::Packet),
            Tree::Scope(Scope::Registers, frame) => {
                let rows = view.registers(*frame).into_iter().map(|register| Row {
                    name: register.name.to_owned(),
                    kind: register.known,
                    node: Node::Text(register.text, None),
                });
                rows.collect()
            }
        }
    }

    /// The variables of a tree; of many a range.
    pub(super) fn variables(
        &mut self,
        view: &View<'_, 'r, '_>,
        tree: &Tree<'r>,
        (start, count): (usize, usize),
    ) -> Vec<Value> {
        let rows = self.rows(view, tree);
        let rows = rows.into_iter().skip(start).take(count);
        rows.map(|row| self.variable(view, row)).collect()
    }

    /// The answer to an expression.
    pub(super) fn result(&mut self, view: &View<'_, 'r, '_>, node: Node<'r>) -> Value {
        let kind = match &node {
            Node::Value(value) => value.kind.map_or_else(String::new, |kind| kind.name()),
            _ => String::new(),
        };
        let name = String::new();
        let mut variable = self.variable(view, Row { name, kind, node });
        if let Some(members) = variable.as_object_mut() {
            let value = members.remove("value").unwrap_or_default();
            members.insert("result".to_owned(), value);
            members.remove("name");
        }
        variable
    }
}

/// A source as the protocol has it.
pub(super) fn source_json(source: &SourcePlace) -> Value {
    match &source.path {
        Some(path) => json!({ "name": source.file, "path": path.display().to_string() }),
        None => json!({ "name": source.file, "sourceReference": 1, "path": source.file }),
    }
}

/// The address of an instruction: the program's number above that of its bytes.
pub(super) fn insn_address((program, slot): (u32, u32)) -> u64 {
    (u64::from(program) + 1) << 32 | 8 * u64::from(slot)
}

/// Program and slot of an address.
pub(super) fn insn_of_address(address: u64) -> Option<(u32, u32)> {
    let program = (address >> 32).checked_sub(1)?;
    Some((u32::try_from(program).ok()?, address as u32 / 8))
}

/// A reference of memory or instructions.
pub(super) fn address_of(reference: &Value) -> Option<u64> {
    let text = reference.as_str()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
