//! `arena`: sparse memory that programs and the host share (`kernel/bpf/arena.c` of Linux).
//!
//! Programs allocate pages by kfuncs and access them through [`ArenaObject`]; the host reads
//! and writes them as user space does that maps the arena: pages that are not there come to be
//! on first use. Readers never wait; allocations take turns.
//!
//! One rule differs from Linux: pages in front of the arena's first address are not freed,
//! where Linux 6.18 damages its list of free pages.

mod free_ranges;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::maps::MapFlags;
use spec::{Errno, Result};
use vm::{ARENA_PAGE, ArenaObject, CELL_BYTES, Cells, MapOperations};

use self::free_ranges::FreeRanges;
use super::memory::Charge;
use super::resources::Resources;
use super::slots::Slots;
use super::{Definition, Host, SyscallOperations};

const PAGE: u64 = ARENA_PAGE;
/// Most pages that an arena has at a time, 1 GiB: a further allocation fails as one for which
/// the kernel finds no memory.
const MOST_PAGES: u32 = 1 << 18;

/// An arena.
#[derive(Debug)]
pub struct Arena {
    user_start: u64,
    pages: u32,
    flags: MapFlags,
    /// The pages that are there.
    present: Slots<Cells>,
    charge: Charge,
    space: Mutex<Space>,
}

/// State that allocations change.
#[derive(Debug)]
struct Space {
    free: FreeRanges,
    /// Number of pages that are there.
    present: u32,
}

/// Bytes on one page: its index, their offset in it and their places in an access.
type Part = (u32, usize, std::ops::Range<usize>);

impl Arena {
    pub(super) fn new(map: &Definition, host: &Host) -> Result<Arena> {
        let pages = map.params.max_entries;
        let mut free = FreeRanges::default();
        free.add(0, pages);
        Ok(Arena {
            user_start: map.params.arena_start(),
            pages,
            flags: map.params.flags,
            present: Slots::new(pages)?,
            charge: Charge::new(&host.memory),
            space: Mutex::new(Space { free, present: 0 }),
        })
    }

    /// Address of the first byte in user space.
    pub fn start(&self) -> u64 {
        self.user_start
    }

    /// Address behind the last byte in user space.
    pub fn end(&self) -> u64 {
        self.user_start + u64::from(self.pages) * PAGE
    }

    /// Number of pages that are there.
    pub fn present_pages(&self) -> u32 {
        self.space().present
    }

    /// The pages that are there: address in user space and bytes, in the order of addresses.
    pub fn pages(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let pages = self.present.filled();
        pages.map(|(page, cells)| {
            let bytes = cells.slice(0, PAGE as usize).to_vec();
            (self.user_start + u64::from(page) * PAGE, bytes)
        })
    }

    /// Reads bytes at an address in user space, as user space does.
    ///
    /// # Errors
    /// EFAULT where user space gets a signal: outside the arena, on pages that are not there
    /// of an arena with `BPF_F_SEGV_ON_FAULT`, and if memory ends.
    pub fn read_as_user(&self, address: u64, into: &mut [u8]) -> Result {
        let lower = self.user_range(address, into.len())?;
        Errno::EFAULT.when(!self.read(lower, into))
    }

    /// Writes bytes at an address in user space, as user space does.
    ///
    /// # Errors
    /// As [`Arena::read_as_user`].
    pub fn write_as_user(&self, address: u64, bytes: &[u8]) -> Result {
        let lower = self.user_range(address, bytes.len())?;
        Errno::EFAULT.when(!self.write(lower, bytes))
    }

    /// The 32-bit address of bytes in user space, whose pages are there afterwards.
    fn user_range(&self, address: u64, len: usize) -> Result<u32> {
        let offset = (address.checked_sub(self.user_start)).ok_or(Errno::EFAULT)?;
        let end = offset.checked_add(len as u64).ok_or(Errno::EFAULT)?;
        Errno::EFAULT.when(end > ArenaObject::bytes(self))?;
        for page in offset / PAGE..end.div_ceil(PAGE) {
            self.fault_in(page as u32)?;
        }
        Ok(address as u32)
    }

    /// Makes a page that user space uses (`arena_vm_fault`).
    fn fault_in(&self, page: u32) -> Result {
        let mut space = self.space();
        if self.present.get(page).is_some() {
            return Ok(());
        }
        Errno::EFAULT.when(self.flags.has(MapFlags::SEGV_ON_FAULT))?;
        let is_made = self.make(&mut space, page, 1);
        is_made.then_some(()).ok_or(Errno::EFAULT)
    }

