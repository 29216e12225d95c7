//! Buckets of a hash map: elements of a [`Pool`] by hash.
//!
//! A bucket is half a cache line: five slots with an element each, and a tag of eight bits
//! for each slot, all in one cell, as the control bytes of a Swiss table. Native code reads
//! buckets and elements itself ([`HashLookup`] has the contract). More elements are
//! in a linked list through their first cells, the bucket's chain.
//!
//! Lookups take no lock and compare all tags at once. Changes lock the bucket and count in
//! its tag cell. As elements are recycled at once, a lookup may be led to an element that is
//! another key's by now; one that finds nothing is repeated if the bucket changed meanwhile
//! (a sequence counter).

use vm::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vm::sync::atomic::{AtomicU32, AtomicU64, fence};
use vm::{CellGroup, CellGroups, HashLookup, OutOfMemory};

use crate::maps::pool::{Line, NONE, Pool};
use crate::maps::spin_lock::{SpinGuard, SpinLock};

/// Cell of an element at which the key starts.
pub(super) const KEY: usize = 1;

/// Slots of a bucket. The word behind them is the first element of the chain.
const SLOTS: usize = 5;
const CHAIN: usize = SLOTS;

// The tag cell: a byte for each slot, 0 for an empty one; a counter of changes; whether the
// bucket has a chain.
const OCCUPIED: u64 = HashLookup::OCCUPIED;
const LOW_BITS: u64 = HashLookup::LOW_BITS;
const CHANGE: u64 = 1 << 40;
const COUNTER: u64 = 0x7f_ffff << 40;
const HAS_CHAIN: u64 = 1 << 63;

/// Most locks of a map.
const MOST_LOCKS: u32 = 1 << 6;

/// Buckets of elements.
#[derive(Debug)]
pub(super) struct Buckets {
    groups: CellGroups,
    /// Each for all buckets whose number has the same low bits.
    locks: Box<[Lock]>,
}

/// The lock of some buckets, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Lock {
    lock: SpinLock,
    /// An element that is in no bucket, to replace one of these buckets, or [`NONE`].
    spare: AtomicU32,
}

/// A bucket: the words are the slots and the chain, the cell has the tags.
#[derive(Clone, Copy)]
struct Bucket<'b>(&'b CellGroup);

/// Result of looking at one element.
pub(super) enum Attempt<'p> {
    /// The element, by its index and its cells.
    Found(u32, &'p Line),
    /// The key is not there.
    Absent,
    /// The element is not the key's; others may be.
    Unclear,
}

/// A locked bucket.
pub(super) struct Locked<'b> {
    bucket: Bucket<'b>,
    pool: &'b Pool,
    spare: &'b AtomicU32,
    _guard: SpinGuard<'b>,
}

/// An element in a locked bucket.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) index: u32,
    place: Place,
}

/// Place of an element.
#[derive(Clone, Copy)]
enum Place {
    Slot(usize),
    /// In the chain, behind this element.
    Chain(Option<u32>),
}

impl Bucket<'_> {
    #[inline(always)]
    fn tags(self) -> u64 {
        self.0.cell.load(Acquire)
    }

    /// The element in a slot, or the first one of the chain.
    #[inline(always)]
    fn get(self, slot: usize) -> u32 {
        self.0.words[slot].load(Acquire)
    }

    /// Puts an element into a slot, or makes it the first one of the chain.
    fn set(self, slot: usize, index: u32) {
        self.0.words[slot].store(index, Release);
    }
}

impl Buckets {
    /// Empty buckets for so many entries, a power of two: two for a bucket.
    pub(super) fn new(entries: u32) -> Result<Buckets, OutOfMemory> {
        let count = (entries / 2).max(1);
        let locks = (0..count.min(MOST_LOCKS)).map(|_| Lock {
            lock: SpinLock::default(),
            spare: AtomicU32::new(NONE),
        });
        Ok(Buckets {
            groups: CellGroups::zeroed(count as usize)?,
            locks: locks.collect(),
        })
    }

    /// Number of buckets, a power of two.
    #[inline(always)]
    pub(super) fn count(&self) -> u32 {
        self.groups.as_slice().len() as u32
    }

    /// The memory of the buckets, for native code.
    pub(super) fn groups(&self) -> &CellGroups {
        &self.groups
    }

    /// Number of spare elements at most.
    pub(super) fn spares(entries: u32) -> u32 {
        (entries / 2).clamp(1, MOST_LOCKS)
    }

