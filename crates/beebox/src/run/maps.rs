//! The maps of a loaded object.

use std::sync::Arc;

use ::kernel::maps::{Host, Map, ValueLayout};
use program::{InitialContents, MapDef, MapEntry};
use spec::Errno;
use spec::maps::MapFlags;

use interp::checked::Permission;

use super::NotLoaded;

/// A key and its value, as bytes.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A map of an object, and its definition.
#[derive(Debug)]
pub struct ObjectMap {
    /// The definition.
    pub def: Arc<MapDef>,
    /// The map.
    pub map: Arc<Map>,
}

impl ObjectMap {
    /// Creates a map and fills it as its object says.
    pub(super) fn create(def: &Arc<MapDef>, host: &Host) -> Result<ObjectMap, NotLoaded> {
        let failed = |errno| NotLoaded::Map {
            name: def.name.clone(),
            kind: def.kind(),
            errno,
        };
        match &def.contents {
            // Programs are put in when all are loaded.
            InitialContents::Entries(entries) => {
                if entries
                    .iter()
                    .any(|(_, entry)| matches!(entry, MapEntry::Map(_)))
                {
                    let name = def.name.clone();
                    return Err(NotLoaded::Entries { name });
                }
            }
            InitialContents::Value { .. } => {}
            InitialContents::Arena { .. }
            | InitialContents::StructOps { .. }
            | InitialContents::JumpTable(_) => return Err(failed(Errno::ENOTSUPP)),
        }
        let layout = ValueLayout::plain(def.params.value_size as usize);
        let map = Map::create(&def.params, layout, host).map_err(failed)?;
        if let Some(image) = def.initial_value() {
            map.update(&[0; 4], &image.to_vec(), 0).map_err(failed)?;
        }
        if def.is_frozen() {
            map.freeze().map_err(failed)?;
        }
        Ok(ObjectMap {
            def: def.clone(),
            map: Arc::new(map),
        })
    }

    /// What programs may do to its values.
    pub(super) fn permission(&self) -> Permission {
        match self.def.params.flags.0 & MapFlags::RDONLY_PROG.0 {
            0 => Permission::ReadWrite,
            _ => Permission::ReadOnly,
        }
    }

    /// All entries, as the system call reads them: of per-CPU maps the values of all CPUs.
    /// The order is that of iteration.
    pub fn entries(&self) -> Result<Vec<Entry>, Errno> {
        let mut entries = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let mut key = vec![0; self.def.params.key_size as usize];
            match self.map.next_key(last.as_deref(), &mut key) {
                Ok(()) => {}
                Err(Errno::ENOENT) => return Ok(entries),
                Err(errno) => return Err(errno),
            }
            let mut value = vec![0; self.map.value_len()];
            match self.map.lookup(&key, &mut value, 0) {
                Ok(()) => entries.push((key.clone(), value)),
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
            last = Some(key);
        }
    }
}
