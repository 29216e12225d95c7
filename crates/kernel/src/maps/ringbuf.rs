//! `ringbuf`: records from programs to the host, in the order in which they were reserved
//! (`kernel/bpf/ringbuf.c` of Linux).
//!
//! A record has a header of 8 bytes: its length, with bits that say whether the program still
//! writes it and whether the host skips it. Records start at multiples of 8. As Linux maps
//! the pages twice, a record that reaches beyond the end is contiguous; here the memory
//! behind the end is as large as the ring.

use std::sync::{Arc, PoisonError};

use spec::{Errno, Result};
use vm::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vm::sync::atomic::{AtomicU64, Ordering};
use vm::sync::{Mutex, MutexGuard};
use vm::{CELL_BYTES, CellSlice, Cells, MapFunction, MapOperations, RecordOutput};

use super::memory::Charge;
use super::resources::Resources;
use super::spin_lock::SpinLock;
use super::{Definition, SyscallOperations};

/// Bytes of the header of a record.
const HEADER: u64 = 8;

/// The program still writes the record.
const BUSY: u32 = 1 << 31;

/// The host skips the record.
const DISCARDED: u32 = 1 << 30;

/// Most bytes of a record.
const MOST_RECORD: u64 = (u32::MAX / 4) as u64;

/// Flags of submission: whether to wake the host.
const WAKEUP: u64 = 0b11;

/// A ring of records.
#[derive(Debug)]
pub struct Ring {
    cells: Cells,
    /// Bytes of the ring, a power of two.
    size: u64,
    /// Read position of the host, in bytes ever written.
    consumer: AtomicU64,
    producer: AtomicU64,
    /// Position of the first record that was busy when a record was reserved last.
    pending: AtomicU64,
    /// Held while a record is reserved.
    producers: SpinLock,
    /// Held while the host reads.
    reader: Mutex<()>,
}

impl Ring {
    pub(super) fn new(map: &Definition, charge: &Charge) -> Result<Ring> {
        let size = u64::from(map.params.max_entries);
        let cells = (2 * size / CELL_BYTES as u64) as usize;
        Ok(Ring {
            cells: charge.cells(cells)?,
            size,
            consumer: AtomicU64::new(0),
            producer: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            producers: SpinLock::default(),
            reader: Mutex::new(()),
        })
    }

    /// Takes the oldest record that is complete; skips discarded ones.
    pub fn consume(&self) -> Option<Vec<u8>> {
        let _reader = lock(&self.reader);
        loop {
            let consumer = self.consumer.load(Relaxed);
            if consumer == self.producer.load(Acquire) {
                return None;
            }
            let header = self.header(consumer).load(Acquire) as u32;
            if header & BUSY != 0 {
                return None;
            }
            let start = self.cell(consumer) + 1;
            let record = (header & DISCARDED == 0)
                .then(|| self.cells.slice(start, header as usize).to_vec());
            self.consumer.store(consumer + record_len(header), Release);
            if record.is_some() {
                return record;
            }
        }
    }

    #[inline(always)]
    fn header(&self, position: u64) -> &AtomicU64 {
        &self.cells.as_slice()[self.cell(position)]
    }

    #[inline(always)]
    fn cell(&self, position: u64) -> usize {
        (position & (self.size - 1)) as usize / CELL_BYTES
    }
}

impl RecordOutput for Ring {
    #[inline]
    fn output_with(&self, len: u64, flags: u64, fill: impl FnOnce(CellSlice<'_>)) -> Result {
        Errno::EINVAL.when(flags & !WAKEUP != 0)?;
        let (record, position) = self.reserve(len, 0).ok_or(Errno::EAGAIN)?;
        fill(record);
        // No other thread writes the header of a reserved record.
        self.header(position).store(len, Release);
        Ok(())
    }
}

impl MapOperations for Ring {
    /// `bpf_ringbuf_reserve`: a record of `len` bytes, if there is room.
    #[inline]
    fn reserve(&self, len: u64, flags: u64) -> Option<(CellSlice<'_>, u64)> {
        if flags != 0 || len > MOST_RECORD {
            return None;
        }
        let total = (len + HEADER).next_multiple_of(8);
        let producers = self.producers.lock();
        let mut pending = self.pending.load(Relaxed);
        let (consumer, producer) = (self.consumer.load(Acquire), self.producer.load(Relaxed));
        while pending < producer {
            let header = self.header(pending).load(Acquire) as u32;
            if header & BUSY != 0 {
                break;
            }
            pending += record_len(header);
        }
        let end = producer + total;
        self.pending.store(pending, Relaxed);
        if end - consumer >= self.size || end - pending >= self.size {
            return None;
        }
        self.header(producer).store(len | u64::from(BUSY), Relaxed);
        self.producer.store(end, Release);
        drop(producers);
        let start = self.cell(producer) + 1;
        Some((self.cells.slice(start, len as usize), producer))
    }

