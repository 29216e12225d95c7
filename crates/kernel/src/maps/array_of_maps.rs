//! `array_of_maps`: maps of one definition by index.

use std::sync::Arc;

use spec::Errno;

use super::resources::{NoResources, Resources, StoredMap};
use super::slots::{self, Slots};
use super::template::Template;
use super::{Definition, Map, Operations};

/// Maps by index.
#[derive(Debug)]
pub(super) struct ArrayOfMaps {
    slots: Slots<StoredMap>,
    template: Template,
}

impl ArrayOfMaps {
    pub(super) fn new(map: &Definition, inner: Option<&Map>) -> Result<ArrayOfMaps, Errno> {
        Ok(ArrayOfMaps {
            template: Template::of(inner)?,
            slots: Slots::new(map.params.max_entries)?,
        })
    }
}

impl Operations for ArrayOfMaps {
    fn update(&self, _: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store_object(key, value, flags, &NoResources)
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result<(), Errno> {
        self.slots.delete(key)
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        let index = self.slots.index(key).ok_or(Errno::ENOENT)?;
        let inner = self.slots.get(index).ok_or(Errno::ENOENT)?;
        out.copy_from_slice(&inner.id.to_ne_bytes());
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.store_object(key, value, flags, &NoResources)
    }

    fn store_object(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<(), Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let index = self.slots.index(key).ok_or(Errno::E2BIG)?;
        let inner = self.template.find(slots::number(value)?, resources)?;
        self.slots.set(index, Some(inner));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        self.slots.next_key(key, next)
    }

    fn inner(&self, key: &[u8]) -> Option<Arc<StoredMap>> {
        self.slots.get(self.slots.index(key)?)
    }
}
