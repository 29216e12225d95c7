//! What a map declaration says: a structure type whose members are attributes.
//!
//! ```c
//! struct {
//!     __uint(type, BPF_MAP_TYPE_HASH);   // int (*type)[1]: a number as an array's length
//!     __uint(max_entries, 100);
//!     __type(key, int);                  // int *key: a type as what a pointer is to
//!     __type(value, struct counters);
//! } counters SEC(".maps");
//! ```
//!
//! No value is ever stored: everything is said by types. Members are read in order,
//! and the first that is wrong decides. Cost: one pass over the members, and one
//! over those of an inner map.

use btf::{Btf, Composite, Kind, Member, Name, Shape, TypeId};
use spec::maps::{MapFlags, MapKind};

use super::fault::{Amount, MapFault};

/// What a map is created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// The number of its kind, which may be one that nobody knows.
    pub number: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The most entries; for a ring buffer its bytes, for an arena its pages.
    pub max_entries: u32,
    /// Flags of the creation.
    pub flags: MapFlags,
    /// What only some kinds have: an arena its address, a Bloom filter its number
    /// of hashes.
    pub extra: u64,
    /// The NUMA node that its memory is taken from, if the flags say so.
    pub numa_node: u32,
    /// The type of a key; `void` if it has none.
    pub key: TypeId,
    /// The type of a value; `void` if it has none.
    pub value: TypeId,
}

impl Definition {
    /// Its kind, if it is a known one.
    pub fn kind(&self) -> Option<MapKind> {
        MapKind::from_number(self.number)
    }

    /// Sets how many entries it has. A ring buffer gets the next size that the
    /// kernel takes: a power of two of pages.
    pub fn set_max_entries(&mut self, entries: u32) {
        self.max_entries = match self.kind() {
            Some(kind) if kind.is_ring() => ring_size(entries),
            _ => entries,
        };
    }
}

/// Bytes of a page, where programs run.
pub const PAGE: u32 = 4096;

/// The smallest power of two of pages that holds so many bytes. 0 stays 0, and what
/// is too large stays as it is, so that whoever creates the map sees the mistake.
fn ring_size(bytes: u32) -> u32 {
    match bytes.div_ceil(PAGE).checked_next_power_of_two() {
        Some(pages) if bytes != 0 => pages.checked_mul(PAGE).unwrap_or(bytes),
        _ => bytes,
    }
}

/// What a declaration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) definition: Definition,
    /// The maps that it holds are all like this one.
    pub(crate) inner: Option<Definition>,
    /// Is it pinned under its name?
    pub(crate) pinned: bool,
}

/// Reads the declaration that a structure type is. Attributes that nobody knows are
/// refused, or with `relaxed` passed over.
pub(crate) fn read(
    btf: &Btf<'_>,
    structure: Composite<'_>,
    relaxed: bool,
) -> Result<Declaration, MapFault> {
    let mut declaration = Declaration::default();
    let last = structure.members().len().saturating_sub(1);
    for (index, member) in structure.members().enumerate() {
        let name = btf.string(member.name);
        let reader = Reader { btf, member, name };
        match name.as_bytes() {
            b"values" if index != last => return Err(MapFault::ValuesNotLast),
            b"values" => declaration.inner = reader.values(&mut declaration.definition, relaxed)?,
            b"pinning" => declaration.pinned = reader.pinning()?,
            _ => reader.attribute(&mut declaration.definition, relaxed)?,
        }
    }
    check_kind(&declaration.definition)?;
    Ok(declaration)
}

/// Reads the declaration of maps that another map holds.
fn read_inner(
    btf: &Btf<'_>,
    structure: Composite<'_>,
    relaxed: bool,
) -> Result<Definition, MapFault> {
    let mut definition = Definition::default();
    for member in structure.members() {
        let name = btf.string(member.name);
        let reader = Reader { btf, member, name };
        match name.as_bytes() {
            b"values" => return Err(MapFault::NestedTwice),
            b"pinning" => return Err(MapFault::InnerPinned),
            _ => reader.attribute(&mut definition, relaxed)?,
        }
    }
    check_kind(&definition)?;
    Ok(definition)
}

fn check_kind(definition: &Definition) -> Result<(), MapFault> {
    if definition.number == 0 {
        return Err(MapFault::NoKind);
    }
    Ok(())
}

/// One attribute.
struct Reader<'b> {
    btf: &'b Btf<'b>,
    member: Member,
    name: Name<'b>,
}

