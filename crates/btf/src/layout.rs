//! Size and alignment of types.
//!
//! Malformed blobs have types that contain themselves, so every walk is bounded: 32 types
//! for sizes, as in the kernel and libbpf, and a mark on types whose alignment is being
//! computed.

use crate::{Btf, Kind, Shape, TypeId};

/// Maximum number of types followed for a size.
const MAX_DEPTH: usize = 32;

/// Maximum number of modifiers of a type.
pub(crate) const MAX_MODIFIERS: usize = 64;

impl Btf<'_> {
    /// Size of a pointer in bytes, taken from the size of `long`; 8 if the blob has none.
    pub fn pointer_size(&self) -> u32 {
        *self.pointer_size.get_or_init(|| self.find_pointer_size())
    }

    fn find_pointer_size(&self) -> u32 {
        let is_long = |name: &str| {
            let mut words: Vec<&str> = name.split(' ').collect();
            words.sort_unstable();
            matches!(
                words[..],
                ["long"] | ["int", "long"] | ["long", "unsigned"] | ["int", "long", "unsigned"]
            )
        };
        self.types()
            .find_map(|ty| match ty.shape() {
                Shape::Int(int) if matches!(int.size, 4 | 8) => {
                    ty.name().to_str().is_some_and(is_long).then_some(int.size)
                }
                _ => None,
            })
            .unwrap_or(8)
    }

    /// Size of a type in bytes; `None` for types without size, or beyond 32 bits
    /// (`btf_type_id_size`, `btf_resolve_size`, `__btf_resolve_size`).
    #[doc(alias = "btf_type_id_size")]
    #[doc(alias = "btf_resolve_size")]
    #[doc(alias = "__btf_resolve_size")]
    pub fn size_of(&self, id: TypeId) -> Option<u32> {
        let mut id = id;
        let mut count = 1u32;
        for _ in 0..MAX_DEPTH {
            let ty = self.get(id)?;
            id = match ty.shape() {
                Shape::Int(int) => return int.size.checked_mul(count),
                Shape::Float(size) => return size.checked_mul(count),
                Shape::Struct(composite) | Shape::Union(composite) => {
                    return composite.size.checked_mul(count);
                }
                Shape::Enum(of) => return of.size.checked_mul(count),
                Shape::Datasec(section) => return section.size.checked_mul(count),
                Shape::Ptr(_) => return self.pointer_size().checked_mul(count),
                Shape::Array(array) => {
                    count = count.checked_mul(array.count)?;
                    array.element
                }
                Shape::Void | Shape::Fwd(_) | Shape::Func(_) | Shape::Proto(_) => return None,
                Shape::Typedef(to)
                | Shape::Volatile(to)
                | Shape::Const(to)
                | Shape::Restrict(to)
                | Shape::TypeTag(to) => to,
                Shape::Var(var) => var.ty,
                Shape::DeclTag(tag) => tag.target,
            };
        }
        None
    }

    /// Type below the modifiers; `None` if they form a cycle or are more than 64, of which the
    /// kernel accepts 32 (`btf_type_skip_modifiers`).
    #[doc(alias = "btf_type_skip_modifiers")]
    pub fn skip_modifiers(&self, id: TypeId) -> Option<TypeId> {
        let mut id = id;
        for _ in 0..=MAX_MODIFIERS {
            let ty = self.get(id)?;
            if !ty.kind().is_modifier() {
                return Some(id);
            }
            id = ty.referred()?;
        }
        None
    }

    /// Alignment of a type in bytes; `None` for types without size or that contain
    /// themselves; 1 for a packed structure.
    pub fn align_of(&self, id: TypeId) -> Option<u32> {
        Alignments::new(self).of(id)
    }
}

/// Memoised alignments of types.
pub(crate) struct Alignments<'b> {
    btf: &'b Btf<'b>,
    known: Vec<Known>,
    pub(crate) pointer: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    No,
    /// Being computed.
    Soon,
    None,
    Bytes(u32),
}

/// Maximum depth of nesting.
const MAX_NESTING: usize = 512;

impl<'b> Alignments<'b> {
    pub(crate) fn new(btf: &'b Btf<'b>) -> Alignments<'b> {
        Alignments {
            btf,
            known: vec![Known::No; btf.len()],
            pointer: btf.pointer_size(),
        }
    }

    pub(crate) fn of(&mut self, id: TypeId) -> Option<u32> {
        self.within(id, MAX_NESTING)
    }

    fn within(&mut self, id: TypeId, depth: usize) -> Option<u32> {
        match *self.known.get(id.index())? {
            Known::Bytes(bytes) => return Some(bytes),
            Known::None | Known::Soon => return None,
            Known::No => {}
        }
        let depth = depth.checked_sub(1)?;
        self.known[id.index()] = Known::Soon;
        let found = self.compute(id, depth);
        self.known[id.index()] = found.map_or(Known::None, Known::Bytes);
        found
    }

    fn compute(&mut self, id: TypeId, depth: usize) -> Option<u32> {
        let ty = self.btf.get(id)?;
        match ty.shape() {
            Shape::Int(int) => Some(int.size.min(self.pointer)),
            Shape::Enum(of) => Some(of.size.min(self.pointer)),
            Shape::Float(size) => Some(size.min(self.pointer)),
            Shape::Ptr(_) => Some(self.pointer),
            Shape::Typedef(to)
            | Shape::Volatile(to)
            | Shape::Const(to)
            | Shape::Restrict(to)
            | Shape::TypeTag(to) => self.within(to, depth),
            Shape::Array(array) => self.within(array.element, depth),
            Shape::Struct(composite) | Shape::Union(composite) => {
                let mut largest = 1;
                for member in composite.members() {
                    let align = self.within(member.ty, depth).filter(|&align| align != 0)?;
                    largest = largest.max(align);
                    if member.bits == 0 && !member.bit_offset.is_multiple_of(8 * align) {
                        return Some(1);
                    }
                }
                let is_whole = composite.size.is_multiple_of(largest);
                Some(if is_whole { largest } else { 1 })
            }
            _ => None,
        }
    }

    /// True if the structure is packed: its members or size violate its alignment.
    pub(crate) fn is_packed(&mut self, id: TypeId) -> bool {
        let Some(composite) = self.btf.get(id).and_then(|ty| ty.as_composite()) else {
            return false;
        };
        let mut largest = 1;
        for member in composite.members() {
            let align = self.of(member.ty).unwrap_or(0);
            let is_placed = member.bits != 0 || align == 0;
            if !is_placed && !member.bit_offset.is_multiple_of(8 * align) {
                return true;
            }
            largest = largest.max(align);
        }
        !composite.size.is_multiple_of(largest)
    }
}

impl Kind {
    /// True for `volatile`, `const`, `restrict` and type tags.
    pub(crate) fn is_qualifier(self) -> bool {
        self.is_modifier() && self != Kind::Typedef
    }
}
