//! What the maps of two objects hold.
//!
//! Maps are compared by their names, global variables by theirs: files that have other names or
//! other variables have other sections.

use std::collections::BTreeMap;
use std::ops::Range;

use btf::{Btf, Shape};
use program::InitialContents;

use super::super::{LoadedObject, ObjectMap};

/// What is compared.
pub(super) struct Contents<'o> {
    pairs: Vec<Pair<'o>>,
    /// Names of what only one object has, the old one first.
    alone: [Vec<String>; 2],
}

/// Two maps, or two global variables.
struct Pair<'o> {
    name: String,
    maps: [&'o ObjectMap; 2],
    /// The bytes of the variable in its section.
    ranges: Option<[Range<usize>; 2]>,
}

/// A map or variable of one object.
struct Place<'o> {
    map: &'o ObjectMap,
    range: Option<Range<usize>>,
}

impl<'o> Contents<'o> {
    pub(super) fn new([old, new]: [&'o LoadedObject; 2]) -> Contents<'o> {
        let mut others = places(new);
        let mut contents = Contents {
            pairs: Vec::new(),
            alone: Default::default(),
        };
        for (name, place) in places(old) {
            let at = others.iter().position(|(other, _)| *other == name);
            let Some((_, other)) = at.map(|at| others.remove(at)) else {
                contents.alone[0].push(name);
                continue;
            };
            let is_constant = place.map.map.is_constant() && other.map.map.is_constant();
            if !is_constant {
                contents.pairs.push(Pair {
                    name,
                    maps: [place.map, other.map],
                    ranges: place
                        .range
                        .zip(other.range)
                        .map(|(one, other)| [one, other]),
                });
            }
        }
        contents.alone[1] = others.into_iter().map(|(name, _)| name).collect();
        contents
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn name(&self, number: usize) -> &str {
        &self.pairs[number].name
    }

    /// Names of what only one object has.
    pub(super) fn alone(&self) -> [Vec<String>; 2] {
        self.alone.clone()
    }

    /// True if a pair holds the same, and the number of entries that were compared.
    pub(super) fn are_equal(&self, number: usize) -> (bool, usize) {
        let Pair { maps, ranges, .. } = &self.pairs[number];
        let [old, new] = maps;
        if let Some([old_range, new_range]) = ranges {
            let (old, new) = (section(old), section(new));
            return (old.get(old_range.clone()) == new.get(new_range.clone()), 1);
        }
        let mut count = 0;
        let mut others = new.iter_entries();
        for entry in old.iter_entries() {
            count += 1;
            match (entry, others.next()) {
                (Ok(one), Some(Ok(other))) if one == other => {}
                // It shows no entries.
                (Err(_), Some(Err(_))) => return (true, count),
                // Entries of hashes may stand in another order.
                _ => return (sorted(old) == sorted(new), 2 * count),
            }
        }
        let is_equal = others.next().is_none() && old.owned_values() == new.owned_values();
        (is_equal, count)
    }
}

/// The entries in the order of their keys.
fn sorted(map: &ObjectMap) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    map.iter_entries().collect::<Result<_, _>>().ok()
}

/// The bytes of a section of global variables.
fn section(map: &ObjectMap) -> Vec<u8> {
    let mut value = vec![0; map.map.value_len()];
    match map.map.lookup(&[0; 4], &mut value, 0) {
        Ok(()) => value,
        Err(_) => Vec::new(),
    }
}

/// The maps and variables of an object with their names; several of one name are numbered.
fn places(object: &LoadedObject) -> Vec<(String, Place<'_>)> {
    let mut programs = object.shared.programs.iter();
    let types = programs.find_map(|prepared| prepared.program.btf());
    let mut places: Vec<(String, Place<'_>)> = Vec::new();
    let mut add = |name: String, map, range: Option<Range<usize>>| {
        let is_it = |(known, _): &&(String, Place<'_>)| {
            *known == name
                || known
                    .strip_prefix(&*name)
                    .is_some_and(|rest| rest.starts_with(" ("))
        };
        let name = match places.iter().filter(is_it).count() {
            0 => name,
            before => format!("{name} ({})", before + 1),
        };
        places.push((name, Place { map, range }));
    };
    for map in object.maps() {
        let InitialContents::Value { .. } = map.def.contents else {
            if !holds_numbers(map) {
                add(map.def.name.clone(), map, None);
            }
            continue;
        };
        let variables = types.map_or_else(Vec::new, |types| variables(types, map));
        // A section is named after the file: what is compared is what is behind that.
        let name = &map.def.name;
        let section = name.find('.').map_or(&name[..], |dot| &name[dot..]);
        match variables.is_empty() || map.map.is_constant() {
            true => {
                if !map.map.is_constant() {
                    add(section.to_owned(), map, None);
                }
            }
            false => {
                for (name, range) in variables {
                    add(name, map, Some(range));
                }
            }
        }
    }
    places
}

/// True for a map whose values are numbers of maps and programs, which are of one object alone.
fn holds_numbers(map: &ObjectMap) -> bool {
    map.map.kind().holds_objects()
}

/// Names and places of the variables of a section.
fn variables(types: &Btf<'_>, map: &ObjectMap) -> Vec<(String, Range<usize>)> {
    let Some(Shape::Datasec(section)) = types.get(map.def.params.value_type).map(|ty| ty.shape())
    else {
        return Vec::new();
    };
    let variables = section.vars().filter_map(|var| {
        let start = var.offset as usize;
        let name = types.get(var.var)?.name().to_string();
        Some((name, start..start + var.size as usize))
    });
    variables.collect()
}
