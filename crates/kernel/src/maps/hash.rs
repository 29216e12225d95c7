//! Hash tables: `hash`, `percpu_hash`, `lru_hash` and `lru_percpu_hash`.
//!
//! Chained hashing as in Linux's `kernel/bpf/hashtab.c`: a power of two of buckets, at least
//! four for each entry; each bucket is a singly linked list of elements of a [`Pool`].
//! Lookups take no lock. As elements are recycled at once, a walk may be led into another
//! bucket; the end of each list names its bucket, so such a walk is noticed and repeated
//! (the kernel's `hlist_nulls`). Updates and deletions lock the bucket.
//!
//! An update of an existing key of a map with one value an element puts a new element in
//! front of the old one: pointers that programs got before still point to the old value.
//! For that, preallocated maps have a spare element for each CPU.
//!
//! LRU maps evict by the second-chance (clock) algorithm when no element is free: elements
//! are visited in a circle; the reference bit of a visited one is cleared, and the first
//! element without it is evicted. Lookups by programs set it. Linux's lists approximate the
//! same, and may evict before the map is full.
//!
//! Layout of an element, in cells: hash and link to the next element; key; value, or a
//! value for each CPU.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use spec::Errno;
use vm::{CellSlice, Cells, DirectLookup, LookupFunction, OutOfMemory, WordLookup};

use super::flags::{self, EXIST, LOCK, NOEXIST};
use super::pool::Pool;
use super::spin_lock::{SpinGuard, SpinLock};
use super::{Definition, Entries, Host, Operations, RunGuard, ValueLayout, key};

/// A link of this value or more ends a list and names its bucket.
const END: u32 = 1 << 31;

/// Cell at which the key starts.
const KEY: usize = 1;

/// No element.
const NONE: u32 = u32::MAX;

/// A hash table; see the module's text.
#[derive(Debug)]
pub(super) struct Hash {
    /// The first element of each bucket, as numbers of 4 bytes.
    heads: Cells,
    /// Locks of buckets, each for all whose number has the same low bits.
    locks: Box<[SpinLock]>,
    pool: Pool,
    seed: u64,
    key_size: usize,
    /// Cell at which the values start.
    value_start: usize,
    value: ValueLayout,
    /// Values of an element: the possible CPUs, or 1.
    copies: u32,
    is_percpu: bool,
    /// Spare elements by CPU, for updates; empty where there are none.
    spare: Box<[AtomicU32]>,
    limit: Limit,
}

/// What keeps the number of entries within the map's limit.
#[derive(Debug)]
enum Limit {
    /// The pool has no more elements.
    Pool,
    /// A count of entries.
    Count { entries: AtomicU32, most: u32 },
    /// Eviction.
    Evict(Clock),
}

/// The hand of second-chance eviction, and a mark for each element.
#[derive(Debug)]
struct Clock {
    hand: AtomicU32,
    marks: Box<[AtomicBool]>,
}

/// The lock of a bucket.
struct Locked<'a> {
    head: &'a AtomicU32,
    _guard: SpinGuard<'a>,
}

/// An element in a locked bucket, with the one before it.
#[derive(Clone, Copy)]
struct Found {
    index: u32,
    before: Option<u32>,
}

