//! Hash tables: `hash`, `percpu_hash`, `lru_hash` and `lru_percpu_hash`.
//!
//! Elements of a [`Pool`] in [`Buckets`] by hash. Lookups take no lock, updates and deletions
//! lock the bucket.
//!
//! An update of an existing key of a map with one value an element puts a new element in the
//! place of the old one: pointers that programs got before still point to the old value.
//! For that, preallocated maps have spare elements.
//!
//! LRU maps take an element for each update, which evicts others ([`Lru`]), also for one that
//! then fails. Lookups by programs and updates of existing keys mark elements.
//!
//! Layout of an element, in cells: hash and link to the next element of a chain; key; value.
//! Values for each CPU are the pool's copies.

mod buckets;
mod lru;

use std::sync::Arc;

use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Result};
use vm::sync::atomic::Ordering::Relaxed;
use vm::sync::atomic::{AtomicU32, AtomicU64};
use vm::{
    CellAddress, CellSlice, Cursor, DirectAccess, HashLookup, HashParts, LINE_CELLS, MapFunction,
    MapOperations, OutOfMemory, WordLookup, hash_start, hash_words,
};

use super::flags::{EXIST, LOCK, NOEXIST};
use super::pool::{Layout, Line, Pool};
use super::resources::Resources;
use super::special::SpecialFields;
use super::{Definition, Entries, Host, RunGuard, SyscallOperations, ValueLayout, key};
use buckets::{Attempt, Buckets, Found, KEY, Locked, hash_of};
use lru::Lru;

/// A hash table; see the module's text.
#[derive(Debug)]
pub(super) struct Hash {
    buckets: Buckets,
    pool: Pool,
    /// Start of the hash of keys.
    start: u64,
    key_size: usize,
    /// Cells of an element.
    stride: usize,
    /// Cell at which the values start.
    value_start: usize,
    value: ValueLayout,
    special: SpecialFields,
    /// Values of an element: the possible CPUs, or 1.
    copies: u32,
    is_percpu: bool,
    limit: Limit,
    /// Elements are cache lines with one value.
    has_lines: bool,
}

/// Limiter of the number of entries.
#[derive(Debug)]
enum Limit {
    /// The pool has no more elements.
    Pool,
    /// A count of entries.
    Count { entries: AtomicU32, most: u32 },
    /// Eviction.
    Evict(Lru),
}

impl Hash {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<Hash> {
        let entries = map.params.max_entries;
        let is_percpu = map.is_percpu();
        let is_preallocated = !map.params.flags.has(MapFlags::NO_PREALLOC);
        let is_common = !map.params.flags.has(MapFlags::NO_COMMON_LRU);
        let copies = if is_percpu { host.cpus } else { 1 };
        let key_size = map.params.key_size as usize;
        let value_start = KEY + key::cells_of(key_size);
        let cells = map.value.cells();
        let layout = match is_percpu {
            true => Layout {
                stride: value_start,
                copies,
                copy_stride: cells,
            },
            false => Layout::plain(in_cache_line(value_start + cells)),
        };
        let rounded = entries.checked_next_power_of_two().ok_or(Errno::E2BIG)?;
        // Per-CPU values are updated in place.
        let spares = match is_preallocated && !is_percpu && !map.kind.is_lru() {
            true => Buckets::spares(rounded),
            false => 0,
        };
        let no_memory = |_: OutOfMemory| Errno::ENOMEM;
        let buckets = Buckets::new(rounded).map_err(no_memory)?;
        let pool = match is_preallocated {
            true => Pool::preallocated(layout, entries + spares, host.cpus),
            false => Pool::growing(layout, entries, MOST_ELEMENTS, host.cpus),
        };
        let table = size_of_val(buckets.groups().as_slice()) as u64;
        let pool = pool.map_err(no_memory)?.charging(&host.memory, table);
        for _ in 0..spares {
            let spare = pool.take(0).map_err(no_memory)?;
            spare.inspect(|index| buckets.add_spare(*index));
        }
        Ok(Hash {
            buckets,
            pool,
            start: hash_start(map.seed(host)),
            key_size,
            stride: layout.stride,
            value_start,
            value: map.value.clone(),
            special: SpecialFields::new(map, host),
            copies,
            is_percpu,
            has_lines: layout.stride == LINE_CELLS && !is_percpu,
            limit: match (map.kind.is_lru(), is_preallocated) {
                (true, _) => {
                    Limit::Evict(Lru::new(entries, host.cpus, is_common).map_err(no_memory)?)
                }
                (false, true) => Limit::Pool,
                (false, false) => Limit::Count {
                    entries: AtomicU32::new(0),
                    most: entries,
                },
            },
        })
    }

