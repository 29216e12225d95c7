//! `user_ringbuf`: samples from the host to programs (`kernel/bpf/ringbuf.c` of Linux).
//!
//! A sample has a header of 8 bytes, its length, and starts at a multiple of 8. As Linux maps
//! the pages twice, a sample that reaches beyond the end is contiguous; here the memory
//! behind the end is as large as the ring. The host writes each sample in one step, so
//! programs find no sample that is incomplete or has no valid length.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use vm::sync::Mutex;
use vm::sync::atomic::AtomicU64;
use vm::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use spec::limits::{self, DYNPTR_SIZE};
use spec::{Errno, Result};
use vm::{CELL_BYTES, CellSlice, Cells, MapOperations, RunGuard, Samples, SamplesReader, ValueOf};

use super::memory::Charge;
use super::resources::Resources;
use super::{Definition, SyscallOperations};

/// Bytes of the header of a sample.
const HEADER: u64 = 8;

/// Bytes of a dynptr.
const DYNPTR: usize = DYNPTR_SIZE as usize;

/// A ring of samples.
#[derive(Debug)]
pub struct UserRing {
    cells: Cells,
    /// Bytes of the ring, a power of two.
    size: u64,
    /// Read position of programs, in bytes ever written.
    consumer: AtomicU64,
    producer: AtomicU64,
    /// Held while the host writes.
    writer: Mutex<()>,
    /// True while a program reads.
    is_busy: Arc<AtomicBool>,
    /// The dynptr by which the reader gets each sample.
    dynptr: Cells,
}

/// Samples that a program reads; no other run reads meanwhile.
#[derive(Debug)]
pub struct UserSamples<'a> {
    ring: &'a UserRing,
    _reader: SamplesReader,
}

/// A sample that was not released yet.
#[derive(Clone, Copy, Debug)]
pub struct UserSample<'a> {
    /// Its bytes.
    pub bytes: CellSlice<'a>,
    total: u64,
}

impl UserRing {
    pub(super) fn new(map: &Definition, charge: &Charge) -> Result<UserRing> {
        let size = u64::from(map.params.max_entries);
        let cells = (2 * size / CELL_BYTES as u64) as usize;
        Ok(UserRing {
            cells: charge.cells(cells)?,
            size,
            consumer: AtomicU64::new(0),
            producer: AtomicU64::new(0),
            writer: Mutex::new(()),
            is_busy: Arc::default(),
            dynptr: Cells::zeroed(DYNPTR / CELL_BYTES).map_err(|_| Errno::ENOMEM)?,
        })
    }

    /// Adds a sample. E2BIG if it is larger than the ring, ENOSPC if there is no room now.
    pub fn write(&self, sample: &[u8]) -> Result {
        let len = sample.len() as u64;
        let total = (len + HEADER).next_multiple_of(8);
        if len > limits::DYNPTR.into() || total > self.size {
            return Err(Errno::E2BIG);
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (consumer, producer) = (self.consumer.load(Acquire), self.producer.load(Relaxed));
        Errno::ENOSPC.when(producer + total - consumer > self.size)?;
        let start = self.cell(producer);
        self.cells.slice(start + 1, sample.len()).write(0, sample);
        self.cells.as_slice()[start].store(len, Relaxed);
        self.producer.store(producer + total, Release);
        Ok(())
    }

    /// Starts to read (`bpf_user_ringbuf_drain`). EBUSY while another run does.
    pub fn read(&self) -> Result<UserSamples<'_>> {
        Ok(UserSamples {
            ring: self,
            _reader: self.start()?,
        })
    }

    /// The oldest sample that was not released, if there is one.
    fn oldest(&self) -> Option<UserSample<'_>> {
        let (producer, consumer) = (self.producer.load(Acquire), self.consumer.load(Relaxed));
        (consumer < producer).then(|| {
            let start = self.cell(consumer);
            let len = self.cells.as_slice()[start].load(Relaxed);
            UserSample {
                bytes: self.cells.slice(start + 1, len as usize),
                total: (len + HEADER).next_multiple_of(8),
            }
        })
    }

    fn cell(&self, position: u64) -> usize {
        (position & (self.size - 1)) as usize / CELL_BYTES
    }
}

impl<'a> UserSamples<'a> {
    /// The oldest sample that was not released, if there is one.
    pub fn next(&self) -> Option<UserSample<'a>> {
        self.ring.oldest()
    }

    /// Ends the reading of the oldest sample, whose room is the host's again.
    pub fn release(&self, sample: UserSample<'a>) {
        let consumer = self.ring.consumer.load(Relaxed);
        self.ring.consumer.store(consumer + sample.total, Release);
    }
}

impl Samples for UserRing {
    fn start(&self) -> Result<SamplesReader> {
        SamplesReader::new(&self.is_busy).ok_or(Errno::EBUSY)
    }

    fn oldest_len(&self) -> u32 {
        self.oldest().map_or(0, |sample| sample.bytes.len() as u32)
    }

    fn release(&self) {
        if let Some(sample) = self.oldest() {
            self.consumer.fetch_add(sample.total, Release);
        }
    }
}

impl MapOperations for UserRing {
    fn find<'g>(&'g self, _: &'g RunGuard, what: ValueOf<'_>) -> Option<CellSlice<'g>> {
        match what {
            ValueOf::Sample => self.oldest().map(|sample| sample.bytes),
            ValueOf::SampleDynptr => Some(self.dynptr.slice(0, DYNPTR)),
            ValueOf::Owner(..) | ValueOf::Local(_) => None,
        }
    }

    fn samples(&self) -> Option<&dyn Samples> {
        Some(self)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }
}

impl SyscallOperations for UserRing {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }

    fn store(&self, _: &[u8], _: &[u8], _: u64, _: &dyn Resources) -> Result {
        Err(Errno::ENOTSUPP)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }
}
