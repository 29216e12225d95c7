//! Arenas as programs and engines reach them.

use std::fmt;

use spec::Result;

/// Bytes of a page of an arena.
pub const ARENA_PAGE: u64 = 4096;

/// An arena: memory of up to 4 GiB in whole pages, which programs allocate and free and user
/// space maps.
///
/// User space sees it at an address of 64 bits; programs access it by the lower 32 bits of
/// that address. Loads from pages that are not there give 0, stores to them are dropped.
pub trait ArenaObject: fmt::Debug + Send + Sync {
    /// Address of the first byte in user space, a multiple of [`ARENA_PAGE`].
    fn user_start(&self) -> u64;

    /// Bytes from the first to the end, a multiple of [`ARENA_PAGE`].
    fn bytes(&self) -> u64;

    /// True if programs keep pointers in their 32-bit form in memory too
    /// (`BPF_F_NO_USER_CONV`).
    fn keeps_offsets(&self) -> bool;

    /// Reads bytes at a 32-bit address; false if one of them is on a page that is not there.
    fn read(&self, address: u32, into: &mut [u8]) -> bool;

    /// Writes bytes at a 32-bit address; false, and nothing is written, if one of them is on a
    /// page that is not there.
    fn write(&self, address: u32, bytes: &[u8]) -> bool;

    /// Replaces the 4 or 8 bytes at a 32-bit address, a number aligned to its size, by what
    /// `update` makes of it, in one step; returns the old number. `None` if the page is not
    /// there.
    fn replace(&self, address: u32, size: usize, update: &dyn Fn(u64) -> u64) -> Option<u64>;

    /// Allocates pages of zeros (`bpf_arena_alloc_pages`): at an address in user space, or
    /// anywhere if that is 0. Returns the address in user space, 0 without such a range.
    fn allocate(&self, address: u64, pages: u32) -> u64;

    /// Frees the pages of a range, which may be reserved or free already
    /// (`bpf_arena_free_pages`). The upper half of the address does not count.
    fn free(&self, address: u64, pages: u32);

    /// Keeps free pages from being allocated (`bpf_arena_reserve_pages`).
    ///
    /// # Errors
    /// EINVAL outside the arena, EBUSY if a page is allocated or reserved.
    fn reserve(&self, address: u64, pages: u32) -> Result;
}

/// The 32-bit address that an access `offset` bytes from a pointer into an arena has; `None` in
/// the guards of 32 KiB in front of the 4 GiB and behind them, where no page is.
pub fn arena_address(pointer: u64, offset: i64) -> Option<u32> {
    u32::try_from(pointer.wrapping_add_signed(offset)).ok()
}

/// The address in user space of what a pointer of a program refers to, whose lower half only
/// counts; a null pointer stays one.
pub fn arena_user_address(arena: &dyn ArenaObject, pointer: u64) -> u64 {
    let lower = u64::from(pointer as u32);
    match lower {
        0 => 0,
        _ if arena.keeps_offsets() => lower,
        _ => arena.user_start() & !u64::from(u32::MAX) | lower,
    }
}