    /// The entries of a map with these parameters, as the kernel counts them.
    pub(super) fn entries(params: &MapParams, host: &Host) -> u32 {
        let is_lru = params.kind().is_some_and(MapKind::is_lru);
        match is_lru && params.flags.has(MapFlags::NO_COMMON_LRU) {
            true => Lru::entries(params.max_entries, host.cpus),
            false => params.max_entries,
        }
    }

    /// The element of a key and its cells, which `is_key` recognises, found without a lock.
    #[inline(always)]
    fn find_by(
        &self,
        hash: u32,
        is_key: impl Fn(&[AtomicU64]) -> bool,
    ) -> Option<(u32, &[AtomicU64])> {
        self.buckets.find(&self.pool, hash, is_key)
    }

    /// The hash of a key.
    #[inline(always)]
    fn hash(&self, key: &[u8]) -> u32 {
        hash_words(key::words(key), self.start)
    }

    fn lock(&self, hash: u32) -> Locked<'_> {
        self.buckets.lock(&self.pool, hash)
    }

    /// The cells of an element's value on a CPU.
    fn value_cells(&self, index: u32, cpu: u32) -> &[AtomicU64] {
        &self.value_in(index, self.pool.element(index), cpu)[..self.value.cells()]
    }

    /// The same and what is behind them, given the cells of the element too.
    #[inline(always)]
    fn value_in<'e>(&'e self, index: u32, element: &'e [AtomicU64], cpu: u32) -> &'e [AtomicU64] {
        match self.is_percpu {
            true => self.pool.copy(index, cpu),
            false => &element[self.value_start..],
        }
    }

    /// An element for a new entry. Evicting locks buckets.
    fn new_element(&self, cpu: u32) -> Result<u32> {
        let taken = match &self.limit {
            Limit::Pool => self.pool.take(cpu),
            Limit::Evict(lru) => {
                let taken = lru.take(cpu, |index| self.evict(index));
                let noted = taken.map(|index| self.pool.note_use(index).map(|()| index));
                if let (Some(index), Some(Err(_))) = (taken, &noted) {
                    lru.give_back(index);
                }
                noted.transpose()
            }
            Limit::Count { entries, most } => {
                let count = |count: u32| (count < *most).then(|| count + 1);
                Errno::E2BIG.when(entries.fetch_update(Relaxed, Relaxed, count).is_err())?;
                self.pool.take(cpu)
            }
        };
        match (taken, &self.limit) {
            (Ok(Some(index)), _) => Ok(index),
            (Ok(None), Limit::Pool) => Err(Errno::E2BIG),
            (Ok(None) | Err(_), Limit::Count { entries, .. }) => {
                entries.fetch_sub(1, Relaxed);
                Err(Errno::ENOMEM)
            }
            (Ok(None), Limit::Evict(_)) | (Err(_), Limit::Pool | Limit::Evict(_)) => {
                Err(Errno::ENOMEM)
            }
        }
    }

    /// Frees the element of an entry that is gone.
    fn free(&self, cpu: u32, index: u32) {
        if let Limit::Count { entries, .. } = &self.limit {
            entries.fetch_sub(1, Relaxed);
        }
        self.free_fields(index);
        match &self.limit {
            Limit::Evict(lru) => lru.give_back(index),
            Limit::Pool | Limit::Count { .. } => self.pool.give_back(cpu, index),
        }
    }

    /// Frees what the special fields of an element hold, when its entry is gone or replaced.
    fn free_fields(&self, index: u32) {
        for cpu in 0..self.copies {
            self.special.free(self.value_cells(index, cpu));
        }
    }

    /// Removes the entry of an element; false if it has none.
    fn evict(&self, index: u32) -> bool {
        let bucket = self.lock(hash_of(self.pool.element(index)));
        let found = bucket.elements().find(|found| found.index == index);
        if let Some(found) = found {
            bucket.remove(found);
            drop(bucket);
            self.free_fields(index);
        }
        found.is_some()
    }

    #[inline(always)]
    fn mark(&self, index: u32) {
        if let Limit::Evict(lru) = &self.limit {
            lru.mark(index);
        }
    }

    /// Writes the values of a new element: those of all CPUs, or one for a CPU and zeros
    /// for the others.
    fn fill(&self, index: u32, cpu: u32, values: &[u8]) {
        let one = self.value.size;
        if !self.is_percpu || values.len() > one || self.copies == 1 {
            return self.overwrite(index, cpu, values);
        }
        for other in 0..self.copies {
            let cells = self.value_cells(index, other);
            match other == cpu % self.copies {
                true => self.value.write(cells, values),
                false => self.value.clear(cells),
            }
        }
    }

    /// Writes the values of an element: those of all CPUs, or one.
    fn overwrite(&self, index: u32, cpu: u32, values: &[u8]) {
        if self.is_percpu && values.len() == self.value.rounded() * self.copies as usize {
            for (cpu, value) in (0..).zip(values.chunks(self.value.rounded())) {
                self.value.write(self.value_cells(index, cpu), value);
            }
        } else {
            self.value.write(self.value_cells(index, cpu), values);
        }
    }

    /// Adds or replaces an entry. `values` is a value, or those of all CPUs.
    fn put(&self, cpu: u32, key: &[u8], values: &[u8], flags: u64) -> Result {
        let is_locked = flags & LOCK != 0;
        let flags = flags & !LOCK;
        // Only hashes with one value an entry have locks.
        if flags > EXIST || is_locked && self.value.lock.is_none() {
            return Err(Errno::EINVAL);
        }
        // Evicting locks other buckets. Per-CPU values are updated in place.
        let mut spare = match &self.limit {
            Limit::Evict(_) if !self.is_percpu || flags != EXIST => Some(self.new_element(cpu)?),
            Limit::Evict(_) | Limit::Pool | Limit::Count { .. } => None,
        };
        let hash = self.hash(key);
        let bucket = self.lock(hash);
        let result = match bucket.find(hash, |cells| key::equals(cells, key)) {
            Some(_) if flags == NOEXIST => Err(Errno::EEXIST),
            None if flags == EXIST => Err(Errno::ENOENT),
            Some(old) if is_locked => {
                let locked = self.value.lock(self.value_cells(old.index, cpu));
                locked.map(|_locked| {
                    self.overwrite(old.index, cpu, values);
                    self.free_fields(old.index);
                })
            }
            Some(old) if self.is_percpu => {
                self.overwrite(old.index, cpu, values);
                self.free_fields(old.index);
                self.mark(old.index);
                Ok(())
            }
            Some(old) => {
                let new = spare
                    .take()
                    .map_or_else(|| self.new_spare(&bucket, cpu), Ok);
                new.map(|index| {
                    key::write(&self.pool.element(index)[KEY..], key);
                    self.overwrite(index, cpu, values);
                    bucket.replace(old, index, hash);
                    self.mark(index);
                    spare = self.keep_spare(&bucket, cpu, old.index);
                })
            }
            None => {
                let new = spare.take().map_or_else(|| self.new_element(cpu), Ok);
                new.map(|index| {
                    key::write(&self.pool.element(index)[KEY..], key);
                    self.fill(index, cpu, values);
                    bucket.insert(index, hash);
                })
            }
        };
        drop(bucket);
        spare.inspect(|index| self.free(cpu, *index));
        result
    }

    /// An element to put in place of another.
    fn new_spare(&self, bucket: &Locked<'_>, cpu: u32) -> Result<u32> {
        if let Some(index) = bucket.take_spare() {
            return Ok(index);
        }
        let index = self.pool.take(cpu).map_err(|_| Errno::ENOMEM)?;
        index.ok_or(Errno::ENOMEM)
    }

    /// Keeps an element that was replaced for the next replacement. Returns it if it is to be
    /// freed when the bucket is unlocked.
    fn keep_spare(&self, bucket: &Locked<'_>, cpu: u32, index: u32) -> Option<u32> {
        if let Limit::Evict(_) = &self.limit {
            return Some(index);
        }
        self.free_fields(index);
        if !bucket.keep_spare(index) {
            self.pool.give_back(cpu, index);
        }
        None
    }

    /// Removes an entry; its values are read first if there is room for them.
    fn remove(&self, cpu: u32, key: &[u8], out: Option<&mut [u8]>) -> Result {
        let hash = self.hash(key);
        let bucket = self.lock(hash);
        let found = bucket.find(hash, |cells| key::equals(cells, key));
        let found = found.ok_or(Errno::ENOENT)?;
        if let Some(out) = out {
            self.read(found.index, out);
        }
        bucket.remove(found);
        drop(bucket);
        self.free(cpu, found.index);
        Ok(())
    }

    /// Reads the values of an element, of all CPUs.
    fn read(&self, index: u32, out: &mut [u8]) {
        for (cpu, out) in (0..).zip(out.chunks_mut(out.len() / self.copies as usize)) {
            self.value.read(self.value_cells(index, cpu), out);
        }
    }

    /// True if an element is in a bucket.
    fn is_in_bucket(&self, bucket: u32, index: u32) -> bool {
        let locked = self.lock(bucket);
        locked.elements().any(|found| found.index == index)
    }

    fn key_of(&self, index: u32, out: &mut [u8]) {
        let cells = &self.pool.element(index)[KEY..];
        CellSlice::new(cells, self.key_size).read(0, out);
    }
}