    /// Keeps an element as a spare one, until all there may be are there.
    pub(super) fn add_spare(&self, index: u32) {
        let mut spares = self.locks.iter().map(|lock| &lock.spare);
        if let Some(empty) = spares.find(|spare| spare.load(Relaxed) == NONE) {
            empty.store(index, Relaxed);
        }
    }

    #[inline(always)]
    fn bucket(&self, hash: u32) -> Bucket<'_> {
        let all = self.groups.as_slice();
        Bucket(&all[hash as usize & (all.len() - 1)])
    }

    /// The element with this hash that `is_key` recognises by the cells of its key, with all
    /// its cells. Takes no lock.
    #[inline]
    pub(super) fn find<'p>(
        &self,
        pool: &'p Pool,
        hash: u32,
        is_key: impl Fn(&[AtomicU64]) -> bool,
    ) -> Option<(u32, &'p [AtomicU64])> {
        let bucket = self.bucket(hash);
        loop {
            let tags = bucket.tags();
            for slot in slots_with(tags, hash) {
                let index = bucket.get(slot);
                let element = pool.element(index);
                if is_key(&element[KEY..]) {
                    return Some((index, element));
                }
            }
            if tags & HAS_CHAIN != 0
                && let found @ Some(_) = self.find_in_chain(pool, hash, &is_key)
            {
                return found;
            }
            // What was read of recycled elements was written after this count.
            fence(Acquire);
            if bucket.tags() == tags {
                return None;
            }
        }
    }

    /// As [`Buckets::find`] of a pool whose elements are lines, looking at one element only:
    /// nearly always the first slot with the tag has the key.
    #[inline(always)]
    pub(super) fn find_line<'p>(
        &self,
        pool: &'p Pool,
        hash: u32,
        is_key: impl Fn(&Line) -> bool,
    ) -> Attempt<'p> {
        let bucket = self.bucket(hash);
        let tags = bucket.tags();
        let Some(slot) = slots_with(tags, hash).next() else {
            return match tags & HAS_CHAIN {
                0 => Attempt::Absent,
                _ => Attempt::Unclear,
            };
        };
        let index = bucket.get(slot);
        match pool.line(index) {
            Some(line) if is_key(line) => Attempt::Found(index, line),
            _ => Attempt::Unclear,
        }
    }

    /// The element in a bucket's chain; see [`Buckets::find`].
    fn find_in_chain<'p>(
        &self,
        pool: &'p Pool,
        hash: u32,
        is_key: impl Fn(&[AtomicU64]) -> bool,
    ) -> Option<(u32, &'p [AtomicU64])> {
        let mut link = self.bucket(hash).get(CHAIN);
        while link != NONE {
            let element = pool.element(link);
            let header = element[0].load(Acquire);
            if header as u32 == hash && is_key(&element[KEY..]) {
                return Some((link, element));
            }
            // A recycled element leads elsewhere.
            if (header as u32 ^ hash) & (self.count() - 1) != 0 {
                return None;
            }
            link = (header >> 32) as u32;
        }
        None
    }

    /// Locks the bucket of a hash.
    pub(super) fn lock<'b>(&'b self, pool: &'b Pool, hash: u32) -> Locked<'b> {
        let bucket = self.bucket(hash);
        let lock = &self.locks[hash as usize & (self.locks.len() - 1)];
        Locked {
            bucket,
            pool,
            spare: &lock.spare,
            _guard: lock.lock.lock(),
        }
    }

    /// The first bucket from this one on that has elements, as it is at the moment.
    pub(super) fn first_used(&self, from: u32) -> Option<u32> {
        let is_used = |number: &u32| self.bucket(*number).tags() & (OCCUPIED | HAS_CHAIN) != 0;
        (from..self.count()).find(is_used)
    }
}

impl<'b> Locked<'b> {
    /// The element with this hash that `is_key` recognises by the cells of its key.
    #[inline]
    pub(super) fn find(&self, hash: u32, is_key: impl Fn(&[AtomicU64]) -> bool) -> Option<Found> {
        let is_found = |found: &Found| is_key(&self.pool.element(found.index)[KEY..]);
        let tags = self.bucket.tags();
        let mut slots = slots_with(tags, hash).map(|slot| self.in_slot(slot));
        slots.find(is_found).or_else(|| self.chain().find(is_found))
    }

    /// All elements of the bucket.
    pub(super) fn elements(&self) -> impl Iterator<Item = Found> {
        let tags = self.bucket.tags();
        let slots = Slots(tags & OCCUPIED).map(|slot| self.in_slot(slot));
        slots.chain(self.chain())
    }

    fn in_slot(&self, slot: usize) -> Found {
        Found {
            index: self.bucket.get(slot),
            place: Place::Slot(slot),
        }
    }