    /// Makes pages of zeros in place of free or reserved ones; false without memory.
    fn make(&self, space: &mut Space, first: u32, pages: u32) -> bool {
        if pages > MOST_PAGES.saturating_sub(space.present) {
            return false;
        }
        let bytes = u64::from(pages) * PAGE;
        if self.charge.add(bytes).is_err() {
            return false;
        }
        let cells = (0..pages).map(|_| Cells::zeroed(PAGE as usize / CELL_BYTES));
        let Ok(made) = cells.collect::<Result<Vec<_>, _>>() else {
            self.charge.remove(bytes);
            return false;
        };
        for (page, cells) in (first..).zip(made) {
            self.present.set(page, Some(Arc::new(cells)));
        }
        space.free.remove(first, pages);
        space.present += pages;
        true
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of the page at a 32-bit address, which may be behind the arena.
    fn page_of(&self, address: u32) -> u32 {
        address.wrapping_sub(self.user_start as u32) / PAGE as u32
    }

    /// The pages that bytes are on, of which an access has at most two.
    fn parts(&self, address: u32, len: usize) -> impl Iterator<Item = Part> {
        let mut at = 0;
        std::iter::from_fn(move || {
            // The last bytes of the 4 GiB are followed by a guard.
            let next = u32::try_from(u64::from(address) + at as u64);
            let rest = len - at;
            if rest == 0 {
                return None;
            }
            let (page, offset) = match next {
                Ok(next) => (self.page_of(next), (u64::from(next) % PAGE) as usize),
                Err(_) => (u32::MAX, 0),
            };
            let part = rest.min(PAGE as usize - offset);
            at += part;
            Some((page, offset, at - part..at))
        })
    }

    /// The pages of [`Arena::parts`] with what is on them; `None` if one is not there.
    fn present_parts(&self, address: u32, len: usize) -> Option<Vec<(Arc<Cells>, Part)>> {
        let parts = self.parts(address, len);
        let parts = parts.map(|part| Some((self.present.get(part.0)?, part)));
        parts.collect()
    }
}

impl ArenaObject for Arena {
    fn user_start(&self) -> u64 {
        self.start()
    }

    fn bytes(&self) -> u64 {
        u64::from(self.pages) * PAGE
    }

    fn keeps_offsets(&self) -> bool {
        self.flags.has(MapFlags::NO_USER_CONV)
    }

    fn read(&self, address: u32, into: &mut [u8]) -> bool {
        let Some(parts) = self.present_parts(address, into.len()) else {
            return false;
        };
        for (cells, (_, offset, part)) in parts {
            let page = cells.slice(0, PAGE as usize);
            page.read(offset, &mut into[part]);
        }
        true
    }

    fn write(&self, address: u32, bytes: &[u8]) -> bool {
        let Some(parts) = self.present_parts(address, bytes.len()) else {
            return false;
        };
        for (cells, (_, offset, part)) in parts {
            let page = cells.slice(0, PAGE as usize);
            page.write(offset, &bytes[part]);
        }
        true
    }

    fn replace(&self, address: u32, size: usize, update: &dyn Fn(u64) -> u64) -> Option<u64> {
        let cells = self.present.get(self.page_of(address))?;
        let (page, offset) = (
            cells.slice(0, PAGE as usize),
            address as usize % PAGE as usize,
        );
        match (size, offset % size.max(1)) {
            (8, 0) => Some(page.update::<8>(offset, update)),
            (4, 0) => Some(page.update::<4>(offset, update)),
            _ => None,
        }
    }

    fn allocate(&self, address: u64, pages: u32) -> u64 {
        if pages == 0 || pages > self.pages || !address.is_multiple_of(PAGE) {
            return 0;
        }
        let mut space = self.space();
        let first = match address {
            0 => space.free.find(pages),
            _ => {
                let page = self.page_of(address as u32);
                let is_free = page <= self.pages - pages && space.free.contain(page, pages);
                is_free.then_some(page)
            }
        };
        match first {
            Some(first) if self.make(&mut space, first, pages) => {
                self.user_start + u64::from(first) * PAGE
            }
            _ => 0,
        }
    }

    fn free(&self, address: u64, pages: u32) {
        let upper = self.user_start & !u64::from(u32::MAX);
        let start = upper | u64::from(address as u32) & !(PAGE - 1);
        let end = start.saturating_add(u64::from(pages) * PAGE);
        let end = end.min(self.end());
        if start < self.user_start || start >= end {
            return;
        }
        let first = ((start - self.user_start) / PAGE) as u32;
        let pages = ((end - start) / PAGE) as u32;
        let mut space = self.space();
        space.free.add(first, pages);
        for page in first..first + pages {
            if self.present.set(page, None).is_some() {
                space.present -= 1;
                self.charge.remove(PAGE);
            }
        }
    }

    fn reserve(&self, address: u64, pages: u32) -> Result {
        if pages == 0 || !address.is_multiple_of(PAGE) {
            return Ok(());
        }
        let first = self.page_of(address as u32);
        if u64::from(first) + u64::from(pages) > u64::from(self.pages) {
            return Err(Errno::EINVAL);
        }
        let mut space = self.space();
        Errno::EBUSY.when(!space.free.contain(first, pages))?;
        space.free.remove(first, pages);
        Ok(())
    }
}

impl MapOperations for Arena {
    fn arena(&self) -> Option<&dyn ArenaObject> {
        Some(self)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }
}

impl SyscallOperations for Arena {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::EINVAL)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64, _: &dyn Resources) -> Result {
        Err(Errno::EOPNOTSUPP)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }
}

