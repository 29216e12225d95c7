//! `hash_of_maps`: maps of one definition by key.
//!
//! Each bucket is a list that an update replaces as a whole, so readers never wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::{Errno, Result};
use vm::MapOperations;

use super::array_of_maps::{any_covers, retire};
use super::flags::{EXIST, NOEXIST};
use super::resources::{Resources, StoredMap};
use super::slots::{self, Slots};
use super::template::Template;
use super::{Definition, Entries, Host, Map, RunGuard, SyscallOperations, key};

/// Maps by key.
#[derive(Debug)]
pub(super) struct HashOfMaps {
    buckets: Slots<Vec<Entry>>,
    /// Index of the last bucket, a power of two less one.
    mask: u32,
    seed: u64,
    most: u32,
    /// Number of entries; updates hold its lock.
    count: Mutex<u32>,
    template: Template,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Box<[u8]>,
    map: Arc<StoredMap>,
}

impl HashOfMaps {
    pub(super) fn new(map: &Definition, host: &Host, inner: Option<&Map>) -> Result<HashOfMaps> {
        let template = Template::of(inner)?;
        let most = map.params.max_entries;
        let buckets = most.checked_next_power_of_two().ok_or(Errno::E2BIG)?;
        Ok(HashOfMaps {
            buckets: Slots::new(buckets)?,
            mask: buckets - 1,
            seed: map.seed(host),
            most,
            count: Mutex::new(0),
            template,
        })
    }

    fn lock(&self) -> MutexGuard<'_, u32> {
        // Buckets change in one step, so a panic elsewhere leaves the map whole.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bucket(&self, key: &[u8]) -> u32 {
        key::hash(key, self.seed) & self.mask
    }

    fn entries(&self, bucket: u32) -> Vec<Entry> {
        let entries = self.buckets.get(bucket);
        entries.map_or_else(Vec::new, |entries| entries.to_vec())
    }

    fn find(&self, key: &[u8]) -> Option<Arc<StoredMap>> {
        let entries = self.buckets.get(self.bucket(key))?;
        let entry = entries.iter().find(|entry| *entry.key == *key)?;
        Some(Arc::clone(&entry.map))
    }
}

impl MapOperations for HashOfMaps {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let mut count = self.lock();
        let bucket = self.bucket(key);
        let mut entries = self.entries(bucket);
        let at = entries.iter().position(|entry| *entry.key == *key);
        entries.swap_remove(at.ok_or(Errno::ENOENT)?);
        let entries = (!entries.is_empty()).then(|| Arc::new(entries));
        retire(self.buckets.set(bucket, entries));
        *count -= 1;
        Ok(())
    }

    fn inner(&self, _: &RunGuard, key: &[u8]) -> Option<u64> {
        Some(self.find(key)?.map.handle().address())
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        any_covers(&self.inner_maps(), address, len)
    }
}

impl SyscallOperations for HashOfMaps {
    fn inner_maps(&self) -> Vec<Arc<StoredMap>> {
        let mut maps = Vec::new();
        for entries in self.buckets.all() {
            maps.extend(entries.iter().map(|entry| Arc::clone(&entry.map)));
        }
        maps
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let inner = self.find(key).ok_or(Errno::ENOENT)?;
        out.copy_from_slice(&inner.id.to_le_bytes());
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let map = self.template.find(slots::number(value)?, resources)?;
        Errno::EINVAL.when(flags > EXIST)?;
        let mut count = self.lock();
        let bucket = self.bucket(key);
        let mut entries = self.entries(bucket);
        match entries.iter_mut().find(|entry| *entry.key == *key) {
            Some(_) if flags == NOEXIST => return Err(Errno::EEXIST),
            None if flags == EXIST => return Err(Errno::ENOENT),
            None if *count == self.most => return Err(Errno::E2BIG),
            Some(entry) => entry.map = map,
            None => {
                *count += 1;
                let key = key.into();
                entries.push(Entry { key, map });
            }
        }
        retire(self.buckets.set(bucket, Some(Arc::new(entries))));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let place = key.and_then(|key| {
            let bucket = self.bucket(key);
            let entries = self.buckets.get(bucket)?;
            let at = entries.iter().position(|entry| *entry.key == *key)?;
            Some((bucket, at + 1))
        });
        let (first, skip) = place.unwrap_or((0, 0));
        for bucket in first..=self.mask {
            let skip = if bucket == first { skip } else { 0 };
            let entries = self.buckets.get(bucket);
            if let Some(entry) = entries.as_ref().and_then(|entries| entries.get(skip)) {
                next.copy_from_slice(&entry.key);
                return Ok(());
            }
        }
        Err(Errno::ENOENT)
    }

    fn buckets(&self) -> u32 {
        self.mask + 1
    }

    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        let mut count = self.lock();
        let found = self.entries(bucket);
        if found.len() > most {
            return None;
        }
        if delete {
            *count -= found.len() as u32;
            retire(self.buckets.set(bucket, None));
        }
        let entry = |entry: Entry| (entry.key, entry.map.id.to_le_bytes().into());
        Some(found.into_iter().map(entry).collect())
    }
}
