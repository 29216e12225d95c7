//! Maps without keys: queues, stacks, filters, rings and perf buffers.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::MapOperations as _;

use super::super::super::{PerfBuffer, Resources, Ring, UserRing, ValueLayout};
use super::super::ring;
use super::{CPUS, THREADS, in_threads, map, rounds};

/// Number of a thread, and of a value among its values.
fn value_of(thread: u32, round: u32) -> [u8; 8] {
    u64::from(thread << 24 | round).to_le_bytes()
}

/// Checks the values that threads took: each of so many of every writer once, and if
/// `is_ordered` each taker's values of a writer in the order of their addition.
fn assert_all(taken: &[Vec<u64>], writers: u32, values: u32, is_ordered: bool) {
    for taken in taken.iter().filter(|_| is_ordered) {
        for writer in 0..writers {
            let own = taken
                .iter()
                .filter(|value| **value >> 24 == u64::from(writer));
            assert!(own.is_sorted(), "values of {writer} in another order");
        }
    }
    let mut all: Vec<u64> = taken.iter().flatten().copied().collect();
    all.sort_unstable();
    let value = |writer, round| u64::from_le_bytes(value_of(writer, round));
    let expected = (0..writers).flat_map(|writer| (0..values).map(move |it| value(writer, it)));
    assert!(
        all.into_iter().eq(expected),
        "values are lost or there twice"
    );
}

#[test]
fn queues_and_stacks_give_each_value_once() {
    for kind in [MapKind::Queue, MapKind::Stack] {
        for threads in THREADS {
            let map = map(kind, 0, ValueLayout::plain(8), 16, MapFlags(0));
            let (writers, values) = (threads / 2, rounds(4_000));
            let waiting = AtomicU32::new(writers);
            let taken = Mutex::new(Vec::new());
            in_threads(threads, |number, mut random| {
                if number < writers {
                    for round in 0..values {
                        let value = value_of(number, round);
                        while let Err(errno) = map.operations().push(&value, 0) {
                            assert_eq!(errno, Errno::E2BIG, "{kind:?}");
                            thread::yield_now();
                        }
                    }
                    waiting.fetch_sub(1, Release);
                    return;
                }
                let mut own = Vec::new();
                let mut value = [0; 8];
                loop {
                    let is_last = waiting.load(Acquire) == 0;
                    let popped = match random.below(2) {
                        0 => map.operations().pop(&mut value),
                        _ => map.lookup_and_delete(&[], &mut value, 0),
                    };
                    match popped {
                        Ok(()) => own.push(u64::from_le_bytes(value)),
                        Err(errno) => {
                            assert_eq!((errno, value), (Errno::ENOENT, [0; 8]), "{kind:?}");
                            if is_last {
                                break;
                            }
                            thread::yield_now();
                        }
                    }
                    let _ = map.operations().peek(&mut value);
                }
                taken.lock().unwrap().push(own);
            });
            let taken = taken.into_inner().unwrap();
            assert_all(&taken, writers, values, kind == MapKind::Queue);
        }
    }
}

#[test]
fn a_filter_finds_all_that_was_added() {
    for threads in THREADS {
        let map = map(
            MapKind::BloomFilter,
            0,
            ValueLayout::plain(8),
            1_000,
            MapFlags(0),
        );
        in_threads(threads, |number, _| {
            for round in 0..rounds(4_000) {
                let mut value = value_of(number, round);
                map.operations().push(&value, 0).unwrap();
                assert_eq!(map.operations().peek(&mut value), Ok(()));
            }
        });
        for number in 0..threads {
            for round in 0..rounds(4_000) {
                let mut value = value_of(number, round);
                assert_eq!(map.lookup(&[], &mut value, 0), Ok(()));
            }
        }
    }
}

#[test]
fn rings_give_whole_records_in_the_order_of_each_writer() {
    for threads in THREADS {
        // So small that writers wait for the reader.
        let map = ring(4096);
        let ring = map.of_kind::<Ring>().unwrap();
        let (writers, values) = (threads - 1, rounds(4_000));
        let taken = Mutex::new(Vec::new());
        in_threads(threads, |number, mut random| {
            if number < writers {
                for round in 0..values {
                    let words = 1 + random.below(20) as usize;
                    let bytes = value_of(number, round).repeat(words);
                    match random.below(3) {
                        0 => until_room(|| ring.output(&bytes, 0).ok()),
                        kept => {
                            let (record, at) = until_room(|| ring.reserve(bytes.len() as u64, 0));
                            record.write(0, &bytes);
                            ring.submit(at, false);
                            if kept == 1 {
                                let (_, at) = until_room(|| ring.reserve(24, 0));
                                ring.submit(at, true);
                            }
                        }
                    }
                }
                return;
            }
            let mut own = Vec::new();
            while own.len() < (writers * values) as usize {
                let Some(record) = ring.consume() else {
                    thread::yield_now();
                    continue;
                };
                let words = record.as_chunks::<8>().0;
                assert!(words.iter().all(|word| *word == words[0]), "a torn record");
                own.push(u64::from_le_bytes(words[0]));
                let (waiting, size) = (ring.query(0), ring.query(1));
                // Both positions are read one after the other.
                assert!(waiting <= 2 * size, "{waiting} bytes wait");
            }
            taken.lock().unwrap().push(own);
        });
        assert_all(&taken.into_inner().unwrap(), writers, values, true);
        while ring.consume().is_some() {}
        assert_eq!(ring.query(0), 0);
    }
}

