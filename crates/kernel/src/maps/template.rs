//! Common definition of the inner maps of a map of maps.

use std::sync::Arc;

use program::MapParams;
use program::creation::check_template;
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Result};

use super::resources::{Resources, StoredMap};
use super::{Map, ValueLayout};

/// Parameters that inner maps have to have, those of a map that was given at creation.
#[derive(Debug)]
pub(super) struct Template {
    params: MapParams,
    value: ValueLayout,
}

impl Template {
    /// The template that a map is. EBADF without one, EINVAL for maps of maps, ENOTSUPP
    /// for kinds that no map may hold.
    pub(super) fn of(inner: Option<&Map>) -> Result<Template> {
        let inner = inner.ok_or(Errno::EBADF)?;
        check_template(Some(inner.kind())).map_err(|refusal| refusal.errno)?;
        Ok(Template {
            params: *inner.params(),
            value: inner.definition.value.clone(),
        })
    }

    /// The map of a descriptor. EBADF if nothing is open there, EINVAL if it is no map or
    /// one that does not fit.
    pub(super) fn find(
        &self,
        descriptor: u32,
        resources: &dyn Resources,
    ) -> Result<Arc<StoredMap>> {
        match resources.map(descriptor) {
            Some(stored) if self.fits(&stored.map) => Ok(stored),
            None if !resources.is_open(descriptor) => Err(Errno::EBADF),
            Some(_) | None => Err(Errno::EINVAL),
        }
    }

    fn fits(&self, map: &Map) -> bool {
        let (wanted, params) = (&self.params, map.params());
        // Programs inline lookups, with the template's bound.
        let is_inlined = map.kind().is_dense() || map.kind().holds_xdp_sockets();
        let any_size =
            !is_inlined || map.kind() == MapKind::Array && params.flags.has(MapFlags::INNER_MAP);
        wanted.map_type == params.map_type
            && wanted.key_size == params.key_size
            && wanted.value_size == params.value_size
            && wanted.flags == params.flags
            && self.value == map.definition.value
            && (any_size || wanted.max_entries == params.max_entries)
    }
}
