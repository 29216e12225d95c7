//! Members of types by offset.

use btf::{Btf, Shape, TypeId};

/// Most types within types.
const DEEPEST: usize = 32;
/// Most parts that one write names.
const MOST_PARTS: usize = 16;

/// The members that lead to `size` bytes at an offset of a type, as `.peer.port` or `[3].hits`, and
/// the type of the last one. `None` if the bytes are not all of a member, and of bit fields.
pub(crate) fn member_path(
    types: &Btf<'_>,
    ty: TypeId,
    offset: u64,
    size: u64,
) -> Option<(String, TypeId)> {
    let mut found = parts(types, ty, offset, size).into_iter();
    let (Some(part), None) = (found.next(), found.next()) else {
        return None;
    };
    let is_it = part.bits.is_none() && (part.start, part.len) == (offset, size);
    is_it.then_some((part.path, part.ty))
}

/// A part of a type that has no parts of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The members that lead to it, as [`member_path`] writes them.
    pub(crate) path: String,
    /// Its type.
    pub(crate) ty: TypeId,
    /// Offset of its first byte in the type.
    pub(crate) start: u64,
    /// Bytes that hold it.
    pub(crate) len: u64,
    /// Offset of its first bit in these bytes, and number of bits, of a bit field.
    pub(crate) bits: Option<(u32, u32)>,
}

impl Part {
    /// Its value in the bytes that hold it; of a bit field that of its type.
    pub(crate) fn value(&self, types: &Btf<'_>, bytes: &[u8]) -> Vec<u8> {
        let Some((shift, width)) = self.bits else {
            return bytes.to_vec();
        };
        let mut wide = [0; 16];
        let len = bytes.len().min(wide.len());
        wide[..len].copy_from_slice(&bytes[..len]);
        let unused = 64 - width.clamp(1, 64);
        let number = ((u128::from_le_bytes(wide) >> shift) as u64) << unused;
        let is_signed = types.skip_modifiers(self.ty).and_then(|ty| {
            Some(match types.get(ty)?.shape() {
                Shape::Int(int) => int.encoding.is_signed(),
                Shape::Enum(of) => of.signed,
                _ => false,
            })
        });
        let number = match is_signed {
            Some(true) => (number as i64 >> unused) as u64,
            _ => number >> unused,
        };
        let size = types.size_of(self.ty).unwrap_or(8).clamp(1, 8) as usize;
        number.to_le_bytes()[..size].to_vec()
    }
}

/// The parts of a type that `size` bytes at an offset are in, in their order: one, if the bytes are
/// those of a member; of members that share bytes the one that they fit. Empty if there are more than
/// [`MOST_PARTS`] or bytes are in none.
pub(crate) fn parts(types: &Btf<'_>, ty: TypeId, offset: u64, size: u64) -> Vec<Part> {
    let mut found = Vec::new();
    let range = (offset, offset.saturating_add(size));
    let is_complete = add_parts(types, ty, (0, range), String::new(), &mut found, DEEPEST);
    match is_complete.is_some() && found.len() <= MOST_PARTS {
        true => found,
        false => Vec::new(),
    }
}

/// Adds the parts of a type that begins at an offset.
fn add_parts(
    types: &Btf<'_>,
    ty: TypeId,
    (start, range): (u64, (u64, u64)),
    path: String,
    found: &mut Vec<Part>,
    depth: usize,
) -> Option<()> {
    let depth = depth.checked_sub(1).filter(|_| found.len() <= MOST_PARTS)?;
    let ty = types.skip_modifiers(ty)?;
    let own = u64::from(types.size_of(ty)?);
    let meets = |start: u64, len: u64| start < range.1 && range.0 < start + len;
    match types.get(ty)?.shape() {
        Shape::Array(array) => {
            let each = u64::from(types.size_of(array.element)?);
            let first = range.0.saturating_sub(start).checked_div(each)?;
            for index in first..u64::from(array.count) {
                let at = start + index * each;
                if !meets(at, each) {
                    break;
                }
                let path = format!("{path}[{index}]");
                add_parts(types, array.element, (at, range), path, found, depth)?;
            }
        }
        Shape::Struct(composite) | Shape::Union(composite) => {
            let is_union = matches!(types.get(ty)?.shape(), Shape::Union(_));
            let mut best: Option<Vec<Part>> = None;
            for member in composite.members() {
                let name = types.string(member.name);
                let path = match name.is_empty() {
                    true => path.clone(),
                    false => format!("{path}.{name}"),
                };
                let mut of_member = Vec::new();
                if member.bits != 0 {
                    let from = start + u64::from(member.bit_offset / 8);
                    let shift = member.bit_offset % 8;
                    let len = u64::from((shift + member.bits).div_ceil(8));
                    if meets(from, len) {
                        of_member.push(Part {
                            path,
                            ty: member.ty,
                            start: from,
                            len,
                            bits: Some((shift, member.bits)),
                        });
                    }
                } else {
                    let at = start + u64::from(member.bit_offset / 8);
                    if meets(at, u64::from(types.size_of(member.ty)?)) {
                        add_parts(types, member.ty, (at, range), path, &mut of_member, depth)?;
                    }
                }
                if of_member.is_empty() {
                    continue;
                }
                match is_union {
                    false => found.append(&mut of_member),
                    true => {
                        // The member whose parts the bytes are, or nearly.
                        let bytes = |parts: &[Part]| parts.iter().map(|part| part.len).sum::<u64>();
                        let is_nearer = best.as_ref().is_none_or(|best| {
                            let distance =
                                |parts: &[Part]| bytes(parts).abs_diff(range.1 - range.0);
                            distance(&of_member) < distance(best)
                        });
                        if is_nearer {
                            best = Some(of_member);
                        }
                    }
                }
            }
            found.extend(best.into_iter().flatten());
        }
        Shape::Datasec(section) => {
            for var in section.vars() {
                let at = start + u64::from(var.offset);
                if meets(at, u64::from(var.size)) {
                    let of_var = types.get(var.var)?;
                    let path = of_var.name().to_string();
                    add_parts(types, of_var.referred()?, (at, range), path, found, depth)?;
                }
            }
        }
        _ => found.push(Part {
            path,
            ty,
            start,
            len: own,
            bits: None,
        }),
    }
    Some(())
}