    /// `bpf_ringbuf_submit` and `bpf_ringbuf_discard`: ends the writing of a record. A
    /// position that is no reserved record's is ignored.
    fn submit(&self, position: u64, is_discarded: bool) {
        let discarded = if is_discarded { DISCARDED } else { 0 };
        let end = |header: u64| {
            let is_busy = header as u32 & BUSY != 0;
            is_busy.then_some(u64::from(header as u32 & !BUSY | discarded))
        };
        let _ = (self.header(position)).fetch_update(Ordering::AcqRel, Relaxed, end);
    }

    /// `bpf_ringbuf_output`: a record with these bytes.
    fn output(&self, bytes: &[u8], flags: u64) -> Result {
        self.output_with(bytes.len() as u64, flags, |record| record.write(0, bytes))
    }

    /// `bpf_ringbuf_query`: bytes that wait for the host (0), size of the ring (1), position
    /// of the host (2) and of programs (3); 0 for other numbers.
    fn query(&self, what: u64) -> u64 {
        let (consumer, producer) = (self.consumer.load(Acquire), self.producer.load(Acquire));
        match what {
            0 => producer - consumer,
            1 => self.size,
            2 => consumer,
            3 => producer,
            _ => 0,
        }
    }

    fn direct_output(self: Arc<Self>) -> Option<MapFunction> {
        Some(MapFunction::output(self))
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::ENOTSUPP)
    }
}

impl SyscallOperations for Ring {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is whole at any time, so a panic elsewhere does not matter.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that a record with this header takes.
fn record_len(header: u32) -> u64 {
    (u64::from(header & !(BUSY | DISCARDED)) + HEADER).next_multiple_of(8)
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;
    use program::MapParams;
    use spec::maps::MapKind;

    use super::super::ValueLayout;
    use super::*;

    /// A ring of so few bytes as no map may have.
    fn ring(bytes: u32) -> Arc<Ring> {
        let params = MapParams {
            map_type: MapKind::Ringbuf as u32,
            max_entries: bytes,
            ..MapParams::default()
        };
        let map = Definition {
            params,
            kind: MapKind::Ringbuf,
            value: ValueLayout::plain(0),
        };
        Arc::new(Ring::new(&map, &Charge::new(&Arc::default())).unwrap())
    }

    /// Takes the records that are complete, in so many attempts at most; they are whole.
    fn read(ring: &Ring, attempts: usize) -> Vec<u8> {
        let records = (0..attempts).filter_map(|_| ring.consume());
        let whole = records.map(|record| {
            assert_eq!(record, [record[0]; 8], "a torn record");
            record[0]
        });
        whole.collect()
    }

    /// Runs a writer while another thread reads, and returns all that is read. The writer
    /// comes first: loom checks a load of a place against stores before it, but of several
    /// loads before a store the last one only.
    fn write_and_read<T>(ring: &Arc<Ring>, write: impl FnOnce(&Ring) -> T) -> (Vec<u8>, T) {
        let reader = {
            let ring = Arc::clone(ring);
            thread::spawn(move || read(&ring, 3))
        };
        let written = write(ring);
        let mut numbers = reader.join().unwrap();
        numbers.extend(read(ring, 4));
        (numbers, written)
    }

    #[test]
    fn records_of_two_threads_are_whole() {
        loom::model(|| {
            let ring = ring(64);
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || ring.output(&[1; 8], 0).unwrap())
            };
            ring.output(&[2; 8], 0).unwrap();
            writer.join().unwrap();
            let mut numbers = read(&ring, 3);
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 2]);
            assert_eq!(ring.query(0), 0);
        });
    }

    #[test]
    fn a_reader_finds_whole_records_while_they_are_written() {
        loom::model(|| {
            let (numbers, ()) = write_and_read(&ring(64), |ring| {
                ring.output(&[1; 8], 0).unwrap();
                ring.output(&[2; 8], 0).unwrap();
            });
            assert_eq!(numbers, [1, 2]);
        });
    }

    #[test]
    fn a_record_that_waits_holds_back_those_behind_it() {
        loom::model(|| {
            let ring = ring(128);
            let first = ring.reserve(8, 0).unwrap().1;
            ring.output(&[2; 8], 0).unwrap();
            let (numbers, ()) = write_and_read(&ring, |ring| {
                let start = ring.cell(first) + 1;
                ring.cells.slice(start, 8).write(0, &[1; 8]);
                ring.submit(first, false);
                let discarded = ring.reserve(8, 0).unwrap().1;
                ring.submit(discarded, true);
            });
            assert_eq!(numbers, [1, 2]);
        });
    }

    #[test]
    fn the_place_of_a_record_is_read_before_it_is_written_again() {
        loom::model(|| {
            // Records of 16 bytes: the ring has room for one of them.
            let ring = ring(32);
            ring.output(&[1; 8], 0).unwrap();
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || {
                    let written = [2, 3].map(|number| ring.output(&[number; 8], 0).is_ok());
                    written.iter().filter(|written| **written).count()
                })
            };
            let mut numbers = read(&ring, 2);
            let written = writer.join().unwrap();
            numbers.extend(read(&ring, 3));
            assert_eq!(numbers.len(), 1 + written);
            assert!(numbers.is_sorted(), "{numbers:?}");
        });
    }
}