impl Hash {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<Hash, Errno> {
        let entries = map.params.max_entries;
        let is_percpu = map.is_percpu();
        let is_lru = map.is_lru();
        let is_preallocated = map.params.flags.0 & flags::NO_PREALLOC == 0;
        let copies = if is_percpu { host.cpus } else { 1 };
        // Per-CPU values are updated in place.
        let spares = if is_preallocated && !is_percpu {
            host.cpus
        } else {
            0
        };
        let key_size = map.params.key_size as usize;
        let value_start = KEY + key::cells_of(key_size);
        let stride = in_cache_line(value_start + map.value.cells() * copies as usize);
        let buckets = (entries.checked_next_power_of_two())
            .filter(|buckets| *buckets <= MOST_BUCKETS)
            .ok_or(Errno::E2BIG)?
            * BUCKETS_PER_ENTRY;
        let no_memory = |_: OutOfMemory| Errno::ENOMEM;
        let pool = match is_preallocated {
            true => Pool::preallocated(stride, entries + spares, host.cpus).map_err(no_memory)?,
            false => Pool::growing(stride, entries, END, host.cpus).map_err(no_memory)?,
        };
        let spare: Result<Box<[AtomicU32]>, Errno> = (0..spares)
            .map(|cpu| {
                Ok(AtomicU32::new(
                    pool.take(cpu).map_err(no_memory)?.unwrap_or(NONE),
                ))
            })
            .collect();
        Ok(Hash {
            heads: new_heads(buckets)?,
            locks: (0..buckets.min(MOST_LOCKS))
                .map(|_| SpinLock::default())
                .collect(),
            seed: map.seed(host),
            key_size,
            value_start,
            value: map.value.clone(),
            copies,
            is_percpu,
            spare: spare?,
            limit: match (is_lru, is_preallocated) {
                (true, _) => Limit::Evict(Clock {
                    hand: AtomicU32::new(0),
                    marks: (0..entries + spares)
                        .map(|_| AtomicBool::new(false))
                        .collect(),
                }),
                (false, true) => Limit::Pool,
                (false, false) => Limit::Count {
                    entries: AtomicU32::new(0),
                    most: entries,
                },
            },
            pool,
        })
    }

    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        let bits = params.flags.0;
        let allowed = flags::NO_PREALLOC
            | flags::NO_COMMON_LRU
            | flags::NUMA_NODE
            | flags::ACCESS
            | flags::ZERO_SEED;
        if bits & !allowed != 0 || !flags::access_is_consistent(bits) {
            return Err(Errno::EINVAL);
        }
        if !map.is_lru() && bits & flags::NO_COMMON_LRU != 0 {
            return Err(Errno::EINVAL);
        }
        if map.is_lru() && bits & flags::NO_PREALLOC != 0 {
            return Err(Errno::ENOTSUPP);
        }
        let per_cpu = map.is_percpu() || bits & flags::NO_COMMON_LRU != 0;
        if bits & flags::NUMA_NODE != 0 && per_cpu {
            return Err(Errno::EINVAL);
        }
        if params.max_entries == 0 || params.key_size == 0 || params.value_size == 0 {
            return Err(Errno::EINVAL);
        }
        let size = u64::from(params.key_size) + u64::from(params.value_size);
        if size >= u64::from(super::KMALLOC_MAX) - KERNEL_ELEMENT {
            return Err(Errno::E2BIG);
        }
        if map.is_percpu() && map.value.rounded() > super::PERCPU_MAX_VALUE {
            return Err(Errno::E2BIG);
        }
        Ok(())
    }

    #[inline(always)]
    fn heads(&self) -> &[AtomicU32] {
        self.heads.as_halves()
    }

    #[inline(always)]
    fn bucket_of(&self, hash: u32) -> u32 {
        hash & (self.heads().len() as u32 - 1)
    }

    /// The element of a key, found without a lock.
    #[inline]
    fn find(&self, hash: u32, key: &[u8]) -> Option<u32> {
        let found = self.find_by(hash, |cells| key::equals(cells, key));
        found.map(|(index, _)| index)
    }

    /// The element of a key and its cells, which `is_key` recognises by its cells, found without a lock.
    #[inline(always)]
    fn find_by(
        &self,
        hash: u32,
        is_key: impl Fn(&[AtomicU64]) -> bool,
    ) -> Option<(u32, &[AtomicU64])> {
        let bucket = self.bucket_of(hash);
        loop {
            let mut link = self.heads()[bucket as usize].load(Acquire);
            while link < END {
                let element = self.pool.element(link);
                let header = element[0].load(Acquire);
                if header as u32 == hash && is_key(&element[KEY..]) {
                    return Some((link, element));
                }
                link = (header >> 32) as u32;
            }
            if link - END == bucket {
                return None;
            }
        }
    }

    fn lock(&self, hash: u32) -> Locked<'_> {
        let bucket = self.bucket_of(hash) as usize;
        let lock = &self.locks[bucket & (self.locks.len() - 1)];
        Locked {
            head: &self.heads()[bucket],
            _guard: lock.lock(),
        }
    }

    /// The element of a key in a locked bucket.
    fn find_locked(&self, bucket: &Locked<'_>, hash: u32, key: &[u8]) -> Option<Found> {
        self.search(bucket, |_, element, its_hash| {
            its_hash == hash && key::equals(&element[KEY..], key)
        })
    }

    /// The first element of a locked bucket of which the test holds.
    fn search(
        &self,
        bucket: &Locked<'_>,
        mut test: impl FnMut(u32, &[AtomicU64], u32) -> bool,
    ) -> Option<Found> {
        let mut before = None;
        let mut link = bucket.head.load(Relaxed);
        while link < END {
            let element = self.pool.element(link);
            let header = element[0].load(Relaxed);
            if test(link, element, header as u32) {
                return Some(Found {
                    index: link,
                    before,
                });
            }
            before = Some(link);
            link = (header >> 32) as u32;
        }
        None
    }

    /// Makes an element the first of its bucket.
    fn link(&self, bucket: &Locked<'_>, index: u32, hash: u32) {
        let head = bucket.head.load(Relaxed);
        self.pool.element(index)[0].store(header(hash, head), Release);
        bucket.head.store(index, Release);
    }

    /// Takes an element out of its bucket.
    fn unlink(&self, bucket: &Locked<'_>, found: Found) {
        let next = (self.pool.element(found.index)[0].load(Relaxed) >> 32) as u32;
        match found.before {
            None => bucket.head.store(next, Release),
            Some(before) => {
                let cell = &self.pool.element(before)[0];
                let hash = cell.load(Relaxed) as u32;
                cell.store(header(hash, next), Release);
            }
        }
    }

    /// The cells of an element's value on a CPU.
    #[inline(always)]
    fn value_cells(&self, index: u32, cpu: u32) -> &[AtomicU64] {
        self.value_in(self.pool.element(index), cpu)
    }

    #[inline(always)]
    fn value_in<'e>(&self, element: &'e [AtomicU64], cpu: u32) -> &'e [AtomicU64] {
        let cells = self.value.cells();
        let copy = if self.is_percpu { cpu % self.copies } else { 0 };
        let start = self.value_start + copy as usize * cells;
        &element[start..start + cells]
    }

    /// An element for a new entry.
    fn new_element(&self, cpu: u32) -> Result<u32, Errno> {
        if let Limit::Count { entries, most } = &self.limit {
            let count = |count: u32| (count < *most).then(|| count + 1);
            if entries.fetch_update(Relaxed, Relaxed, count).is_err() {
                return Err(Errno::E2BIG);
            }
        }
        match (self.pool.take(cpu), &self.limit) {
            (Ok(Some(index)), _) => Ok(index),
            (Ok(None), Limit::Evict(clock)) => self.evict(clock).ok_or(Errno::ENOMEM),
            (Ok(None), Limit::Pool) => Err(Errno::E2BIG),
            (Ok(None) | Err(_), Limit::Count { entries, .. }) => {
                entries.fetch_sub(1, Relaxed);
                Err(Errno::ENOMEM)
            }
            (Err(_), _) => Err(Errno::ENOMEM),
        }
    }

    /// Frees the element of an entry that is gone.
    fn free(&self, cpu: u32, index: u32) {
        if let Limit::Count { entries, .. } = &self.limit {
            entries.fetch_sub(1, Relaxed);
        }
        self.pool.give_back(cpu, index);
    }

    /// Takes the element of an entry that was not looked up lately.
    fn evict(&self, clock: &Clock) -> Option<u32> {
        let count = clock.marks.len() as u32;
        // The first round may only clear marks; other threads may take what the second finds.
        for _ in 0..count.saturating_mul(4) {
            let index = clock.hand.fetch_add(1, Relaxed) % count;
            let mark = &clock.marks[index as usize];
            if mark.load(Relaxed) {
                mark.store(false, Relaxed);
                continue;
            }
            let hash = self.pool.element(index)[0].load(Relaxed) as u32;
            let bucket = self.lock(hash);
            if let Some(found) = self.search(&bucket, |at, _, _| at == index) {
                self.unlink(&bucket, found);
                return Some(index);
            }
        }
        None
    }

    #[inline(always)]
    fn mark(&self, index: u32) {
        if let Limit::Evict(clock) = &self.limit {
            let mark = &clock.marks[index as usize];
            if !mark.load(Relaxed) {
                mark.store(true, Relaxed);
            }
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
    fn put(&self, cpu: u32, key: &[u8], values: &[u8], flags: u64) -> Result<(), Errno> {
        if flags & !LOCK > EXIST || flags & LOCK != 0 {
            return Err(Errno::EINVAL);
        }
        let hash = key::hash(key, self.seed);
        // An element for a key that is new, as far as it shows without the lock.
        let mut reserved = match self.find(hash, key) {
            None if flags != EXIST => Some(self.new_element(cpu)?),
            _ => None,
        };
        loop {
            let bucket = self.lock(hash);
            let old = self.find_locked(&bucket, hash, key);
            let refusal = match old {
                Some(_) if flags == NOEXIST => Some(Errno::EEXIST),
                None if flags == EXIST => Some(Errno::ENOENT),
                _ => None,
            };
            if let Some(old) = old.filter(|_| refusal.is_none() && self.is_percpu) {
                self.overwrite(old.index, cpu, values);
                self.mark(old.index);
            } else if let Some(old) = old.filter(|_| refusal.is_none()) {
                let index = self.take_spare(cpu)?;
                key::write(&self.pool.element(index)[KEY..], key);
                self.overwrite(index, cpu, values);
                self.link(&bucket, index, hash);
                // The new element is the first now.
                let before = old.before.or(Some(index));
                self.unlink(&bucket, Found { before, ..old });
                self.give_spare(cpu, old.index);
                self.mark(index);
            } else if refusal.is_none() {
                let Some(index) = reserved.take() else {
                    // Eviction locks another bucket.
                    drop(bucket);
                    reserved = Some(self.new_element(cpu)?);
                    continue;
                };
                key::write(&self.pool.element(index)[KEY..], key);
                self.fill(index, cpu, values);
                self.link(&bucket, index, hash);
            }
            drop(bucket);
            reserved.inspect(|index| self.free(cpu, *index));
            return refusal.map_or(Ok(()), Err);
        }
    }

    /// An element to put in place of another.
    fn take_spare(&self, cpu: u32) -> Result<u32, Errno> {
        if let Some(spare) = self.spare_of(cpu) {
            // Another thread on this CPU may have it: then from the pool.
            let index = spare.swap(NONE, Relaxed);
            if index != NONE {
                return Ok(index);
            }
        }
        let index = self.pool.take(cpu).map_err(|_| Errno::ENOMEM)?;
        index.ok_or(Errno::ENOMEM)
    }

    /// Keeps an element that was replaced as the spare one, or frees it.
    fn give_spare(&self, cpu: u32, index: u32) {
        let keep =
            |spare: &AtomicU32| (spare.compare_exchange(NONE, index, Relaxed, Relaxed)).is_ok();
        if !self.spare_of(cpu).is_some_and(keep) {
            self.pool.give_back(cpu, index);
        }
    }

    fn spare_of(&self, cpu: u32) -> Option<&AtomicU32> {
        self.spare.get(cpu as usize % self.spare.len().max(1))
    }

    /// Removes an entry; its values are read first if there is room for them.
    fn remove(&self, cpu: u32, key: &[u8], out: Option<&mut [u8]>) -> Result<(), Errno> {
        let hash = key::hash(key, self.seed);
        let bucket = self.lock(hash);
        let found = self.find_locked(&bucket, hash, key).ok_or(Errno::ENOENT)?;
        if let Some(out) = out {
            self.read(found.index, out);
        }
        self.unlink(&bucket, found);
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

    /// The first element of the buckets from this one on.
    fn first_from(&self, bucket: u32) -> Option<u32> {
        let heads = self.heads()[bucket as usize..].iter();
        heads
            .map(|head| head.load(Acquire))
            .find(|head| *head < END)
    }

    fn key_of(&self, index: u32, out: &mut [u8]) {
        let cells = &self.pool.element(index)[KEY..];
        CellSlice::new(cells, self.key_size).read(0, out);
    }
}

/// Bytes that Linux keeps with an element beside key and value.
const KERNEL_ELEMENT: u64 = 48;

/// Buckets for each entry: most lists have one element at most, so that the processor
/// predicts the walk.
const BUCKETS_PER_ENTRY: u32 = 4;

/// Most buckets in Linux: their memory has fewer than 2^32 bytes, 16 for each.
const MOST_BUCKETS: u32 = 1 << 27;

/// The cells of an element with so many in use: small elements lie in one cache line of 8.
fn in_cache_line(cells: usize) -> usize {
    match cells {
        ..=8 => cells.next_power_of_two(),
        more => more,
    }
}

fn header(hash: u32, next: u32) -> u64 {
    u64::from(next) << 32 | u64::from(hash)
}

/// Most locks of a map.
const MOST_LOCKS: u32 = 1 << 10;

/// The heads of empty buckets.
fn new_heads(count: u32) -> Result<Cells, Errno> {
    let heads = Cells::zeroed(count.div_ceil(2) as usize).map_err(|_| Errno::ENOMEM)?;
    for (number, head) in (END..).zip(heads.as_halves()) {
        head.store(number, Relaxed);
    }
    Ok(heads)
}

impl WordLookup for Hash {
    fn key_size(&self) -> usize {
        self.key_size
    }

    #[inline(always)]
    fn lookup_words<const N: usize>(&self, cpu: u32, key: [u64; N]) -> Option<CellSlice<'_>> {
        let hash = key::hash_words(key.into_iter(), self.seed);
        let is_key = |cells: &[AtomicU64]| key::equals_words(cells, key.into_iter());
        let (index, element) = self.find_by(hash, is_key)?;
        self.mark(index);
        Some(CellSlice::new(self.value_in(element, cpu), self.value.size))
    }
}

impl Operations for Hash {
    #[inline]
    fn lookup<'g>(&'g self, _: &'g RunGuard, cpu: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let index = self.find(key::hash(key, self.seed), key)?;
        self.mark(index);
        let cells = self.value_cells(index, cpu);
        Some(CellSlice::new(cells, self.value.size))
    }

    fn direct_lookup(self: Arc<Self>) -> Option<DirectLookup> {
        LookupFunction::of(self).map(DirectLookup::Function)
    }

    fn update(&self, cpu: u32, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.put(cpu, key, value, flags)
    }

    fn delete(&self, cpu: u32, key: &[u8]) -> Result<(), Errno> {
        self.remove(cpu, key, None)
    }

    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        let index = (self.find(key::hash(key, self.seed), key)).ok_or(Errno::ENOENT)?;
        self.read(index, out);
        Ok(())
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        self.put(0, key, value, flags)
    }

    fn take(&self, key: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        self.remove(0, key, Some(out))
    }

    fn buckets(&self) -> u32 {
        self.heads().len() as u32
    }

    fn read_bucket(&self, bucket: u32, most: usize, delete: bool) -> Option<Entries> {
        let locked = self.lock(bucket);
        let mut found = Vec::new();
        self.search(&locked, |index, _, _| {
            found.push(index);
            false
        });
        if found.len() > most {
            return None;
        }
        let entry = |&index: &u32| {
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
            for &index in &found {
                let place = self.search(&locked, |at, _, _| at == index);
                place.inspect(|place| self.unlink(&locked, *place));
            }
            drop(locked);
            found.iter().for_each(|index| self.free(0, *index));
        }
        Some(entries)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result<(), Errno> {
        let after = key.and_then(|key| {
            let hash = key::hash(key, self.seed);
            let index = self.find(hash, key)?;
            let link = (self.pool.element(index)[0].load(Acquire) >> 32) as u32;
            Some((self.bucket_of(hash), link))
        });
        let following = match after {
            None => self.first_from(0),
            Some((_, link)) if link < END => Some(link),
            Some((bucket, _)) if bucket as usize + 1 < self.heads().len() => {
                self.first_from(bucket + 1)
            }
            Some(_) => None,
        };
        self.key_of(following.ok_or(Errno::ENOENT)?, next);
        Ok(())
    }
}
