//! Global variables by name: read, write and resize before linking.

use std::sync::OnceLock;

use btf::{Array, Btf, Kind, Linkage, Shape, TypeId, VarSecinfo};
use program::{Image, MapId};

use super::{Contents, DataKind, Map, MapFault, Maps};
use crate::error::Error;
use crate::object::Object;

/// Section of the variables of an arena.
const ARENA_SECTION: &str = ".addr_space.1";

/// A global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Name.
    pub name: String,
    /// BTF id of its type.
    pub ty: TypeId,
    /// Map that contains it.
    pub map: MapId,
    /// Offset in bytes in the map's value, in an arena from the first of its variables.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// True for static linkage.
    pub is_static: bool,
}

impl Object<'_> {
    /// Global variables, by map and offset; empty for an object without BTF.
    pub fn globals(&self) -> impl Iterator<Item = Global> + '_ {
        let types = self.btf.iter();
        types.flat_map(|types| globals(&self.maps, types))
    }

    /// First variable with this name; a global one takes precedence over static ones.
    pub fn global(&self, name: &str) -> Option<Global> {
        let mut hidden = None;
        for global in self.globals().filter(|global| global.name == name) {
            if !global.is_static {
                return Some(global);
            }
            hidden.get_or_insert(global);
        }
        hidden
    }

    /// Bytes of a variable.
    pub fn read_global(&self, name: &str) -> Result<Vec<u8>, Error> {
        let global = self.find_global(name)?;
        let image = self.maps.get(global.map).and_then(Map::image);
        let image = image.ok_or(MapFault::NoContents)?;
        let len = global.size.min(image.size().saturating_sub(global.offset));
        let mut bytes = vec![0; len as usize];
        image.read(global.offset, &mut bytes);
        Ok(bytes)
    }

    /// Sets all bytes of a variable. kconfig externs are refused; pass a configuration
    /// when opening instead.
    pub fn write_global(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let global = self.find_global(name)?;
        let (expected, given) = (u64::from(global.size), bytes.len() as u64);
        if expected != given {
            let fault = MapFault::ContentsSize { expected, given };
            return Err(Error::new(fault).about(name));
        }
        let image = self.maps.get_mut(global.map).and_then(variables_mut);
        match image.is_some_and(|image| image.write(global.offset, bytes)) {
            true => Ok(()),
            false => Err(Error::new(MapFault::NoContents).about(name)),
        }
    }

    /// Value of an integer, boolean or enumeration.
    pub fn read_number(&self, name: &str) -> Result<i128, Error> {
        let global = self.find_global(name)?;
        let number = self
            .number(&global)
            .map_err(|fault| Error::new(fault).about(name))?;
        let bytes = self.read_global(name)?;
        Ok(number.decode(&bytes))
    }

    /// Sets the value of an integer, boolean or enumeration. Error if it does not fit.
    pub fn write_number(&mut self, name: &str, value: i128) -> Result<(), Error> {
        let global = self.find_global(name)?;
        let number = self.number(&global).and_then(|number| number.encode(value));
        let bytes = number.map_err(|fault| Error::new(fault).about(name))?;
        self.write_global(name, &bytes)
    }

    /// Sets the size of a map's value. The last variable of a data section is resized
    /// with it if it is an array and the size is a multiple of its elements; otherwise
    /// the map loses its BTF. Arenas keep their size.
    pub fn set_value_size(&mut self, map: MapId, size: u32) -> Result<(), Error> {
        let map = self.maps.get_mut(map).ok_or(MapFault::NoSuchMap)?;
        match &mut map.contents {
            Contents::Arena(_) => return Err(Error::new(MapFault::FixedSize).about(&map.name)),
            Contents::Data(data) => {
                data.image.resize(size);
                let section = map.params.value_type;
                self.shared_btf = OnceLock::new();
                let types = self.btf.as_mut();
                if types.is_some_and(|types| resize_section(types, section, size).is_none()) {
                    map.params.key_type = TypeId::VOID;
                    map.params.value_type = TypeId::VOID;
                }
            }
            Contents::Entries(_) | Contents::StructOps(_) => {}
        }
        map.params.value_size = size;
        Ok(())
    }

    fn find_global(&self, name: &str) -> Result<Global, Error> {
        let missing = || MapFault::NoSuchVariable(name.to_owned());
        Ok(self.global(name).ok_or_else(missing)?)
    }

    fn number(&self, global: &Global) -> Result<Number, MapFault> {
        let types = self.btf.as_ref().ok_or(MapFault::NoTypes)?;
        let ty = types.skip_modifiers(global.ty).unwrap_or_default();
        let (size, signed) = match types.at(ty).shape() {
            Shape::Int(int) => (int.size, int.encoding.is_signed()),
            Shape::Enum(of) => (of.size, of.signed),
            _ => return Err(MapFault::NotNumber),
        };
        match size {
            1..=8 if size == global.size => Ok(Number { size, signed }),
            _ => Err(MapFault::NotNumber),
        }
    }
}

