//! Types as text and JSON: layouts, summaries, differences; lists of types with the keys of
//! `bpftool -j btf dump`. Unsigned values of 32-bit enumerations are numbers of 32 bits there, which
//! bpftool extends by their sign.

use ::btf::{Btf, FwdKind, Shape, StrOffset, Type, TypeId};
use serde_json::{Map, Value, json};

mod changes;
mod layout;
mod summary;

pub use changes::{ChangedRecord, changed_text};
pub use layout::Layout;
pub use summary::BtfSummary;

/// All types of a blob, without those of its base: `{"types": [...]}`.
pub fn types_json(btf: &Btf<'_>) -> Value {
    types(btf.own_types().skip_while(|ty| ty.id().is_void()))
}

/// These types of a blob, in this order.
pub fn chosen_types_json(btf: &Btf<'_>, chosen: &[TypeId]) -> Value {
    types(chosen.iter().map(|id| btf.at(*id)))
}

fn types<'b>(types: impl Iterator<Item = Type<'b>>) -> Value {
    json!({ "types": types.map(type_json).collect::<Vec<_>>() })
}

fn type_json(ty: Type<'_>) -> Value {
    let mut fields = Map::new();
    fields.insert("id".into(), json!(ty.id().0));
    fields.insert("kind".into(), json!(ty.kind().name()));
    fields.insert("name".into(), name(ty.btf(), ty.name_offset()));
    if let Value::Object(rest) = shape_json(ty) {
        fields.extend(rest);
    }
    Value::Object(fields)
}

fn name(btf: &Btf<'_>, offset: StrOffset) -> Value {
    match offset {
        StrOffset::EMPTY => json!("(anon)"),
        offset => json!(String::from_utf8_lossy(btf.string(offset).as_bytes())),
    }
}

fn shape_json(ty: Type<'_>) -> Value {
    let btf = ty.btf();
    let count = ty.count();
    match ty.shape() {
        Shape::Void => json!({}),
        Shape::Int(int) => json!({
            "size": int.size,
            "bits_offset": int.offset,
            "nr_bits": int.bits,
            "encoding": int.encoding.name(),
        }),
        Shape::Ptr(to)
        | Shape::Typedef(to)
        | Shape::Volatile(to)
        | Shape::Const(to)
        | Shape::Restrict(to)
        | Shape::TypeTag(to) => json!({ "type_id": to.0 }),
        Shape::Array(array) => json!({
            "type_id": array.element.0,
            "index_type_id": array.index.0,
            "nr_elems": array.count,
        }),
        Shape::Struct(composite) | Shape::Union(composite) => json!({
            "size": composite.size,
            "vlen": count,
            "members": composite.members().map(|member| {
                let mut fields = json!({
                    "name": name(btf, member.name),
                    "type_id": member.ty.0,
                    "bits_offset": member.bit_offset,
                });
                if member.bits != 0 {
                    fields["bitfield_size"] = json!(member.bits);
                }
                fields
            }).collect::<Vec<_>>(),
        }),
        Shape::Enum(of) => json!({
            "encoding": if of.signed { "SIGNED" } else { "UNSIGNED" },
            "size": of.size,
            "vlen": count,
            "values": of.values().map(|value| json!({
                "name": name(btf, value.name),
                "val": if of.signed { json!(value.value as i64) } else { json!(value.value) },
            })).collect::<Vec<_>>(),
        }),
        Shape::Fwd(FwdKind::Struct) => json!({ "fwd_kind": "struct" }),
        Shape::Fwd(FwdKind::Union) => json!({ "fwd_kind": "union" }),
        Shape::Func(func) => json!({
            "type_id": func.proto.0,
            "linkage": func.linkage.name(),
        }),
        Shape::Proto(proto) => json!({
            "ret_type_id": proto.returns.0,
            "vlen": count,
            "params": proto.params().map(|param| json!({
                "name": name(btf, param.name),
                "type_id": param.ty.0,
            })).collect::<Vec<_>>(),
        }),
        Shape::Var(var) => json!({
            "type_id": var.ty.0,
            "linkage": var.linkage.name(),
        }),
        Shape::Datasec(section) => json!({
            "size": section.size,
            "vlen": count,
            "vars": section.vars().map(|placed| json!({
                "type_id": placed.var.0,
                "offset": placed.offset,
                "size": placed.size,
            })).collect::<Vec<_>>(),
        }),
        Shape::Float(size) => json!({ "size": size }),
        Shape::DeclTag(tag) => json!({
            "type_id": tag.target.0,
            "component_idx": tag.component,
        }),
    }
}
