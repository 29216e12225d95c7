//! Names that C can tell apart: the second type of a name is called `name___2`.

use std::collections::HashMap;

use crate::{Btf, Kind, Name, TypeId};

/// The longest name that is made, in bytes.
const LONGEST: usize = 255;

/// Names given so far. Structures, unions and enumerations have a name space of
/// their own, typedefs and values of enumerations share another.
pub(super) struct Names<'b> {
    btf: &'b Btf<'b>,
    tags: HashMap<&'b [u8], usize>,
    identifiers: HashMap<&'b [u8], usize>,
    /// How often the name of a type had been given when it got it.
    given: Vec<u32>,
}

impl<'b> Names<'b> {
    pub(super) fn new(btf: &'b Btf<'b>) -> Names<'b> {
        Names {
            btf,
            tags: HashMap::new(),
            identifiers: HashMap::new(),
            given: vec![0; btf.len()],
        }
    }

    /// The name of a structure, union, enumeration or basic type.
    pub(super) fn tag(&mut self, id: TypeId) -> Vec<u8> {
        Names::resolve(self.btf, &mut self.given, &mut self.tags, id)
    }

    /// The name of a typedef.
    pub(super) fn identifier(&mut self, id: TypeId) -> Vec<u8> {
        Names::resolve(self.btf, &mut self.given, &mut self.identifiers, id)
    }

    /// The name of a value of an enumeration.
    pub(super) fn value(&mut self, name: Name<'b>) -> Vec<u8> {
        let count = count(&mut self.identifiers, name);
        let mut text = name.as_bytes().to_vec();
        if count > 1 {
            text.extend_from_slice(format!("___{count}").as_bytes());
        }
        text
    }

    fn resolve(
        btf: &'b Btf<'b>,
        given: &mut [u32],
        names: &mut HashMap<&'b [u8], usize>,
        id: TypeId,
    ) -> Vec<u8> {
        let ty = btf.at(id);
        let name = ty.name();
        if ty.name_offset().0 == 0 {
            return Vec::new();
        }
        // What only declares shares its name with what defines.
        let only_declares = match ty.kind() {
            Kind::Fwd => true,
            Kind::Enum => ty.count() == 0,
            _ => false,
        };
        if given[id.index()] == 0 {
            given[id.index()] = match only_declares {
                true => 1,
                false => count(names, name) as u32,
            };
        }
        let mut text = name.as_bytes().to_vec();
        let number = given[id.index()];
        if number > 1 {
            text.extend_from_slice(format!("___{number}").as_bytes());
            text.truncate(LONGEST);
        }
        text
    }
}

fn count<'b>(names: &mut HashMap<&'b [u8], usize>, name: Name<'b>) -> usize {
    let count = names.entry(name.as_bytes()).or_default();
    *count += 1;
    *count
}
