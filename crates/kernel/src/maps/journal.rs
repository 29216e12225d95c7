//! Maps that remember what was written to them, so that they can be set back to an earlier state at
//! a cost that depends on what was written, not on their size.
//!
//! A [`Journal`] stands in front of the operations of a kind and saves a value before it is changed, or
//! before a program gets its address. Lookups are not inlined, since they have to be seen. Operations whose
//! keys are not known (iteration, queues, evictions of LRU maps that are half full) set back the whole map.
//! Of an LRU map that is almost full an entry may be missing after that, as each that is put back may evict.

mod operations;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spec::maps::MapKind;

use super::resources::NoResources;
use super::{Definition, SyscallOperations};

/// The operations of a map, with a journal of what was written.
#[derive(Debug)]
pub struct Journal {
    inner: Arc<dyn SyscallOperations>,
    kind: MapKind,
    key_size: usize,
    /// Bytes of a value in the operations of bpf(2).
    value_len: usize,
    max_entries: u32,
    log: Mutex<Log>,
}

/// What was written since the state to which the map is set back.
#[derive(Debug, Default)]
struct Log {
    /// True once there is such a state.
    is_on: bool,
    notes: Vec<Note>,
    /// Keys, each followed by the value that it had.
    bytes: Vec<u8>,
    /// Keys are not known: all entries are set back.
    is_whole: bool,
    /// The entries of the state.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Of an LPM trie: entries by prefixes whose other bits are zero, and the lengths, longest first.
    prefixes: HashMap<Vec<u8>, usize>,
    lengths: Vec<u32>,
}

/// An entry that was written.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Place of the key.
    start: usize,
    had_value: bool,
}

/// Bytes of values that are copied without an allocation.
const SMALL_VALUE: usize = 256;

/// Bytes of the words in which written values are told.
const WORD: usize = 4;

/// Calls a function with the words in which a value differs from another one, of which missing bytes are
/// zero.
fn differing_words(now: &[u8], before: &[u8], each: &mut dyn FnMut(usize, u64)) {
    if now == before {
        return;
    }
    const ZEROS: &[u8] = &[0; WORD];
    for (at, word) in now.chunks(WORD).enumerate() {
        let known = before.chunks(WORD).nth(at);
        let known = known.unwrap_or(&ZEROS[..word.len()]);
        if word != known {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            each(at * WORD, u64::from_le_bytes(bytes));
        }
    }
}

impl Journal {
    pub(super) fn new(inner: Arc<dyn SyscallOperations>, map: &Definition, copies: u32) -> Journal {
        let value_len = match map.is_percpu() {
            true => map.value.rounded() * copies as usize,
            false => map.value.size,
        };
        Journal {
            inner,
            kind: map.kind,
            key_size: map.params.key_size as usize,
            value_len,
            max_entries: map.params.max_entries,
            log: Mutex::default(),
        }
    }

    /// True for queues and stacks: of the kinds that hold values, these alone have no keys.
    fn is_queue(&self) -> bool {
        self.key_size == 0
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the state of now the one that [`Journal::reset`] sets the map back to.
    pub fn mark(&self) {
        let entries = match self.is_queue() {
            true => self.queued(),
            false => self.entries(),
        };
        let mut log = self.log();
        *log = Log {
            is_on: true,
            ..Log::default()
        };
        if self.kind == MapKind::LpmTrie {
            for (at, (key, _)) in entries.iter().enumerate() {
                let len = prefix_len(key);
                log.prefixes.insert(masked(key, len), at);
                if !log.lengths.contains(&len) {
                    log.lengths.push(len);
                }
            }
            log.lengths.sort_by_key(|len| u32::MAX - len);
        }
        log.entries = entries;
    }

    /// Sets the map back.
    pub fn reset(&self) {
        self.reset_observed(&mut |_, _| {});
    }

    /// Sets the map back, and calls a function with each value that was written, in words of 4 bytes: the
    /// place in the value, and what was there. Behind them comes the number of entries that were added, or of
    /// all, if any may have been written, at the place behind the value.
    pub fn reset_observed(&self, each: &mut dyn FnMut(usize, u64)) {
        let mut log = self.log();
        if log.is_whole {
            each(self.value_len, self.restore(&log.entries) as u64);
        } else {
            let mut large = Vec::new();
            let mut small = [0; SMALL_VALUE];
            let now = match small.get_mut(..self.value_len) {
                Some(now) => now,
                None => {
                    large.resize(self.value_len, 0);
                    &mut large[..]
                }
            };
            // What was added makes room first.
            let mut added = 0;
            for note in log.notes.iter().filter(|note| !note.had_value) {
                let key = &log.bytes[note.start..][..self.key_size];
                if self.inner.copy(key, now).is_ok() {
                    added += 1;
                    differing_words(now, &[], each);
                    let _ = self.inner.delete(0, key);
                }
            }
            if added > 0 {
                each(self.value_len, added);
            }
            for note in log.notes.iter().filter(|note| note.had_value) {
                let (key, rest) = log.bytes[note.start..].split_at(self.key_size);
                let value = &rest[..self.value_len];
                let is_there = self.inner.copy(key, now).is_ok();
                match is_there {
                    true => differing_words(now, value, each),
                    false => each(self.value_len + 1, 1),
                }
                let is_exact = self.kind != MapKind::LpmTrie;
                if !(is_exact && is_there && now == value) {
                    let _ = self.inner.store(key, value, 0, &NoResources);
                }
            }
        }
        log.notes.clear();
        log.bytes.clear();
        log.is_whole = false;
    }

    /// Keys that may have been written since, with their values now; `None` if all may have been.
    pub fn written(&self) -> Option<Vec<Written>> {
        let log = self.log();
        if log.is_whole {
            return None;
        }
        let written = log.notes.iter().map(|note| {
            let key = log.bytes[note.start..][..self.key_size].to_vec();
            let mut value = vec![0; self.value_len];
            let is_there = self.inner.copy(&key, &mut value).is_ok();
            (key, is_there.then_some(value))
        });
        Some(written.collect())
    }

    fn put_back(&self, key: &[u8], value: &[u8]) {
        let mut now = vec![0; self.value_len];
        let is_exact = self.kind != MapKind::LpmTrie;
        let is_same = is_exact && self.inner.copy(key, &mut now).is_ok() && now == value;
        if !is_same {
            let _ = self.inner.store(key, value, 0, &NoResources);
        }
    }

    /// Sets all entries back; their number before.
    fn restore(&self, entries: &[(Vec<u8>, Vec<u8>)]) -> usize {
        if self.is_queue() {
            let mut value = vec![0; self.value_len];
            let mut count = 0;
            while self.inner.pop(&mut value).is_ok() {
                count += 1;
            }
            for (_, value) in entries {
                let _ = self.inner.push(value, 0);
            }
            return count;
        }
        let found = self.entries();
        for (key, _) in &found {
            if !entries.iter().any(|(known, _)| known == key) {
                let _ = self.inner.delete(0, key);
            }
        }
        for (key, value) in entries {
            self.put_back(key, value);
        }
        found.len()
    }

    /// All entries.
    fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut next = vec![0; self.key_size];
        let mut last: Option<Vec<u8>> = None;
        while self.inner.next_key(last.as_deref(), &mut next).is_ok() {
            let mut value = vec![0; self.value_len];
            if self.inner.copy(&next, &mut value).is_ok() {
                entries.push((next.clone(), value));
            }
            last = Some(next.clone());
        }
        entries
    }

