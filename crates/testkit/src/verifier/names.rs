//! Names of a kernel in the text of a case: `{kfunc NAME}` is the id of a kernel function, `{func
//! NAME}` and `{typedef NAME}` are ids of other types, `{field STRUCT.MEMBER}` is the offset of a member.
//! Each kernel has its own numbers for them.

use btf::{Btf, Kind, Shape};

/// The text with the numbers that a kernel has for the names in it; 0 for what it has not.
pub(super) fn resolve(text: &str, types: &Btf<'_>) -> String {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, named)) = rest.split_once('{') {
        let Some((name, after)) = named.split_once('}') else {
            break;
        };
        resolved += before;
        resolved += &number(name, types).unwrap_or(0).to_string();
        rest = after;
    }
    resolved + rest
}

fn number(name: &str, types: &Btf<'_>) -> Option<u32> {
    let id = |kind, name| types.find(kind, name).map(|ty| ty.id().0);
    match name.split_once(' ')? {
        ("kfunc" | "func", name) => id(Kind::Func, name),
        ("typedef", name) => id(Kind::Typedef, name),
        ("field", path) => {
            let (structure, member) = path.split_once('.')?;
            let Shape::Struct(structure) = types.find(Kind::Struct, structure)?.shape() else {
                return None;
            };
            let mut members = structure.members();
            let found = members.find(|found| types.string(found.name) == member)?;
            Some(found.bit_offset / 8)
        }
        _ => None,
    }
}

/// True if a kernel has sched_ext, which needs the trampolines that run programs of tracing and LSM.
pub(super) fn has_trampolines(types: &Btf<'_>) -> bool {
    types.find(Kind::Struct, "sched_ext_ops").is_some()
}
