//! Writes records into a `user_ringbuf` map of the running kernel through its mapped pages
//! (`kernel/bpf/ringbuf.c`: consumer position, producer position, then the data twice).

use super::Map;
use crate::Errno;
use memmap2::{MmapMut, MmapOptions};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Size of a memory page in bytes.
const PAGE: usize = 4096;
/// Bytes of the header of a record.
const HEADER: usize = 8;

/// The writing side of a user ring buffer, for one writer at a time.
#[derive(Debug)]
pub struct UserRingBuffer {
    /// The page of the producer, then the data twice.
    ring: MmapMut,
    /// Bytes of the data, a power of two.
    size: usize,
}

impl UserRingBuffer {
    /// Maps the pages of a map of kind `user_ringbuf`; fails for every other kind.
    pub fn open(map: &Map) -> Result<UserRingBuffer, Errno> {
        let size = map.info()?.max_entries as usize;
        // SAFETY: the kernel and this process share the pages; both reach positions and
        // headers only by atomic operations, and the kernel reads the bytes of a record
        // only behind the position that is stored after them.
        let ring = unsafe {
            MmapOptions::new()
                .offset(PAGE as u64)
                .len(PAGE + 2 * size)
                .map_mut(map.descriptor() as i32)
        }?;
        Ok(UserRingBuffer { ring, size })
    }

    /// Adds a record behind those that wait; the caller knows that there is room.
    ///
    /// # Panics
    /// If the record is larger than the ring.
    pub fn write(&mut self, record: &[u8]) {
        assert!(HEADER + record.len() <= self.size, "a record that fits");
        let position = self.producer().load(Ordering::Acquire);
        let start = PAGE + (position as usize & (self.size - 1));
        self.ring[start + HEADER..][..record.len()].copy_from_slice(record);
        self.header(start)
            .store(record.len() as u32, Ordering::Release);
        let end = position + (HEADER + record.len()).next_multiple_of(8) as u64;
        self.producer().store(end, Ordering::Release);
    }

    fn producer(&self) -> &AtomicU64 {
        // SAFETY: the mapping starts with the producer's page, aligned, shared and writable;
        // it lives as long as the reference.
        unsafe { &*self.ring.as_ptr().cast::<AtomicU64>() }
    }

    /// The first four bytes of a record's header, at an offset into the mapping.
    fn header(&self, start: usize) -> &AtomicU32 {
        let header = &self.ring[start..start + HEADER];
        // SAFETY: the slice is inside the mapping; records start at multiples of 8.
        unsafe { &*header.as_ptr().cast::<AtomicU32>() }
    }
}
