//! Unique C names: the second type of a name becomes `name___2`.

use std::collections::HashMap;

use crate::{Btf, Kind, Name, TypeId};

/// Maximum length of a name in bytes.
const LONGEST: usize = 255;

/// Names in use. Structures, unions and enumerations have one name space, typedefs and
/// enumerators another.
pub(super) struct Names<'b> {
    btf: &'b Btf<'b>,
    tags: HashMap<&'b [u8], usize>,
    identifiers: HashMap<&'b [u8], usize>,
    /// Number of uses of its name when a type got its own.
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

    /// Name of a structure, union, enumeration or basic type.
    pub(super) fn tag(&mut self, id: TypeId) -> Vec<u8> {
        Names::resolve(self.btf, &mut self.given, &mut self.tags, id)
    }

    /// Name of a typedef.
    pub(super) fn identifier(&mut self, id: TypeId) -> Vec<u8> {
        Names::resolve(self.btf, &mut self.given, &mut self.identifiers, id)
    }

    /// Name of an enumerator.
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
        // A forward declaration shares its name with the definition.
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