/// Tries until there is room.
fn until_room<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        match attempt() {
            Some(done) => return done,
            None => thread::yield_now(),
        }
    }
}

#[test]
fn programs_drain_each_sample_once() {
    for threads in THREADS {
        let map = map_of_samples();
        let ring = map.of_kind::<UserRing>().unwrap();
        let (writers, values) = (threads / 2, rounds(4_000));
        let waiting = AtomicU32::new(writers);
        let taken = Mutex::new(Vec::new());
        in_threads(threads, |number, _| {
            if number < writers {
                for round in 0..values {
                    let sample = value_of(number, round).repeat(1 + round as usize % 9);
                    until_room(|| match ring.write(&sample) {
                        Ok(()) => Some(()),
                        Err(errno) => {
                            assert_eq!(errno, Errno::ENOSPC);
                            None
                        }
                    });
                }
                waiting.fetch_sub(1, Release);
                return;
            }
            let mut own = Vec::new();
            loop {
                let is_last = waiting.load(Acquire) == 0;
                let samples = match ring.read() {
                    Ok(samples) => samples,
                    Err(errno) => {
                        assert_eq!(errno, Errno::EBUSY);
                        thread::yield_now();
                        continue;
                    }
                };
                let Some(sample) = samples.next() else {
                    drop(samples);
                    if is_last {
                        break;
                    }
                    thread::yield_now();
                    continue;
                };
                let bytes = sample.bytes.to_vec();
                let words = bytes.as_chunks::<8>().0;
                assert!(words.iter().all(|word| *word == words[0]), "a torn sample");
                own.push(u64::from_le_bytes(words[0]));
                samples.release(sample);
            }
            taken.lock().unwrap().push(own);
        });
        assert_all(&taken.into_inner().unwrap(), writers, values, true);
    }
}

fn map_of_samples() -> super::Map {
    map(
        MapKind::UserRingbuf,
        0,
        ValueLayout::plain(0),
        4096,
        MapFlags(0),
    )
}

/// A perf buffer of each CPU by its number.
struct Buffers(Vec<Arc<PerfBuffer>>);

impl Resources for Buffers {
    fn perf_buffer(&self, descriptor: u32) -> Option<Arc<PerfBuffer>> {
        self.0.get(descriptor as usize).cloned()
    }
}

#[test]
fn perf_buffers_count_what_they_lose() {
    for threads in THREADS {
        let map = map(
            MapKind::PerfEventArray,
            4,
            ValueLayout::plain(4),
            CPUS,
            MapFlags(0),
        );
        let buffers = Buffers(
            (0..CPUS)
                .map(|cpu| PerfBuffer::new(cpu, 256).into())
                .collect(),
        );
        for cpu in 0..CPUS {
            let number = cpu.to_le_bytes();
            map.update_with(&number, &number, 0, &buffers).unwrap();
        }
        // Half of the threads are programs, the others read.
        let (programs, values) = (threads / 2, rounds(4_000));
        let waiting = AtomicU32::new(programs);
        in_threads(threads, |number, _| {
            if number < programs {
                let mut written = 0;
                for round in 0..values {
                    let value = value_of(number, round);
                    match map.operations().perf_output(number, number, &value) {
                        Ok(()) => written += 1,
                        Err(errno) => assert_eq!(errno, Errno::ENOSPC),
                    }
                }
                let lost = buffers.0[number as usize].lost();
                assert_eq!(written + lost, u64::from(values));
                waiting.fetch_sub(1, Release);
                return;
            }
            let own = &buffers.0[(number - programs) as usize];
            let mut last = None;
            loop {
                let is_last = waiting.load(Acquire) == 0;
                match own.read() {
                    Some(record) => {
                        let next = Some(u64::from_le_bytes(record[..].try_into().unwrap()));
                        assert!(last < next, "records in another order");
                        last = next;
                    }
                    None if is_last => break,
                    None => thread::yield_now(),
                }
            }
        });
    }
}
