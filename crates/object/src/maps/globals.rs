//! Variables by name, before anything runs: read, set, and made longer.

use btf::{Array, Btf, Linkage, Placed, Shape, TypeId};
use program::MapId;

use super::{Contents, DataKind, Map, MapFault, Maps};
use crate::error::Error;

/// A variable of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeId,
    /// The map that it is in.
    pub map: MapId,
    /// Bytes from the start of the map's value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Is it hidden from other files?
    pub is_static: bool,
}

impl Maps<'_> {
    /// The variables in maps of sections, by map and place.
    pub fn globals<'b>(&'b self, btf: &'b Btf<'_>) -> impl Iterator<Item = Global> + 'b {
        self.iter().flat_map(move |(id, map)| {
            let section = match map.data() {
                Some(_) => btf.at(map.definition.value).shape(),
                None => Shape::Void,
            };
            let listed = match section {
                Shape::Datasec(section) => Some(section.vars()),
                _ => None,
            };
            let listed = listed.into_iter().flatten();
            listed.filter_map(move |placed| global(btf, id, placed))
        })
    }

    /// The first variable of that name; one that others see goes before static ones.
    pub fn global(&self, btf: &Btf<'_>, name: &str) -> Option<Global> {
        let mut hidden = None;
        for global in self.globals(btf).filter(|global| global.name == name) {
            if !global.is_static {
                return Some(global);
            }
            hidden.get_or_insert(global);
        }
        hidden
    }

    /// The bytes of a variable.
    pub fn read_global(&self, btf: &Btf<'_>, name: &str) -> Result<Vec<u8>, Error> {
        let global = self.find(btf, name)?;
        let image = self.get(global.map).and_then(Map::image);
        let image = image.ok_or(MapFault::NoContents)?;
        let len = global.size.min(image.size().saturating_sub(global.offset));
        let mut bytes = vec![0; len as usize];
        image.read(global.offset, &mut bytes);
        Ok(bytes)
    }

    /// Sets the bytes of a variable, all of them. Values of the configuration are not
    /// the user's to set; give a configuration instead.
    pub fn write_global(&mut self, btf: &Btf<'_>, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let global = self.find(btf, name)?;
        let (expected, given) = (u64::from(global.size), bytes.len() as u64);
        if expected != given {
            let fault = MapFault::ContentsSize { expected, given };
            return Err(Error::new(fault).about(name));
        }
        let map = self.get_mut(global.map).filter(|map| {
            let data = map.data();
            data.is_some_and(|data| data.kind != DataKind::Config)
        });
        let image = map.and_then(Map::image_mut);
        match image.is_some_and(|image| image.write(global.offset, bytes)) {
            true => Ok(()),
            false => Err(Error::new(MapFault::NoContents).about(name)),
        }
    }

    fn find(&self, btf: &Btf<'_>, name: &str) -> Result<Global, Error> {
        let missing = || MapFault::NoSuchVariable(name.to_owned());
        Ok(self.global(btf, name).ok_or_else(missing)?)
    }

    /// Sets how many bytes a value has. The last variable of a section grows or
    /// shrinks with it, if it is an array that comes out even; if not, the map goes
    /// without types. What an arena holds keeps its size.
    pub fn set_value_size(
        &mut self,
        btf: Option<&mut Btf<'_>>,
        id: MapId,
        size: u32,
    ) -> Result<(), Error> {
        let map = self.get_mut(id).ok_or(MapFault::NoSuchMap)?;
        match &mut map.contents {
            Contents::Arena(_) => return Err(Error::new(MapFault::FixedSize).about(&map.name)),
            Contents::Data(data) => {
                data.image.resize(size);
                let section = map.definition.value;
                if btf.is_some_and(|btf| resize_section(btf, section, size).is_none()) {
                    map.definition.key = TypeId::VOID;
                    map.definition.value = TypeId::VOID;
                }
            }
            Contents::Entries(_) | Contents::StructOps(_) => {}
        }
        map.definition.value_size = size;
        Ok(())
    }
}

fn global(btf: &Btf<'_>, map: MapId, placed: Placed) -> Option<Global> {
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

/// Lets the array at the end of a section fill it up to so many bytes.
fn resize_section(btf: &mut Btf<'_>, id: TypeId, size: u32) -> Option<()> {
    let Shape::Datasec(section) = btf.at(id).shape() else {
        return None;
    };
    let mut places: Vec<Placed> = section.vars().collect();
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
