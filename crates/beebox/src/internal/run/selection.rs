//! Programs and maps that runs need beside what they name.

use crate::internal::maps_json::MapsJson;
use crate::internal::object::{Contents, InitialEntry, Object};

use super::LoadedObject;

/// Programs that program arrays hold from the start, of the types of those that run.
pub fn programs_in_arrays(object: &Object<'_>, running: &[String]) -> Vec<String> {
    let kinds: Vec<_> = object
        .programs()
        .filter(|(_, program)| running.iter().any(|name| program.name == **name))
        .map(|(_, program)| program.kind)
        .collect();
    let mut held = Vec::new();
    for (_, map) in object.maps().iter() {
        if let Contents::Entries(entries) = map.contents() {
            held.extend(entries.values());
        }
    }
    let is_held = |id| held.contains(&&InitialEntry::Program(id));
    object
        .programs()
        .filter(|(id, program)| is_held(*id) && kinds.contains(&program.kind))
        .map(|(_, program)| program.name.to_string())
        .collect()
}

/// Has these programs loaded and no others but those that they may go on with, of which some are in
/// contents of maps; their names.
pub fn load_only(
    object: &mut Object<'_>,
    mut wanted: Vec<String>,
    maps: Option<&MapsJson>,
) -> Vec<String> {
    wanted.extend(programs_in_arrays(object, &wanted));
    wanted.extend(maps.into_iter().flat_map(|maps| maps.programs(object)));
    object.set_autoload(|program| wanted.iter().any(|name| program.name == **name));
    wanted
}

/// Has no struct_ops created, of which no run makes use: the kernel need not have its type.
pub fn leave_out_struct_ops(object: &mut Object<'_>) {
    let all = object.maps().iter();
    let of_ops = all.filter(|(_, map)| matches!(map.contents(), Contents::StructOps(_)));
    let of_ops: Vec<_> = of_ops.map(|(id, _)| id).collect();
    for id in of_ops {
        if let Some(map) = object.maps_mut().get_mut(id) {
            map.autocreate = false;
        }
    }
}

/// The first of these programs that runs in the checked engine since native code does not support
/// it, and what is not supported.
pub fn fallback_reason(loaded: &mut LoadedObject, programs: &[String]) -> Option<(String, String)> {
    programs.iter().find_map(|name| {
        let program = loaded.program(name)?;
        Some((name.clone(), program.fallback_reason()?.to_string()))
    })
}
