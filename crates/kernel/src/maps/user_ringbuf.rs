//! `user_ringbuf`: samples from the host to programs (`kernel/bpf/ringbuf.c` of Linux).
//!
//! A sample has a header of 8 bytes, its length, and starts at a multiple of 8. As Linux maps
//! the pages twice, a sample that reaches beyond the end is contiguous; here the memory
//! behind the end is as large as the ring. The host writes each sample in one step, so
//! programs find no sample that is incomplete or has no valid length.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use spec::Errno;
use vm::{CELL_BYTES, CellSlice, Cells};

use super::{Definition, Operations};

/// Bytes of the header of a sample.
const HEADER: u64 = 8;

/// Most bytes that a dynptr spans (`DYNPTR_MAX_SIZE`).
const MOST_SAMPLE: u64 = (1 << 24) - 1;

/// A ring of samples.
#[derive(Debug)]
pub struct UserRing {
    cells: Cells,
    /// Bytes of the ring, a power of two.
    size: u64,
    /// Where programs read next, in bytes ever written.
    consumer: AtomicU64,
    producer: AtomicU64,
    /// Held while the host writes.
    writer: Mutex<()>,
    /// Held while a program reads.
    reader: Mutex<()>,
}

/// Samples that a program reads; no other run reads meanwhile.
#[derive(Debug)]
pub struct UserSamples<'a> {
    ring: &'a UserRing,
    _reader: MutexGuard<'a, ()>,
}

/// A sample that was not released yet.
#[derive(Clone, Copy, Debug)]
pub struct UserSample<'a> {
    /// Its bytes.
    pub bytes: CellSlice<'a>,
    total: u64,
}

impl UserRing {
    pub(super) fn new(map: &Definition) -> Result<UserRing, Errno> {
        let size = u64::from(map.params.max_entries);
        let cells = 2 * size as usize / CELL_BYTES;
        Ok(UserRing {
            cells: Cells::zeroed(cells).map_err(|_| Errno::ENOMEM)?,
            size,
            consumer: AtomicU64::new(0),
            producer: AtomicU64::new(0),
            writer: Mutex::new(()),
            reader: Mutex::new(()),
        })
    }

    /// Adds a sample. E2BIG if it is larger than the ring, ENOSPC if there is no room now.
    pub fn write(&self, sample: &[u8]) -> Result<(), Errno> {
        let len = sample.len() as u64;
        let total = (len + HEADER).next_multiple_of(8);
        if len > MOST_SAMPLE || total > self.size {
            return Err(Errno::E2BIG);
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (consumer, producer) = (self.consumer.load(Acquire), self.producer.load(Relaxed));
        if producer + total - consumer > self.size {
            return Err(Errno::ENOSPC);
        }
        let start = self.cell(producer);
        self.cells.slice(start + 1, sample.len()).write(0, sample);
        self.cells.as_slice()[start].store(len, Relaxed);
        self.producer.store(producer + total, Release);
        Ok(())
    }

    /// Starts to read (`bpf_user_ringbuf_drain`). EBUSY while another run does.
    pub fn read(&self) -> Result<UserSamples<'_>, Errno> {
        let reader = match self.reader.try_lock() {
            Ok(reader) => reader,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Errno::EBUSY),
        };
        Ok(UserSamples {
            ring: self,
            _reader: reader,
        })
    }

    fn cell(&self, position: u64) -> usize {
        (position & (self.size - 1)) as usize / CELL_BYTES
    }
}

impl<'a> UserSamples<'a> {
    /// The oldest sample that was not released, if there is one.
    pub fn next(&self) -> Option<UserSample<'a>> {
        let ring = self.ring;
        let (producer, consumer) = (ring.producer.load(Acquire), ring.consumer.load(Relaxed));
        (consumer < producer).then(|| {
            let start = ring.cell(consumer);
            let len = ring.cells.as_slice()[start].load(Relaxed);
            UserSample {
                bytes: ring.cells.slice(start + 1, len as usize),
                total: (len + HEADER).next_multiple_of(8),
            }
        })
    }

    /// Ends the reading of the oldest sample, whose room is the host's again.
    pub fn release(&self, sample: UserSample<'a>) {
        let consumer = self.ring.consumer.load(Relaxed);
        self.ring.consumer.store(consumer + sample.total, Release);
    }
}

impl Operations for UserRing {
    fn update(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn user_ring(&self) -> Option<&UserRing> {
        Some(self)
    }
}
