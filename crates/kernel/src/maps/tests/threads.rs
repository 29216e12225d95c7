//! All operations of each kind of map that programs and hosts use at once, in 2 and 8
//! threads. Every test holds what must be true whatever the order: no element is lost or
//! there twice, no value is torn under its lock, what stays is found all the time.

mod keyed;
mod objects;
mod streams;
mod values;

use std::thread;

use program::MapParams;
use spec::maps::{MapFlags, MapKind};

use super::super::{Host, Map, ValueLayout};

/// Numbers of threads.
const THREADS: [u32; 2] = [2, 8];

/// Possible CPUs: each thread has one.
const CPUS: u32 = 8;

/// Rounds of a thread, fewer in Miri, which takes a thousand times as long.
const fn rounds(count: u32) -> u32 {
    match cfg!(miri) {
        true => count / 1_000 + 1,
        false => count,
    }
}

/// A map of a kind, of keys and values of so many bytes.
fn map(kind: MapKind, key_size: u32, value: ValueLayout, entries: u32, flags: MapFlags) -> Map {
    let params = MapParams {
        map_type: kind as u32,
        key_size,
        value_size: value.size as u32,
        max_entries: entries,
        flags,
        ..MapParams::default()
    };
    Map::create(&params, value, &Host::new(CPUS, 1)).unwrap()
}

/// Runs a function in so many threads, by their numbers, and joins each of them:
/// ThreadSanitizer sees that, not the end of a scope.
fn in_threads(count: u32, run: impl Fn(u32, Random) + Sync) {
    thread::scope(|scope| {
        let run = &run;
        let spawn = |number| scope.spawn(move || run(number, Random::of(number)));
        let threads: Vec<_> = (0..count).map(spawn).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Numbers that are different in each thread, and the same in each run.
struct Random(u32);

impl Random {
    /// Those of a thread.
    fn of(thread: u32) -> Random {
        Random(thread + 1)
    }

    /// A number below a bound up to 2^16.
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % bound
    }
}
