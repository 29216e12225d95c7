//! Reads the records of a `ringbuf` map of the running kernel through its mapped pages
//! (`kernel/bpf/ringbuf.c`: consumer position, producer position, then the data twice).

use super::Map;
use crate::Errno;
use memmap2::{Mmap, MmapMut, MmapOptions};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Size of a memory page in bytes.
const PAGE: usize = 4096;
/// Bytes of the header of a record.
const HEADER: usize = 8;
/// The program still writes the record (BPF_RINGBUF_BUSY_BIT).
const BUSY: u32 = 1 << 31;
/// The reader skips the record (BPF_RINGBUF_DISCARD_BIT).
const DISCARDED: u32 = 1 << 30;

/// The reading side of a ring buffer. The kernel serves one reader at a time.
#[derive(Debug)]
pub struct RingBuffer {
    consumer: MmapMut,
    /// The page of the producer, then the data twice.
    ring: Mmap,
    /// Bytes of the data, a power of two.
    size: usize,
}

impl RingBuffer {
    /// Maps the pages of a map of kind `ringbuf`; fails for every other kind.
    pub fn open(map: &Map) -> Result<RingBuffer, Errno> {
        let info = map.info()?;
        let size = info.max_entries as usize;
        let fd = map.descriptor() as i32;
        // SAFETY: the kernel and this process share the pages; both reach positions and
        // headers only by atomic operations, and `next_record` copies the bytes of a record
        // only when the kernel has finished it and before it may be overwritten.
        let consumer = unsafe { MmapOptions::new().len(PAGE).map_mut(fd) }?;
        // SAFETY: as above.
        let ring = unsafe {
            MmapOptions::new()
                .offset(PAGE as u64)
                .len(PAGE + 2 * size)
                .map(fd)
        }?;
        Ok(RingBuffer {
            consumer,
            ring,
            size,
        })
    }

    /// The oldest record that is complete, which makes room in the ring; `None` if there is
    /// none. Discarded records are skipped.
    pub fn next_record(&mut self) -> Option<Vec<u8>> {
        loop {
            let position = self.consumer().load(Ordering::Acquire);
            if position == self.producer().load(Ordering::Acquire) {
                return None;
            }
            let start = PAGE + (position as usize & (self.size - 1));
            let header = self.header(start).load(Ordering::Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let len = (header & !DISCARDED) as usize;
            let bytes = start + HEADER..start + HEADER + len;
            let record = (header & DISCARDED == 0).then(|| self.ring[bytes].to_vec());
            let end = position + (HEADER + len).next_multiple_of(8) as u64;
            self.consumer().store(end, Ordering::Release);
            if record.is_some() {
                return record;
            }
        }
    }

    fn consumer(&self) -> &AtomicU64 {
        // SAFETY: the mapping is a page, aligned, shared and writable; it lives as long as
        // the reference.
        unsafe { &*self.consumer.as_ptr().cast::<AtomicU64>() }
    }

    fn producer(&self) -> &AtomicU64 {
        // SAFETY: the mapping starts with the producer's page and is only loaded from.
        unsafe { &*self.ring.as_ptr().cast::<AtomicU64>() }
    }

    /// The first four bytes of a record's header, at an offset into the mapping.
    fn header(&self, start: usize) -> &AtomicU32 {
        let header = &self.ring[start..start + HEADER];
        // SAFETY: the slice is inside the mapping; records start at multiples of 8; it is
        // only loaded from.
        unsafe { &*header.as_ptr().cast::<AtomicU32>() }
    }
}