    fn chain(&self) -> impl Iterator<Item = Found> {
        let has_chain = self.bucket.tags() & HAS_CHAIN != 0;
        let mut link = match has_chain {
            true => self.bucket.get(CHAIN),
            false => NONE,
        };
        let mut before = None;
        std::iter::from_fn(move || {
            (link != NONE).then(|| {
                let found = Found {
                    index: link,
                    place: Place::Chain(before),
                };
                before = Some(link);
                link = self.next(link);
                found
            })
        })
    }

    fn next(&self, index: u32) -> u32 {
        (self.pool.element(index)[0].load(Relaxed) >> 32) as u32
    }

    /// Puts an element with key and value into the bucket.
    pub(super) fn insert(&self, index: u32, hash: u32) {
        let tags = self.bucket.tags();
        match Slots(!tags & OCCUPIED).next() {
            Some(slot) => {
                self.set_header(index, hash, NONE);
                self.bucket.set(slot, index);
                self.set_tags(tags | HashLookup::tag(hash) << (8 * slot));
            }
            None => {
                let next = self.chain().next().map_or(NONE, |first| first.index);
                self.set_header(index, hash, next);
                self.bucket.set(CHAIN, index);
                self.set_tags(tags | HAS_CHAIN);
            }
        }
    }

    /// Puts another element with the same key in the place of one.
    pub(super) fn replace(&self, old: Found, index: u32, hash: u32) {
        match old.place {
            Place::Slot(slot) => {
                self.set_header(index, hash, NONE);
                self.bucket.set(slot, index);
            }
            Place::Chain(before) => {
                self.set_header(index, hash, self.next(old.index));
                self.set_next(before, index);
            }
        }
        self.set_tags(self.bucket.tags());
    }

    /// Takes an element out of the bucket.
    pub(super) fn remove(&self, found: Found) {
        let tags = self.bucket.tags();
        self.set_tags(match found.place {
            Place::Slot(slot) => tags & !(0xff << (8 * slot)),
            Place::Chain(before) => {
                let next = self.next(found.index);
                self.set_next(before, next);
                match (before, next) {
                    (None, NONE) => tags & !HAS_CHAIN,
                    _ => tags,
                }
            }
        });
    }

    /// Takes the spare element of the bucket, if there is one. As for elements of
    /// [`Pool::take`].
    pub(super) fn take_spare(&self) -> Option<u32> {
        let index = self.spare.load(Relaxed);
        self.spare.store(NONE, Relaxed);
        fence(Release);
        (index != NONE).then_some(index)
    }

    /// Keeps an element as the spare one; false if there is one.
    pub(super) fn keep_spare(&self, index: u32) -> bool {
        let is_free = self.spare.load(Relaxed) == NONE;
        if is_free {
            self.spare.store(index, Relaxed);
        }
        is_free
    }

    fn set_header(&self, index: u32, hash: u32, next: u32) {
        let header = u64::from(next) << 32 | u64::from(hash);
        self.pool.element(index)[0].store(header, Release);
    }

    /// Sets the link behind an element of the chain, or that to the first one.
    fn set_next(&self, before: Option<u32>, next: u32) {
        match before {
            None => self.bucket.set(CHAIN, next),
            Some(before) => {
                let hash = self.pool.element(before)[0].load(Relaxed) as u32;
                self.set_header(before, hash, next);
            }
        }
    }

    /// Sets the tags and counts a change.
    fn set_tags(&self, tags: u64) {
        let counter = tags.wrapping_add(CHANGE) & COUNTER;
        (self.bucket.0.cell).store(tags & !COUNTER | counter, Release);
    }
}

/// The hash that an element has, as its bucket's elements do.
pub(super) fn hash_of(element: &[AtomicU64]) -> u32 {
    element[0].load(Relaxed) as u32
}

/// The slots whose tag is that of a hash, and at times others.
#[inline(always)]
fn slots_with(tags: u64, hash: u32) -> Slots {
    let differences = tags ^ (HashLookup::tag(hash) * LOW_BITS);
    // The lowest byte that is zero sets its highest bit, as no lower one borrows from it.
    Slots(differences.wrapping_sub(LOW_BITS) & !differences & OCCUPIED)
}

/// Slots whose bit of [`OCCUPIED`] is set.
struct Slots(u64);

impl Iterator for Slots {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let found = (self.0 != 0).then(|| self.0.trailing_zeros() as usize / 8);
        self.0 &= self.0.wrapping_sub(1);
        found
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::maps::pool::Layout;

