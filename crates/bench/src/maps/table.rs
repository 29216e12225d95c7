//! The hash table in native code: hashbrown with its default hash function, values boxed,
//! so that their addresses are stable as in a map of BPF, or inline.

use std::time::Duration;

use hashbrown::HashMap;

use super::workload::{Entries, OPERATIONS, advance, flow, flow_index};
use crate::race::{Contender, timed};

/// A flow, as a key.
type Key = [u64; 2];
/// Two counters.
type Value = [u64; 2];

/// Operations of a run on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableWork {
    /// Reads a counter of flows, of which there are so many less one.
    Lookup(u64),
    /// Replaces the value of flows.
    Update(u64),
    /// Removes flows and adds them again.
    Delete(u64),
}

/// A place for a value.
trait Slot {
    fn new(value: Value) -> Self;
    fn value(&mut self) -> &mut Value;
}

impl Slot for Box<Value> {
    fn new(value: Value) -> Self {
        Box::new(value)
    }

    fn value(&mut self) -> &mut Value {
        self
    }
}

impl Slot for Value {
    fn new(value: Value) -> Self {
        value
    }

    fn value(&mut self) -> &mut Value {
        self
    }
}

struct Running<S> {
    table: HashMap<Key, S>,
    work: TableWork,
    state: u64,
}

/// A table with boxed values.
pub(super) fn boxed(work: TableWork, entries: &Entries) -> impl Contender<()> + use<> {
    Running::<Box<Value>>::new(work, entries)
}

/// A table with values beside the keys.
pub(super) fn inline(work: TableWork, entries: &Entries) -> impl Contender<()> + use<> {
    Running::<Value>::new(work, entries)
}

impl<S: Slot> Running<S> {
    fn new(work: TableWork, entries: &Entries) -> Running<S> {
        let words = |bytes: &[u8]| {
            let word = |at: usize| {
                let word = bytes[at..].first_chunk();
                u64::from_le_bytes(*word.expect("keys and values have 16 bytes"))
            };
            [word(0), word(8)]
        };
        let entries = entries.iter();
        Running {
            table: entries
                .map(|(key, value)| (words(key), S::new(words(value))))
                .collect(),
            work,
            state: 0,
        }
    }

    #[inline(always)]
    fn repeat(
        &mut self,
        mask: u64,
        mut work: impl FnMut(&mut HashMap<Key, S>, Key, u64) -> u64,
    ) -> u32 {
        let mut sum = 0u64;
        for _ in 0..OPERATIONS {
            self.state = advance(self.state);
            let key = flow(flow_index(self.state, mask));
            sum = sum.wrapping_add(work(&mut self.table, key, self.state));
        }
        sum as u32 & super::workload::RESULT
    }

    /// One run of the program.
    #[inline(never)]
    fn run(&mut self) -> u32 {
        match self.work {
            TableWork::Lookup(mask) => self.repeat(mask, |table, key, _| {
                table.get_mut(&key).map_or(0, |slot| slot.value()[0])
            }),
            TableWork::Update(mask) => self.repeat(mask, |table, key, state| {
                match table.get_mut(&key) {
                    Some(slot) => *slot.value() = [state, 0],
                    None => drop(table.insert(key, S::new([state, 0]))),
                }
                0
            }),
            TableWork::Delete(mask) => self.repeat(mask, |table, key, state| {
                table.remove(&key);
                table.insert(key, S::new([state, 0]));
                0
            }),
        }
    }
}

impl<S: Slot> Contender<()> for Running<S> {
    fn answer(&mut self, _: &()) -> u32 {
        self.run()
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        timed(|| (0..rounds).fold(0, |_, _| self.run()))
    }
}