/// Representation of a number in memory.
struct Number {
    /// Size in bytes, at most 8.
    size: u32,
    signed: bool,
}

impl Number {
    fn decode(&self, bytes: &[u8]) -> i128 {
        let mut wide = [0; 16];
        let len = bytes.len().min(16);
        wide[..len].copy_from_slice(&bytes[..len]);
        let unused = 128 - 8 * self.size;
        let value = i128::from_le_bytes(wide);
        match self.signed {
            true => value << unused >> unused,
            false => value,
        }
    }

    fn encode(&self, value: i128) -> Result<Vec<u8>, MapFault> {
        let bytes = &value.to_le_bytes()[..self.size as usize];
        match self.decode(bytes) == value {
            true => Ok(bytes.to_vec()),
            false => Err(MapFault::OutOfRange {
                value,
                size: self.size,
            }),
        }
    }
}

fn globals<'b>(maps: &'b Maps<'_>, btf: &'b Btf<'_>) -> impl Iterator<Item = Global> + 'b {
    maps.iter().flat_map(move |(id, map)| {
        let section = match &map.contents {
            Contents::Data(_) => Some(btf.at(map.params.value_type)),
            Contents::Arena(_) => btf.find(Kind::Datasec, ARENA_SECTION),
            Contents::Entries(_) | Contents::StructOps(_) => None,
        };
        let listed = match section.map(|section| section.shape()) {
            Some(Shape::Datasec(section)) => Some(section.vars()),
            _ => None,
        };
        let listed = listed.into_iter().flatten();
        listed.filter_map(move |placed| global(btf, id, placed))
    })
}

fn global(btf: &Btf<'_>, map: MapId, placed: VarSecinfo) -> Option<Global> {
    let ty = btf.at(placed.var);
    let Shape::Var(var) = ty.shape() else {
        return None;
    };
    Some(Global {
        name: ty.name().to_string(),
        ty: var.ty,
        map,
        offset: placed.offset,
        size: placed.size,
        is_static: var.linkage == Linkage::STATIC,
    })
}

/// Global variables of a section that may be written; `None` for kconfig.
fn variables_mut<'m, 'a>(map: &'m mut Map<'a>) -> Option<&'m mut Image<'a>> {
    match &mut map.contents {
        Contents::Data(data) if data.kind != DataKind::Config => Some(&mut data.image),
        Contents::Arena(image) => Some(image),
        Contents::Data(_) | Contents::Entries(_) | Contents::StructOps(_) => None,
    }
}

/// Resizes the array at the end of a DATASEC to fill `size` bytes.
fn resize_section(btf: &mut Btf<'_>, id: TypeId, size: u32) -> Option<()> {
    let Shape::Datasec(section) = btf.at(id).shape() else {
        return None;
    };
    let mut places: Vec<VarSecinfo> = section.vars().collect();
    let last = places.last_mut()?;
    let Shape::Var(var) = btf.at(last.var).shape() else {
        return None;
    };
    let Shape::Array(array) = btf.at(btf.skip_modifiers(var.ty)?).shape() else {
        return None;
    };
    let element = btf.size_of(array.element).filter(|&size| size != 0)?;
    last.size = size.checked_sub(last.offset)?;
    if !last.size.is_multiple_of(element) {
        return None;
    }
    let count = last.size / element;
    let var = last.var;
    let longer = btf.append(|builder| builder.array(Array { count, ..array }));
    btf.set_referred(var, longer);
    btf.set_section(id, size, &places);
    Some(())
}
