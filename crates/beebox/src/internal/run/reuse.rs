//! Maps of other loaded objects in place of an object's own: they are the same map for both, as a
//! pinned map is for libbpf, and keep their entries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ::kernel::maps::{Map, PerfBuffer, ValueLayout};
use program::MapDef;
use spec::maps::MapKind;

use super::{LoadError, ObjectMap};
use crate::internal::maps_json::MapFormats;

/// Maps to use in place of an object's own, by their names there.
#[derive(Debug, Default)]
pub struct ReusedMaps(BTreeMap<String, Reused>);

/// A map of another object.
#[derive(Debug)]
struct Reused {
    def: Arc<MapDef>,
    map: Arc<Map>,
    perf_buffers: Vec<Arc<PerfBuffer>>,
}

/// Reason why a map cannot stand for one of another object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReuseFault {
    /// A parameter differs.
    Parameter {
        /// Its name in `union bpf_attr`.
        name: &'static str,
        /// The map's own.
        own: u64,
        /// The object's.
        needed: u64,
    },
    /// It holds values for another number of CPUs.
    Cpus,
    /// Special fields of its values (locks and the like) are at other offsets.
    SpecialFields,
    /// Maps of this kind hold what belongs to their own object.
    Kind(MapKind),
    /// Its values have timers or own objects, which belong to their own object.
    Owned,
}

impl std::error::Error for ReuseFault {}

impl fmt::Display for ReuseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReuseFault::Parameter { name, own, needed } => {
                write!(f, "its {name} is {own}, that of the object {needed}")
            }
            ReuseFault::Cpus => f.write_str("it has values for another number of CPUs"),
            ReuseFault::SpecialFields => {
                f.write_str("special fields of its values are at other offsets")
            }
            ReuseFault::Kind(kind) => {
                write!(f, "maps of kind {} stay with their object", kind.name())
            }
            ReuseFault::Owned => {
                f.write_str("timers and objects in its values stay with their object")
            }
        }
    }
}

impl ReusedMaps {
    /// Has a map stand for the object's map of this name.
    pub fn insert(&mut self, name: String, map: &ObjectMap) {
        let reused = Reused {
            def: map.def.clone(),
            map: map.map.clone(),
            perf_buffers: map.perf_buffers.clone(),
        };
        self.0.insert(name, reused);
    }

    /// The map that stands for one of this definition, whose values have this layout.
    ///
    /// # Errors
    /// [`LoadError::Reuse`] if it differs.
    pub(super) fn find(
        &self,
        def: &Arc<MapDef>,
        layout: &ValueLayout,
        cpus: u32,
    ) -> Result<Option<ObjectMap>, LoadError> {
        let Some(reused) = self.0.get(&def.name) else {
            return Ok(None);
        };
        let checked = reused.check(def, layout, cpus);
        checked.map_err(|fault| LoadError::Reuse {
            map: def.name.clone(),
            fault,
        })?;
        Ok(Some(ObjectMap {
            def: def.clone(),
            map: reused.map.clone(),
            perf_buffers: reused.perf_buffers.clone(),
            inner_has_timers: false,
            formats: MapFormats::default(),
        }))
    }
}

impl Reused {
    /// Compares it with a definition, as libbpf compares pinned maps.
    fn check(&self, def: &MapDef, layout: &ValueLayout, cpus: u32) -> Result<(), ReuseFault> {
        let (own, needed) = (&self.def.params, &def.params);
        let parameters = [
            ("map_type", own.map_type, needed.map_type),
            ("key_size", own.key_size, needed.key_size),
            ("value_size", own.value_size, needed.value_size),
            ("max_entries", own.max_entries, needed.max_entries),
            ("map_flags", own.flags.0, needed.flags.0),
        ];
        let parameters = parameters.map(|(name, own, needed)| (name, own.into(), needed.into()));
        let extra = ("map_extra", own.extra, needed.extra);
        let mut parameters = parameters.into_iter().chain([extra]);
        if let Some((name, own, needed)) = parameters.find(|(_, own, needed)| own != needed) {
            return Err(ReuseFault::Parameter { name, own, needed });
        }
        let kind = self.map.kind();
        if kind.holds_objects() {
            return Err(ReuseFault::Kind(kind));
        }
        if self.map.handle().timers.is_some()
            || !layout.owning.is_empty()
            || layout.workqueue.is_some()
        {
            return Err(ReuseFault::Owned);
        }
        if self.map.value_layout() != layout {
            return Err(ReuseFault::SpecialFields);
        }
        let rounded = layout.size.next_multiple_of(8);
        match kind.is_percpu() && self.map.value_len() != rounded * cpus as usize {
            true => Err(ReuseFault::Cpus),
            false => Ok(()),
        }
    }
}
