//! Elements of maps as bytes: of per-CPU maps the values of all CPUs, each rounded up to 8 bytes.

use ::kernel::maps::{Batch, NoResources};
use spec::Errno;

use super::{Map, UpdateMode};
use crate::failure::Error;

impl Map {
    /// The bytes of the value of a key.
    ///
    /// # Errors
    /// EINVAL for a key of another length.
    pub fn lookup_bytes(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let map = &self.object_map().map;
        let mut value = vec![0; map.value_len()];
        let found = self.found(map.lookup(key, &mut value, 0))?;
        Ok(found.map(|()| value))
    }

    /// Adds or changes an element, as the mode allows.
    ///
    /// # Errors
    /// EINVAL for a key or value of another length, otherwise as [`Map::update_with`].
    pub fn update_bytes(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Error> {
        let updated = self.object_map().map.update(key, value, mode.flags());
        updated.map_err(|errno| self.failed(errno))
    }

    /// Removes an element; false if there was none.
    ///
    /// # Errors
    /// EINVAL for a key of another length, or if the map keeps its elements.
    pub fn delete_bytes(&self, key: &[u8]) -> Result<bool, Error> {
        let deleted = self.found(self.object_map().map.delete(key))?;
        Ok(deleted.is_some())
    }

    /// Adds or changes several elements until one fails (`BPF_MAP_UPDATE_BATCH`).
    ///
    /// # Errors
    /// Linux's, for what is refused as a whole.
    #[doc(hidden)]
    pub fn update_batch(&self, keys: &[u8], values: &[u8], flags: u64) -> Result<Batch, Errno> {
        let map = &self.object_map().map;
        map.update_batch(keys, values, flags, &NoResources)
    }

    /// All keys with their values, in the order of iteration.
    ///
    /// # Errors
    /// EOPNOTSUPP for kinds without keys.
    #[expect(clippy::type_complexity, reason = "a pair of bytes")]
    pub fn entries_bytes(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let entries = self.object_map().entries();
        entries.map_err(|errno| self.failed(errno))
    }

    /// The bytes of the value of a key, which is removed; of queues and stacks, whose key is empty,
    /// the next one.
    ///
    /// # Errors
    /// EINVAL for a key of another length, EOPNOTSUPP for kinds without this operation.
    #[doc(hidden)]
    pub fn take_bytes(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let map = &self.object_map().map;
        let mut value = vec![0; map.value_len()];
        let taken = self.found(map.lookup_and_delete(key, &mut value, 0))?;
        Ok(taken.map(|()| value))
    }
}
