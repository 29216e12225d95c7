//! Short text of a type in C notation without a name: `const char *`, `struct list_head`,
//! `u8[16]`, `int (*)(void *)`.

use crate::{Btf, FwdKind, Proto, Shape, TypeId};

/// Maximum depth of nesting in the text.
const MAX_NESTING: usize = 32;

/// Maximum number of parameters in the text.
const MAX_PARAMS: usize = 32;
/// Maximum depth of prototypes whose parameters are in the text.
const MAX_PROTOS: usize = 2;

/// Short text of a type. Members of anonymous structures are omitted.
pub fn describe(btf: &Btf<'_>, id: TypeId) -> String {
    let depth = Depth {
        types: MAX_NESTING,
        protos: MAX_PROTOS,
        is_canonical: false,
    };
    around(btf, id, String::new(), depth)
}

/// Short text of a type in a spelling that is the same for all compilers.
pub(super) fn describe_canonical(btf: &Btf<'_>, id: TypeId) -> String {
    let depth = Depth {
        types: MAX_NESTING,
        protos: MAX_PROTOS,
        is_canonical: true,
    };
    around(btf, id, String::new(), depth)
}

/// Canonical spelling of a basic type: `unsigned long` for `long unsigned int`. Other
/// names are unchanged.
fn canonical_name(name: &str) -> String {
    let (mut longs, mut is_signed, mut is_unsigned) = (0, false, false);
    let mut base = None;
    for word in name.split_whitespace() {
        match word {
            "long" => longs += 1,
            "signed" => is_signed = true,
            "unsigned" => is_unsigned = true,
            "int" => base = base.or(Some("int")),
            "short" => base = Some("short"),
            "char" => base = Some("char"),
            "__int128" => base = Some("__int128"),
            "bool" | "_Bool" => base = Some("_Bool"),
            _ => return name.to_owned(),
        }
    }
    let base = match (longs, base) {
        (0, base) => base.unwrap_or("int"),
        (1, None | Some("int")) => "long",
        (2, None | Some("int")) => "long long",
        _ => return name.to_owned(),
    };
    match (is_unsigned, is_signed) {
        (true, _) => format!("unsigned {base}"),
        // Plain char is a distinct type.
        (false, true) if base == "char" => "signed char".to_owned(),
        _ => base.to_owned(),
    }
}

/// Remaining depth.
#[derive(Clone, Copy)]
struct Depth {
    types: usize,
    protos: usize,
    /// True for canonical spelling of basic types and repeated qualifiers.
    is_canonical: bool,
}

/// Declaration of `inner` with this type.
fn around(btf: &Btf<'_>, id: TypeId, inner: String, depth: Depth) -> String {
    let Some(types) = depth.types.checked_sub(1) else {
        return "...".to_owned();
    };
    let depth = Depth { types, ..depth };
    let ty = btf.at(id);
    let name = ty.name();
    let base = |text: String| match inner.is_empty() || inner.starts_with('[') {
        true => format!("{text}{inner}"),
        false => format!("{text} {inner}"),
    };
    let tagged = |word: &str| match name.is_empty() {
        true => base(format!("{word} {{...}}")),
        false => base(format!("{word} {name}")),
    };
    // Arrays and parameters bind closer than the pointer.
    let in_parentheses = |inner: &str| match inner.starts_with('*') {
        true => format!("({inner})"),
        false => inner.to_owned(),
    };
    let qualified = |word: &str, to: TypeId| {
        let is_pointer = matches!(btf.at(to).shape(), Shape::Ptr(_));
        match (is_pointer, inner.is_empty()) {
            (true, true) => around(btf, to, word.to_owned(), depth),
            (true, false) => around(btf, to, format!("{word} {inner}"), depth),
            (false, _) => {
                let text = around(btf, to, inner.clone(), depth);
                // An array and its element may both have the qualifier.
                let repeats = text.split(' ').next() == Some(word);
                match depth.is_canonical && repeats {
                    true => text,
                    false => format!("{word} {text}"),
                }
            }
        }
    };
    match ty.shape() {
        Shape::Void => base("void".to_owned()),
        Shape::Int(_) if depth.is_canonical => base(canonical_name(&name.to_string())),
        Shape::Int(_) | Shape::Float(_) | Shape::Typedef(_) => base(name.to_string()),
        Shape::Struct(_) | Shape::Fwd(FwdKind::Struct) => tagged("struct"),
        Shape::Union(_) | Shape::Fwd(FwdKind::Union) => tagged("union"),
        Shape::Enum(_) => tagged("enum"),
        Shape::Ptr(to) => around(btf, to, format!("*{inner}"), depth),
        Shape::Array(array) => {
            let inner = format!("{}[{}]", in_parentheses(&inner), array.count);
            around(btf, array.element, inner, depth)
        }
        Shape::Volatile(to) => qualified("volatile", to),
        Shape::Const(to) => qualified("const", to),
        Shape::Restrict(to) => qualified("restrict", to),
        Shape::TypeTag(to) => around(btf, to, inner, depth),
        Shape::Proto(proto) => {
            let params = params(btf, proto, depth);
            let inner = format!("{}({params})", in_parentheses(&inner));
            around(btf, proto.returns, inner, depth)
        }
        Shape::Func(func) => around(btf, func.proto, name.to_string(), depth),
        Shape::Var(var) => around(btf, var.ty, name.to_string(), depth),
        Shape::Datasec(_) | Shape::DeclTag(_) => base(name.to_string()),
    }
}

/// Parameters of a prototype.
fn params(btf: &Btf<'_>, proto: Proto<'_>, depth: Depth) -> String {
    if proto.params().len() == 0 {
        return "void".to_owned();
    }
    let Some(protos) = depth.protos.checked_sub(1) else {
        return "...".to_owned();
    };
    let depth = Depth { protos, ..depth };
    let mut texts: Vec<String> = proto
        .params()
        .take(MAX_PARAMS)
        .map(|param| match param.ty.is_void() {
            true => "...".to_owned(),
            false => around(btf, param.ty, String::new(), depth),
        })
        .collect();
    if proto.params().len() > MAX_PARAMS {
        texts.push("...".to_owned());
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::canonical_name;

    #[test]
    fn basic_types_have_one_spelling() {
        for (spelling, canonical) in [
            ("long unsigned int", "unsigned long"),
            ("unsigned long", "unsigned long"),
            ("long long unsigned int", "unsigned long long"),
            ("unsigned int", "unsigned int"),
            ("long int", "long"),
            ("short int", "short"),
            ("short unsigned int", "unsigned short"),
            ("unsigned char", "unsigned char"),
            ("signed char", "signed char"),
            ("char", "char"),
            ("_Bool", "_Bool"),
            ("bool", "_Bool"),
            ("__int128 unsigned", "unsigned __int128"),
            ("__ARRAY_SIZE_TYPE__", "__ARRAY_SIZE_TYPE__"),
        ] {
            assert_eq!(canonical_name(spelling), canonical);
        }
    }
}
