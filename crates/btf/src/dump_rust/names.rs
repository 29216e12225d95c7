//! Rust identifiers for C names.

use std::collections::HashMap;

/// Keywords, strict and reserved; the last four have no raw form.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
const NEVER_RAW: &[&str] = &["crate", "self", "super", "Self", "_"];

/// Types that need no import.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16",
    "u32", "u64", "u128", "usize",
];

pub(super) fn is_primitive(name: &str) -> bool {
    PRIMITIVES.contains(&name)
}

/// Identifier for a name: other characters become `_`, keywords are raw.
pub(super) fn identifier(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text: String = name
        .chars()
        .map(|c| if is_part(c) { c } else { '_' })
        .collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if KEYWORDS.contains(&&*text) {
        return format!("r#{text}");
    }
    if NEVER_RAW.contains(&&*text) {
        text.push('_');
    }
    text
}

/// Identifiers of one name space: the second of a name becomes `name___2`, as in C.
#[derive(Default)]
pub(super) struct Identifiers {
    counts: HashMap<String, usize>,
}

impl Identifiers {
    /// Name space of types, in which the primitive ones are taken.
    pub(super) fn of_types() -> Identifiers {
        let taken = PRIMITIVES.iter().map(|name| (name.to_string(), 1));
        Identifiers {
            counts: taken.collect(),
        }
    }

    pub(super) fn unique(&mut self, name: &str) -> String {
        let plain = identifier(name);
        let count = self.counts.entry(plain.clone()).or_default();
        *count += 1;
        match *count {
            1 => plain,
            number => {
                let name = format!("{}___{number}", plain.trim_start_matches("r#"));
                // Unless C has that name, too.
                self.unique(&name)
            }
        }
    }
}