    /// A table with elements of a header and a key.
    struct Table {
        buckets: Buckets,
        pool: Pool,
    }

    impl Table {
        /// A table of one bucket with so many elements, each of which has the number of its
        /// index as key.
        fn new(elements: u32, spare: bool) -> Arc<Table> {
            let capacity = elements + u32::from(spare);
            let table = Table {
                buckets: Buckets::new(1).unwrap(),
                pool: Pool::preallocated(Layout::plain(2), capacity, 1).unwrap(),
            };
            for _ in 0..elements {
                let index = table.pool.take(0).unwrap().unwrap();
                table.write_key(index, index.into());
                table.lock().insert(index, HASH);
            }
            if spare {
                let index = table.pool.take(0).unwrap().unwrap();
                table.buckets.add_spare(index);
            }
            Arc::new(table)
        }

        fn lock(&self) -> Locked<'_> {
            self.buckets.lock(&self.pool, HASH)
        }

        fn write_key(&self, index: u32, key: u64) {
            self.pool.element(index)[KEY].store(key, Relaxed);
        }

        fn find(&self, key: u64) -> Option<u32> {
            let is_key = |cells: &[AtomicU64]| cells[0].load(Relaxed) == key;
            let found = self.buckets.find(&self.pool, HASH, is_key);
            found.map(|(index, _)| index)
        }

        /// Puts another element in the place of that of a key, as an update does.
        fn replace(&self, key: u64) {
            let bucket = self.lock();
            let old = bucket.find(HASH, |cells| cells[0].load(Relaxed) == key);
            let old = old.expect("the key is there");
            let index = bucket.take_spare().expect("there is a spare element");
            self.write_key(index, key);
            bucket.replace(old, index, HASH);
            assert!(bucket.keep_spare(old.index));
        }

        /// Removes a key and adds another one, which gets its element.
        fn exchange(&self, old: u64, new: u64) {
            let bucket = self.lock();
            let found = bucket.find(HASH, |cells| cells[0].load(Relaxed) == old);
            let found = found.expect("the key is there");
            bucket.remove(found);
            drop(bucket);
            self.pool.give_back(0, found.index);
            let index = self.pool.take(0).unwrap().expect("it was freed");
            self.write_key(index, new);
            self.lock().insert(index, HASH);
        }
    }

    /// The hash of all keys.
    const HASH: u32 = 0xabcd_0000;

    /// Checks in all interleavings that a key is found while the table is changed. The change
    /// comes first: loom checks a load of a place against stores before it, but of several
    /// loads before a store the last one only.
    fn is_found(table: fn() -> Arc<Table>, key: u64, change: fn(&Table)) {
        loom::model(move || {
            let table = table();
            let reader = {
                let table = Arc::clone(&table);
                thread::spawn(move || table.find(key).is_some())
            };
            change(&table);
            assert!(reader.join().unwrap(), "the key is always there");
        });
    }

    #[test]
    fn a_key_is_found_while_its_element_becomes_another_keys() {
        is_found(
            || Table::new(2, true),
            0,
            |table| {
                // The second one gets the element of the first.
                table.replace(0);
                table.replace(1);
                assert_eq!((table.find(0), table.find(1)), (Some(2), Some(0)));
            },
        );
    }

    #[test]
    fn a_key_is_found_while_its_element_goes_back_to_the_pool() {
        is_found(
            || Table::new(1, true),
            0,
            |table| {
                let bucket = table.lock();
                let old = bucket.find(HASH, |cells| cells[0].load(Relaxed) == 0);
                let old = old.expect("the key is there");
                let index = bucket.take_spare().expect("there is a spare element");
                table.write_key(index, 0);
                bucket.replace(old, index, HASH);
                drop(bucket);
                table.pool.give_back(0, old.index);
                let index = table.pool.take(0).unwrap().expect("it was freed");
                table.write_key(index, 7);
            },
        );
    }

    #[test]
    fn a_key_is_found_while_others_come_and_go() {
        is_found(
            || Table::new(2, false),
            1,
            |table| {
                table.exchange(0, 7);
                assert_eq!((table.find(0), table.find(7)), (None, Some(0)));
            },
        );
    }

    #[test]
    fn a_key_of_a_chain_is_found_while_others_come_and_go() {
        const FIRST: u64 = SLOTS as u64;
        is_found(
            || Table::new(SLOTS as u32 + 2, false),
            FIRST,
            |table| {
                table.exchange(FIRST + 1, 99);
                assert_eq!(table.find(FIRST + 1), None);
                assert!(table.find(99).is_some());
            },
        );
    }
}