    /// The values of a queue, which stay in it, in the order in which they are pushed.
    fn queued(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut values = Vec::new();
        let mut value = vec![0; self.value_len];
        while self.inner.pop(&mut value).is_ok() {
            values.push((Vec::new(), value.clone()));
        }
        if self.kind == MapKind::Stack {
            values.reverse();
        }
        for (_, value) in &values {
            let _ = self.inner.push(value, 0);
        }
        values
    }

    /// Saves the value of a key.
    fn note(&self, key: &[u8]) {
        let log = &mut *self.log();
        if !log.is_on || log.is_whole {
            return;
        }
        let is_known = |note: &Note| log.bytes[note.start..][..key.len()] == *key;
        if log.notes.iter().any(is_known) {
            return;
        }
        let start = log.bytes.len();
        log.bytes.extend_from_slice(key);
        let end = log.bytes.len();
        log.bytes.resize(end + self.value_len, 0);
        let had_value = match self.kind == MapKind::LpmTrie {
            // A lookup would find a shorter prefix, too.
            true => match log.prefixes.get(&masked(key, prefix_len(key))) {
                Some(at) => {
                    let (known, value) = &log.entries[*at];
                    log.bytes[start..end].copy_from_slice(known);
                    log.bytes[end..].copy_from_slice(value);
                    true
                }
                None => false,
            },
            false => self.inner.copy(key, &mut log.bytes[end..]).is_ok(),
        };
        if !had_value {
            log.bytes.truncate(end);
        }
        log.notes.push(Note { start, had_value });
    }

    /// Saves the value that a lookup of a key found.
    fn note_found(&self, key: &[u8]) {
        if self.kind != MapKind::LpmTrie {
            return self.note(key);
        }
        let found = {
            let log = self.log();
            let len = prefix_len(key);
            let mut lengths = log.lengths.iter().filter(|known| **known <= len);
            lengths.find_map(|len| {
                let at = log.prefixes.get(&masked(key, *len))?;
                Some(log.entries[*at].0.clone())
            })
        };
        // Others came with an update, which is noted.
        if let Some(found) = found {
            self.note(&found);
        }
    }

    /// Notes that an entry is added or changed.
    fn note_update(&self, key: &[u8]) {
        // Room for a new entry may be taken from any other one.
        const SPARE: usize = 256;
        let entries = self.log().entries.len();
        if self.kind.is_lru() && entries > 0 && entries * 2 + SPARE > self.max_entries as usize {
            return self.note_whole();
        }
        self.note(key);
    }

    /// Notes that any entry may be changed.
    fn note_whole(&self) {
        let mut log = self.log();
        log.is_whole = log.is_on;
    }
}

/// A key with its value, if it is there.
pub type Written = (Vec<u8>, Option<Vec<u8>>);

/// Bits of the prefix that a key of an LPM trie is.
fn prefix_len(key: &[u8]) -> u32 {
    key.first_chunk().map_or(0, |len| u32::from_le_bytes(*len))
}

/// A key of an LPM trie, cut to so many bits.
fn masked(key: &[u8], len: u32) -> Vec<u8> {
    let mut masked = len.to_le_bytes().to_vec();
    let mut left = len;
    for byte in key.iter().skip(4) {
        let bits = left.min(8);
        masked.push((u16::from(*byte) & (0xff00 >> bits) & 0xff) as u8);
        left -= bits;
    }
    masked
}
