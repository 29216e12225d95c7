//! Special fields of values: what becomes of them when a value is freed or replaced.

use std::ops::Range;
use std::sync::Arc;

use vm::sync::atomic::AtomicU64;
use vm::{CellSlice, Objects, OwningField, Timers};

use super::{Definition, Host};

/// The special fields of a map's values that hold something of the host.
#[derive(Debug)]
pub(super) struct SpecialFields {
    /// Byte ranges that are zero in a new value: all but those of locks.
    cleared: Vec<Range<usize>>,
    /// The timers of the host, and the places of timers and work queues.
    timers: (Arc<Timers>, Vec<Range<usize>>),
    /// The objects of the host, if values own some, and the fields that do.
    owning: Option<(Arc<Objects>, Vec<OwningField>)>,
}

impl SpecialFields {
    pub(super) fn new(map: &Definition, host: &Host) -> SpecialFields {
        let special = map.value.special.iter();
        let locks = [map.value.lock, map.value.resilient_lock];
        let cleared = special.filter(|field| !locks.contains(&Some(field.start)));
        let timers = map.value.timers();
        let timers = timers.filter_map(|offset| special_at(map, offset));
        SpecialFields {
            cleared: cleared.cloned().collect(),
            timers: (Arc::clone(&host.timers), timers.collect()),
            owning: match map.value.owning.is_empty() {
                true => None,
                false => Some((Arc::clone(&host.objects), map.value.owning.clone())),
            },
        }
    }

    /// Frees what a value holds: its timer is cancelled, its objects are dropped
    /// (`bpf_obj_free_fields`).
    pub(super) fn free(&self, value: &[AtomicU64]) {
        if self.cleared.is_empty() {
            return;
        }
        let value = CellSlice::new(value, value.len() * 8);
        let (timers, places) = &self.timers;
        for place in places {
            let start = value.address().addr() as u64;
            timers.free(start + place.start as u64..start + place.end as u64);
        }
        if let Some((objects, fields)) = &self.owning {
            objects.free_fields(value, fields);
        }
        for field in &self.cleared {
            value.write(field.start, &vec![0; field.len()]);
        }
    }
}

/// True if bytes at an address on the host are in cells.
pub(super) fn covers(cells: &[AtomicU64], address: u64, len: usize) -> bool {
    let start = cells.as_ptr().addr() as u64;
    let size = size_of_val(cells) as u64;
    let offset = address.checked_sub(start);
    offset.is_some_and(|offset| {
        let end = offset.checked_add(len as u64);
        end.is_some_and(|end| end <= size)
    })
}

/// The special field that starts at an offset.
fn special_at(map: &Definition, offset: usize) -> Option<Range<usize>> {
    let mut special = map.value.special.iter();
    special.find(|field| field.start == offset).cloned()
}