/// Most elements of a pool that grows.
const MOST_ELEMENTS: u32 = 1 << 31;

/// The cells of an element with so many in use: small elements have a cache line each.
fn in_cache_line(cells: usize) -> usize {
    cells.max(LINE_CELLS)
}

impl WordLookup for Hash {
    fn key_size(&self) -> usize {
        self.key_size
    }

    #[inline(always)]
    fn lookup_words<const N: usize>(
        &self,
        cpu: impl Fn() -> u32,
        key: [u64; N],
    ) -> Option<CellAddress<'_>> {
        let hash = hash_words(key.into_iter(), self.start);
        if !self.has_lines {
            return self.lookup_others(cpu(), key, hash);
        }
        let is_key = |line: &Line| key::equals_array(&line[KEY..], key);
        match self.buckets.find_line(&self.pool, hash, is_key) {
            Attempt::Found(index, line) => {
                self.mark(index);
                // The value is behind the key.
                line.get(KEY + N..).map(CellAddress::of)
            }
            Attempt::Absent => None,
            Attempt::Unclear => self.lookup_others(0, key, hash),
        }
    }
}

impl Hash {
    /// Parts of an inlined lookup; `None` if that depends on the CPU.
    fn parts(&self) -> Option<HashParts> {
        let (elements, count) = self.pool.first_block();
        (!self.is_percpu).then(|| HashParts {
            key_size: self.key_size,
            hash_start: self.start,
            buckets: self.buckets.groups().clone(),
            elements: elements.clone(),
            count,
            stride: self.stride,
            value: self.value_start,
            marks: match &self.limit {
                Limit::Evict(lru) => Some(lru.marks()),
                Limit::Pool | Limit::Count { .. } => None,
            },
        })
    }

