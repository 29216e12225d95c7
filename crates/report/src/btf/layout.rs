//! Layouts of types.

use std::fmt::Write as _;

use ::btf::diff::describe;
use ::btf::{Btf, Kind, Shape, Type, TypeId};
use serde::Serialize;

/// The layout of a type.
#[derive(Serialize)]
pub struct Layout {
    id: u32,
    kind: &'static str,
    name: String,
    is: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberLayout>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<Enumerator>,
}

#[derive(Serialize)]
struct Enumerator {
    name: String,
    val: i128,
}

#[derive(Serialize)]
struct MemberLayout {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    bits_offset: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bitfield_size: Option<u32>,
}

impl Layout {
    /// The layout of a type.
    pub fn new(ty: Type<'_>) -> Layout {
        let btf = ty.btf();
        let members = ty
            .as_composite()
            .into_iter()
            .flat_map(|composite| composite.members())
            .map(|member| MemberLayout {
                name: btf.string(member.name).to_string(),
                ty: describe(btf, member.ty),
                bits_offset: member.bit_offset,
                size: btf.size_of(member.ty),
                bitfield_size: (member.bits != 0).then_some(member.bits),
            })
            .collect();
        let values = match ty.shape() {
            Shape::Enum(of) => of
                .values()
                .map(|value| {
                    let name = btf.string(value.name).to_string();
                    let val = match of.signed {
                        true => i128::from(value.value as i64),
                        false => i128::from(value.value),
                    };
                    Enumerator { name, val }
                })
                .collect(),
            _ => Vec::new(),
        };
        Layout {
            id: ty.id().0,
            kind: ty.kind().name(),
            name: ty.name().to_string(),
            is: is(btf, ty.id()),
            size: btf.size_of(ty.id()),
            align: btf.align_of(ty.id()),
            members,
            values,
        }
    }

    /// Members with their offsets and sizes in bytes, and the holes between them.
    pub fn text(&self) -> String {
        let mut text = format!("[{}] {}", self.id, self.is);
        if let Some(size) = self.size {
            let _ = write!(text, ", {size} bytes");
        }
        if let Some(align) = self.align {
            let _ = write!(text, ", aligned to {align}");
        }
        text.push('\n');
        let mut end = 0u64;
        for member in &self.members {
            let start = u64::from(member.bits_offset);
            if self.kind == Kind::Struct.name() && start > end {
                let _ = writeln!(text, "{:>17}  (hole of {})", "", bits(start - end));
            }
            let width = match (member.bitfield_size, member.size) {
                (Some(bits), _) => bits.into(),
                (None, size) => 8 * u64::from(size.unwrap_or(0)),
            };
            end = end.max(start + width);
            let at = match start % 8 {
                0 => (start / 8).to_string(),
                bit => format!("{}.{bit}", start / 8),
            };
            let size = match member.bitfield_size {
                Some(bits) => format!(":{bits}"),
                None => member.size.map_or(String::new(), |size| size.to_string()),
            };
            let (name, ty) = (&member.name, &member.ty);
            let _ = writeln!(text, "{at:>8} {size:>8}  {name:<24} {ty}");
        }
        for Enumerator { name, val } in &self.values {
            let _ = writeln!(text, "{val:>17}  {name}");
        }
        text
    }
}

fn bits(count: u64) -> String {
    match count % 8 {
        0 => format!("{} bytes", count / 8),
        _ => format!("{count} bits"),
    }
}

/// The declaration of a type; a typedef with its target.
fn is(btf: &Btf<'_>, id: TypeId) -> String {
    match btf.at(id).shape() {
        Shape::Typedef(to) => format!("{} = {}", describe(btf, id), describe(btf, to)),
        _ => describe(btf, id),
    }
}
