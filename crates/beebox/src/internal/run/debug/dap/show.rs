//! Trees of variables, frames and instructions as the protocol has them.

use serde_json::{Value, json};

use super::super::source::SourcePlace;
use super::super::value::{TreeNode, TreeRow};
use super::super::view::View;

/// What a reference of variables is of.
#[derive(Clone)]
pub(super) enum Tree<'r> {
    /// A scope of a frame.
    Scope(Scope, usize),
    /// A row, its expression, and its frame.
    Of(TreeNode<'r>, String, usize),
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
    fn variable(
        &mut self,
        view: &View<'_, 'r, '_>,
        row: TreeRow<'r>,
        (path, frame): (String, usize),
    ) -> Value {
        let mut variable = json!({
            "name": row.name,
            "value": view.node_text(&row.node),
            "variablesReference": 0,
        });
        if !row.kind.is_empty() {
            variable["type"] = json!(row.kind);
        }
        let memory = match &row.node {
            TreeNode::Value(value) => view.address_of(&value.place).ok(),
            TreeNode::Text(_, Some((address, _))) => Some(*address),
            TreeNode::Text(_, None)
            | TreeNode::Absent(_)
            | TreeNode::NoEntry(..)
            | TreeNode::Map(_)
            | TreeNode::Packet
            | TreeNode::PerCpu(_) => None,
        };
        if let Some(address) = memory {
            variable["memoryReference"] = json!(format!("{address:#x}"));
        }
        if let TreeNode::Absent(_) | TreeNode::NoEntry(..) = &row.node {
            variable["presentationHint"] = json!({ "attributes": ["readOnly"] });
        }
        if view.has_children(&row.node) {
            variable["variablesReference"] = json!(self.refer(Tree::Of(row.node, path, frame)));
        }
        variable
    }

    /// The rows of a tree, from one on.
    pub(super) fn rows(&self, view: &View<'_, 'r, '_>, tree: &Tree<'r>) -> Vec<TreeRow<'r>> {
        match tree {
            Tree::Of(node, ..) => view.children(node),
            Tree::Scope(Scope::Locals, frame) => view.variables(*frame),
            Tree::Scope(Scope::Globals, _) => view.globals(),
            Tree::Scope(Scope::Maps, _) => view.map_rows(),
            Tree::Scope(Scope::Packet, _) => view.children(&TreeNode::Packet),
            Tree::Scope(Scope::Registers, frame) => {
                let rows = view.registers(*frame).into_iter().map(|register| TreeRow {
                    name: register.name.to_owned(),
                    kind: register.known,
                    node: TreeNode::Text(register.text, None),
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
        let (path, frame) = match tree {
            Tree::Of(_, path, frame) => (Some(&**path), *frame),
            Tree::Scope(_, frame) => (None, *frame),
        };
        let variables = rows.map(|row| {
            let path = joined(path, &row.name);
            self.variable(view, row, (path, frame))
        });
        variables.collect()
    }

    /// The answer to an expression.
    pub(super) fn result(
        &mut self,
        view: &View<'_, 'r, '_>,
        node: TreeNode<'r>,
        (expression, frame): (&str, usize),
    ) -> Value {
        let kind = match &node {
            TreeNode::Value(value) => value.kind.map_or_else(String::new, |kind| kind.name()),
            _ => String::new(),
        };
        let name = String::new();
        let of = (expression.to_owned(), frame);
        let mut variable = self.variable(view, TreeRow { name, kind, node }, of);
        if let Some(members) = variable.as_object_mut() {
            let value = members.remove("value").unwrap_or_default();
            members.insert("result".to_owned(), value);
            members.remove("name");
        }
        variable
    }
}

/// The expression of a row in one: a member, an element, or what a pointer points to.
pub(super) fn joined(path: Option<&str>, name: &str) -> String {
    match path {
        None => name.to_owned(),
        Some(path) if name.starts_with('[') => format!("{path}{name}"),
        Some(path) if name == "*" => format!("*{path}"),
        Some(path) => format!("{path}.{name}"),
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
    ((u64::from(program) + 1) << 32) | (8 * u64::from(slot))
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
