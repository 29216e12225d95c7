//! Programs in program arrays: what arrays hold from the start, and which programs they take.

use std::sync::Arc;

use ::kernel::maps::{ProgramClass, Resources, StoredProgram};
use program::{InitialContents, MapEntry, Program};
use spec::Errno;
use spec::maps::MapKind;
use spec::programs::LoadFlags;

use super::program::Prepared;
use super::{NotLoaded, ObjectMap};

/// The programs of an object by descriptor, which is their place here.
struct Programs(Vec<Arc<StoredProgram>>);

impl Resources for Programs {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        self.0.get(descriptor as usize).cloned()
    }
}

/// Puts programs into the program arrays that hold them from the start. A stored program has
/// its place in `programs` as id.
///
/// # Errors
/// [`NotLoaded::ProgramArray`] if an array does not take a program that uses it or that it
/// holds, as in the kernel, or if it holds a program that is not loaded.
pub(super) fn fill(
    maps: &[Option<ObjectMap>],
    programs: &[Prepared],
    is_native: bool,
) -> Result<(), NotLoaded> {
    let stored = programs.iter().zip(0..).map(|(prepared, id)| {
        let class = class(&prepared.program, is_native);
        Arc::new(StoredProgram { id, class })
    });
    let stored = Programs(stored.collect());
    let arrays = maps.iter().enumerate();
    let arrays = arrays.filter_map(|(index, map)| Some((index, map.as_ref()?)));
    for (index, array) in arrays.filter(|(_, map)| map.map.kind() == MapKind::ProgArray) {
        let refused = |program: &str, errno| NotLoaded::ProgramArray {
            map: array.def.name.clone(),
            program: program.to_owned(),
            errno,
        };
        for (prepared, stored) in programs.iter().zip(&stored.0) {
            let uses = prepared.program.used_maps();
            if uses.iter().any(|map| map.0 as usize == index) {
                let admitted = array.map.admit(&stored.class);
                admitted.map_err(|errno| refused(prepared.program.name(), errno))?;
            }
        }
        let InitialContents::Entries(entries) = &array.def.contents else {
            continue;
        };
        for (key, entry) in entries {
            let MapEntry::Program(wanted) = entry else {
                continue;
            };
            let mut names = programs.iter().map(|prepared| prepared.program.name());
            let place = names.position(|name| name == wanted.name);
            let place = place.ok_or_else(|| refused(&wanted.name, Errno::EBADF))?;
            let value = (place as u32).to_ne_bytes();
            let stored = array
                .map
                .update_with(&key.to_ne_bytes(), &value, 0, &stored);
            stored.map_err(|errno| refused(&wanted.name, errno))?;
        }
    }
    Ok(())
}

/// What program arrays compare.
fn class(program: &Program, is_native: bool) -> ProgramClass {
    ProgramClass {
        program_type: program.kind(),
        attach_type: program.expected_attach_type(),
        has_frags: program.flags().0 & LoadFlags::XDP_HAS_FRAGS.0 != 0,
        is_native,
        cgroup_storage: [0; 2],
    }
}
