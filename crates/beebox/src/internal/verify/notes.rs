//! Assumptions about the maps of a program that is verified alone: what a loader would set, and
//! what Linux does beside the verdict.

use std::fmt;

use program::creation::{MapCreator, MapRefusal, RefusedMap};
use program::{MapDef, MapEntry, Program};
use spec::Kernel;

/// Bytes of memory from which on a map is noted: smaller ones are created on every machine that
/// loads programs.
const NOTED_MEMORY: u64 = 1 << 30;

/// Assumption about a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapNote {
    /// It states no max_entries, as where loaders set them.
    Entries {
        /// Name of the map.
        map: String,
        /// The entries that it is verified with.
        set: u32,
    },
    /// It states no size of values, as where loaders set it.
    ValueSize {
        /// Name of the map.
        map: String,
        /// The bytes that it is verified with.
        set: u32,
    },
    /// It is created without its types.
    WithoutBtf {
        /// Name of the map.
        map: String,
        /// The refusal of the types.
        refusal: MapRefusal,
    },
    /// It takes much memory, which a machine may not have.
    Memory {
        /// Name of the map.
        map: String,
        /// Bytes.
        bytes: u64,
    },
    /// The program does not use it, and the kernel does not create it.
    Unused(RefusedMap),
}

impl MapNote {
    /// Name of the map.
    pub fn map(&self) -> &str {
        match self {
            MapNote::Entries { map, .. }
            | MapNote::ValueSize { map, .. }
            | MapNote::WithoutBtf { map, .. }
            | MapNote::Memory { map, .. } => map,
            MapNote::Unused(map) => &map.name,
        }
    }
}

impl fmt::Display for MapNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapNote::Entries { map, set } => {
                let entries = if *set == 1 { "entry" } else { "entries" };
                write!(
                    f,
                    "map '{map}' leaves max_entries to its loader, here {set} {entries}"
                )
            }
            MapNote::ValueSize { map, set } => {
                write!(
                    f,
                    "map '{map}' leaves value_size to its loader, here {set} bytes"
                )
            }
            MapNote::WithoutBtf { map, refusal } => {
                write!(f, "map '{map}' is created without BTF: {refusal}")
            }
            MapNote::Memory { map, bytes } => write!(
                f,
                "map '{map}' takes {:.1} GiB when it is created, a machine with less memory does \
                 not create it (ENOMEM)",
                *bytes as f64 / f64::from(1 << 30)
            ),
            MapNote::Unused(map) => {
                write!(
                    f,
                    "{map}; a program that does not use it is verified, and libbpf loads none beside it"
                )
            }
        }
    }
}

/// The notes about the maps of a program, with the sizes that were set.
pub(super) fn of_program(program: &Program, sized: &[MapNote], kernel: &Kernel) -> Vec<MapNote> {
    let Some(registry) = kernel.registry() else {
        return Vec::new();
    };
    let creator = MapCreator::new(kernel, registry);
    let types = program.btf().map(|types| &**types);
    let mut is_used = vec![false; program.maps().len()];
    for id in program.used_maps() {
        is_used[id.0 as usize] = true;
        let def = program.map(id).map(|def| &**def);
        for held in def.into_iter().flat_map(held) {
            is_used[held] = true;
        }
    }
    let mut notes = Vec::new();
    for (def, is_used) in program.maps().iter().zip(is_used) {
        let created = creator.create(def, types);
        if !is_used {
            notes.extend(created.err().map(|refusal| {
                MapNote::Unused(RefusedMap {
                    name: def.name.clone(),
                    kind: def.kind(),
                    refusal,
                })
            }));
            continue;
        }
        let of_map = sized.iter().filter(|note| note.map() == def.name);
        notes.extend(of_map.cloned());
        let Ok(created) = created else { continue };
        let map = def.name.clone();
        if let Some(refusal) = created.types_refusal {
            let map = map.clone();
            notes.push(MapNote::WithoutBtf { map, refusal });
        }
        if created.memory >= NOTED_MEMORY {
            let bytes = created.memory;
            notes.push(MapNote::Memory { map, bytes });
        }
    }
    notes
}

/// The maps that a map holds from the start.
fn held(def: &MapDef) -> impl Iterator<Item = usize> + '_ {
    let entries = def.contents.entries().iter();
    entries.filter_map(|(_, entry)| match entry {
        MapEntry::Map(held) => Some(held.0 as usize),
        MapEntry::Program(_) => None,
    })
}