#[cfg(test)]
mod tests {
    use program::MapParams;
    use spec::maps::MapKind;

    use super::*;
    use crate::maps::{Host, Map, ValueLayout};

    const START: u64 = 0x1234_0001_0000;

    fn arena(pages: u32, extra: u64, more: u32) -> Map {
        let params = MapParams {
            map_type: MapKind::Arena.number(),
            max_entries: pages,
            flags: MapFlags(MapFlags::MMAPABLE.0 | more),
            extra,
            ..MapParams::default()
        };
        Map::create(&params, ValueLayout::plain(0), &Host::default()).unwrap()
    }

    #[test]
    fn pages_are_zero_and_lost_when_freed() {
        let map = arena(4, START, 0);
        let arena = map.of_kind::<Arena>().unwrap();
        let page = arena.allocate(0, 2);
        assert_eq!(page, START);
        assert!(ArenaObject::write(
            arena,
            page as u32 + 4093,
            &[1, 2, 3, 4, 5]
        ));
        let mut bytes = [9; 5];
        assert!(ArenaObject::read(arena, page as u32 + 4093, &mut bytes));
        assert_eq!(bytes, [1, 2, 3, 4, 5]);
        assert_eq!(
            arena.replace(page as u32 + 4096, 4, &|old| old + 1),
            Some(0x0504)
        );
        assert_eq!(arena.replace(page as u32 + 4097, 4, &|old| old + 1), None);
        arena.free(page, 1);
        assert!(!ArenaObject::read(arena, page as u32 + 4093, &mut bytes));
        assert!(!ArenaObject::write(arena, page as u32 + 4093, &[0; 5]));
        assert_eq!(arena.present_pages(), 1);
        assert_eq!(arena.allocate(0, 1), START);
        assert!(ArenaObject::read(arena, page as u32 + 4093, &mut bytes));
        assert_eq!(bytes, [0, 0, 0, 5, 5]);
    }

    #[test]
    fn ranges_outside_or_taken_are_refused() {
        let map = arena(4, START, 0);
        let arena = map.of_kind::<Arena>().unwrap();
        assert_eq!(
            ArenaObject::reserve(arena, START + 4096, 4),
            Err(Errno::EINVAL)
        );
        assert_eq!(
            ArenaObject::reserve(arena, START - 4096, 1),
            Err(Errno::EINVAL)
        );
        assert_eq!(ArenaObject::reserve(arena, START + 1, 1), Ok(()));
        assert_eq!(ArenaObject::reserve(arena, START + 4096, 2), Ok(()));
        assert_eq!(ArenaObject::reserve(arena, START, 2), Err(Errno::EBUSY));
        assert_eq!(arena.allocate(START + 4096, 1), 0);
        assert_eq!(arena.allocate(0, 2), 0);
        assert_eq!(arena.allocate(0, 5), 0);
        assert_eq!(arena.allocate(START + 3 * 4096, 1), START + 3 * 4096);
        arena.free(START - 4096, 2);
        arena.free(START + 4096, 100);
        assert_eq!(arena.allocate(0, 4), START);
    }

    #[test]
    fn the_host_makes_pages_by_using_them() {
        let map = arena(4, 0, 0);
        let arena = map.of_kind::<Arena>().unwrap();
        let start = arena.user_start();
        let mut byte = [7];
        assert_eq!(arena.read_as_user(start + 4095, &mut byte), Ok(()));
        assert_eq!((byte[0], arena.present_pages()), (0, 1));
        assert_eq!(arena.write_as_user(start + 8190, &[1; 4]), Ok(()));
        let pages: Vec<u64> = arena.pages().map(|(page, _)| page - start).collect();
        assert_eq!(pages, [0, 4096, 8192]);
        assert_eq!(
            arena.write_as_user(start + 16383, &[1; 2]),
            Err(Errno::EFAULT)
        );
        assert_eq!(arena.read_as_user(start - 1, &mut byte), Err(Errno::EFAULT));
        let map = self::arena(4, 0, MapFlags::SEGV_ON_FAULT.0);
        let arena = map.of_kind::<Arena>().unwrap();
        assert_eq!(arena.read_as_user(start, &mut byte), Err(Errno::EFAULT));
        assert_eq!(arena.allocate(0, 1), start);
        assert_eq!(arena.read_as_user(start, &mut byte), Ok(()));
    }

    #[test]
    fn memory_is_limited() {
        let map = arena(1 << 20, 0, 0);
        let arena = map.of_kind::<Arena>().unwrap();
        assert_eq!(arena.user_start() as u32, 0);
        assert_eq!(arena.allocate(0, MOST_PAGES + 1), 0);
        assert_eq!(arena.present_pages(), 0);
        assert_ne!(arena.allocate(0, 1), 0);
    }
}
