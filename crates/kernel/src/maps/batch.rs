//! Operations of bpf(2) on several elements (`generic_map_*_batch` and
//! `__htab_map_lookup_and_delete_batch` of Linux).

use spec::maps::Batches;
use spec::{Errno, Result};

use super::{Map, Resources};

/// Result of an operation on several elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Elements that were handled.
    pub count: usize,
    /// The error that ended it, if any; ENOENT behind the last element.
    pub end: Option<Errno>,
}

/// Result of reading several elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupBatch {
    /// Elements that were read.
    pub count: usize,
    /// Start of the next batch, if any element was looked at: a key, of hashes the
    /// number of a bucket in 4 bytes.
    pub next: Option<Vec<u8>>,
    /// The error that ended it, if any: ENOENT behind the last element, ENOSPC if the first
    /// bucket of a hash has more elements than fit.
    pub end: Option<Errno>,
}

impl Map {
    /// `BPF_MAP_UPDATE_BATCH`: writes elements until one fails.
    pub fn update_batch(
        &self,
        keys: &[u8],
        values: &[u8],
        flags: u64,
        resources: &dyn Resources,
    ) -> Result<Batch> {
        self.check_write()?;
        Errno::ENOTSUPP.when(self.kind().batches() == Batches::None)?;
        self.check_flags(flags, super::flags::LOCK)?;
        let elements = self.elements(keys, values.len())?;
        let store = |index: usize| {
            let (key, value) = (self.nth_key(keys, index), self.nth_value(values, index));
            self.operations.store(key, value, flags, resources)
        };
        Ok(until_error(elements, store))
    }

    /// `BPF_MAP_DELETE_BATCH`: deletes elements until one fails.
    pub fn delete_batch(&self, keys: &[u8]) -> Result<Batch> {
        self.check_write()?;
        match self.kind().batches() {
            Batches::None | Batches::Array => return Err(Errno::ENOTSUPP),
            Batches::Trie | Batches::Hash => {}
        }
        let elements = keys.len() / self.params().key_size as usize;
        let delete = |index: usize| self.operations.delete(0, self.nth_key(keys, index));
        Ok(until_error(elements, delete))
    }

    /// `BPF_MAP_LOOKUP_BATCH`, and with `delete` `BPF_MAP_LOOKUP_AND_DELETE_BATCH`: reads
    /// as many elements as fit, from the place that the batch before returned.
    pub fn lookup_batch(
        &self,
        from: Option<&[u8]>,
        keys: &mut [u8],
        values: &mut [u8],
        flags: u64,
        delete: bool,
    ) -> Result<LookupBatch> {
        self.check_read()?;
        if delete {
            self.check_write()?;
        }
        let batches = self.kind().batches();
        if batches == Batches::None || delete && batches != Batches::Hash {
            return Err(Errno::ENOTSUPP);
        }
        self.check_flags(flags, super::flags::LOCK)?;
        let most = self.elements(keys, values.len())?;
        match batches {
            Batches::Hash => self.read_buckets(from, keys, values, most, delete),
            Batches::Array | Batches::Trie => self.read_elements(from, keys, values, most),
            Batches::None => Err(Errno::ENOTSUPP),
        }
    }

    /// Reads elements in the order of iteration.
    fn read_elements(
        &self,
        from: Option<&[u8]>,
        keys: &mut [u8],
        values: &mut [u8],
        most: usize,
    ) -> Result<LookupBatch> {
        let (key_len, value_len) = (self.params().key_size as usize, self.value_len());
        let mut last = from.map(<[u8]>::to_vec);
        let mut count = 0;
        while count < most {
            let mut key = vec![0; key_len];
            if let Err(end) = self.operations.next_key(last.as_deref(), &mut key) {
                let end = Some(end);
                let next = last.filter(|_| count > 0);
                return Ok(LookupBatch { count, next, end });
            }
            let value = &mut values[count * value_len..][..value_len];
            match self.operations.copy(&key, value) {
                Ok(()) => {
                    keys[count * key_len..][..key_len].copy_from_slice(&key);
                    count += 1;
                }
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
            last = Some(key);
        }
        let next = last.filter(|_| count > 0);
        let end = None;
        Ok(LookupBatch { count, next, end })
    }

    /// Reads whole buckets of a hash.
    fn read_buckets(
        &self,
        from: Option<&[u8]>,
        keys: &mut [u8],
        values: &mut [u8],
        most: usize,
        delete: bool,
    ) -> Result<LookupBatch> {
        let (key_len, value_len) = (self.params().key_size as usize, self.value_len());
        let start = from.and_then(|from| from.first_chunk::<4>());
        let start = start.map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let buckets = self.operations.buckets();
        let mut count = 0;
        let done = |count, bucket: u32, end| LookupBatch {
            count,
            next: (start < buckets).then(|| bucket.to_le_bytes().to_vec()),
            end,
        };
        for bucket in start..buckets {
            let Some(entries) = self.operations.read_bucket(bucket, most - count, delete) else {
                let end = (count == 0).then_some(Errno::ENOSPC);
                return Ok(done(count, bucket, end));
            };
            for (key, value) in entries {
                keys[count * key_len..][..key_len].copy_from_slice(&key);
                values[count * value_len..][..value_len].copy_from_slice(&value);
                count += 1;
            }
        }
        Ok(done(count, buckets, Some(Errno::ENOENT)))
    }

    fn elements(&self, keys: &[u8], values: usize) -> Result<usize> {
        let elements = keys.len() / self.params().key_size as usize;
        let fits = elements * self.params().key_size as usize == keys.len()
            && elements * self.value_len() == values;
        fits.then_some(elements).ok_or(Errno::EINVAL)
    }

    fn nth_key<'a>(&self, keys: &'a [u8], index: usize) -> &'a [u8] {
        let size = self.params().key_size as usize;
        &keys[index * size..(index + 1) * size]
    }

    fn nth_value<'a>(&self, values: &'a [u8], index: usize) -> &'a [u8] {
        let size = self.value_len();
        &values[index * size..(index + 1) * size]
    }
}

fn until_error(elements: usize, mut handle: impl FnMut(usize) -> Result) -> Batch {
    for count in 0..elements {
        if let Err(errno) = handle(count) {
            return Batch {
                count,
                end: Some(errno),
            };
        }
    }
    Batch {
        count: elements,
        end: None,
    }
}