impl Reader<'_> {
    fn attribute(&self, definition: &mut Definition, relaxed: bool) -> Result<(), MapFault> {
        match self.name.as_bytes() {
            b"type" => definition.number = self.number()?,
            b"max_entries" => definition.max_entries = self.number()?,
            b"map_flags" => definition.flags = MapFlags(self.number()?),
            b"numa_node" => definition.numa_node = self.number()?,
            b"map_extra" => definition.extra = self.long_number()?,
            b"key_size" => {
                let size = self.number()?;
                agree(&mut definition.key_size, size, Amount::Key)?;
            }
            b"value_size" => {
                let size = self.number()?;
                agree(&mut definition.value_size, size, Amount::Value)?;
            }
            b"key" => {
                let (ty, size) = self.sized_type(Amount::Key)?;
                agree(&mut definition.key_size, size, Amount::Key)?;
                definition.key = ty;
            }
            b"value" => {
                let (ty, size) = self.sized_type(Amount::Value)?;
                agree(&mut definition.value_size, size, Amount::Value)?;
                definition.value = ty;
            }
            _ if relaxed => {}
            _ => return Err(MapFault::UnknownAttribute(self.name.to_string())),
        }
        Ok(())
    }

    /// A number: a pointer to an array, whose length it is.
    fn number(&self) -> Result<u32, MapFault> {
        let ty = self.btf.at(self.bare(self.member.ty));
        let Shape::Ptr(to) = ty.shape() else {
            return Err(self.unexpected(Kind::Ptr, ty.kind()));
        };
        match self.btf.at(to).shape() {
            Shape::Array(array) => Ok(array.count),
            _ => Err(self.unexpected(Kind::Array, self.btf.at(to).kind())),
        }
    }

    /// A number of 64 bits: the only value of an enumeration, or as above.
    fn long_number(&self) -> Result<u64, MapFault> {
        let ty = self.btf.at(self.bare(self.member.ty));
        match ty.shape() {
            Shape::Ptr(_) => self.number().map(u64::from),
            Shape::Enum(of) => {
                let mut values = of.values();
                match (values.next(), values.next()) {
                    (Some(only), None) if of.wide => Ok(only.value),
                    (Some(only), None) => Ok(only.value as i32 as u64),
                    _ => Err(MapFault::NotOneNumber(self.name.to_string())),
                }
            }
            _ => Err(self.unexpected(Kind::Enum, ty.kind())),
        }
    }

    /// A type: what a pointer is to. It needs a size.
    fn sized_type(&self, of: Amount) -> Result<(TypeId, u32), MapFault> {
        let ty = self.btf.at(self.member.ty);
        let Shape::Ptr(to) = ty.shape() else {
            return Err(self.unexpected(Kind::Ptr, ty.kind()));
        };
        let size = self.btf.size_of(to);
        Ok((to, size.ok_or(MapFault::NoSize { of, ty: to })?))
    }

    fn pinning(&self) -> Result<bool, MapFault> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(MapFault::UnknownPinning(other)),
        }
    }

    /// `values`, an array without elements: of pointers to the declaration of inner
    /// maps, or to the prototype of programs.
    fn values(
        &self,
        definition: &mut Definition,
        relaxed: bool,
    ) -> Result<Option<Definition>, MapFault> {
        let kind = definition.kind();
        let holds_maps = kind.is_some_and(MapKind::holds_maps);
        if !holds_maps && kind != Some(MapKind::ProgArray) {
            return Err(MapFault::ValuesOfOther(definition.number));
        }
        agree(&mut definition.value_size, 4, Amount::Value)?;
        let ty = self.btf.at(self.member.ty);
        let element = match ty.shape() {
            Shape::Array(array) if array.count == 0 => array.element,
            _ => return Err(MapFault::ValuesNotOpen),
        };
        let element = self.btf.at(self.bare(element));
        let Shape::Ptr(to) = element.shape() else {
            return Err(self.unexpected(Kind::Ptr, element.kind()));
        };
        let to = self.btf.at(self.bare(to));
        match to.shape() {
            Shape::Proto(_) if !holds_maps => Ok(None),
            Shape::Struct(inner) if holds_maps => {
                let inner = read_inner(self.btf, inner, relaxed);
                Ok(Some(
                    inner.map_err(|fault| MapFault::Inner(Box::new(fault)))?,
                ))
            }
            _ if holds_maps => Err(self.unexpected(Kind::Struct, to.kind())),
            _ => Err(self.unexpected(Kind::FuncProto, to.kind())),
        }
    }

    /// The type below the modifiers.
    fn bare(&self, ty: TypeId) -> TypeId {
        self.btf.skip_modifiers(ty).unwrap_or_default()
    }

    fn unexpected(&self, expected: Kind, found: Kind) -> MapFault {
        MapFault::WrongShape {
            attribute: self.name.to_string(),
            expected,
            found,
        }
    }
}

/// Two attributes may state a size, but not two sizes. A size of 0 states none.
fn agree(known: &mut u32, size: u32, of: Amount) -> Result<(), MapFault> {
    if *known != 0 && *known != size {
        return Err(MapFault::TwoSizes {
            of,
            first: *known,
            second: size,
        });
    }
    *known = size;
    Ok(())
}

#[cfg(test)]
mod tests;
