//! Maps in maps: what maps of maps hold from the start, and maps that the host puts in.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::kernel::maps::{Map, Resources, StoredMap};
use program::MapEntry;
use spec::Errno;

use super::{DataError, LoadError, LoadedObject, ObjectMap};
use crate::internal::maps_json::MapFormats;

/// Descriptors of maps of an object are their places; that of another map follows those.
struct Maps(Vec<Option<Arc<StoredMap>>>);

impl Resources for Maps {
    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        self.0.get(descriptor as usize)?.clone()
    }
}

fn stored(id: u32, map: &Arc<Map>) -> Arc<StoredMap> {
    Arc::new(StoredMap::new(id, Arc::clone(map)))
}

/// Puts maps of the object into those that hold them from the start.
pub(super) fn fill(maps: &[Option<ObjectMap>]) -> Result<(), LoadError> {
    let all = (1..).zip(maps);
    let all = all.map(|(id, map)| Some(stored(id, &map.as_ref()?.map)));
    let all = Maps(all.collect());
    for outer in maps.iter().flatten() {
        for (key, entry) in outer.def.contents.entries() {
            let MapEntry::Map(inner) = entry else {
                continue;
            };
            let put = outer
                .map
                .update_with(&key.to_le_bytes(), &inner.0.to_le_bytes(), 0, &all);
            put.map_err(|errno| LoadError::InnerMap {
                map: outer.def.name.clone(),
                inner: match maps.get(inner.0 as usize) {
                    Some(Some(inner)) => inner.def.name.clone(),
                    _ => inner.0.to_string(),
                },
                errno,
            })?;
        }
    }
    Ok(())
}

/// A map to put into a map of maps.
#[derive(Clone, Debug)]
pub struct InnerMap(Arc<Map>);

impl InnerMap {
    /// The map.
    pub fn map(&self) -> &Map {
        &self.0
    }
}

impl LoadedObject {
    /// Creates a map that fits a map of maps, with zeros in it. No program sees it before
    /// [`LoadedObject::set_inner_map`].
    pub fn create_inner_map(&self, outer: &str) -> Result<InnerMap, DataError> {
        let created = self.outer(outer)?.create_inner(&self.host);
        let created = created.map_err(|errno| failed(outer, errno))?;
        Ok(InnerMap(Arc::new(created)))
    }

    /// As [`LoadedObject::create_inner_map`], with the definition that the map of maps states.
    pub(crate) fn create_inner_of(&self, outer: &ObjectMap) -> Result<ObjectMap, Errno> {
        let def = outer.def.inner.clone().ok_or(Errno::EINVAL)?;
        Ok(ObjectMap {
            map: Arc::new(outer.create_inner(&self.host)?),
            def,
            perf_buffers: Vec::new(),
            inner_has_timers: false,
            formats: MapFormats::default(),
        })
    }

    /// Puts a map into a map of maps, in place of the one that is there: each lookup of a
    /// program finds one of them. The map that was there stays as long as runs use it.
    pub fn set_inner_map(
        &self,
        outer: &str,
        key: &[u8],
        inner: &InnerMap,
    ) -> Result<(), DataError> {
        let put = self.put_inner(self.outer(outer)?, key, &inner.0);
        put.map_err(|errno| failed(outer, errno))
    }

    /// Puts a map into a map of maps.
    pub(crate) fn put_inner(
        &self,
        outer: &ObjectMap,
        key: &[u8],
        inner: &Arc<Map>,
    ) -> Result<(), Errno> {
        // The update of another map would write a value.
        outer.def.inner.as_ref().ok_or(Errno::EINVAL)?;
        let id = self.inner_maps.fetch_add(1, Ordering::Relaxed);
        let id = self.shared.maps.len() as u32 + 1 + id;
        let maps = Maps(vec![Some(stored(id, inner))]);
        outer.map.update_with(key, &[0; 4], 0, &maps)
    }

    fn outer(&self, name: &str) -> Result<&ObjectMap, DataError> {
        let found = self.maps().find(|map| map.def.name == name);
        found.ok_or_else(|| DataError::NoMap {
            name: name.to_owned(),
            known: self.maps().map(|map| map.def.name.clone()).collect(),
        })
    }
}

fn failed(name: &str, errno: Errno) -> DataError {
    DataError::Map {
        name: name.to_owned(),
        errno,
    }
}
