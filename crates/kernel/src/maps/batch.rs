//! Operations of bpf(2) on several elements (`generic_map_*_batch` and
//! `__htab_map_lookup_and_delete_batch` of Linux).

use spec::Errno;
use spec::maps::MapKind;

use super::Map;

/// Result of an operation on several elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Elements that were handled.
    pub count: usize,
    /// The error that ended it, if any; ENOENT behind the last element.
    pub end: Option<Errno>,
}

/// Which batches a kind has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batches {
    None,
    /// Lookup, update.
    Array,
    /// Lookup, update, delete.
    Trie,
    /// All.
    Hash,
}

impl Batches {
    fn of(kind: MapKind) -> Batches {
        use MapKind::{Array, Hash, LpmTrie, LruHash, LruPercpuHash, PercpuArray, PercpuHash};
        match kind {
            Array | PercpuArray => Batches::Array,
            LpmTrie => Batches::Trie,
            Hash | PercpuHash | LruHash | LruPercpuHash => Batches::Hash,
            _ => Batches::None,
        }
    }
}

impl Map {
    /// `BPF_MAP_UPDATE_BATCH`: writes elements until one fails.
    pub fn update_batch(&self, keys: &[u8], values: &[u8], flags: u64) -> Result<Batch, Errno> {
        self.check_write()?;
        if Batches::of(self.kind()) == Batches::None {
            return Err(Errno::ENOTSUPP);
        }
        self.check_flags(flags, super::flags::LOCK)?;
        let elements = self.elements(keys, values.len())?;
        let store = |index: usize| {
            let (key, value) = (self.nth_key(keys, index), self.nth_value(values, index));
            self.operations.store(key, value, flags)
        };
        Ok(until_error(elements, store))
    }

    /// `BPF_MAP_DELETE_BATCH`: deletes elements until one fails.
    pub fn delete_batch(&self, keys: &[u8]) -> Result<Batch, Errno> {
        self.check_write()?;
        match Batches::of(self.kind()) {
            Batches::None | Batches::Array => return Err(Errno::ENOTSUPP),
            Batches::Trie | Batches::Hash => {}
        }
        let elements = keys.len() / self.params().key_size as usize;
        let delete = |index: usize| self.operations.delete(0, self.nth_key(keys, index));
        Ok(until_error(elements, delete))
    }

    fn elements(&self, keys: &[u8], values: usize) -> Result<usize, Errno> {
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

fn until_error(elements: usize, mut handle: impl FnMut(usize) -> Result<(), Errno>) -> Batch {
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