    /// As [`WordLookup::lookup_words`], of keys that are not found at once.
    #[inline(never)]
    fn lookup_others<const N: usize>(
        &self,
        cpu: u32,
        key: [u64; N],
        hash: u32,
    ) -> Option<CellAddress<'_>> {
        let (index, element) = self.find_by(hash, |cells| key::equals_array(cells, key))?;
        self.mark(index);
        Some(CellAddress::of(self.value_in(index, element, cpu)))
    }
}

impl MapOperations for Hash {
    #[inline]
    fn lookup<'g>(&'g self, _: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let hash = self.hash(key);
        let (index, element) = self.find_by(hash, |cells| key::equals(cells, key))?;
        self.mark(index);
        let value = self.value_in(index, element, cpu);
        Some(CellSlice::new(value, self.value.size))
    }

    fn next_entry<'g>(
        &'g self,
        _: &'g RunGuard,
        cpu: u32,
        cursor: &mut Cursor,
    ) -> Option<[CellSlice<'g>; 2]> {
        loop {
            while let Some(index) = cursor.waiting.pop() {
                let bucket = cursor.position as u32 - 1;
                if self.is_in_bucket(bucket, index) {
                    let key = &self.pool.element(index)[KEY..];
                    return Some([
                        CellSlice::new(key, self.key_size),
                        CellSlice::new(self.value_cells(index, cpu), self.value.size),
                    ]);
                }
            }
            let from = u32::try_from(cursor.position).ok()?;
            let number = self.buckets.first_used(from)?;
            cursor.position = u64::from(number) + 1;
            let locked = self.lock(number);
            cursor
                .waiting
                .extend(locked.elements().map(|found| found.index));
            cursor.waiting.reverse();
        }
    }

    fn covers(&self, address: u64, len: usize) -> bool {
        let covers = |cells| super::special::covers(cells, address, len);
        self.pool.element_at(address).is_some_and(|index| {
            covers(&self.pool.element(index)[KEY..])
                || (0..self.copies).any(|cpu| covers(self.value_cells(index, cpu)))
        })
    }

    fn entry_at<'g>(&'g self, _: &'g RunGuard, address: u64) -> Option<[CellSlice<'g>; 2]> {
        let index = self.pool.element_at(address)?;
        let key = &self.pool.element(index)[KEY..];
        Some([
            CellSlice::new(key, self.key_size),
            CellSlice::new(self.value_cells(index, 0), self.value.size),
        ])
    }

    fn direct_lookup(self: Arc<Self>) -> Option<DirectAccess> {
        let function = MapFunction::lookup(self.clone())?;
        Some(match self.parts() {
            Some(parts) => match HashLookup::new(parts, function.clone()) {
                Some(lookup) => DirectAccess::Hash(lookup),
                None => DirectAccess::Function(function),
            },
            None => DirectAccess::Function(function),
        })
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result {
        self.put(cpu, key, value, flags)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result {
        self.remove(cpu, key, None)
    }
}

impl SyscallOperations for Hash {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        let hash = self.hash(key);
        let found = self.find_by(hash, |cells| key::equals(cells, key));
        let (index, _) = found.ok_or(Errno::ENOENT)?;
        self.read(index, out);
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result {
        self.put(0, key, value, flags)
    }

    fn take(&self, key: &[u8], out: &mut [u8]) -> Result {
        self.remove(0, key, Some(out))
    }

    fn buckets(&self) -> u32 {
        self.buckets.count()
    }

    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        let locked = self.lock(bucket);
        let found: Vec<_> = locked.elements().collect();
        if found.len() > most {
            return None;
        }
        let entry = |&Found { index, .. }: &Found| {
            let mut key = vec![0; self.key_size].into_boxed_slice();
            self.key_of(index, &mut key);
            let len = match self.is_percpu {
                true => self.value.rounded() * self.copies as usize,
                false => self.value.size,
            };
            let mut value = vec![0; len].into_boxed_slice();
            self.read(index, &mut value);
            (key, value)
        };
        let entries = found.iter().map(entry).collect();
        if delete {
            // Removing an element of the chain changes where the one behind it is.
            while let Some(next) = locked.elements().next() {
                locked.remove(next);
            }
            drop(locked);
            found.iter().for_each(|found| self.free(0, found.index));
        }
        Some(entries)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let mut from = 0;
        if let Some(key) = key {
            let hash = self.hash(key);
            let bucket = self.lock(hash);
            if let Some(found) = bucket.find(hash, |cells| key::equals(cells, key)) {
                let mut behind = bucket.elements();
                behind.find(|element| element.index == found.index);
                if let Some(following) = behind.next() {
                    self.key_of(following.index, next);
                    return Ok(());
                }
                from = (hash & (self.buckets.count() - 1)) + 1;
            }
        }
        while let Some(number) = self.buckets.first_used(from) {
            let bucket = self.lock(number);
            if let Some(first) = bucket.elements().next() {
                self.key_of(first.index, next);
                return Ok(());
            }
            from = number + 1;
        }
        Err(Errno::ENOENT)
    }
}
