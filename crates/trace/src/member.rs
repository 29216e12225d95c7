//! Members of types by offset.

use btf::{Btf, Shape, TypeId};

/// Most types within types.
const DEEPEST: usize = 32;

/// The members that lead to `size` bytes at an offset of a type, as `.peer.port` or `[3].hits`;
/// empty for the whole, and the type of the last one. `None` if the bytes are not those of a member.
pub fn member_path(
    types: &Btf<'_>,
    ty: TypeId,
    offset: u64,
    size: u64,
) -> Option<(String, TypeId)> {
    let (mut ty, mut offset, mut path) = (ty, offset, String::new());
    for _ in 0..DEEPEST {
        ty = types.skip_modifiers(ty)?;
        let shape = types.get(ty)?.shape();
        let own = u64::from(types.size_of(ty)?);
        let is_whole = offset == 0 && size == own;
        match shape {
            Shape::Array(array) => {
                if is_whole {
                    return Some((path, ty));
                }
                let each = u64::from(types.size_of(array.element)?);
                let index = offset.checked_div(each)?;
                if index >= u64::from(array.count) {
                    return None;
                }
                path.push_str(&format!("[{index}]"));
                (ty, offset) = (array.element, offset % each);
            }
            Shape::Struct(composite) | Shape::Union(composite) => {
                let mut members = composite.members();
                let inside = |bit_offset: u32, member: TypeId, bits: u32| {
                    let start = u64::from(bit_offset / 8);
                    let len = match bits {
                        0 => u64::from(types.size_of(member).unwrap_or(0)),
                        bits => u64::from((bit_offset % 8 + bits).div_ceil(8)),
                    };
                    start <= offset && offset + size <= start + len
                };
                let found =
                    members.find(|member| inside(member.bit_offset, member.ty, member.bits));
                let Some(member) = found else {
                    return is_whole.then_some((path, ty));
                };
                let name = types.string(member.name);
                if !name.is_empty() {
                    path.push_str(&format!(".{name}"));
                }
                if member.bits != 0 {
                    return Some((path, TypeId::VOID));
                }
                (ty, offset) = (member.ty, offset - u64::from(member.bit_offset / 8));
            }
            Shape::Datasec(section) => {
                let mut vars = section.vars();
                let inside = |start: u32, len: u32| {
                    u64::from(start) <= offset && offset + size <= u64::from(start) + u64::from(len)
                };
                let var = vars.find(|var| inside(var.offset, var.size))?;
                let found = types.get(var.var)?;
                path.push_str(&found.name().to_string());
                (ty, offset) = (found.referred()?, offset - u64::from(var.offset));
            }
            _ => return (offset + size <= own).then_some((path, ty)),
        }
    }
    None
}
