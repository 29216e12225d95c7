//! Parser of BTF map declarations: a structure type whose members are attributes.
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
//! Only the types are read; the variable has no value. Members are read in order, and the
//! first invalid one is the error. One pass over the members, and one over those of an
//! inner map.

use btf::{Btf, Composite, Kind, Member, Name, Shape, TypeId};
use program::MapParams;
use spec::loader::{LoaderRules, PinningRule};
use spec::maps::{MapFlags, MapKind};

use super::fault::{MapFault, SizeAttribute};

/// Attributes of a declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) params: MapParams,
    /// Parameters of the inner maps.
    pub(crate) inner: Option<MapParams>,
    /// Value of `pinning`.
    pub(crate) pinning: u32,
}

/// Reads the declaration of a structure type. Unknown attributes are refused, or with
/// `relaxed` ignored.
pub(crate) fn read(
    btf: &Btf<'_>,
    structure: Composite<'_>,
    (rules, relaxed): (&LoaderRules, bool),
) -> Result<Declaration, MapFault> {
    let mut declaration = Declaration::default();
    let last = structure.members().len().saturating_sub(1);
    for (index, member) in structure.members().enumerate() {
        let name = btf.string(member.name);
        let is_wide = rules.has_wide_numbers;
        let reader = Reader {
            btf,
            member,
            name,
            relaxed,
            is_wide,
        };
        match name.as_bytes() {
            b"values" if index != last => return Err(MapFault::ValuesNotLast),
            b"values" => {
                let has_programs = rules.has_initial_values;
                declaration.inner = reader.values(&mut declaration.params, has_programs)?;
            }
            b"pinning" => declaration.pinning = reader.pinning(rules.pinning)?,
            _ => reader.attribute(&mut declaration.params)?,
        }
    }
    check_kind(&declaration.params)?;
    if rules.completes_sizes {
        drop_value_size(&mut declaration.params);
        declaration.inner.iter_mut().for_each(drop_value_size);
    }
    Ok(declaration)
}

/// Reads the declaration of inner maps.
fn read_inner(outer: &Reader<'_>, structure: Composite<'_>) -> Result<MapParams, MapFault> {
    let mut params = MapParams::default();
    for member in structure.members() {
        let name = outer.btf.string(member.name);
        let reader = Reader {
            member,
            name,
            ..*outer
        };
        match name.as_bytes() {
            b"values" => return Err(MapFault::NestedTwice),
            b"pinning" => return Err(MapFault::InnerPinned),
            _ => reader.attribute(&mut params)?,
        }
    }
    check_kind(&params)?;
    Ok(params)
}

/// Drops the size that the type of a value states for a kind without values of its own.
fn drop_value_size(params: &mut MapParams) {
    if !params.value_type.is_void() && params.kind().is_some_and(MapKind::is_memory) {
        params.value_size = 0;
    }
}

fn check_kind(params: &MapParams) -> Result<(), MapFault> {
    if params.map_type == 0 {
        return Err(MapFault::NoKind);
    }
    Ok(())
}

/// Reader of one attribute.
#[derive(Clone, Copy)]
struct Reader<'b> {
    btf: &'b Btf<'b>,
    member: Member,
    name: Name<'b>,
    /// True to ignore unknown attributes.
    relaxed: bool,
    /// True if enumerations state numbers.
    is_wide: bool,
}

impl Reader<'_> {
    fn attribute(&self, params: &mut MapParams) -> Result<(), MapFault> {
        match self.name.as_bytes() {
            b"type" => params.map_type = self.number()?,
            b"max_entries" => params.max_entries = self.number()?,
            b"map_flags" => params.flags = MapFlags(self.number()?),
            b"numa_node" => params.numa_node = self.number()?,
            b"map_extra" => params.extra = self.long_number()?,
            b"key_size" => {
                let size = self.number()?;
                agree(&mut params.key_size, size, SizeAttribute::Key)?;
            }
            b"value_size" => {
                let size = self.number()?;
                agree(&mut params.value_size, size, SizeAttribute::Value)?;
            }
            b"key" => {
                let (ty, size) = self.sized_type(SizeAttribute::Key)?;
                agree(&mut params.key_size, size, SizeAttribute::Key)?;
                params.key_type = ty;
            }
            b"value" => {
                let (ty, size) = self.sized_type(SizeAttribute::Value)?;
                agree(&mut params.value_size, size, SizeAttribute::Value)?;
                params.value_type = ty;
            }
            _ if self.relaxed => {}
            _ => return Err(MapFault::UnknownAttribute(self.name.to_string())),
        }
        Ok(())
    }

    /// Number: the length of the array that a pointer refers to.
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

    /// 64-bit number: the only value of an enumeration, or as for 32 bits.
    fn long_number(&self) -> Result<u64, MapFault> {
        let ty = self.btf.at(self.bare(self.member.ty));
        match ty.shape() {
            Shape::Ptr(_) => self.number().map(u64::from),
            Shape::Enum(of) if self.is_wide => {
                let mut values = of.values();
                match (values.next(), values.next()) {
                    (Some(only), None) if of.wide => Ok(only.value),
                    (Some(only), None) => Ok(only.value as i32 as u64),
                    _ => Err(MapFault::NotOneNumber(self.name.to_string())),
                }
            }
            _ if self.is_wide => Err(self.unexpected(Kind::Enum, ty.kind())),
            _ => Err(self.unexpected(Kind::Ptr, ty.kind())),
        }
    }

    /// Type that a pointer refers to, with its size.
    fn sized_type(&self, of: SizeAttribute) -> Result<(TypeId, u32), MapFault> {
        let ty = self.btf.at(self.member.ty);
        let Shape::Ptr(to) = ty.shape() else {
            return Err(self.unexpected(Kind::Ptr, ty.kind()));
        };
        let size = self.btf.size_of(to);
        Ok((to, size.ok_or(MapFault::NoSize { of, ty: to })?))
    }

    fn pinning(&self, rule: PinningRule) -> Result<u32, MapFault> {
        match (self.number()?, rule) {
            (value @ 0..=1, _) | (value, PinningRule::Others) => Ok(value),
            (_, PinningRule::OthersAreNone) => Ok(0),
            (value, PinningRule::NoneOrByName) => Err(MapFault::UnknownPinning(value)),
        }
    }

    /// `values`, an array without elements: of pointers to the declaration of inner maps,
    /// or to the prototype of programs.
    fn values(
        &self,
        params: &mut MapParams,
        has_programs: bool,
    ) -> Result<Option<MapParams>, MapFault> {
        let kind = params
            .kind()
            .filter(|kind| has_programs || kind.is_map_of_maps());
        let is_map_of_maps = kind.is_some_and(MapKind::is_map_of_maps);
        if !is_map_of_maps && kind != Some(MapKind::ProgArray) {
            return Err(MapFault::ValuesOfOther(params.map_type));
        }
        agree(&mut params.value_size, 4, SizeAttribute::Value)?;
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
            Shape::Proto(_) if !is_map_of_maps => Ok(None),
            Shape::Struct(inner) if is_map_of_maps => {
                let inner = read_inner(self, inner);
                Ok(Some(
                    inner.map_err(|fault| MapFault::Inner(Box::new(fault)))?,
                ))
            }
            _ if is_map_of_maps => Err(self.unexpected(Kind::Struct, to.kind())),
            _ => Err(self.unexpected(Kind::FuncProto, to.kind())),
        }
    }

    /// Type below the modifiers.
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

/// Sets a size that several attributes may state. Different sizes are an error; 0 states
/// none.
fn agree(known: &mut u32, size: u32, of: SizeAttribute) -> Result<(), MapFault> {
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
