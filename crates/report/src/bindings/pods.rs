//! Calls of `beebox::pod!` behind the structures of bindings in Rust.
//!
//! The writer of `btf` defines what a type contains before the type, so one pass over the text
//! knows of each structure whether it contains a union, whose bytes may be undefined.

use std::collections::BTreeSet;
use std::fmt::Write;

/// The definitions with a call behind each structure that contains no union.
pub(super) fn with_calls(definitions: &str) -> String {
    let mut text = String::new();
    let mut unions = BTreeSet::new();
    let mut open: Option<Open<'_>> = None;
    let mut pending: Option<Open<'_>> = None;
    for line in definitions.lines() {
        let _ = writeln!(text, "{line}");
        if let Some(of) = Open::of(line) {
            open = Some(of);
        } else if let Some((name, target)) = alias(line) {
            if words(target).any(|word| unions.contains(word)) {
                unions.insert(name);
            }
        } else if let Some(mut of) = open.take() {
            if let Some((field, ty)) = field(line) {
                of.has_union |= words(ty).any(|word| unions.contains(word));
                of.fields.push(field);
                open = Some(of);
            } else if line == "}" && of.has_union {
                unions.insert(of.name);
            } else if line == "}" {
                pending = Some(of);
            } else {
                open = Some(of);
            }
        } else if line == "};"
            && let Some(of) = pending.take()
        {
            // The end of the assertions about its layout.
            let (name, fields) = (of.name, of.fields.join(", "));
            let _ = writeln!(text, "\nbeebox::pod! {{ {name} {{ {fields} }} }}");
        }
    }
    text
}

/// A definition whose fields are being read.
struct Open<'t> {
    name: &'t str,
    fields: Vec<&'t str>,
    has_union: bool,
}

impl<'t> Open<'t> {
    fn of(line: &'t str) -> Option<Open<'t>> {
        let rest = line.strip_suffix(" {")?;
        let (name, is_union) = match rest.strip_prefix("pub struct ") {
            Some(name) => (name, false),
            None => (rest.strip_prefix("pub union ")?, true),
        };
        Some(Open {
            name,
            fields: Vec::new(),
            has_union: is_union,
        })
    }
}

/// Name and target of an alias.
fn alias(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("pub type ")?.split_once(" = ")
}

/// Name and type of a field.
fn field(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("    pub ")?.split_once(": ")
}

/// The identifiers in a type.
fn words(ty: &str) -> impl Iterator<Item = &str> {
    ty.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#'))
}

#[cfg(test)]
mod tests {
    use super::with_calls;

    #[test]
    fn structures_with_unions_are_left_out() {
        let definitions = "
#[repr(C)]
pub struct point {
    pub x: u32,
    pub r#type: [u8; 4],
}

impl point {
    pub fn bits(&self) -> u32 {
        0
    }
}

const _: () = {
    assert!(core::mem::size_of::<point>() == 8);
};

pub union either {
    pub whole: u32,
}

const _: () = {
};

pub type which = either;

pub struct holder {
    pub both: [which; 2],
}

const _: () = {
};
";
        let text = with_calls(definitions);
        let calls: Vec<&str> = text.lines().filter(|line| line.contains("pod!")).collect();
        assert_eq!(calls, ["beebox::pod! { point { x, r#type } }"]);
    }
}
