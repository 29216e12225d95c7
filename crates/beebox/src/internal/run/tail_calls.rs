//! Programs in program arrays: what arrays hold from the start, and which programs they take.

use std::sync::Arc;

use ::kernel::maps::{ProgramClass, Resources, StoredProgram};
use program::MapEntry;
use spec::Errno;
use spec::maps::MapKind;
use spec::programs::{LoadFlags, ProgramType};

use super::prepared::Prepared;
use super::{LoadError, ObjectMap};
use crate::engine::EngineRefusal;

/// The programs of an object by descriptor, which is their place here.
#[derive(Debug, Default)]
pub(super) struct Programs(Vec<Arc<StoredProgram>>);

impl Resources for Programs {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        self.0.get(descriptor as usize).cloned()
    }
}

/// The program arrays among the maps, with their places.
fn arrays(maps: &[Option<ObjectMap>]) -> impl Iterator<Item = (usize, &ObjectMap)> {
    let maps = maps.iter().enumerate();
    let maps = maps.filter_map(|(index, map)| Some((index, map.as_ref()?)));
    maps.filter(|(_, map)| map.map.kind() == MapKind::ProgArray)
}

/// True if programs use program arrays.
pub(super) fn are_used(maps: &[Option<ObjectMap>]) -> bool {
    arrays(maps).next().is_some()
}

/// The programs that an array holds from the start, by index.
fn contents(array: &ObjectMap) -> impl Iterator<Item = (u32, &str)> {
    let entries = array.def.contents.entries().iter();
    entries.filter_map(|(key, entry)| match entry {
        MapEntry::Program(program) => Some((*key, &*program.name)),
        MapEntry::Map(_) => None,
    })
}

/// True if a program refers to the map at a place.
fn uses(prepared: &Prepared, place: usize) -> bool {
    let maps = prepared.program.used_maps();
    maps.into_iter().any(|map| map.0 as usize == place)
}

/// Has one engine run all programs of the types that use program arrays, as tail calls stay in
/// it: the checked engine, if one of them does not run without checks.
pub(super) fn choose_engine(maps: &[Option<ObjectMap>], programs: &mut [Prepared]) {
    let users = programs.iter().filter(|prepared| {
        let mut arrays = arrays(maps);
        arrays.any(|(place, _)| uses(prepared, place))
    });
    let kinds: Vec<ProgramType> = users.map(|prepared| prepared.program.kind()).collect();
    let takes_part = |prepared: &Prepared| kinds.contains(&prepared.program.kind());
    let linked = programs.iter().filter(|prepared| takes_part(prepared));
    let mut reasons = linked
        .filter_map(|prepared| Some((prepared.program.name(), prepared.fallback_reason.clone()?)));
    let Some((name, why)) = reasons.next() else {
        return;
    };
    let why = EngineRefusal::TailCalls {
        program: name.to_owned(),
        refusal: Box::new(why),
    };
    for prepared in programs.iter_mut() {
        if takes_part(prepared) {
            prepared.drop_code(why.clone());
        }
    }
}

/// Puts programs into the program arrays that hold them from the start. A stored program has
/// its place in `programs` as id.
///
/// # Errors
/// [`LoadError::ProgramArray`] if an array does not take a program that uses it or that it
/// holds, as in the kernel, or if it holds a program that is not loaded.
pub(super) fn fill(
    maps: &[Option<ObjectMap>],
    programs: &[Prepared],
) -> Result<Programs, LoadError> {
    let stored = programs.iter().zip(0..).map(|(prepared, id)| {
        let class = class(prepared);
        let code = prepared.code.as_ref();
        let target = code.and_then(|code| code.tail_target());
        Arc::new(StoredProgram { id, class, target })
    });
    let stored = Programs(stored.collect());
    for (index, array) in arrays(maps) {
        let refused = |program: &str, errno| LoadError::ProgramArray {
            map: array.def.name.clone(),
            program: program.to_owned(),
            errno,
        };
        for (prepared, stored) in programs.iter().zip(&stored.0) {
            if uses(prepared, index) {
                let admitted = array.map.admit(&stored.class);
                admitted.map_err(|errno| refused(prepared.program.name(), errno))?;
            }
        }
        for (key, wanted) in contents(array) {
            let mut names = programs.iter().map(|prepared| prepared.program.name());
            let place = names.position(|name| name == wanted);
            let place = place.ok_or_else(|| refused(wanted, Errno::EBADF))?;
            let value = (place as u32).to_le_bytes();
            let stored = array
                .map
                .update_with(&key.to_le_bytes(), &value, 0, &stored);
            stored.map_err(|errno| refused(wanted, errno))?;
        }
    }
    Ok(stored)
}

/// Puts the program at a place into a slot of a program array, or empties the slot.
///
/// # Errors
/// Those of the kernel's update and deletion.
pub(super) fn set(
    array: &ObjectMap,
    index: u32,
    place: Option<usize>,
    programs: &Programs,
) -> Result<(), Errno> {
    let key = index.to_le_bytes();
    match place {
        Some(place) => {
            let descriptor = (place as u32).to_le_bytes();
            array.map.update_with(&key, &descriptor, 0, programs)
        }
        None => array.map.delete(&key),
    }
}

/// Compatibility class of a program in program arrays.
fn class(prepared: &Prepared) -> ProgramClass {
    let program = &prepared.program;
    ProgramClass {
        program_type: program.kind(),
        attach_type: program.expected_attach_type(),
        has_frags: program.flags().0 & LoadFlags::XDP_HAS_FRAGS.0 != 0,
        is_native: prepared.code.is_some(),
        is_device_bound: program.flags().0 & LoadFlags::XDP_DEV_BOUND_ONLY.0 != 0,
        cgroup_storage: [0; 2],
    }
}
